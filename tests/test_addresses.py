"""Version, addresses and the notebooks' first cells: what repeats pyproject.toml agrees with it."""

import re
import subprocess
import sys
from unittest.mock import Mock

import gymnasium as gym
import mergefall
import pytest
import yaml
from mergefall import imports

from notebooks.site import addresses

ROOT = addresses.ROOT
SENDS = re.compile(  # a text that sends people to an address or a name that somebody else may hold
    r"github\.com[/:]mergefall|mergefall\.(?:github\.io|readthedocs)"
    r"|(?:pip|pipx|uv|conda|mamba|pixi)\s+(?:pip\s+)?(?:install|add)\b[^\n#]*?[\s\"'`]mergefall(?![\w./:-]*\.whl)\b"
    r"|(?<!/)mergefall\[(?:train|render|ray|dev)"
)


def tracked():
    """Every tracked text, but for what says how to publish."""
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    if not files:
        pytest.skip("not a clone")
    for name in files.rstrip("\0").split("\0"):
        if name not in ("pyproject.toml", "notebooks/site/publish.md", "tests/test_addresses.py"):
            try:
                yield name, (ROOT / name).read_text(encoding="utf-8")
            except (UnicodeDecodeError, FileNotFoundError):
                continue


@pytest.mark.skipif(bool(addresses.ADDRESS), reason="published")
def test_nothing_sends_people_to_what_is_not_published():
    found = [f"{name}: {match[0]}" for name, text in tracked() for match in SENDS.finditer(text)]
    assert not found


@pytest.mark.parametrize("path", addresses.rendered(), ids=lambda path: path.name)
def test_what_repeats_the_project_agrees_with_it(path):
    """`python notebooks/site/addresses.py --write` makes it so."""
    assert path.read_text(encoding="utf-8") == addresses.rendered()[path]


def test_the_version_is_one():
    cff = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {mergefall.__version__}\ndate-released: {addresses.released()}\n" in cff
    assert addresses.PROJECT["version"] == mergefall.__version__


@pytest.mark.parametrize(
    ("urls", "command"), [(None, r"in a clone: pip install -e \"\.\[ray\]\""), (["x"], r"pip install \"name\[ray\]\"")]
)
def test_a_missing_extra_is_named_with_the_command_that_brings_it(monkeypatch, urls, command):
    entry = Mock()
    entry.dist.name, entry.dist.metadata.get_all.return_value = "name", urls
    monkeypatch.setattr(imports, "entry_points", lambda **kwargs: [entry])
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        gym.error.DependencyNotInstalled, match=rf"^ray is not installed: .* the extra 'ray' \({command}\)$"
    ):
        imports.import_extra("ray")
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        imports.import_extra("no_such_module")


def test_a_release_is_refused_until_it_is_ready(tmp_path, monkeypatch):
    notes, tag = tmp_path / "notes.md", f"v{mergefall.__version__}"
    with pytest.raises(ValueError, match=r"the tag is v9\.9; pyproject.toml has version"):
        addresses.prepare("v9.9", str(notes))
    monkeypatch.setattr(addresses, "ADDRESS", None)
    with pytest.raises(ValueError, match="names no address"):
        addresses.prepare(tag, str(notes))
    monkeypatch.setattr(addresses, "ADDRESS", "https://example.org/o/n")
    with pytest.raises(
        ValueError, match=r"--write for CITATION\.cff, .*2048\.ipynb, keys\.ipynb, tetris\.ipynb, training.ipynb"
    ):
        addresses.prepare(tag, str(notes))
    assert not notes.exists()
    monkeypatch.setattr(addresses, "ADDRESS", "https://github.com/o/n")
    assert "/github/o/n/blob/main/notebooks/2048.ipynb)" in addresses.in_colab("notebooks/2048.ipynb")


def test_a_release_has_notes_and_a_page_with_absolute_links(tmp_path, monkeypatch):
    (tmp_path / "README.md").write_text("[a](b.md)")
    (tmp_path / "CHANGELOG.md").write_bytes((ROOT / "CHANGELOG.md").read_bytes())
    monkeypatch.setattr(addresses, "ROOT", tmp_path)
    monkeypatch.setattr(addresses, "ADDRESS", "https://example.org/o/n")
    monkeypatch.setattr(addresses, "rendered", dict)
    addresses.prepare(f"v{mergefall.__version__}", str(tmp_path / "notes.md"))
    notes = (tmp_path / "notes.md").read_text()
    assert notes.strip()
    assert "\n## " not in notes
    assert (tmp_path / "README.md").read_text().startswith("[a](https://example.org/o/n/blob/v")


def test_the_recipe_for_conda_needs_what_the_project_needs():
    recipe = yaml.safe_load((ROOT / "notebooks" / "site" / "recipe.yaml").read_text(encoding="utf-8"))
    assert recipe["context"]["version"] == mergefall.__version__
    assert f">={recipe['context']['python_min']}" == addresses.PROJECT["requires-python"]
    _, *needed = recipe["requirements"]["run"]
    assert [one.replace(" ", "") for one in needed] == sorted(addresses.PROJECT["dependencies"])
