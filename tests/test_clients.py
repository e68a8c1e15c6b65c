"""Every recipe for another library is in the guide, short, and in the table of `make clients`."""

import ast

import pytest

from .recipes import GUIDE, RECIPES, ROOT, shown


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_is_short_in_the_guide_and_has_passed(recipe):
    assert ast.get_docstring(ast.parse(recipe.read_text()))
    assert len([line for line in shown(recipe).splitlines() if line]) <= 15
    place = recipe.relative_to(ROOT).as_posix()
    assert f"[{recipe.name}](../../../{place}): " in (guide := GUIDE.read_text())
    assert f"\n\n<!-- show: {place} -->\n" in guide
    assert f"(../tests/clients/{recipe.name}) | yes |" in (ROOT / "training" / "CLIENTS.md").read_text()
