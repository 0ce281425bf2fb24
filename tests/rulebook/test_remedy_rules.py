"""Recipes, stand-ins and bridges, in; each answers for what it was written for, and typos are refused, out."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from migrate_lens.model.errors import RuleError
from migrate_lens.model.report import Symptom
from migrate_lens.remedies.fix.recipes import filled
from migrate_lens.remedies.fix.slots import FUNCTION, Site
from migrate_lens.rulebook import bridges, recipes
from migrate_lens.rulebook.bridges import AddName, Bridge, CallSite, ShimHeaders
from migrate_lens.rulebook.matching import leaders
from migrate_lens.rulebook.recipes import Recipe

RECIPES = recipes.load().recipes
BRIDGES = bridges.load()


# -- recipes -----------------------------------------------------------------------------------------------------------


def hidden_by(recipe: Recipe, others: Iterable[Recipe]) -> list[Recipe]:
    """The recipes that suggest the very same for every call that this one is for."""
    return [
        other
        for other in others
        if set(recipe.apis) <= set(other.apis)
        and set(recipe.symptoms or Symptom) <= set(other.symptoms or Symptom)
        and (recipe.parameters, recipe.replace) == (other.parameters, other.replace)
        and set(other.given) <= set(recipe.given)
    ]


def own_call(recipe: Recipe) -> Site:
    """The call that a recipe is for: every parameter that it needs is given by name."""
    needed = [name for name, default in recipe.parameters.items() if default is None]
    names = tuple(dict.fromkeys((*needed, *recipe.given)))
    node = ast.parse("x", mode="eval").body
    return Site(FUNCTION, recipe.apis[0], names, (node,) * len(names), node)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.apis[0])
def test_a_recipe_answers_the_call_that_it_is_for(recipe: Recipe) -> None:
    assert filled(recipe, own_call(recipe)) is not None


def test_a_recipe_that_no_call_can_reach_is_noticed() -> None:
    """What must be given and is not named in the replacement would be dropped: such a call is left alone."""
    planted = replace(RECIPES[0], parameters={"input": None, "inplace": "False"}, given=("inplace",))
    assert filled(planted, own_call(planted)) is None


@pytest.mark.parametrize("number", range(len(RECIPES)))
def test_a_recipe_suggests_what_no_earlier_one_does(number: int) -> None:
    assert not hidden_by(RECIPES[number], RECIPES[:number])


def test_a_recipe_that_another_one_hides_is_noticed() -> None:
    planted = replace(RECIPES[0], symptoms=(Symptom.VALUE,), why="another reason")
    assert hidden_by(planted, RECIPES) == [RECIPES[0]]


RECIPE = '[[recipe]]\napi = "torch.f"\nsignature = "input; dim=0"\nreplace = "torch.g({input}, {dim})"\nwhy = "equal"\n'
SHIM = '[[shim]]\nname = "torch._f"\nwhy = "a helper"\ncode = "def _f(): ..."\n'


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        (RECIPE.replace("api", "apo"), "'api' is missing", "did you mean 'api'?"),
        (RECIPE.replace('why = "equal"\n', ""), "'why' is missing (in recipe 1)", "api, signature, replace, why"),
        (RECIPE + 'whi = "x"\n', "unknown key 'whi'", "did you mean 'why'?"),
        (RECIPE.replace("{dim}", "{dims}"), "torch.f has no parameter 'dims'", "did you mean 'dim'?"),
        (RECIPE + 'given = ["inputs"]\n', "torch.f has no parameter 'inputs'", "did you mean 'input'?"),
        (RECIPE + 'symptom = ["shap"]\n', "'shap' is no symptom", "did you mean 'shape'?"),
        (RECIPE + 'symptom = "shape"\n', "a list of texts is wanted, not 'shape' (in recipe 1.symptom)", "its folder"),
        (RECIPE + RECIPE.replace('"torch.f"', "3"), "a list of texts is wanted, not 3 (in recipe 2.api)", "folder"),
        (RECIPE.replace("recipe", "recipes"), "unknown key 'recipes'", "did you mean 'recipe'?"),
        (SHIM + SHIM, "there are two stand-ins for torch._f", "keep one"),
        (SHIM.replace('"a helper"', "true"), "a text is wanted, not True (in shim 1.why)", "its folder"),
        ("recipe = 1\n", "a list of tables is wanted, not 1 (in recipe)", "its folder"),
        ("[[recipe]\n", "Expected ", "repair the rule file"),
    ],
)
def test_a_recipe_that_is_not_valid_is_refused(text: str, message: str, remedy: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(RuleError) as caught:
        recipes.read(tmp_path)
    assert caught.value.message.startswith("mine.toml: ")
    assert message in caught.value.message
    assert remedy in caught.value.remedy


def test_a_good_recipe_is_read(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(RECIPE + SHIM)
    read = recipes.read(tmp_path)
    assert read.recipes == (
        Recipe(("torch.f",), {"input": None, "dim": "0"}, "torch.g({input}, {dim})", "equal", (), ()),
    )
    assert [shim.name for shim in read.shims.values()] == ["torch._f"]


# -- bridges -----------------------------------------------------------------------------------------------------------


def speakers(api: str, known: Sequence[Bridge]) -> list[str]:
    return [bridge.id for bridge in leaders(known, {"api": api})]


@pytest.mark.parametrize("bridge", BRIDGES, ids=lambda bridge: bridge.id)
def test_each_name_of_a_bridge_is_answered_by_it_and_by_no_other(bridge: Bridge) -> None:
    assert bridge.apis
    for api in bridge.apis:
        assert speakers(api, BRIDGES) == [bridge.id]


def test_a_bridge_that_nothing_can_reach_is_noticed() -> None:
    first = BRIDGES[0]
    hidden, twin = replace(first, id="hidden", priority=first.priority - 1), replace(first, id="twin")
    assert speakers(first.apis[0], (*BRIDGES, hidden)) == [first.id]
    assert speakers(first.apis[0], (*BRIDGES, twin)) == [first.id, "twin"]


BRIDGE = (
    'title = "t"\nkind = "add_name"\nuntil = "Paddle has it"\ncheck = "f();"\nheader = "x"\n[when]\napi = "at::f"\n'
)


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        (BRIDGE.replace("until", "untill"), "'until' is missing", "did you mean 'until'?"),
        (BRIDGE.replace("add_name", "add_nam"), "'add_nam' is no kind", "did you mean 'add_name'?"),
        (BRIDGE.replace('header = "x"\n', ""), "'header' is missing", "add_name"),
        (BRIDGE.replace("add_name", "call_site"), "'edit' is missing", "call_site"),
        (BRIDGE.replace("add_name", "shim_header"), "'shim' is missing", "shim_header"),
        (BRIDGE.replace("api", "apii"), "there is no fact 'apii' (in when)", "did you mean 'api'?"),
        (BRIDGE + '[[edit]]\npattern = "x"\n', "'replacement' is missing (in edit 1)", "a pattern and a replacement"),
    ],
)
def test_a_bridge_that_is_not_valid_is_refused(text: str, message: str, remedy: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(RuleError) as caught:
        bridges.read(tmp_path)
    assert caught.value.message.startswith("mine.toml: ")
    assert message in caught.value.message
    assert remedy in caught.value.remedy


def test_each_kind_of_bridge_has_its_own_change() -> None:
    kinds = {type(bridge.change) for bridge in BRIDGES}
    assert kinds == {AddName, CallSite, ShimHeaders}
    assert all(bridge.text for bridge in BRIDGES)
