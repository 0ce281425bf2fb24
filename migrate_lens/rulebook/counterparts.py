"""An API in, the text of each replacement that the rules know for it out."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from migrate_lens.shipped import folder


def remedies(api: str) -> tuple[str, ...]:
    """The text of each replacement that the rules know for an API."""
    return _known().get(api, ())


@cache
def _known() -> Mapping[str, tuple[str, ...]]:
    known: dict[str, tuple[str, ...]] = {}
    for api, text in _all(folder("rules")):
        known[api] = (*known.get(api, ()), text)
    return known


def _all(rules: Path) -> Iterator[tuple[str, str]]:
    for path in sorted((rules / "recipes").glob("*.toml")):
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
        for recipe in raw.get("recipe", ()):
            yield from ((api, recipe["replace"]) for api in _names(recipe["api"]))
        yield from ((shim["name"], shim["code"]) for shim in raw.get("shim", ()))
    for path in sorted((rules / "bridges").glob("*.toml")):
        bridge = tomllib.loads(path.read_text(encoding="utf-8"))
        yield from ((api, str(_text(bridge))) for api in _names(bridge["when"].get("api", ())))


def _text(bridge: Mapping[str, Any]) -> list[Any]:
    """What a bridge puts into a source; its check and its prose are left out."""
    return [bridge.get(key) for key in ("header", "edit", "shim") if key in bridge]


def _names(value: str | list[str] | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)
