"""The pages hold: their code runs and prints what they say, their commands exist, their links lead somewhere."""

import base64
import json
import re
from functools import cache
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from mergefall_training import cli
from mergefall_training.compare import load_suite

from notebooks.site.staging import SECTIONS, readme

from . import commands
from .figures import QUESTIONS, records, table

ROOT = Path(__file__).parents[1]
CARDS = sorted(ROOT.glob("*/mergefall_*/**/README.md"))  # of trained networks
PAGES = [
    "README.md",
    "envs/README.md",
    "baselines/README.md",
    "training/README.md",
    "training/RESULTS.md",
    "tests/README.md",
    "tests/benchmarks/README.md",
    *(page.relative_to(ROOT).as_posix() for page in [*sorted(ROOT.glob("notebooks/site/**/*.md")), *CARDS]),
]
FENCED = re.compile(r"^```(\w+)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"(?:^    .*\n)+", re.MULTILINE)


@cache
def text(page):
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(language):
    """(page, number, code, what it prints) of each fenced block in a language."""
    cases = []
    for page in PAGES:
        found = [match.groups() for match in FENCED.finditer(text(page)) if match[1] == language]
        for number, (_, code, output) in enumerate(found, start=1):
            cases.append(pytest.param(page, number, code, output, id=f"{page}-{number}"))
    return cases


def shell_lines(page):
    """The lines of a page's shell blocks, continuation lines joined."""
    prose = FENCED.sub("", text(page))
    return [line.strip() for block in INDENTED.findall(prose) for line in block.replace("\\\n", " ").splitlines()]


@pytest.mark.parametrize(("page", "number", "code", "output"), blocks("python"))
def test_code_runs_and_prints_what_the_page_says(page, number, code, output, tmp_path, monkeypatch, capsys, registered):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / f"{page.replace('/', '_').replace('.md', '')}_{number}.py"
    file.write_text(code, encoding="utf-8")  # compiled code is kept under the file's content
    exec(compile(code, str(file), "exec"), {"__name__": "__main__"})
    if output is not None:
        assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == output.splitlines()


@pytest.mark.parametrize(("page", "number", "code", "output"), blocks("yaml"))
def test_suites_of_the_pages_are_suites(page, number, code, output, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(code, encoding="utf-8")
    assert load_suite(file).contests


@pytest.mark.parametrize("page", PAGES)
def test_shell_lines_exist(page):
    for line in shell_lines(page):
        commands.check(line)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    prose = re.sub(r"`[^`]*`", "", FENCED.sub("", text(page)))
    for target, _, anchor in re.findall(r"\]\((?!http)([^)#]*)(#([^)]+))?\)", prose):
        path = (ROOT / page).parent / target if target else ROOT / page
        assert path.exists(), f"{page}: {target}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {slug(heading) for heading in headings}, f"{page}: {target}#{anchor}"


def slug(heading):
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_the_first_page_is_short():
    assert len(text("README.md").splitlines()) <= 110
    assert len(FENCED.search(text("README.md"))[2].splitlines()) <= 10


def test_claims_of_the_first_page_are_in_the_figures():
    """Those in its prose; the test of the tables holds the others."""
    number = r"\d[\d.,]*\d(?: ?[kM]\b|×| %)?"  # 51.0 is not 51.0k
    known = {one for name in QUESTIONS for one in re.findall(number, table(name, records()))}
    (prose,) = re.findall(r"<!-- end -->\n(.*?)## ", text("README.md"), re.DOTALL)
    claimed = re.findall(number, prose)
    assert {"22", "5468.49"} <= set(claimed) <= known


def test_code_of_the_first_page_stays_code_on_the_site():
    def code(markdown):
        return [token.content for token in MarkdownIt().parse(markdown) if token.type in ("code_block", "fence")]

    pages = "\n\n".join(readme(title, "index") for title in SECTIONS)
    assert code(pages) == code(text("README.md"))


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_the_prose_exist(page):
    words = re.findall(r"`(mergefall [a-z-]+)", text(page))
    assert {word.split()[1] for word in words} <= cli.COMMANDS.keys(), words


@pytest.mark.parametrize("name", ["2048", "keys", "keys-costs", "tetris", "training"])
def test_pictures_of_notebooks_are_the_notebooks(name):
    folder = ROOT / "notebooks"
    cells = json.loads((folder / f"{name.partition('-')[0]}.ipynb").read_text())["cells"]
    shown = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    pictures = [base64.b64decode("".join(data["image/png"])) for data in shown if "image/png" in data]
    assert (folder / f"{name}.png").read_bytes() in pictures
