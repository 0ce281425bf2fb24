"""Bridges in; for a C++ name that Paddle's compat headers lack, the small edit of a source that bridges it, out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import assert_never

from migrate_lens.model.errors import RuleError
from migrate_lens.rulebook import document, matching
from migrate_lens.rulebook.document import Field, Schema, Table
from migrate_lens.rulebook.matching import Matcher, Vocabulary, most_specific
from migrate_lens.shipped import folder

VOCABULARY = Vocabulary({"api": "the C++ name, macro or header that is missing"}, always=frozenset(("api",)))


class Kind(StrEnum):
    """What a bridge does to a source."""

    ADD_NAME = "add_name"
    SHIM_HEADER = "shim_header"
    CALL_SITE = "call_site"


@dataclass(frozen=True, slots=True)
class AddName:
    """Names that are defined below the last include, each only where it is not there."""

    header: str


@dataclass(frozen=True, slots=True)
class ShimHeader:
    """What a missing header would have, in the place of its include."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class ShimHeaders:
    """The headers that are missing."""

    headers: tuple[ShimHeader, ...]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A regular expression, and what becomes of what it matches."""

    pattern: str
    replacement: str


@dataclass(frozen=True, slots=True)
class CallSite:
    """Rewritings of a line that has the name; the first that changes it is made."""

    rewrites: tuple[Rewrite, ...]


Change = AddName | ShimHeaders | CallSite

_PATH = Field("path", document.text)
_TEXT = Field("text", document.text)
_SHIM = Schema((_PATH, _TEXT), "every shim has a path and a text")
_PATTERN = Field("pattern", document.text)
_REPLACEMENT = Field("replacement", document.text)
_EDIT = Schema((_PATTERN, _REPLACEMENT), "every edit has a pattern and a replacement")

_TITLE = Field("title", document.text)
_KIND = Field("kind", document.choice(Kind, "kind"))
_UNTIL = Field("until", document.text)
_CHECK = Field("check", document.text)
_WHEN = Field("when", matching.conditions(VOCABULARY))
_PRIORITY = Field("priority", document.number, 0)
_HEADER = Field("header", document.text, "")
_SHIMS: Field[tuple[Table, ...]] = Field("shim", document.tables(_SHIM), ())
_EDITS: Field[tuple[Table, ...]] = Field("edit", document.tables(_EDIT), ())
SCHEMA = Schema(
    (_TITLE, _KIND, _UNTIL, _CHECK, _WHEN, _PRIORITY, _HEADER, _SHIMS, _EDITS),
    "every bridge has title, kind, until, check and when",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bridge(Matcher):
    """One bridge.

    Attributes:
        until: what Paddle must have for the bridge to go.
        check: C++ that uses what the bridge gives.
        change: what it does to a source.
    """

    until: str
    check: str
    change: Change

    @property
    def apis(self) -> tuple[str, ...]:
        """The names that it bridges."""
        return self.when.globs("api")

    @property
    def text(self) -> str:
        """What it puts into a source."""
        match self.change:
            case AddName(header):
                return header
            case ShimHeaders(headers):
                return "\n".join(shim.text for shim in headers)
            case CallSite(rewrites):
                return "\n".join(rewrite.replacement for rewrite in rewrites)
        assert_never(self.change)


def bridge_for(api: str, bridges: Iterable[Bridge]) -> Bridge | None:
    """The bridge that answers for a name."""
    return most_specific(bridge for bridge in bridges if bridge.matches({"api": api}))


@cache
def load() -> tuple[Bridge, ...]:
    """All shipped bridges, by name.

    Raises:
        RuleError: a file is not a valid bridge.
    """
    return read(folder("rules/bridges"))


def read(place: Path) -> tuple[Bridge, ...]:
    """All bridges of a folder, by name.

    Raises:
        RuleError: a file is not a valid bridge.
    """
    return tuple(_bridge(path) for path in document.files(place))


def _bridge(path: Path) -> Bridge:
    table = document.load(path, SCHEMA)
    return Bridge(
        id=path.stem,
        title=table[_TITLE],
        until=table[_UNTIL],
        check=table[_CHECK],
        when=table[_WHEN],
        priority=table[_PRIORITY],
        change=_change(table, path.name),
    )


def _change(table: Table, file: str) -> Change:
    kind = table[_KIND]
    match kind:
        case Kind.ADD_NAME:
            change: Change = AddName(_needed(table, _HEADER, file))
        case Kind.SHIM_HEADER:
            shims = _needed(table, _SHIMS, file)
            change = ShimHeaders(tuple(ShimHeader(shim[_PATH], shim[_TEXT]) for shim in shims))
        case Kind.CALL_SITE:
            edits = _needed(table, _EDITS, file)
            change = CallSite(tuple(Rewrite(edit[_PATTERN], edit[_REPLACEMENT]) for edit in edits))
        case _:
            assert_never(kind)
    return change


def _needed(table: Table, field: Field[document.T], file: str) -> document.T:
    """What a bridge of its kind cannot do without."""
    value = table[field]
    if not value:
        raise RuleError(f"{file}: {field.key!r} is missing", f"a bridge of kind {table[_KIND]} has it")
    return value
