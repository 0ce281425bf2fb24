"""A TOML file and the keys that it may have, in; typed values out, or an error that names file, key and nearest word.

A kind of rule declares its keys as ``Field`` and its tables as ``Schema``. Whatever is wrong with a file (a key that is
missing or unknown, a value of another type or outside its closed set) is found when the file is read, not when it is
used.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum, StrEnum
from pathlib import Path
from typing import Generic, TypeVar

from migrate_lens.model.errors import RuleError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S", bound=StrEnum)


class Required(Enum):
    """Stands for the default of a key that has none."""

    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a value stands: a file, and the way to the value inside of it (``when.api``, ``recipe 3.given``)."""

    file: str
    way: str = ""

    def below(self, step: str) -> Spot:
        """A place inside of this one."""
        return Spot(self.file, f"{self.way}.{step}" if self.way else step)

    def error(self, message: str, remedy: str) -> RuleError:
        """The error that says what is wrong here."""
        return RuleError(f"{self.file}: {message}" + (f" (in {self.way})" if self.way else ""), remedy)

    def mistyped(self, wanted: str, value: object) -> RuleError:
        """The error for a value of another type."""
        return self.error(f"{wanted} is wanted, not {value!r}", "see the other files of its folder")


Reader = Callable[[object, Spot], T]


@dataclass(frozen=True, slots=True)
class Field(Generic[T_co]):
    """One key of a table.

    Attributes:
        key: its name.
        read: makes the typed value of what stands there; raises ``RuleError``.
        default: what an absent key stands for.
    """

    key: str
    read: Callable[[object, Spot], T_co]
    default: T_co | Required = Required.REQUIRED


@dataclass(frozen=True, slots=True)
class Schema:
    """All keys that a table may have, and the sentence that tells an author which ones it must have."""

    fields: tuple[Field[object], ...]
    must: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table that fits its schema; ``table[FIELD]`` is the value of a key, or its default."""

    spot: Spot
    values: Mapping[str, object]

    def __getitem__(self, field: Field[T]) -> T:
        if field.key in self.values:
            return field.read(self.values[field.key], self.spot.below(field.key))
        if isinstance(field.default, Required):
            raise self.spot.error(f"{field.key!r} is missing", "every table has it")
        return field.default


def files(place: Path) -> list[Path]:
    """The rule files of a folder, by name."""
    return sorted(place.glob("*.toml"))


def load(path: Path, schema: Schema) -> Table:
    """A TOML file as a table of its schema.

    Raises:
        RuleError: it cannot be read, or does not fit.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RuleError(f"{path.name}: {error}", "repair the rule file") from error
    return fitted(raw, schema, Spot(path.name))


def fitted(raw: Mapping[str, object], schema: Schema, spot: Spot) -> Table:
    """A table, once every key of it was looked at.

    Raises:
        RuleError: a key is missing or unknown, or its value is not what it must be.
    """
    known = [field.key for field in schema.fields]
    unknown = [key for key in raw if key not in known]
    for field in schema.fields:
        if field.key not in raw and isinstance(field.default, Required):
            raise _missing(field.key, unknown, schema, spot)
    for key in unknown:
        raise spot.error(f"unknown key {key!r}", nearest(key, known))
    table = Table(spot, raw)
    for field in schema.fields:
        _ = table[field]
    return table


def _missing(key: str, unknown: Iterable[str], schema: Schema, spot: Spot) -> RuleError:
    meant = get_close_matches(key, list(unknown), 1)
    if meant:
        return spot.error(f"{key!r} is missing, and there is no key {meant[0]!r}", f"did you mean {key!r}?")
    return spot.error(f"{key!r} is missing", schema.must)


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint for a word that is none of those that are known."""
    words = sorted(known)
    close = get_close_matches(word, words, 1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(words)}"


# -- readers: what stands in a file in, a typed value out --------------------------------------------------------------


def text(value: object, spot: Spot) -> str:
    """A text."""
    if not isinstance(value, str):
        raise spot.mistyped("a text", value)
    return value


def flag(value: object, spot: Spot) -> bool:
    """A yes or no."""
    if not isinstance(value, bool):
        raise spot.mistyped("true or false", value)
    return value


def number(value: object, spot: Spot) -> int:
    """A whole number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise spot.mistyped("a whole number", value)
    return value


def texts(value: object, spot: Spot) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(value, list):
        raise spot.mistyped("a list of texts", value)
    return tuple(text(item, spot) for item in value)


def text_or_texts(value: object, spot: Spot) -> tuple[str, ...]:
    """One text, or a list of them."""
    return (value,) if isinstance(value, str) else texts(value, spot)


def choice(kind: type[S], noun: str) -> Reader[S]:
    """A word of a closed set."""

    def read(value: object, spot: Spot) -> S:
        words = [str(member) for member in kind]
        if value not in words:
            close = get_close_matches(str(value), words, 1)
            meant = f"did you mean {close[0]!r}? " if close else ""
            raise spot.error(f"{value!r} is no {noun}", f"{meant}one of {', '.join(words)}")
        return kind(str(value))

    return read


def choices(kind: type[S], noun: str) -> Reader[tuple[S, ...]]:
    """A list of words of a closed set."""
    word = choice(kind, noun)

    def read(value: object, spot: Spot) -> tuple[S, ...]:
        return tuple(word(item, spot) for item in texts(value, spot))

    return read


def mapping(value: object, spot: Spot) -> Mapping[str, object]:
    """A table whose keys are for its reader to look at."""
    if not isinstance(value, dict):
        raise spot.mistyped("a table", value)
    return value


def tables(schema: Schema) -> Reader[tuple[Table, ...]]:
    """A list of tables, each of which fits a schema."""

    def read(value: object, spot: Spot) -> tuple[Table, ...]:
        if not isinstance(value, list):
            raise spot.mistyped("a list of tables", value)
        places = [Spot(spot.file, f"{spot.way} {count}") for count in range(1, len(value) + 1)]
        return tuple(fitted(mapping(item, place), schema, place) for item, place in zip(value, places, strict=True))

    return read
