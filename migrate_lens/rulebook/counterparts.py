"""An API in, the text of each replacement that the rules know for it out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from migrate_lens.rulebook import bridges, recipes


def remedies(api: str) -> tuple[str, ...]:
    """The text of each replacement that the rules know for an API."""
    return _known().get(api, ())


@cache
def _known() -> Mapping[str, tuple[str, ...]]:
    known: dict[str, tuple[str, ...]] = {}
    for api, text in _all():
        known[api] = (*known.get(api, ()), text)
    return known


def _all() -> Iterator[tuple[str, str]]:
    shipped = recipes.load()
    for recipe in shipped.recipes:
        for api in recipe.apis:
            yield api, recipe.replace
    for shim in shipped.shims.values():
        yield shim.name, shim.code
    for bridge in bridges.load():
        for api in bridge.apis:
            yield api, bridge.text
