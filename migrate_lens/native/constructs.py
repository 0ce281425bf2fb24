"""Diagnostics of one unit go in; the constructs of torch's that Paddle lacks come out, follow-on errors folded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from migrate_lens.cpp.naming import (
    documented,
    function_name,
    is_private,
    is_registry,
    looks_like_macro,
    mentions_framework,
    of_framework,
    plain_type,
    schema_type,
)
from migrate_lens.native.diagnostics import Diagnostic, Kind, Location
from migrate_lens.native.torch_headers import Known

_CHAIN = re.compile(r"(?:::)?[A-Za-z_]\w*(?:\s*::\s*~?[A-Za-z_]\w*)*")
_REGISTRY_FILES = ("torch/library.h", "core/ivalue.h", "torch/custom_class.h", "torch/custom_class_detail.h")
LONGEST_CALL = 2000  # lines of a macro's arguments
SCHEMA_TYPE = "schema type "  # what stands in front of a type that an operator takes or gives
_PREPROCESSOR_NAME = re.compile(r"\b[A-Z_][A-Z0-9_]{3,}\b")


class ConstructKind(StrEnum):
    """What sort of thing a construct is; the values of the fact ``construct_kind`` for C++."""

    FUNCTION = "function"
    METHOD = "method"
    MACRO = "macro"
    HEADER = "header"
    TYPE = "type"
    OPERATOR = "operator"
    REGISTRY = "registry"  # what stands in or around TORCH_LIBRARY
    STANDARD = "standard"  # a name of the standard library's
    CONFLICT = "conflict"  # a name that the library and Paddle's headers both declare
    LANGUAGE = "language"  # what a newer language standard would bring
    OWN = "own"  # a symbol of the library's
    INIT = "init"  # the function that a module starts with
    LIBRARY = "library"  # a shared library
    NAMING = "naming"  # a module under another name than it was built


class NamedConstruct(NamedTuple):
    """What an error is about: a name as torch documents it, and what sort of thing it names."""

    api: str
    kind: ConstructKind


@dataclass(frozen=True, slots=True)
class Construct:
    """One thing of torch's that a unit uses and Paddle does not have, at one place.

    Attributes:
        api: the name that goes into the title of an issue.
        kind: what sort of thing it is.
        site: where in the library; None if only a framework's own header was named.
        message: what the compiler said.
        folded: how many later errors follow from it.
        directive: the compiler did not stop at it: an ``#if`` took another branch.
    """

    api: str
    kind: ConstructKind
    site: Location | None
    message: str
    folded: int = 0
    directive: bool = False

    @property
    def private(self) -> bool:
        """Whether the library reaches into what torch does not offer."""
        return is_private(self.api)


class Source:
    """The library's files by line, read once."""

    @staticmethod
    @lru_cache(maxsize=64)
    def lines(path: Path) -> tuple[str, ...]:
        """The lines of a file; none if it cannot be read."""
        try:
            return tuple(path.read_text(encoding="utf-8", errors="replace").splitlines())
        except OSError:
            return ()

    @classmethod
    def line(cls, place: Location | None) -> str:
        """The line at a place, empty if there is none."""
        lines = cls.lines(place.path) if place is not None else ()
        return lines[place.line - 1] if place is not None and 0 < place.line <= len(lines) else ""


def collect(diagnostics: Sequence[Diagnostic], known: Known, *, alone: bool = True) -> tuple[Construct, ...]:
    """The constructs behind the errors of one unit, in the order of their first site.

    An error is a construct of its own if it names something of torch's; one that does not (a parser's complaint, a
    variable whose declaration failed, ``scalar_t`` outside of its dispatch macro) counts as following from the nearest
    construct before it. If nothing in the unit names anything of torch's, the first error stands for itself, unless
    ``alone`` forbids it.
    """
    named = [Named(diagnostic, about) for diagnostic in diagnostics if (about := name(diagnostic, known)) is not None]
    bodies = [_arguments(error.diagnostic.site) for error in named if error.lacks_macro]
    primary = [error for error in named if not _inside(error.diagnostic, bodies)]
    if not primary and alone:
        errors = (diagnostic for diagnostic in diagnostics if diagnostic.kind is not Kind.UNDEFINED_MACRO)
        primary = [Named(diagnostic, _itself(diagnostic)) for diagnostic in errors][:1]
    kept = _without_echoes(primary)
    return _unique(kept, folded=len(diagnostics) - len(kept))


class Named(NamedTuple):
    """An error that names something, and what it names."""

    diagnostic: Diagnostic
    about: NamedConstruct

    @property
    def lacks_macro(self) -> bool:
        """Whether a macro is called that is not there; one that an ``#if`` asks for has no arguments."""
        return self.about.kind is ConstructKind.MACRO and self.diagnostic.kind is not Kind.UNDEFINED_MACRO


def _without_echoes(errors: Sequence[Named]) -> list[Named]:
    """The errors without those of a vague kind that stand on one line with an error that says more."""
    loose = (Kind.CONVERSION, Kind.CALL, Kind.OTHER)
    firm = {error.diagnostic.site for error in errors if error.diagnostic.kind not in loose}
    vague = (Kind.CONVERSION, Kind.OTHER)
    return [
        error for error in errors if error.diagnostic.kind not in vague or not _same_line(error.diagnostic.site, firm)
    ]


def _unique(errors: Iterable[Named], folded: int) -> tuple[Construct, ...]:
    constructs: dict[tuple[str, Location | None], Construct] = {}
    for diagnostic, (api, kind) in errors:
        directive = diagnostic.kind is Kind.UNDEFINED_MACRO
        place = diagnostic.site
        made = Construct(api, kind, place, diagnostic.message, 0 if constructs else folded, directive)
        key = (api, place)
        if key not in constructs or (constructs[key].directive and not directive):
            constructs[key] = made
    return tuple(constructs.values())


def _same_line(site: Location | None, sites: Iterable[Location | None]) -> bool:
    return site is not None and any(other and (other.path, other.line) == (site.path, site.line) for other in sites)


def _itself(diagnostic: Diagnostic) -> NamedConstruct:
    """The nearest name of torch's on the line, for an error that names none."""
    return NamedConstruct(_near(diagnostic) or diagnostic.name or diagnostic.message, ConstructKind.TYPE)


def name(diagnostic: Diagnostic, known: Known) -> NamedConstruct | None:
    """The construct's name and kind, None if the error names nothing of torch's."""
    match diagnostic.kind:
        case Kind.HEADER:
            return _registry_or(diagnostic.name, ConstructKind.HEADER)
        case Kind.UNDECLARED:
            return _undeclared(diagnostic, known)
        case Kind.MEMBER:
            return _member(diagnostic)
        case Kind.CALL:
            return _call(diagnostic)
        case Kind.OPERATOR:
            return _operator(diagnostic)
        case Kind.CONVERSION | Kind.OTHER:
            return _conversion(diagnostic)
        case Kind.ABSTRACT:
            return _incomplete(diagnostic)
        case Kind.CONFLICT:
            return _conflict(diagnostic)
        case Kind.DIRECTIVE | Kind.UNDEFINED_MACRO | Kind.SYNTAX:
            return _not_expanded(diagnostic, known)
        case Kind.COMPILER | Kind.LINK_LIBRARY | Kind.LINK_SYMBOL:
            return None


def _registry_or(api: str, kind: ConstructKind) -> NamedConstruct:
    return NamedConstruct(api, ConstructKind.REGISTRY if is_registry(api) else kind)


def _macro(word: str, known: Known) -> NamedConstruct | None:
    if not word or not looks_like_macro(word) or not known.macro(word):
        return None
    return _registry_or(word, ConstructKind.MACRO)


def _not_expanded(diagnostic: Diagnostic, known: Known) -> NamedConstruct | None:
    """The macro behind an ``#if``, an ``#error``, or a parenthesis that the parser trips over."""
    if diagnostic.kind is Kind.DIRECTIVE:
        return _directive(diagnostic, known)
    if diagnostic.kind is Kind.UNDEFINED_MACRO:
        return _macro(diagnostic.name, known)
    return _macro(_word_before(diagnostic.site), known) if diagnostic.at == diagnostic.site else None


def _incomplete(diagnostic: Diagnostic) -> NamedConstruct | None:
    declared = plain_type(diagnostic.name)
    return _registry_or(documented(declared), ConstructKind.TYPE) if of_framework(declared) else None


def _function_or_type(word: str) -> ConstructKind:
    """Functions of torch's begin with a small letter."""
    return ConstructKind.FUNCTION if word[:1].islower() else ConstructKind.TYPE


def member_of(owner: str) -> ConstructKind:
    """What is called is a method if it belongs to a class, a function if to a namespace."""
    return ConstructKind.METHOD if owner.rpartition("::")[2][:1].isupper() else ConstructKind.FUNCTION


def _undeclared(diagnostic: Diagnostic, known: Known) -> NamedConstruct | None:
    spelled = f"{plain_type(diagnostic.owner)}::{diagnostic.name}" if diagnostic.owner else diagnostic.name
    if "::" not in spelled:
        return _macro(spelled, known) or _unqualified(diagnostic, spelled, known)
    if diagnostic.at == diagnostic.site:
        spelled = _extended(spelled, diagnostic.site)
    if spelled.startswith("std::"):
        # A type that has no such member is what a failed overload leaves behind, not a name that is missing.
        behind_overload = re.match(r"(?:class|struct) ", diagnostic.owner) is not None
        return None if behind_overload else NamedConstruct(spelled, ConstructKind.STANDARD)
    if not of_framework(spelled):
        return None
    api = documented(spelled)
    last = api.rpartition("::")[2]
    called = re.search(rf"\b{re.escape(last)}\s*(?:<[^;(]*>)?\s*\(", Source.line(diagnostic.site)) is not None
    return _registry_or(api, _function_or_type(last) if called else ConstructKind.TYPE)


def _unqualified(diagnostic: Diagnostic, word: str, known: Known) -> NamedConstruct | None:
    """A plain name is torch's if the file opened a namespace of torch's and torch declares it."""
    if diagnostic.site is None:
        return None
    text = "\n".join(Source.lines(diagnostic.site.path))
    if not re.search(r"\busing\s+namespace\s+(?:at|torch|c10)\s*;|\bnamespace\s+(?:at|torch|c10)\s*\{", text):
        return None
    api = known.qualified(word)
    return _registry_or(api, _function_or_type(word)) if api else None


def _extended(spelled: str, site: Location | None) -> str:
    """The whole name as the source has it: a missing namespace goes on to the first type or function behind it."""
    line = Source.line(site)
    if site is None or not site.column:
        return spelled
    last = spelled.rpartition("::")[2]
    for match in _CHAIN.finditer(line):
        if not match.start() <= site.column - 1 < match.end():
            continue
        parts = [part.strip() for part in match[0].split("::") if part.strip()]
        if last not in parts:
            break
        index = parts.index(last)
        while parts[index][:1].islower() and index + 1 < len(parts):
            index += 1
        tail = parts[parts.index(last) + 1 : index + 1]
        return "::".join([spelled, *tail])
    return spelled


def _member(diagnostic: Diagnostic) -> NamedConstruct | None:
    owner = plain_type(diagnostic.owner)
    if not of_framework(owner):
        return None
    return _registry_or(documented(f"{owner}::{diagnostic.name}"), ConstructKind.METHOD)


def _call(diagnostic: Diagnostic) -> NamedConstruct | None:
    if schema := _schema_construct(diagnostic):
        return schema
    base, arguments = function_name(diagnostic.name)
    if not of_framework(base):
        return _conversion(diagnostic) if mentions_framework(arguments) else None
    api = documented(base)
    owner, _, last = api.rpartition("::")
    if api == "torch::Library::def" and re.search(r"at::Tag|<brace-enclosed initializer list>$", arguments):
        api = "torch::Library::def(schema, tags)"
    elif owner.rpartition("::")[2] == last:  # a constructor
        api = f"{owner}({_short(arguments)})"
    return _registry_or(api, member_of(owner))


def _short(arguments: str) -> str:
    text = re.sub(r"[^,]*<lambda\(.*\)>", "lambda", arguments).replace("<brace-enclosed initializer list>", "{}")
    return re.sub(r"\b(?:const|class|struct) |&|\s+$", "", text)


def _schema_construct(diagnostic: Diagnostic) -> NamedConstruct | None:
    """An error inside the registry's own templates is about the type that an operator takes or gives."""
    if diagnostic.at is None or diagnostic.at == diagnostic.site or not is_registry_file(diagnostic.at.path):
        return None
    given = re.search(r"IValue::IValue\((.*)\)$", diagnostic.name)
    taken = re.search(r"\[with (?:[^;\]]*; )*T = ([^;]+?)(?:;|\]$)", diagnostic.instantiation)
    passed = given or taken
    if passed is None or not passed[1]:
        return None
    return NamedConstruct(f"{SCHEMA_TYPE}{schema_type(passed[1])}", ConstructKind.REGISTRY)


def is_registry_file(path: Path) -> bool:
    """Whether a header of a framework is one of its registry's."""
    return "/".join(path.parts[-2:]) in _REGISTRY_FILES


def _operator(diagnostic: Diagnostic) -> NamedConstruct | None:
    types = [plain_type(part) for part in re.findall(r"'([^']+)'", diagnostic.owner)]
    ours = [documented(kind) for kind in types if of_framework(kind)]
    if not ours:
        return None
    symbol = diagnostic.name.removeprefix("operator") or "?"
    return _registry_or(f"{ours[0]}::operator{symbol}", ConstructKind.OPERATOR)


def _conversion(diagnostic: Diagnostic) -> NamedConstruct | None:
    """Types that differ: the function whose argument it is, else the call at that place, else the type itself."""
    if schema := _schema_construct(diagnostic):
        return schema
    for note in diagnostic.notes:
        if match := re.search(r"(?:initializing argument \d+ of|in call to) ['‘](.+)['’]", note):
            api = documented(function_name(match[1])[0])
            if of_framework(api):
                return _registry_or(api, ConstructKind.FUNCTION)
    if not mentions_framework(diagnostic.message):
        return None
    types = [plain_type(part) for part in re.findall(r"'([^']+)'", diagnostic.message)]
    api = _near(diagnostic) or next((documented(kind) for kind in types if of_framework(kind)), "")
    return _registry_or(api, ConstructKind.TYPE) if api else None


def _near(diagnostic: Diagnostic) -> str:
    """The name of torch's on the site's line that is nearest to the column."""
    site = diagnostic.site
    line = Source.line(site)
    names = [match for match in _CHAIN.finditer(line) if of_framework(match[0])]
    if site is None or not names:
        return ""
    return documented(min(names, key=lambda match: abs(match.start() + 1 - site.column))[0])


def _conflict(diagnostic: Diagnostic) -> NamedConstruct | None:
    """A name of the library's that Paddle's headers declare too."""
    spelled = function_name(diagnostic.name)[0]
    return NamedConstruct(documented(spelled), ConstructKind.CONFLICT) if spelled else None


def _directive(diagnostic: Diagnostic, known: Known) -> NamedConstruct | None:
    """An ``#error`` is about the macros that its ``#if`` asks for and that only torch defines."""
    for condition in _conditions(diagnostic.site):
        for word in _PREPROCESSOR_NAME.findall(condition):
            if macro := _macro(word, known):
                return macro
    return None


def _conditions(site: Location | None) -> list[str]:
    """The conditions of the ``#if`` blocks around a line, innermost first."""
    if site is None:
        return []
    stack: list[list[str]] = []
    for line in Source.lines(site.path)[: site.line]:
        text = line.strip().removeprefix("#").strip() if line.strip().startswith("#") else ""
        if text.startswith("if"):
            stack.append([text])
        elif text.startswith("elif") and stack:
            stack[-1].append(text)
        elif text.startswith("endif") and stack:
            stack.pop()
    return [condition for block in reversed(stack) for condition in block]


def _word_before(site: Location | None) -> str:
    """The identifier that ends in front of a column: a macro that was not expanded leaves its parenthesis behind."""
    if site is None:
        return ""
    match = re.search(r"([A-Za-z_]\w*)\s*$", Source.line(site)[: max(0, site.column - 1)])
    return match[1] if match else ""


class Span(NamedTuple):
    """Lines of a file, from the first to the last."""

    path: Path
    first: int
    last: int

    def covers(self, site: Location) -> bool:
        """Whether a place is among the lines."""
        return self.path == site.path and self.first <= site.line <= self.last


def _arguments(site: Location | None) -> Span | None:
    """The lines of the arguments of a macro that is called at ``site``."""
    if site is None:
        return None
    lines = Source.lines(site.path)
    depth = 0
    for number in range(site.line, min(len(lines), site.line + LONGEST_CALL) + 1):
        text = lines[number - 1]
        if number == site.line:
            text = text[site.column - 1 :]
        for letter in text:
            depth += {"(": 1, ")": -1}.get(letter, 0)
            if depth == 0 and letter == ")":
                return Span(site.path, site.line, number)
    return Span(site.path, site.line, site.line)


def _inside(diagnostic: Diagnostic, bodies: Iterable[Span | None]) -> bool:
    """Whether an error of the loose kinds lies in a body that a missing macro would have set the scene for."""
    if diagnostic.kind not in (Kind.CALL, Kind.CONVERSION, Kind.OTHER, Kind.OPERATOR) or diagnostic.site is None:
        return False
    return any(body is not None and body.covers(diagnostic.site) for body in bodies)
