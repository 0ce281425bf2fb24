"""What a compiler or linker said goes in as text; frozen records with the user's own file, line and column come out.

The text form of g++ is read, not its JSON: only the text holds the chain of includes and of template instantiations
that leads from an error in a framework's header to the line of the library that is at the bottom of it. The formats of
clang (hipcc) and of nvcc are read as well.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple


class Kind(StrEnum):
    """What a diagnostic is about."""

    HEADER = "header"  # a header that is not there
    UNDECLARED = "undeclared"  # a name, plain or qualified, that nothing declares
    MEMBER = "member"  # a member that a class does not have
    CALL = "call"  # a function that exists, but not for these arguments
    OPERATOR = "operator"  # an operator that exists, but not for these operands
    CONVERSION = "conversion"  # a type that does not become another
    ABSTRACT = "incomplete"  # a class that is declared and not defined
    CONFLICT = "conflict"  # a name that is declared twice
    DIRECTIVE = "directive"  # an #error that was reached
    UNDEFINED_MACRO = "undefined_macro"  # an #if on a macro that is not defined
    SYNTAX = "syntax"  # what the parser trips over after something else
    LINK_LIBRARY = "link_library"  # -lNAME not found
    LINK_SYMBOL = "link_symbol"  # a symbol that no object defines
    COMPILER = "compiler"  # the compiler itself gave up
    OTHER = "other"


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place that the compiler named; ``path`` is absolute, ``column`` 0 if it said none."""

    path: Path
    line: int
    column: int = 0


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error (or ``-Wundef`` warning) of one compiler call.

    Attributes:
        kind: what it is about.
        name: the header, name, member, function or library in question.
        owner: the namespace or class it was looked for in, or the operand types of an operator.
        message: the line as the compiler wrote it, without its place.
        at: the place the compiler points at.
        site: the first place that lies in the library, None if there is none.
        macros: macros whose expansion led here, innermost first.
        notes: what the compiler added.
        instantiation: the template that was being instantiated, with its arguments.
    """

    kind: Kind
    name: str
    owner: str
    message: str
    at: Location | None
    site: Location | None
    macros: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    instantiation: str = ""


Q = r"['\"‘]"
E = r"['\"’]"
_NAME = rf"{Q}(?P<name>[^'\"]+?){E}"
_OWNER = rf"{Q}(?P<owner>[^'\"]+?){E}"

# First match wins. g++ first, then clang, then nvcc (EDG); all three are asked in the C locale.
PATTERNS: tuple[tuple[Kind, str], ...] = (
    (Kind.HEADER, r"#warning \W?migrate-lens stand-in for (?P<name>[^\s\"]+)"),
    (Kind.HEADER, r"(?P<name>[^:\s]+): No such file or directory"),
    (Kind.HEADER, rf"{_NAME} file not found"),
    (Kind.HEADER, r"cannot open source file \"(?P<name>[^\"]+)\""),
    (Kind.DIRECTIVE, r"#error\s*(?:directive: )?(?P<name>.*)"),
    (Kind.UNDEFINED_MACRO, rf"{_NAME} is not defined, evaluates to"),
    (Kind.UNDECLARED, rf"{_NAME} is not a member of {_OWNER}"),
    (Kind.UNDECLARED, rf"{_NAME} in namespace {_OWNER} does not name a"),
    (Kind.UNDECLARED, rf"{_NAME} in {_OWNER} does not name a"),
    (Kind.UNDECLARED, rf"no (?:type|template) named {_NAME} in (?:namespace )?{_OWNER}"),
    (Kind.UNDECLARED, rf"{_NAME} was not declared in this scope"),
    (Kind.UNDECLARED, rf"{_NAME} has not been declared"),
    (Kind.UNDECLARED, rf"{_NAME} does not name a"),
    (Kind.UNDECLARED, rf"{_NAME} is not a (?:class|namespace|template|type)"),
    (Kind.UNDECLARED, rf"(?:use of undeclared identifier|unknown type name) {_NAME}"),
    (Kind.UNDECLARED, rf"no member named {_NAME} in namespace {_OWNER}"),
    (Kind.UNDECLARED, r"namespace \"(?P<owner>[^\"]+)\" has no member \"(?P<name>[^\"]+)\""),
    (Kind.UNDECLARED, r"identifier \"(?P<name>[^\"]+)\" is undefined"),
    (Kind.MEMBER, rf"{_OWNER}(?: \{{aka [^}}]*\}})? has no member named {_NAME}"),
    (Kind.MEMBER, rf"no member named {_NAME} in {_OWNER}"),
    (Kind.MEMBER, r"(?:class|struct) \"(?P<owner>[^\"]+)\"(?: \(aka [^)]*\))? has no member \"(?P<name>[^\"]+)\""),
    (Kind.OPERATOR, rf"no match for {_NAME}.*?\(operand types? (?:are|is) (?P<owner>.*)\)"),
    (Kind.OPERATOR, r"invalid operands to binary expression \((?P<owner>.*)\)(?P<name>)"),
    (Kind.OPERATOR, r"no operator \"(?P<name>[^\"]+)\" matches these operands(?P<owner>)"),
    (Kind.CALL, rf"no matching (?:member )?(?:function|constructor) for (?:call to|initialization of) {_NAME}"),
    (Kind.CALL, rf"call of overloaded {_NAME} is ambiguous"),
    (Kind.CALL, rf"too (?:many|few) arguments to function(?: call)?(?: {_NAME})?"),
    (Kind.CALL, r"no instance of (?:overloaded function|function template|constructor) \"(?P<name>[^\"]+)\" matches"),
    (Kind.CALL, rf"use of deleted function {_NAME}"),
    (Kind.CALL, rf"{_NAME} is (?:private|protected) within this context"),
    (Kind.CONVERSION, rf"cannot convert {_NAME}(?: \{{aka [^}}]*\}})? to {_OWNER}"),
    (Kind.CONVERSION, rf"conversion from {_NAME}(?: \{{aka [^}}]*\}})? to non-scalar type {_OWNER}"),
    (Kind.CONVERSION, rf"could not convert .* from {_NAME}(?: \{{aka [^}}]*\}})? to {_OWNER}"),
    (
        Kind.CONVERSION,
        rf"invalid (?:conversion|.*cast) from (?:type )?{_NAME}(?: \{{aka [^}}]*\}})? to (?:type )?{_OWNER}",
    ),
    (Kind.CONVERSION, rf"no viable conversion from {_NAME}.* to {_OWNER}"),
    (Kind.ABSTRACT, rf"(?:invalid use of|variable|field|base class|.*has) .*incomplete type {_NAME}"),
    (Kind.ABSTRACT, rf".*{_NAME} has (?:initializer but )?incomplete type"),
    (Kind.CONFLICT, rf"(?:redefinition of|conflicting declaration|redeclaration of|reference to) {_NAME}"),
    (Kind.CONFLICT, rf"{_NAME} (?:conflicts with a previous declaration|redeclared as)"),
    (Kind.LINK_LIBRARY, r"cannot find -l(?P<name>[^\s:]+)"),
    (Kind.LINK_LIBRARY, r"unable to find library -l(?P<name>\S+)"),
    (Kind.LINK_SYMBOL, r"undefined reference to [`'](?P<name>.+)'"),
    (
        Kind.COMPILER,
        r"(?:internal compiler error|virtual memory exhausted|out of memory|stopped after|.*Killed signal)(?P<name>.*)",
    ),
    (
        Kind.SYNTAX,
        r"(?:expected |template argument \d+ is invalid|wrong number of template|stray |missing |parse error)",
    ),
)
_COMPILED = tuple((kind, re.compile(pattern)) for kind, pattern in PATTERNS)

_PLACE = re.compile(
    r"^(?P<path>(?:[A-Za-z]:)?[^:\s(][^:(]*?)[:(](?P<line>\d+)(?::(?P<column>\d+))?\)?:\s*(?P<rest>.*)$"
)
_LEVEL = re.compile(
    r"^(?P<level>(?:internal compiler|fatal|catastrophic) error|error|warning|note)(?: [#\w-]*\d[\w-]*)?:"
    r"\s*(?P<message>.*)$"
)
_INCLUDED = re.compile(r"^(?:In file included|\s+)\s*from (?P<path>[^:]+):(?P<line>\d+)(?::(?P<column>\d+))?[,:]$")
_REQUIRED = re.compile(r"^(?:recursively )?required (?:from|by)|^in .constexpr. expansion")
_INSTANTIATION = re.compile(r"^[^:]+: In (?:instantiation of|substitution of) '(?P<what>.*)':$")
_MACRO = re.compile(r"in (?:expansion|definition) of macro '(?P<name>[^']+)'|expanded from macro '(?P<clang>[^']+)'")
_EDG_CHAIN = re.compile(r"^\s+(?:detected during )?instantiation of .* at line (?P<line>\d+)(?: of (?P<path>\S+))?")
_LINKER = re.compile(
    r"^(?:\S*/)?(?:[\w.-]*-)?ld(?:\.\w+)?: (?P<message>.*)$"
    r"|^.*(?P<undefined>undefined reference to .*)$|^lld: error: (?P<lld>.*)$"
)
_PLAIN = re.compile(
    r"^(?:\S*/)?[\w.+-]+: (?:(?:fatal )?error: )?(?P<message>(?<=error: ).*|internal compiler error: .*)$"
    r"|^(?:(?:\S*/)?cc1\w*: )?(?P<memory>(?:virtual memory exhausted|out of memory).*)$"
)


@dataclass(slots=True)
class _Draft:
    """A diagnostic while its notes are still being read."""

    message: str
    at: Location | None
    chain: list[Location]
    macros: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    level: str = "error"
    instantiation: str = ""


def parse(text: str, cwd: Path, own: Callable[[Path], bool]) -> tuple[Diagnostic, ...]:
    """Reads what one call of a compiler or linker wrote.

    Args:
        text: its stderr, from the C locale and without colours.
        cwd: the folder it ran in.
        own: whether a path belongs to the library.
    """
    diagnostics = (_finish(draft, own) for draft in _drafts(text.splitlines(), cwd))
    return tuple(diagnostic for diagnostic in diagnostics if diagnostic is not None)


class _Reader:
    """Reads line by line and remembers what stands above an error: includes, instantiations, the error before."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd
        self.drafts: list[_Draft] = []
        self.current: _Draft | None = None
        self.includes: list[Location] = []
        self.waiting: list[Location] = []
        self.instantiation = ""

    def line(self, text: str) -> None:
        """Takes the next line."""
        if match := _INCLUDED.match(text):
            self.includes = [] if text.startswith("In file") else self.includes
            self.includes.append(_location(match, self.cwd))
        elif match := _INSTANTIATION.match(text):
            self.instantiation = match["what"]
        elif self.current is not None and (match := _EDG_CHAIN.match(text)):
            self.current.chain.append(_edg_location(match, self.current, self.cwd))
        elif (place := _PLACE.match(text)) is None or _LINKER.match(text):
            if draft := _unplaced(text):
                self._begin(draft)
        elif _REQUIRED.match(place["rest"]):
            self.waiting.append(_location(place, self.cwd))
        elif level := _LEVEL.match(place["rest"]):
            self._message(_location(place, self.cwd), level["level"], level["message"])

    def _message(self, at: Location, level: str, message: str) -> None:
        if level == "note":
            _add_note(self.current, at, message)
            return
        if level.startswith("internal"):
            message = f"{level}: {message}"
        if self.includes and at.path == self.includes[-1].path:
            self.includes = []
        self._begin(_Draft(message, at, [*self.waiting, *self.includes], level=level, instantiation=self.instantiation))
        self.waiting, self.instantiation = [], ""

    def _begin(self, draft: _Draft) -> None:
        self.drafts.append(draft)
        self.current = draft


def _drafts(lines: Iterable[str], cwd: Path) -> list[_Draft]:
    reader = _Reader(cwd)
    for line in lines:
        reader.line(line)
    return reader.drafts


def _unplaced(line: str) -> _Draft | None:
    """What a linker or a driver says, which stands at no place in a source."""
    if match := _LINKER.match(line):
        message = match["message"] or match["undefined"] or match["lld"] or ""
        if message.endswith(":"):  # "in function `f':", the heading of what follows
            return None
        at = message.find("undefined reference to")
        return _Draft(message[max(at, 0) :], None, [])
    if match := _PLAIN.match(line):
        message = match["message"] or match["memory"]
        return None if message.startswith("ld returned") else _Draft(message, None, [])
    return None


def _add_note(draft: _Draft | None, at: Location, message: str) -> None:
    if draft is None:
        return
    if match := _MACRO.match(message):
        draft.macros.append(match["name"] or match["clang"])
        draft.chain.insert(len(draft.macros) - 1, at)
    elif len(draft.notes) < 20:
        draft.notes.append(message)


def _location(match: re.Match[str], cwd: Path) -> Location:
    return Location(Path(os.path.normpath(cwd / match["path"])), int(match["line"]), int(match["column"] or 0))


def _edg_location(match: re.Match[str], draft: _Draft, cwd: Path) -> Location:
    if match["path"]:
        return Location(Path(os.path.normpath(cwd / match["path"])), int(match["line"]))
    return Location(draft.at.path if draft.at else cwd, int(match["line"]))


def _finish(draft: _Draft, own: Callable[[Path], bool]) -> Diagnostic | None:
    subject = classify(draft.message)
    if draft.level == "warning" and subject.kind not in (Kind.UNDEFINED_MACRO, Kind.HEADER):
        return None
    places = [place for place in (draft.at, *draft.chain) if place is not None]
    site = next((place for place in places if own(place.path)), None)
    return Diagnostic(
        kind=subject.kind,
        name=subject.name,
        owner=subject.owner,
        message=draft.message,
        at=draft.at,
        site=site,
        macros=tuple(draft.macros),
        notes=tuple(draft.notes),
        instantiation=draft.instantiation,
    )


class Subject(NamedTuple):
    """What a message is about, as ``Diagnostic`` has it."""

    kind: Kind
    name: str = ""
    owner: str = ""


def classify(message: str) -> Subject:
    """What a message is about."""
    message = message.replace("‘", "'").replace("’", "'")
    for kind, pattern in _COMPILED:
        if match := pattern.match(message):
            groups = match.groupdict()
            return Subject(kind, (groups.get("name") or "").strip(), (groups.get("owner") or "").strip())
    return Subject(Kind.OTHER)


def relocated(diagnostic: Diagnostic, move: Callable[[Path], Path]) -> Diagnostic:
    """The same diagnostic with its places moved from a copy back to the original."""

    def moved(place: Location | None) -> Location | None:
        return replace(place, path=move(place.path)) if place is not None else None

    return replace(diagnostic, at=moved(diagnostic.at), site=moved(diagnostic.site))
