"""Every recipe for another library compiles, and stands in the table that `make clients` writes."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECIPES = sorted(path for path in (ROOT / "tests" / "clients").glob("*.py") if path.name != "run.py")


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_compiles_and_is_in_the_table(recipe):
    assert ast.get_docstring(ast.parse(recipe.read_text()))
    table = (ROOT / "training" / "CLIENTS.md").read_text()
    assert f"(../tests/clients/{recipe.name}) | yes |" in table
