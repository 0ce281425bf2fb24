"""Paddle's compat headers and a construct go in; whether it is missing, elsewhere, or of another signature, comes out.

Which of these it is, the compiler says by the kind of its error, and the loader by an undefined symbol. The headers are
read only to say where the declaration is that a library does not reach, or does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from migrate_lens.cpp.headers import Declared, clean, header_files, read_header
from migrate_lens.native.constructs import Construct, ConstructKind
from migrate_lens.native.diagnostics import Kind, classify
from migrate_lens.native.units import UnitCheck, include_folders

BELOW = ("ATen", "c10", "torch")
NOT_FITTING = (Kind.CALL, Kind.OPERATOR, Kind.CONVERSION)


class Presence(StrEnum):
    """How Paddle lacks a construct; the values of the fact ``presence``."""

    MISSING = "missing"  # nothing declares it
    ELSEWHERE = "elsewhere"  # a compat header declares it, and what the library includes does not bring it along
    SIGNATURE = "signature"  # it is declared, and not for what the library passes
    UNDEFINED = "undefined"  # it is declared, and no library defines it


class Offered:
    """What the compat headers below some include folders declare, and where.

    Args:
        roots: include folders of the Paddle side.
    """

    def __init__(self, roots: Iterable[Path]) -> None:
        self.roots = tuple(roots)

    @classmethod
    def of(cls, checks: Iterable[UnitCheck], library: Path) -> Offered:
        """The compat folders among those that the units search, the library's own left out."""
        folders: dict[Path, None] = {}
        for check in checks:
            folders |= dict.fromkeys(include_folders(check.command, library))
        return cls(f for f in folders if not f.is_relative_to(library) and any((f / part).is_dir() for part in BELOW))

    @cached_property
    def _texts(self) -> dict[str, str]:
        texts: dict[str, str] = {}
        for root in self.roots:
            for name, path in header_files(root, BELOW):
                texts.setdefault(name, path.read_text("utf-8", "replace"))
        return texts

    @cached_property
    def _declared(self) -> dict[str, Declared]:
        by_header: dict[str, Declared] = {}
        for name, text in self._texts.items():
            declared = Declared()
            read_header(text, declared)
            by_header[name] = declared
        return by_header

    def where(self, construct: Construct) -> str:
        """``ATen/ops/sum.h:23``: the first declaration of that name and sort; empty if no compat header has one."""
        owner, _, last = construct.api.rpartition("::")
        for name, declared in self._declared.items():
            if last in _names(declared, construct, owner.rpartition("::")[2]):
                return next(_places(name, self._texts[name], last), name)
        return ""

    def presence(self, construct: Construct) -> tuple[Presence, str]:
        """How Paddle lacks it, and a line of evidence."""
        place = self.where(construct)
        header = construct.kind is ConstructKind.HEADER
        if not header and classify(construct.message).kind in NOT_FITTING:
            where = f" in {place}" if place else ""
            return Presence.SIGNATURE, f"declared with another signature{where}"
        if header or not place:
            return Presence.MISSING, "missing altogether: no compat header has it"
        return Presence.ELSEWHERE, f"declared in {place}, which nothing that the unit includes brings along"


def _names(declared: Declared, construct: Construct, owner: str) -> set[str]:
    if construct.kind is ConstructKind.MACRO or construct.directive:
        return declared.macros
    if owner[:1].isupper():
        return declared.methods.get(owner, set())
    return declared.names | declared.macros if construct.kind is ConstructKind.REGISTRY else declared.names


def _places(header: str, text: str, name: str) -> Iterator[str]:
    """The lines of a header that name something and do not only use it."""
    declares = re.compile(rf"^(?![^\n]*\breturn\b)(?:[^\n=]*[\s*&])?{re.escape(name)}\s*(?:[(<;{{=:]|$)")
    for number, line in enumerate(clean(text).splitlines(), 1):
        if declares.match(line):
            yield f"{header}:{number}"
