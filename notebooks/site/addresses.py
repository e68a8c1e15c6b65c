"""What follows from pyproject.toml and CHANGELOG.md: the citation, and the first cell of each notebook.

    python notebooks/site/addresses.py            print the files that differ from them
    python notebooks/site/addresses.py --write    rewrite these
    python notebooks/site/addresses.py --release v0.1.0 --notes notes.md
                                         check that all is ready for this tag, write the notes of the release, and make
                                         README.md's links absolute, as the package's page on an index needs them

pyproject.toml names the version, and from its publication on the repository's address (`[project.urls]`). CHANGELOG.md
names the day of the version. CITATION.cff and the BibTeX entry of README.md repeat them. In Colab, the first cell of a
notebook clones the repository and installs mergefall; as long as it is not published, it asks for an address.
"""

import argparse
import json
import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ADDRESS: str | None = PROJECT.get("urls", {}).get("Repository")
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
FIRST_CELL = """\
# In Colab, this cell installs mergefall. Where it is installed, the cell does nothing.
from importlib.util import find_spec
from pathlib import Path

if find_spec("mergefall_training") is None:
    ADDRESS = "{address}"  # {note}
    if not ADDRESS:
        message = 'mergefall is missing. In a clone: pip install -e ".[train,render]". In Colab: fill in ADDRESS above.'
        raise ModuleNotFoundError(message)
    !git clone --quiet --depth 1 {{ADDRESS}} mergefall
    %pip install --quiet "./mergefall[train,render]"
if Path("mergefall/notebooks").is_dir():
    %cd -q mergefall/notebooks
"""
BIBTEX = """\
@software{{mergefall,
  title   = {{{title}}},
  author  = {{{{{author}}}}},
  year    = {{{year}}},
  version = {{{version}}},
  license = {{{license}}},{url}
}}
"""


def released() -> str:
    """The day of the version, from its heading in CHANGELOG.md. Raises ValueError if it has none."""
    heading = rf"^## \[{re.escape(PROJECT['version'])}\] - (\d{{4}}-\d\d-\d\d)$"
    found = re.search(heading, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise ValueError(f"CHANGELOG.md has no heading '## [{PROJECT['version']}] - YYYY-MM-DD'")
    return found[1]


def citation(text: str) -> str:
    """CITATION.cff with version, day, licence and address."""
    text = re.sub(r"^(date-released|repository-code): .*\n", "", text, flags=re.MULTILINE)
    address = f'repository-code: "{ADDRESS}"\n' if ADDRESS else ""
    lines = f"version: {PROJECT['version']}\ndate-released: {released()}\nlicense: {PROJECT['license']}\n{address}"
    return re.sub(r"^version: .*\nlicense: .*\n", lines, text, flags=re.MULTILINE)


def bibtex(text: str) -> str:
    """README.md with the BibTeX entry of CITATION.cff."""
    cff = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    title, author = (re.search(rf'{key}: "(.*)"', cff)[1] for key in ("title", "- name"))
    url = f"\n  url     = {{{ADDRESS}}}," if ADDRESS else ""
    entry = BIBTEX.format(title=title, author=author, year=released()[:4], url=url, **PROJECT)
    return re.sub(r"```bibtex\n.*?```", lambda _: f"```bibtex\n{entry}```", text, flags=re.DOTALL)


def notebook(text: str) -> str:
    """A notebook with the first cell of all notebooks below its title; cells are counted anew."""
    content = json.loads(text)
    note = (
        "of the repository"
        if ADDRESS
        else "mergefall is not published yet: for git clone, the address of your own copy"
    )
    cell = {"cell_type": "code", "execution_count": None, "id": "install", "metadata": {}, "outputs": []}
    cell["source"] = FIRST_CELL.format(address=ADDRESS or "", note=note).rstrip("\n").splitlines(keepends=True)
    content["cells"] = [one for one in content["cells"] if one["id"] != "install"]
    content["cells"].insert(1, cell)
    code = [one for one in content["cells"] if one["cell_type"] == "code"]
    for count, one in enumerate(code, start=1):
        for counted in (one, *(output for output in one["outputs"] if "execution_count" in output)):
            counted["execution_count"] = count
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def notes() -> str:
    """The section of the version in CHANGELOG.md, without its heading."""
    _, _, after = (
        (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition(f"## [{PROJECT['version']}] - {released()}\n")
    )
    return after.partition("\n## ")[0].strip() + "\n"


def absolute(text: str, address: str, ref: str) -> str:
    """A page of the top folder with absolute links: pictures to their raw files, all others to the repository's pages.

    >>> absolute("[a](b.md#c) ![d](e.png) [f](#g) [h](https://i)", "https://github.com/o/n", "v1")
    '[a](https://github.com/o/n/blob/v1/b.md#c) ![d](https://github.com/o/n/raw/v1/e.png) [f](#g) [h](https://i)'
    """
    text = re.sub(r"(!\[[^]]*\]\()(?!https?:)", rf"\1{address}/raw/{ref}/", text)
    return re.sub(r"(?<!!)(\[[^]]*\]\()(?!https?:|#)", rf"\1{address}/blob/{ref}/", text)


def prepare(tag: str, file: str) -> None:
    """What `--release` does. Raises ValueError if something is not ready."""
    if tag != f"v{PROJECT['version']}":
        raise ValueError(f"the tag is {tag}; pyproject.toml has version {PROJECT['version']}")
    if ADDRESS is None:
        raise ValueError("pyproject.toml names no address: fill in [project.urls]")
    if late := [path.name for path, text in rendered().items() if text != path.read_text(encoding="utf-8")]:
        raise ValueError(f"run python notebooks/site/addresses.py --write for {', '.join(late)}")
    Path(file).write_text(notes(), encoding="utf-8")
    readme = ROOT / "README.md"
    readme.write_text(absolute(readme.read_text(encoding="utf-8"), ADDRESS, tag), encoding="utf-8")


def in_colab(path: str) -> str:
    """A line of Markdown that opens a tracked notebook in Colab; empty as long as no address is known."""
    place = (ADDRESS or "").removeprefix("https://github.com/")
    return f"\n\n[Open in Colab](https://colab.research.google.com/github/{place}/blob/main/{path})" if place else ""


def rendered() -> dict[Path, str]:
    """Each file that repeats something, as it should be."""
    makers = {ROOT / "CITATION.cff": citation, ROOT / "README.md": bibtex} | dict.fromkeys(NOTEBOOKS, notebook)
    return {path: make(path.read_text(encoding="utf-8")) for path, make in makers.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--release", metavar="TAG")
    parser.add_argument("--notes", metavar="FILE", default="notes.md")
    options = parser.parse_args()
    if options.release:
        return prepare(options.release, options.notes)
    for path, text in rendered().items():
        if text != path.read_text(encoding="utf-8"):
            print(path.relative_to(ROOT))
            if options.write:
                path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
