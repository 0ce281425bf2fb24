"""Divergences in, findings out: the same key at several sites is one finding with several sites."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from migrate_lens.compare.divergences import Divergence, guarded
from migrate_lens.compare.outcome import ending_said
from migrate_lens.model.report import Fact, Finding, FirstDivergence, Key, Library, Site, Stage
from migrate_lens.model.target import TARGET
from migrate_lens.model.trace import Died, Event, Place, PlaceKind, Trace
from migrate_lens.model.value import (
    CLASS,
    DEVICE,
    DTYPE,
    FUNCTION,
    LAYER,
    MODULE,
    SIZE,
    TENSOR,
    describe,
    tag,
)
from migrate_lens.protocol.parts import part_of

_SCALAR = ""  # what has no tag travels as itself
_VALUES = {
    TENSOR: "tensor",
    SIZE: "size",
    DTYPE: "dtype",
    DEVICE: "device",
    CLASS: "class",
    FUNCTION: "function",
    MODULE: "module",
    LAYER: "layer",
    _SCALAR: "scalar",
}
_KINDS = {
    PlaceKind.CALL: "call",
    PlaceKind.METHOD: "call",
    PlaceKind.ATTRIBUTE: "attribute",
    PlaceKind.OPERATOR: "operator",
    PlaceKind.IN_PLACE: "operator",
    PlaceKind.SET_ITEM: "item assignment",
    PlaceKind.SET_ATTRIBUTE: "attribute assignment",
    PlaceKind.DECORATOR: "decorator",
    PlaceKind.FROM_IMPORT: "from-import",
    PlaceKind.IMPORT: "import",
}
_MOST_EVIDENCE = 3

_SIGNATURE = re.compile(r"^\s+(?:\d+\. )?\(.*\) -> .*$", re.MULTILINE)
_NAMESPACES = ("at", "c10", "torch", "caffe2", *TARGET.namespaces)
_UNCAST = re.compile(rf"\b(?:{'|'.join(_NAMESPACES)})::[\w:]+")


def collect(divergences: Iterable[Divergence], stage: Stage, library: Library) -> tuple[Finding, ...]:
    """Merge divergences by key, in the order in which the first of each was met."""
    groups: dict[Key, list[Divergence]] = {}
    for divergence in divergences:
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
    if not top or top not in parts:
        return Site(file.name, line)
    package = len(parts) - 1 - parts[::-1].index(top)
    return Site("/".join(parts[package:]), line)


def site_at(place: Place, library: Library) -> Site:
    """A place as users know it."""
    return site_of(place.path, place.module, place.line, library)


def is_outside(place: Place, library: Library) -> bool:
    """Whether a place is in a package that is not the library's own."""
    if place.module.partition(".")[0] in library.packages:
        return False
    path = Path(place.path)
    roots = [root for root in (library.root, library.import_root) if path.is_relative_to(root)]
    return all("site-packages" in path.relative_to(root).parts for root in roots)


def api_of(trace: Trace, place: Place) -> str:
    """The torch name that was recorded at a place, or its source."""
    position = place.position
    names = (event.api for event in trace.events if event.api and event.place.position == position)
    return next(names, place.text)


def _finding(key: Key, members: Sequence[Divergence], stage: Stage, library: Library) -> Finding:
    first = members[0]
    places = dict.fromkeys(d.got.place for d in members)
    sites = tuple(dict.fromkeys(site_at(place, library) for place in places))
    evidence = list(dict.fromkeys(_stands(d.got.place, library) for d in members))[:_MOST_EVIDENCE]
    if first.got.healed:
        evidence.append(f"torch's recorded result was handed over ({first.got.healed}), {len(members)} time(s)")
    if not first.hard:
        evidence.append("the program's outcome depends on it")
    facts = facts_of(first) | {"outside": all(is_outside(place, library) for place in places)}
    parts = frozenset(part_of(d.got.visit) for d in members)
    return Finding(key, stage, sites, first.expected, first.actual, facts, tuple(evidence), parts)


def _stands(place: Place, library: Library) -> str:
    site = site_at(place, library)
    return f"{site.path}:{site.line}: {place.text}"


def facts_of(divergence: Divergence) -> dict[str, Fact]:
    """What the rules may ask about a divergence."""
    want, got = divergence.want, divergence.got
    facts: dict[str, Fact] = {
        "kind": _KINDS[got.place.kind],
        "private": private(want.api),
        "proxied": got.flags.other_object,
        "missing_module": False,
        "of_tensors": divergence.of_tensors,
    }
    if want.returned:
        facts["value"] = _VALUES.get(tag(want.value), "object")
    failure = got.failure
    if failure is not None:
        facts |= {
            "exception": failure.type,
            "raised_in": failure.where,
            "argument": failure.argument,
            "callee": failure.callee,
            "proxied": failure.proxied,
            "guarded": guarded(got),
            "on_object": failure.on_object,
            "uncast": uncast(failure.message),
        }
    return facts


def uncast(message: str) -> str:
    """The framework's C++ type that pybind11 could not convert, from the signature that it prints: a type without a
    caster is spelled in C++ there, all others as Python knows them."""
    types = (_UNCAST.search(signature[0]) for signature in _SIGNATURE.finditer(message))
    return next((match[0] for match in types if match), "")


def private(api: str) -> bool:
    """Whether a part of a dotted name begins with one underscore."""
    return any(_is_private(part) for part in api.split("."))


def _is_private(name: str) -> bool:
    special = name.startswith("__") and name.endswith("__")
    return name.startswith("_") and not special


def first_divergence(got: Trace, divergences: Sequence[Divergence], in_flight: str) -> FirstDivergence:
    """The row of the migration guide: the first difference of tensors, or the first of any kind."""
    hard = (divergence for divergence in divergences if divergence.hard)
    chosen = next(hard, None) or next(iter(divergences), None)
    if chosen is None or isinstance(got.ending, Died):
        path = in_flight or "the program"
        return FirstDivergence(path, path, ending_said(got.ending), "no observed call differs before the end")
    torch_path = f"{chosen.want.api} ({chosen.got.place.text})"
    return FirstDivergence(
        torch_path,
        _target_path(chosen.got),
        f"{chosen.expected} | {chosen.actual}",
        f"{chosen.symptom} in {chosen.want.api}",
    )


def _target_path(got: Event) -> str:
    failure = got.failure
    if failure is None:
        return f"{got.api} -> {describe(got.value)}"
    where = f" from {failure.where}" if failure.where else ""
    return f"{got.api}: {failure.type}{where}"
