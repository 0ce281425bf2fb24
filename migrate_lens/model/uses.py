"""What a scanner hands on for one file: plain tuples, because they are cached and cross processes."""

from __future__ import annotations

from typing import Any, NamedTuple

CERTAIN, LIKELY, GUESS = "certain", "likely", "guess"


def words(text: str) -> frozenset[str]:
    """A set of names, written as text."""
    return frozenset(text.split())


class Use(NamedTuple):
    """One thing that a source does with torch.

    Attributes:
        event: import, read, call, method, attribute, base, decorator, isinstance, annotation, getattr, patch, string,
            str, handed, return, load; in native sources include, name, method, macro, library, attr, string, cmake.
        api: the torch name, resolved; a header, a CMake variable or a string's kind where there is none.
        line: 1-based line of the name itself.
        sure: certain (through imports), likely (by flow), guess (by convention).
        guard: what makes the site optional, or empty.
        at: ``import`` if it runs when the module is imported, else ``call``.
        inside: what encloses it: ``autograd.backward``, ``forward``, ``custom_op``, or empty.
        keywords: keyword names of a call.
        lines: their lines.
        positional: number of positional arguments, -1 if it cannot be told.
        then: what is done with the result: an attribute's name, ``[]``, ``unpack``, ``<<``, or empty.
        value: a literal, or the receiver's class.
        literal: ``number`` if a positional argument of a call is one, or empty.
    """

    event: str
    api: str
    line: int
    sure: str = CERTAIN
    guard: str = ""
    at: str = "call"
    inside: str = ""
    keywords: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()
    positional: int = -1
    then: str = ""
    value: str = ""
    literal: str = ""


class Scan(NamedTuple):
    """All that one file says.

    Attributes:
        uses: what it does with torch.
        imports: (level, module, names, at) of every other import.
        exports: module-level names that stand for torch names.
        ignores: (line, rules) of ``# migrate-lens: ignore[...]`` comments; no rules means all.
        reason: why it could not be read; empty if it was.
        torch: whether the file names torch at all.
        span: lines of the first and the last import at module level, zeros if there is none.
    """

    uses: tuple[Use, ...] = ()
    imports: tuple[tuple[int, str, tuple[str, ...], str], ...] = ()
    exports: tuple[tuple[str, str], ...] = ()
    ignores: tuple[tuple[int, tuple[str, ...]], ...] = ()
    reason: str = ""
    torch: bool = False
    span: tuple[int, int] = (0, 0)

    def plain(self) -> tuple[Any, ...]:
        """The form that ``marshal`` stores."""
        return (tuple(map(tuple, self.uses)), *self[1:])


def from_plain(row: tuple[Any, ...]) -> Scan:
    """Back from what ``Scan.plain`` made."""
    return Scan(tuple(map(Use._make, row[0])), *row[1:])
