"""Recipes and stand-ins in; how else a call can be said in torch's own spelling, and what stands for a helper, out.

A recipe names an API, the parameters of torch's own signature, and a replacement in which they stand in braces. A
stand-in is the code of a small private helper of torch's, used only where its import fails.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from migrate_lens.model.report import Symptom
from migrate_lens.rulebook import document
from migrate_lens.rulebook.document import Field, Schema, Table, nearest
from migrate_lens.shipped import folder

SLOT = re.compile(r"\{(\w+)\}")

_API = Field("api", document.text_or_texts)
_SIGNATURE = Field("signature", document.text)
_REPLACE = Field("replace", document.text)
_WHY = Field("why", document.text)
_SYMPTOM: Field[tuple[Symptom, ...]] = Field("symptom", document.choices(Symptom, "symptom"), ())
_GIVEN: Field[tuple[str, ...]] = Field("given", document.texts, ())
_RECIPE = Schema((_API, _SIGNATURE, _REPLACE, _WHY, _SYMPTOM, _GIVEN), "every recipe has api, signature, replace, why")
_NAME = Field("name", document.text)
_CODE = Field("code", document.text)
_SHIM = Schema((_NAME, _WHY, _CODE), "every stand-in has name, why, code")
_RECIPES: Field[tuple[Table, ...]] = Field("recipe", document.tables(_RECIPE), ())
_SHIMS: Field[tuple[Table, ...]] = Field("shim", document.tables(_SHIM), ())
SCHEMA = Schema((_RECIPES, _SHIMS), "a file of recipes has recipes or shims")


@dataclass(frozen=True, slots=True)
class Recipe:
    """One way to say one call.

    Attributes:
        apis: torch names; a method and a function of one signature may share a recipe.
        parameters: names of torch's parameters in order, with their defaults or None.
        replace: the replacement.
        why: why it is the same.
        symptoms: where it is suggested; empty: everywhere.
        given: parameters that must be given.
    """

    apis: tuple[str, ...]
    parameters: Mapping[str, str | None]
    replace: str
    why: str
    symptoms: tuple[Symptom, ...] = ()
    given: tuple[str, ...] = ()

    @property
    def slots(self) -> tuple[str, ...]:
        """The parameters that the replacement names, each as often as it does."""
        return tuple(SLOT.findall(self.replace))

    def answers(self, api: str, symptom: str) -> bool:
        """Whether it is about a call that shows so."""
        return api in self.apis and (not self.symptoms or symptom in self.symptoms)


@dataclass(frozen=True, slots=True)
class Shim:
    """What stands in for a private helper of torch's: its full name, why that is the same, and its code."""

    name: str
    why: str
    code: str


@dataclass(frozen=True, slots=True)
class Recipes:
    """Everything that a folder of recipes has."""

    recipes: tuple[Recipe, ...]
    shims: Mapping[str, Shim]


@cache
def load() -> Recipes:
    """All shipped recipes and stand-ins.

    Raises:
        RuleError: a file is not valid.
    """
    return read(folder("rules/recipes"))


def read(place: Path) -> Recipes:
    """The recipes and stand-ins of a folder, by file and in the order in which they stand there.

    Raises:
        RuleError: one is not valid, or two stand-ins have one name; the message names the file and the key.
    """
    recipes: list[Recipe] = []
    shims: dict[str, Shim] = {}
    for path in document.files(place):
        table = document.load(path, SCHEMA)
        recipes += [_recipe(entry) for entry in table[_RECIPES]]
        for entry in table[_SHIMS]:
            shim = Shim(entry[_NAME], entry[_WHY], entry[_CODE])
            if shim.name in shims:
                raise entry.spot.error(f"there are two stand-ins for {shim.name}", "keep one")
            shims[shim.name] = shim
    return Recipes(tuple(recipes), shims)


def _recipe(table: Table) -> Recipe:
    recipe = Recipe(
        apis=table[_API],
        parameters=signature(table[_SIGNATURE]),
        replace=table[_REPLACE],
        why=table[_WHY],
        symptoms=table[_SYMPTOM],
        given=table[_GIVEN],
    )
    for name in (*recipe.slots, *recipe.given):
        if name not in recipe.parameters:
            raise table.spot.error(f"{recipe.apis[0]} has no parameter {name!r}", nearest(name, recipe.parameters))
    return recipe


def signature(text: str) -> dict[str, str | None]:
    """``"input; dim=-1"`` as names and defaults."""
    parameters: dict[str, str | None] = {}
    for part in text.split(";"):
        name, equals, default = part.partition("=")
        if name.strip():
            parameters[name.strip()] = default.strip() if equals else None
    return parameters
