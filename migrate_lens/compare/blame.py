"""Blame of last resort: an outcome that no call explains in, the finding that names the nearest observed place out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from migrate_lens.compare.divergences import Divergence, divergences
from migrate_lens.compare.findings import collect, private, site_of
from migrate_lens.compare.outcome import own_frame, recorded, suspect
from migrate_lens.model.report import Finding, Key, Library, Site, Stage, Symptom
from migrate_lens.model.trace import Event, Frame, Trace
from migrate_lens.model.value import Difference, tag

UNEXPLAINED = Difference("value", True, "the same outcome", "another outcome")
_TYPES = {"Z": "torch.Size", "D": "torch.dtype", "V": "torch.device"}
_SYMPTOMS = {"shape": Symptom.SHAPE, "dtype": Symptom.DTYPE, "exception": Symptom.EXCEPTION, "crash": Symptom.CRASH}
_DUNDER = re.compile(r"(?P<file>\S+):\d+ (?P<name>__\w+__)$")


def blame(want: Trace, got: Trace, differs: Difference, stage: Stage, library: Library) -> tuple[Finding, ...]:
    """Name the nearest observed place for an outcome that differs although no call that differs explains it."""
    failures = list(_failures(want, got))
    if failures:
        return tuple(_raised(want, got, failure, frames, stage, library) for failure, frames in failures)
    soft = [d for d in divergences(want, got) if not d.hard]
    if soft:
        return collect(soft[-1:], stage, library)
    last = next((e for e in reversed(got.events) if e.what == "call" and e.place.kind not in "pf"), None)
    symptom = _SYMPTOMS.get(differs.aspect, Symptom.VALUE)
    sites = (site_of(last.place.path, last.place.module, last.place.line, library),) if last else ()
    api = _name(want, last) if last else "the program's result"
    evidence = ("no observed call differs; the nearest one before the end is named",)
    key = Key(symptom, api, "outcome")
    return (Finding(key, stage, sites, differs.expected, differs.actual, {"private": private(api)}, evidence),)


def _failures(want: Trace, got: Trace) -> Iterator[tuple[dict[str, Any], tuple[Frame, ...]]]:
    """Exceptions that ended the program, or a part of it that passes under torch."""
    if got.ending.how == "raised":
        yield got.ending.value, got.ending.frames
    passed = want.ending.value if want.ending.how == "parts" else {}
    for name, failure, frames in got.failures:
        if passed.get(name) == "passed":
            yield failure, frames


def _raised(want: Trace, got: Trace, failure: dict[str, Any], frames: tuple[Frame, ...], stage: Stage,
            library: Library) -> Finding:  # fmt: skip
    """An exception outside any observed call: what the failing statement was handling."""
    event, frame = recorded(got, failure), own_frame(frames, got)
    dunder = _DUNDER.search(failure["where"])
    read = _read_under_torch(want, failure, frame) if event is None else None
    if read is not None:
        api = read.api
    elif event is None and dunder and "/site-packages/" not in (frame.path if frame else ""):
        api = ("torch.nn.Module." if "/nn/" in dunder["file"] else "torch.Tensor.") + dunder["name"]
    else:
        if event is None and frame is not None:
            event = _soft_near(want, got, frame) or suspect(got, frame)
        api = _name(want, event) if event else failure["types"][0]
    facts = {
        "exception": failure["types"][0], "raised_in": failure["where"], "private": private(api),
        "proxied": bool(event and "p" in event.flags), "missing_module": False, "callee": failure["callee"],
    }  # fmt: skip
    evidence = (
        "the exception is raised outside any observed call; the call whose result was being handled is named",
        *_said(failure, frame),
    )
    message = next((x.strip() for x in failure["message"].splitlines() if x.strip()), "")
    actual = f"raises {failure['types'][0]}: {message[:200]}"
    key = Key(Symptom.EXCEPTION, api, failure["types"][0]) if read is None else Key(Symptom.MISSING_API, api)
    return Finding(key, stage, _sites(frame, event, library), "goes on", actual, facts, evidence)


def _read_under_torch(want: Trace, failure: dict[str, Any], frame: Frame | None) -> Event | None:
    """What torch has under a name that is missing from an object which is not known to be the framework's."""
    name = failure["missing"] if failure["types"][0] == "AttributeError" else ""
    if not name or frame is None:
        return None
    lines = range(frame.line, max(frame.line, frame.end_line) + 1)
    there = (e for e in want.events if e.place.path == frame.path and e.place.line in lines)
    return next((e for e in there if e.api.endswith(f".{name}")), None)


def _sites(frame: Frame | None, event: Event | None, library: Library) -> tuple[Site, ...]:
    if frame is not None:
        return (site_of(frame.path, frame.module, frame.line, library),)
    if event is not None:
        return (site_of(event.place.path, event.place.module, event.place.line, library),)
    return ()


def _said(failure: dict[str, Any], frame: Frame | None) -> Iterator[str]:
    if failure["where"]:
        yield f"raised in {failure['where']}"
    if frame is not None:
        yield f"reached from line {frame.line} of module {frame.module}"


def near(divergence: Divergence, frame: Frame) -> bool:
    """Whether a divergence stands in the statement that a frame was running."""
    place = divergence.got.place
    return place.path == frame.path and frame.line <= place.line <= max(frame.line, frame.end_line)


def _soft_near(want: Trace, got: Trace, frame: Frame) -> Event | None:
    """The last event before the end whose result differs in type only: a named tuple that is a plain one."""
    soft = [d for d in divergences(want, got) if not d.hard and d.symptom is not Symptom.GRADIENT]
    chosen = [d for d in soft if near(d, frame)] or [d for d in soft if tag(d.want.value) == "n"]
    return chosen[-1].got if chosen else None


def _name(want: Trace, event: Event) -> str:
    """Torch's name of an event; the type where its value is one of torch's small types."""
    if event.what == "call" and tag(event.value) in _TYPES:
        return _TYPES[tag(event.value)]
    same = next((e for e in want.events if e.key == event.key), None)
    return (same.api if same else event.api) or event.place.text
