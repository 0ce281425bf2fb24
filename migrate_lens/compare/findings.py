"""Divergences in, findings out: the same key at several sites is one finding with several sites."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from migrate_lens.compare.divergences import Divergence, guarded
from migrate_lens.compare.outcome import ending_said
from migrate_lens.model.report import Fact, Finding, FirstDivergence, Key, Library, Site, Stage
from migrate_lens.model.trace import Event, Place, Trace
from migrate_lens.model.value import describe, tag

_VALUES = {
    "T": "tensor", "Z": "size", "D": "dtype", "V": "device", "C": "class", "F": "function", "M": "module", "K": "layer",
    "": "scalar",
}  # fmt: skip
_KINDS = {
    "c": "call", "m": "call", "a": "attribute", "o": "operator", "i": "operator", "s": "item assignment",
    "t": "attribute assignment", "d": "decorator", "f": "from-import", "p": "import",
}  # fmt: skip

_SIGNATURE = re.compile(r"^\s+(?:\d+\. )?\(.*\) -> .*$", re.MULTILINE)
_UNCAST = re.compile(r"\b(?:at|c10|torch|caffe2|paddle|phi)::[\w:]+")


def collect(found: Iterable[Divergence], stage: Stage, library: Library) -> tuple[Finding, ...]:
    """Merge divergences by key, in the order in which the first of each was met."""
    groups: dict[Key, list[Divergence]] = {}
    for divergence in found:
        groups.setdefault(key_of(divergence), []).append(divergence)
    return tuple(_finding(key, members, stage, library) for key, members in groups.items())


def key_of(divergence: Divergence) -> Key:
    """The identity of a divergence."""
    return Key(divergence.symptom, divergence.want.api or divergence.got.api, divergence.detail)


def node_name(place: Place) -> str:
    """A place as the worker knows it; calls in one chain begin at the same column."""
    return f"{place.module}:{place.line}:{place.column}:{place.end_line}:{place.end_column}:{place.kind}"


def site_of(path: str, module: str, line: int, library: Library) -> Site:
    """A file as users know it: relative to the library, or a module's file within its package."""
    file = Path(path)
    for root in (library.root, library.import_root):
        if file.is_relative_to(root):
            return Site(file.relative_to(root).as_posix(), line)
    parts = file.parts
    top = module.partition(".")[0]
    if top and top in parts:
        return Site("/".join(parts[len(parts) - 1 - parts[::-1].index(top) :]), line)
    return Site(file.name, line)


def is_outside(place: Place, library: Library) -> bool:
    """Whether a place is in a package that is not the library's own."""
    if place.module.partition(".")[0] in library.packages:
        return False
    roots = [root for root in (library.root, library.import_root) if Path(place.path).is_relative_to(root)]
    return not any("site-packages" not in Path(place.path).relative_to(root).parts for root in roots)


def api_of(trace: Trace, place: Place) -> str:
    """The torch name that was recorded at a place, or its source."""
    position = (place.module, place.line, place.column, place.end_line, place.end_column, place.kind)
    return next((e.api for e in trace.events if e.key[:6] == position and e.api), place.text)


def _finding(key: Key, members: Sequence[Divergence], stage: Stage, library: Library) -> Finding:
    first = members[0]
    places = dict.fromkeys(d.got.place for d in members)
    sites = tuple(dict.fromkeys(site_of(p.path, p.module, p.line, library) for p in places))
    evidence = list(dict.fromkeys(f"{_where(d, library)} {d.got.place.text}" for d in members))[:3]
    if first.got.healed:
        evidence.append(f"torch's recorded result was handed over ({first.got.healed}), {len(members)} time(s)")
    if not first.hard:
        evidence.append("the program's outcome depends on it")
    facts = facts_of(first) | {"outside": all(is_outside(p, library) for p in places)}
    return Finding(key, stage, sites, first.expected, first.actual, facts, tuple(evidence))


def _where(divergence: Divergence, library: Library) -> str:
    place = divergence.got.place
    site = site_of(place.path, place.module, place.line, library)
    return f"{site.path}:{site.line}:"


def facts_of(divergence: Divergence) -> dict[str, Fact]:
    """What the rules may ask about a divergence."""
    want, got = divergence.want, divergence.got
    facts: dict[str, Fact] = {
        "kind": _KINDS[got.place.kind], "private": private(want.api), "proxied": "p" in got.flags,
        "missing_module": False,
    }  # fmt: skip
    if want.what == "call":
        facts["value"] = _VALUES.get(tag(want.value), "object")
    if got.what in ("raise", "absent"):
        failure = got.value
        facts |= {
            "exception": failure["types"][0], "raised_in": failure["where"], "argument": failure["argument"],
            "callee": failure["callee"], "proxied": failure["proxied"], "guarded": guarded(got),
            "on_object": failure["on_object"], "uncast": uncast(failure["message"]),
        }  # fmt: skip
    return facts


def uncast(message: str) -> str:
    """The framework's C++ type that pybind11 could not convert, from the signature that it prints: a type without a
    caster is spelled in C++ there, all others as Python knows them."""
    found = (_UNCAST.search(signature[0]) for signature in _SIGNATURE.finditer(message))
    return next((match[0] for match in found if match), "")


def private(api: str) -> bool:
    """Whether a part of a dotted name begins with one underscore."""
    return any(p.startswith("_") and not (p.startswith("__") and p.endswith("__")) for p in api.split("."))


def first_divergence(want: Trace, got: Trace, found: Sequence[Divergence], in_flight: str) -> FirstDivergence:
    """The row of the migration guide: the first difference of tensors, or the first of any kind."""
    chosen = next((d for d in found if d.hard), None) or next(iter(found), None)
    if chosen is None or got.ending.how == "died":
        path = in_flight or "the program"
        return FirstDivergence(path, path, ending_said(got.ending), "no observed call differs before the end")
    torch_path = f"{chosen.want.api} ({chosen.got.place.text})"
    return FirstDivergence(
        torch_path,
        _paddle_path(chosen.got),
        f"{chosen.expected} | {chosen.actual}",
        f"{chosen.symptom} in {chosen.want.api}",
    )


def _paddle_path(got: Event) -> str:
    if got.what == "call":
        return f"{got.api} -> {describe(got.value)}"
    where = got.value["where"]
    return f"{got.api}: {got.value['types'][0]}" + (f" from {where}" if where else "")
