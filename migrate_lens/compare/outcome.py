"""Outcomes: the endings of two runs in; whether the program behaved the same, and what to blame if not, out."""

from __future__ import annotations

from typing import Any

from migrate_lens.model.trace import Ending, Event, Frame, Trace
from migrate_lens.model.value import LIGHT, Difference, describe, difference, tag


def disagreement(want: Ending, got: Ending) -> Difference | None:
    """How the second ending differs from the first, for a program that ended well under torch.

    Flags of the gradient machinery, and a named tuple against a tuple, are no difference of an outcome: a program that
    depended on them would have shown it.
    """
    if got.how == "died":
        return Difference("crash", True, "finishes", "the process died")
    if got.how != want.how:
        return Difference("exception", True, want.how, ending_said(got))
    if want.how == "exited":
        same = (want.value or 0) == (got.value or 0)
        return None if same else Difference("exception", True, f"exits with {want.value}", f"exits with {got.value}")
    if want.how == "parts":
        return _parts(want.value, got.value)
    if not want.has_value:
        return None
    found = difference(want.value, got.value)
    return None if found is None or found.aspect in LIGHT else found


def _parts(want: dict[str, str], got: dict[str, str]) -> Difference | None:
    """A part that does not pass under torch says nothing about Paddle."""
    lost = [name for name, fate in want.items() if fate == "passed" and got.get(name) != "passed"]
    if not lost:
        return None
    more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
    return Difference("exception", True, f"{lost[0]} passes", f"{lost[0]} ends in {got.get(lost[0], 'nothing')}{more}")


def ending_said(ending: Ending) -> str:
    """One line about how a program ended."""
    if ending.how == "raised":
        message = next((x.strip() for x in ending.value["message"].splitlines() if x.strip()), "")
        return f"raises {ending.value['types'][0]}" + (f": {message[:200]}" if message else "")
    if ending.how == "parts":
        bad = [f"{name}: {fate}" for name, fate in ending.value.items() if fate not in ("passed", "skipped")]
        return "; ".join(bad[:3]) or "finishes"
    if ending.how == "finished":
        return f"finishes with {describe(ending.value)}" if ending.has_value else "finishes"
    if ending.how == "stopped":
        return "stopped where it was told to"
    return f"exits with {ending.value}" if ending.how == "exited" else "dies"


def own_frame(frames: tuple[Frame, ...], trace: Trace) -> Frame | None:
    """The innermost frame of an exception that stands in observed code."""
    files = {place.path for place in trace.places}
    own = [frame for frame in frames if frame.path in files]
    return own[-1] if own else (frames[-1] if frames else None)


def recorded(trace: Trace, failure: dict[str, Any]) -> Event | None:
    """The observed event that raised an exception, if one did, and not the program's own code below it."""
    for event in reversed(trace.events):
        failed = event.what in ("raise", "absent") and not event.healed and not event.value["through"]
        if failed and all(event.value[k] == failure[k] for k in ("types", "message")):
            return event
    return None


def suspect(trace: Trace, frame: Frame) -> Event | None:
    """The observed event whose result a failing statement was handling when it raised outside any observed call."""
    near = [
        e
        for e in trace.events
        if e.place.path == frame.path and frame.line <= e.place.line <= max(frame.line, frame.end_line)
    ]
    special = [e for e in near if e.what == "call" and tag(e.value) in ("Z", "D", "V")]
    if special:
        return special[-1]
    return near[-1] if near else (trace.events[-1] if trace.events else None)
