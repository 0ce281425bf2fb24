"""What a scanner hands on for one file; frozen tuples, which a cache stores in a plainer form still."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, NamedTuple


def words(text: str) -> frozenset[str]:
    """A set of names, written as text."""
    return frozenset(text.split())


class Certainty(StrEnum):
    """How sure a reader is of a name."""

    CERTAIN = "certain"  # through imports
    LIKELY = "likely"  # by flow
    GUESS = "guess"  # by convention


class Guard(StrEnum):
    """What makes a site optional."""

    NONE = ""  # nothing
    IMPORT = "import"  # the handlers of a try statement
    TYPE_CHECKING = "type_checking"
    HASATTR = "hasattr"
    MAIN = "main"
    VERSION = "version"
    CUDA = "cuda"
    OPTION = "option"


CERTAINTIES = {str(sure): sure for sure in Certainty}
GUARDS = {str(guard): guard for guard in Guard}

# When a statement runs: with the import of its module, or when something is called.
When = Literal["import", "call"]

# What a source does with a torch name; the last lines are those of native sources, of CMake and of pyproject.toml, and
# what a whole package is when it is entered.
Event = Literal[
    "import", "read", "call", "method", "attribute", "base", "decorator", "isinstance", "annotation", "union",
    "getattr", "patch", "string", "str", "handed", "return", "load", "native_call",
    "include", "name", "macro", "library", "schema", "attr", "cmake", "requires",
    "entry",
]  # fmt: skip


class Use(NamedTuple):
    """One thing that a source does with torch.

    Attributes:
        event: what it does.
        api: the torch name, resolved; a header, a CMake variable or a string's kind where there is none.
        line: 1-based line of the name itself.
        sure: how sure the reader is of the name.
        guard: what makes the site optional.
        at: when it runs.
        inside: what encloses it: ``autograd.backward``, ``forward``, ``custom_op``, or empty.
        keywords: keyword names of a call.
        lines: their lines.
        positional: number of positional arguments, -1 if it cannot be told.
        then: what is done with the result: an attribute's name, ``[]``, ``unpack``, ``<<``, or empty.
        value: a literal, or the receiver's class.
        literal: ``number`` if a positional argument of a call is one, or empty.
    """

    event: Event
    api: str
    line: int
    sure: Certainty = Certainty.CERTAIN
    guard: Guard = Guard.NONE
    at: When = "call"
    inside: str = ""
    keywords: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()
    positional: int = -1
    then: str = ""
    value: str = ""
    literal: str = ""


class Import(NamedTuple):
    """An import of something that is not torch's.

    Attributes:
        level: the number of dots in front.
        module: what stands behind them.
        names: what is taken from it, ``name=alias`` where it is renamed.
        at: when it runs.
        line: where it stands first, from 1.
    """

    level: int
    module: str
    names: tuple[str, ...]
    at: When
    line: int


class Ignore(NamedTuple):
    """A comment ``# migrate-lens: ignore[...]``: its line and the rules that it names; none means all."""

    line: int
    rules: tuple[str, ...]


class Lines(NamedTuple):
    """The first and the last line of something; zeros where there is nothing."""

    first: int = 0
    last: int = 0


class Scan(NamedTuple):
    """All that one file says.

    Attributes:
        uses: what it does with torch.
        imports: every other import.
        exports: module-level names, and the torch names that they stand for.
        ignores: comments that ask to be let alone.
        reason: why it could not be read; empty if it was.
        torch: whether the file names torch at all.
        span: the imports at module level.
    """

    uses: tuple[Use, ...] = ()
    imports: tuple[Import, ...] = ()
    exports: tuple[tuple[str, str], ...] = ()
    ignores: tuple[Ignore, ...] = ()
    reason: str = ""
    torch: bool = False
    span: Lines = Lines()

    def plain(self) -> PlainScan:
        """The form that ``marshal`` stores: plain tuples, strings and numbers."""
        return (
            tuple([_plain_use(use) for use in self.uses]),
            tuple([(one.level, one.module, one.names, one.at, one.line) for one in self.imports]),
            self.exports,
            tuple([(line, rules) for line, rules in self.ignores]),
            self.reason,
            self.torch,
            (self.span.first, self.span.last),
        )


PlainUse = tuple[
    Event, str, int, str, str, When, str, tuple[str, ...], tuple[int, ...], int, str, str, str
]  # the fields of Use, in order
PlainScan = tuple[
    tuple[PlainUse, ...],
    tuple[tuple[int, str, tuple[str, ...], When, int], ...],
    tuple[tuple[str, str], ...],
    tuple[tuple[int, tuple[str, ...]], ...],
    str,
    bool,
    tuple[int, int],
]  # the fields of Scan, in order


def _plain_use(use: Use) -> PlainUse:
    event, api, line, sure, guard, at, inside, keywords, lines, positional, then, value, literal = use
    return event, api, line, sure.value, guard.value, at, inside, keywords, lines, positional, then, value, literal


def from_plain(row: PlainScan) -> Scan:
    """Back from what ``Scan.plain`` made."""
    uses, imports, exports, ignores, reason, torch, span = row
    return Scan(
        uses=tuple([_use(use) for use in uses]),
        imports=tuple([Import(*one) for one in imports]),
        exports=exports,
        ignores=tuple([Ignore(*one) for one in ignores]),
        reason=reason,
        torch=torch,
        span=Lines(*span),
    )


def _use(row: PlainUse) -> Use:
    event, api, line, sure, guard, at, inside, keywords, lines, positional, then, value, literal = row
    known = (CERTAINTIES[sure], GUARDS[guard])
    return Use(event, api, line, *known, at, inside, keywords, lines, positional, then, value, literal)
