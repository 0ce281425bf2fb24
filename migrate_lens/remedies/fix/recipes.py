"""Recipes in ``rules/recipes/*.toml`` in; the replacements that they suggest for a call out.

A recipe names an API, the parameters of torch's own signature, and a replacement in which they stand in braces.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from migrate_lens.model.errors import RuleError
from migrate_lens.remedies.fix.slots import Form, Site
from migrate_lens.remedies.fix.strategies import Candidate, Kind, Troubled
from migrate_lens.shipped import folder

_NAME = re.compile(r"\{(\w+)\}")
_KEYS = frozenset(("api", "signature", "replace", "why", "symptom", "given"))


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
    symptoms: tuple[str, ...] = ()
    given: tuple[str, ...] = ()


@cache
def load() -> tuple[Recipe, ...]:
    """All shipped recipes.

    Raises:
        RuleError: a file is not valid.
    """
    return tuple(recipe for path in sorted(folder("rules/recipes").glob("*.toml")) for recipe in read(path))


def read(path: Path) -> tuple[Recipe, ...]:
    """The recipes of one file.

    Raises:
        RuleError: it is not valid; the message names the file and the key.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RuleError(f"recipes/{path.name}: {error}", "repair the file") from error
    return tuple(_recipe(path, entry) for entry in raw.get("recipe", ()))


def _recipe(path: Path, raw: Mapping[str, Any]) -> Recipe:
    for key in raw.keys() - _KEYS:
        raise RuleError(f"recipes/{path.name}: unknown key {key!r}", f"known: {', '.join(sorted(_KEYS))}")
    for key in ("api", "signature", "replace", "why"):
        if key not in raw:
            raise RuleError(
                f"recipes/{path.name}: a recipe without {key!r}", "every recipe has api, signature, replace, why"
            )
    apis = (raw["api"],) if isinstance(raw["api"], str) else tuple(raw["api"])
    parameters = signature(raw["signature"])
    for name in _NAME.findall(raw["replace"]):
        if name not in parameters:
            raise RuleError(
                f"recipes/{path.name}: {apis[0]} has no parameter {name!r}", f"known: {', '.join(parameters)}"
            )
    return Recipe(
        apis, parameters, raw["replace"], raw["why"], tuple(raw.get("symptom", ())), tuple(raw.get("given", ()))
    )


def signature(text: str) -> dict[str, str | None]:
    """``"input, dim=-1"`` as names and defaults."""
    found: dict[str, str | None] = {}
    for part in filter(None, (p.strip() for p in text.split(";"))):
        name, equals, default = part.partition("=")
        found[name.strip()] = default.strip() if equals else None
    return found


def by_recipe(call: Troubled) -> Iterator[Candidate]:
    """What the recipes suggest for a call."""
    for recipe in load():
        if call.api in recipe.apis and (not recipe.symptoms or call.symptom in recipe.symptoms):
            template = filled(recipe, call.site)
            if template is not None:
                yield Candidate(Kind.EQUAL_API, template, recipe.why)


def filled(recipe: Recipe, site: Site) -> str | None:
    """A recipe's replacement with the slots of a call; None where the call gives it something that it does not know."""
    bound = _bound(recipe, site)
    if bound is None or any(name not in bound for name in recipe.given):
        return None
    texts = {name: bound.get(name, default) for name, default in recipe.parameters.items()}
    if any(texts[name] is None for name in _NAME.findall(recipe.replace)):
        return None
    if set(bound) - set(_NAME.findall(recipe.replace)):
        return None
    return _NAME.sub(lambda found: str(texts[found[1]]), recipe.replace)


def _bound(recipe: Recipe, site: Site) -> dict[str, str] | None:
    """Parameters and the slots that are given for them."""
    if site.form not in (Form.FUNCTION, Form.METHOD, Form.OPERATOR, Form.ATTRIBUTE):
        return None
    names = list(recipe.parameters)
    found: dict[str, str] = {}
    for number, keyword in enumerate(site.keywords):
        name = keyword or (names[number] if number < len(names) else "")
        if not name or name not in recipe.parameters or name in found:
            return None
        found[name] = f"{{{number}}}"
    return found
