"""A JSON object, in; its parts with the types that they must have, out; what is missing or of another type is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from migrate_lens.model.errors import StateError

Json = Mapping[str, object]
Member = TypeVar("Member", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Fields:
    """A JSON object whose parts are asked for by name and type.

    Every method raises ``StateError`` where the part is missing or of another type; one that takes ``default`` gives
    that where it is missing.

    Attributes:
        raw: the object.
        name: what it is, for errors.
    """

    raw: Json
    name: str

    @classmethod
    def of(cls, value: object, name: str) -> Fields:
        """The parts of a value that must be an object.

        Raises:
            StateError: it is none.
        """
        if not isinstance(value, dict):
            raise _malformed(f"{name} is no object")
        return cls(value, name)

    def has(self, key: str) -> bool:
        """Whether the part is there, and is not null."""
        return self.raw.get(key) is not None

    def text(self, key: str, default: str | None = None) -> str:
        """A string."""
        value = self._value(key, default)
        if not isinstance(value, str):
            raise self._wrong(key)
        return value

    def maybe_text(self, key: str) -> str | None:
        """A string, or None for null."""
        return self.text(key) if self.has(key) else None

    def member(self, key: str, kind: type[Member]) -> Member:
        """One of a closed list of strings."""
        try:
            return kind(self.text(key))
        except ValueError as error:
            raise self._wrong(key) from error

    def flag(self, key: str, default: bool | None = None) -> bool:
        """True or false."""
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key)
        return value

    def whole(self, key: str) -> int:
        """A whole number."""
        value = self._value(key, None)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._wrong(key)
        return value

    def number(self, key: str) -> float:
        """A number."""
        value = self._value(key, None)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self._wrong(key)
        return value

    def items(self, key: str, default: Sequence[object] | None = None) -> Sequence[object]:
        """A list."""
        value = self._value(key, default)
        if not isinstance(value, list | tuple):
            raise self._wrong(key)
        return value

    def texts(self, key: str, default: Sequence[str] | None = None) -> tuple[str, ...]:
        """A list of strings."""
        strings = tuple(item for item in self.items(key, default) if isinstance(item, str))
        if len(strings) != len(self.items(key, default)):
            raise self._wrong(key)
        return strings

    def part(self, key: str) -> Fields:
        """An object."""
        return Fields.of(self._value(key, None), f"{self.name}: {key}")

    def maybe(self, key: str) -> Fields | None:
        """An object, or None where it is null or missing."""
        return self.part(key) if self.has(key) else None

    def parts(self, key: str, default: Sequence[object] | None = None) -> tuple[Fields, ...]:
        """A list of objects."""
        return tuple(Fields.of(item, f"{self.name}: {key}") for item in self.items(key, default))

    def _value(self, key: str, default: object) -> object:
        if key in self.raw:
            return self.raw[key]
        if default is None:
            raise _malformed(f"{self.name} has no {key!r}")
        return default

    def _wrong(self, key: str) -> StateError:
        return _malformed(f"{self.name} has something else under {key!r}")


def _malformed(message: str) -> StateError:
    return StateError(message, "run migrate-lens diagnose again")
