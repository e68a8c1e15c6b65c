"""Every recipe for another library stands in training/README.md as it is run, and in the table of `make clients`."""

import ast

import pytest

from .recipes import RECIPES, ROOT, shown


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_is_short_stands_in_the_page_and_has_passed(recipe):
    assert ast.get_docstring(ast.parse(recipe.read_text()))
    code = shown(recipe)
    assert f"```python\n{code}```\n" in (ROOT / "training" / "README.md").read_text()
    assert len([line for line in code.splitlines() if line]) <= 15
    assert f"(../tests/clients/{recipe.name}) | yes |" in (ROOT / "training" / "CLIENTS.md").read_text()
