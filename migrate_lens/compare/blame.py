"""Blame of last resort: an outcome that no call explains in, the finding that names the nearest observed place out."""

from __future__ import annotations

from migrate_lens.compare.divergences import divergences
from migrate_lens.compare.findings import collect, facts_of, key_of, private, site_of
from migrate_lens.compare.outcome import ending_said, own_frame, recorded, suspect
from migrate_lens.encoded import Difference, describe, tag
from migrate_lens.events import Event, Frame, Trace
from migrate_lens.model import Finding, Key, Library, Site, Stage, Symptom

UNEXPLAINED = Difference("value", True, "the same outcome", "another outcome")
_TYPES = {"Z": "torch.Size", "D": "torch.dtype", "V": "torch.device"}


def blame(want: Trace, got: Trace, differs: Difference, stage: Stage, library: Library) -> tuple[Finding, ...]:
    """Name the nearest observed place for an outcome that differs although no call that differs explains it."""
    if got.ending.how == "raised":
        return (_raised(want, got, stage, library),)
    soft = [d for d in divergences(want, got) if not d.hard]
    if soft:
        return collect(soft[-1:], stage, library)
    last = next((e for e in reversed(got.events) if e.what == "call"), None)
    symptom = {"shape": Symptom.SHAPE, "dtype": Symptom.DTYPE, "exception": Symptom.EXCEPTION}.get(differs.aspect, Symptom.VALUE)
    sites = (site_of(last.place.path, last.place.module, last.place.line, library),) if last else ()
    api = _name(want, last) if last else "the program's result"
    evidence = ("no observed call differs; the nearest one before the end is named",)
    return (
        Finding(Key(symptom, api, "outcome"), stage, sites, differs.expected, differs.actual, {"private": private(api)}, evidence),
    )  # fmt: skip


def _raised(want: Trace, got: Trace, stage: Stage, library: Library) -> Finding:
    """An exception that ended the program outside any observed call: what the failing statement was handling."""
    failure = got.ending.value
    event = recorded(got)
    frame = own_frame(got.ending, got)
    if event is None and frame is not None:
        event = _soft_near(want, got, frame) or suspect(got, frame)
    api = _name(want, event) if event else failure["types"][0]
    sites: tuple[Site, ...] = ()
    if frame is not None:
        sites = (site_of(frame.path, frame.module, frame.line, library),)
    elif event is not None:
        sites = (site_of(event.place.path, event.place.module, event.place.line, library),)
    facts = {
        "exception": failure["types"][0], "raised_in": failure["where"], "private": private(api),
        "proxied": bool(event and "p" in event.flags), "missing_module": False,
    }  # fmt: skip
    evidence = ("the program ends outside any observed call; the call whose result it was handling is named",)
    key = Key(Symptom.EXCEPTION, api, failure["types"][0])
    return Finding(key, stage, sites, "goes on", ending_said(got.ending), facts, evidence)


def _soft_near(want: Trace, got: Trace, frame: Frame) -> Event | None:
    """The last event before the end whose result differs in type only: a named tuple that is a plain one."""
    soft = [d for d in divergences(want, got) if not d.hard and d.symptom is not Symptom.GRADIENT]
    near = [d for d in soft if d.got.place.path == frame.path and frame.line <= d.got.place.line <= max(frame.line, frame.end_line)]
    chosen = near or [d for d in soft if tag(d.want.value) == "n"]
    return chosen[-1].got if chosen else None


def _name(want: Trace, event: Event) -> str:
    """Torch's name of an event; the type where its value is one of torch's small types."""
    if event.what == "call" and tag(event.value) in _TYPES:
        return _TYPES[tag(event.value)]
    same = next((e for e in want.events if e.key == event.key), None)
    return (same.api if same else event.api) or event.place.text


__all__ = ["UNEXPLAINED", "blame", "collect", "describe", "facts_of", "key_of"]
