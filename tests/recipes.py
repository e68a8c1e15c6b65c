"""The recipes for other libraries: `clients/*.py`, of which the guide shows what stands above `CHECKS`."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "notebooks" / "site" / "guides" / "libraries.md"
RECIPES = sorted(path for path in (ROOT / "tests" / "clients").glob("*.py") if path.name != "run.py")
CHECKS = "\n# What `make clients` checks beyond that:\n"


def shown(recipe):
    """The code of a recipe that the guide shows on the site, without its docstring."""
    code, _, _ = recipe.read_text(encoding="utf-8").partition(CHECKS)
    return code.split('"""\n\n', 1)[1]
