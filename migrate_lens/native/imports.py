"""The message of an import that failed goes in, with the built library; the missing constructs behind it come out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from migrate_lens.cpp.naming import (
    documented,
    function_name,
    is_private,
    is_registry,
    mentions_framework,
    of_framework,
    plain_type,
    schema_type,
)
from migrate_lens.model.report import Fact, Finding, Key, Library, Site, Stage, Symptom
from migrate_lens.native import shared_objects, standins
from migrate_lens.native.constructs import SCHEMA_TYPE, ConstructKind, member_of
from migrate_lens.native.offered import Presence

_SYMBOL = re.compile(r"undefined symbol: (?P<symbol>[\w.$@]+)")
_LIBRARY = re.compile(r"(?P<name>lib[\w.+-]+\.so[\w.]*): cannot open shared object file")
_INIT = re.compile(r"dynamic module does not define (?:module export|init) function \((?P<name>\w+)\)")
_MODULE = re.compile(r"No module named '(?P<name>[\w.]+)'")
_TORCH_LIBRARY = re.compile(r"lib(?:c10|torch|caffe2|shm)\w*\.so")
_LIMIT = 200


def link_finding(message: str, library: Library, target: Path | None) -> Finding | None:
    """The construct that an import's message is about; None if the message is not about linking or loading."""
    return next(iter(link_findings(message, library, target)), None)


def link_findings(message: str, library: Library, target: Path | None) -> tuple[Finding, ...]:
    """As ``link_finding``, and behind the first one all other symbols that the loader would have missed next."""
    if match := _SYMBOL.search(message):
        symbols = dict.fromkeys([match["symbol"].partition("@")[0], *unresolved_symbols(target)])
        return symbol_findings(symbols, library)
    if match := _LIBRARY.search(message):
        return (_missing_library(match["name"], library, target),)
    if match := _INIT.search(message):
        init = Lack(f"{match['name']} (module init)", ConstructKind.INIT, Symptom.IMPORT_ERROR, match[0])
        return (_finding(init, library, word="NAME"),)
    if (match := _MODULE.search(message)) and (built := _built_as(match["name"], library, target)):
        return (_misnamed(match["name"], built, library),)
    return ()


@dataclass(frozen=True, slots=True)
class Lack:
    """What a loader misses.

    Attributes:
        api: the construct's name.
        kind: what sort of thing it is.
        symptom: a link error, or an import error where the module itself is at fault.
        actual: what the loader says of it.
    """

    api: str
    kind: ConstructKind
    symptom: Symptom
    actual: str


def unresolved_symbols(target: Path | None) -> tuple[str, ...]:
    """The symbols of C++ that the shared objects below ``target`` miss, without loading any of them."""
    if target is None:
        return ()
    symbols: dict[str, None] = {}
    for path in sorted(target.rglob("*.so")):
        symbols |= dict.fromkeys(shared_objects.unresolved(path))
    # The standard library and the loader's own names come from libraries that are not looked into.
    spelled = shared_objects.demangle(symbols)
    return tuple(symbol for symbol in symbols if of_framework(_entity(spelled[symbol])))


def symbol_findings(symbols: Iterable[str], library: Library) -> tuple[Finding, ...]:
    """One finding for each construct that the mangled ``symbols`` belong to."""
    spelled = shared_objects.demangle(dict.fromkeys(symbols))
    sources = standins.native_files(library.root)
    findings: dict[str, Finding] = {}
    for name in spelled.values():
        symbol = symbol_construct(name, sources)
        if symbol.api in findings:
            continue
        lack = Lack(symbol.api, symbol.kind, Symptom.LINK_ERROR, f"undefined symbol: {name}")
        facts: dict[str, Fact] = {}
        evidence: list[str] = []
        if of_framework(symbol.api):
            facts["presence"] = Presence.UNDEFINED
            evidence.append(
                f"{symbol.api}: declared, as the unit compiled, and defined in no library that it brings in"
            )
        findings[symbol.api] = _finding(lack, library, symbol.word, facts, evidence)
    return tuple(findings.values())


class SymbolConstruct(NamedTuple):
    """The torch name behind an undefined symbol, what sort of thing it is, and the word to look for in the sources."""

    api: str
    kind: ConstructKind
    word: str


def symbol_construct(spelled: str, sources: Iterable[Path] = ()) -> SymbolConstruct:
    """The construct that a demangled symbol belongs to."""
    if match := re.search(r"\btorch::generic_to<(.+?)\s*>\(", spelled):
        word = schema_type(match[1])
        return SymbolConstruct(f"{SCHEMA_TYPE}{word}", ConstructKind.REGISTRY, word)
    entity = _entity(spelled)
    if "operator<<" in spelled and (shown := _streamed(spelled)):
        printer = "toString" if _uses(r"\btoString\s*\(", sources) else "operator<<"
        return SymbolConstruct(f"c10::{printer}({shown})", ConstructKind.FUNCTION, printer)
    api = documented(entity)
    owner, _, last = api.rpartition("::")
    if not of_framework(api):
        return SymbolConstruct(api, ConstructKind.OWN, last)
    generic = "<T>" if re.search(rf"\b{re.escape(last)}<", spelled) else ""
    kind = ConstructKind.REGISTRY if is_registry(api) else member_of(owner)
    return SymbolConstruct(api + generic, kind, last)


def _entity(spelled: str) -> str:
    text = re.sub(r"^(?:vtable|typeinfo(?: name)?|VTT|guard variable|non-virtual thunk) (?:for|to) ", "", spelled)
    text = re.sub(r"\[abi:\w+\]", "", text).removesuffix(" const")
    return function_name(text)[0]


def _streamed(spelled: str) -> str:
    """The torch type that an ``operator<<`` prints."""
    arguments = function_name(spelled.replace("operator<<", "shift"))[1]
    last = plain_type(arguments.rpartition(",")[2])
    return last.rpartition("::")[2] if of_framework(last) else ""


def _uses(pattern: str, sources: Iterable[Path]) -> bool:
    return any(re.search(pattern, _text(path)) for path in sources)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _missing_library(name: str, library: Library, target: Path | None) -> Finding:
    askers = [path.name for path in _objects(target) if name in shared_objects.needed(path).libraries]
    of_torch = _TORCH_LIBRARY.match(name) is not None
    whose = "torch's" if of_torch else "not torch's and not Paddle's"
    evidence = [f"{asker} asks for {name} (readelf -d)" for asker in askers] or [f"{name} cannot be opened"]
    facts: Mapping[str, Fact] = {"library": name, "torch_library": of_torch}
    actual = f"{name} cannot be opened; the library is {whose}"
    return _finding(Lack(name, ConstructKind.LIBRARY, Symptom.LINK_ERROR, actual), library, "", facts, evidence)


def _built_as(name: str, library: Library, target: Path | None) -> str:
    """The shared object that was built for a module which Python does not find under its name."""
    if name.partition(".")[0] not in library.packages:
        return ""
    stem = name.rpartition(".")[2]
    return next((path.name for path in _objects(target) if path.name.partition(".")[0].startswith(stem)), "")


def _misnamed(name: str, built: str, library: Library) -> Finding:
    actual = f"{name} is not found; the build left {built}"
    lack = Lack(f"extension module {name}", ConstructKind.NAMING, Symptom.IMPORT_ERROR, actual)
    return _finding(lack, library, name.rpartition(".")[2])


def _objects(target: Path | None) -> list[Path]:
    return sorted(target.rglob("*.so")) if target is not None else []


def _finding(
    lack: Lack,
    library: Library,
    word: str,
    facts: Mapping[str, Fact] | None = None,
    evidence: Iterable[str] = (),
) -> Finding:
    """A finding with the lines of the library that use ``word`` as its sites."""
    base: dict[str, Fact] = {
        "construct_kind": lack.kind,
        "build_step": "load",
        "private": mentions_framework(lack.api) and is_private(lack.api.removesuffix("<T>")),
        "header": "",
    }
    return Finding(
        key=Key(lack.symptom, lack.api),
        stage=Stage.IMPORT,
        sites=_sites(library, word),
        expected="the extension loads under torch",
        actual=lack.actual,
        facts=base | dict(facts or {}),
        evidence=(lack.actual, *evidence),
    )


def _sites(library: Library, word: str) -> tuple[Site, ...]:
    """The lines of the library's sources that use a word; a loader knows no line."""
    if not word:
        return ()
    is_word = word[0].isalnum() or word[0] == "_"
    symbol = re.compile(rf"\b{re.escape(word)}\b" if is_word else re.escape(word))
    sites = []
    for path in standins.native_files(library.root):
        for number, line in enumerate(_text(path).splitlines(), 1):
            if symbol.search(line) and not line.lstrip().startswith(("//", "#include")):
                sites.append(Site(str(path.relative_to(library.root)), number))
    return tuple(sites[:_LIMIT])
