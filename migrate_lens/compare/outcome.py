"""Outcomes: the endings of two runs in; whether the program behaved the same, and what to blame if not, out."""

from __future__ import annotations

from typing import assert_never

from migrate_lens.model.trace import (
    PASSED,
    SKIPPED,
    Died,
    Ending,
    Event,
    Exited,
    Failure,
    Finished,
    Frame,
    Parts,
    Raised,
    Stopped,
    Trace,
)
from migrate_lens.model.value import DEVICE, DTYPE, LIGHT, SIZE, Difference, describe, difference, tag

_MESSAGE = 200
_SHOWN = 3
# Torch's small types: what is done with such a value outside of calls shows nowhere else.
SMALL_TYPES = {SIZE: "torch.Size", DTYPE: "torch.dtype", DEVICE: "torch.device"}


def disagreement(want: Ending, got: Ending) -> Difference | None:
    """How the second ending differs from the first, for a program that ended well under torch.

    Flags of the gradient machinery, and a named tuple against a tuple, are no difference of an outcome: a program that
    depended on them would have shown it.
    """
    if isinstance(got, Died):
        return Difference("crash", True, "finishes", "the process died")
    if isinstance(want, Exited) and isinstance(got, Exited):
        same = (want.code or 0) == (got.code or 0)
        return None if same else Difference("exception", True, ending_said(want), ending_said(got))
    if isinstance(want, Parts) and isinstance(got, Parts):
        return _parts(want, got)
    if isinstance(want, Finished) and isinstance(got, Finished):
        return _results(want, got)
    if want.how is not got.how:
        return Difference("exception", True, want.how, ending_said(got))
    return None


def _results(want: Finished, got: Finished) -> Difference | None:
    if not want.has_value:
        return None
    differs = difference(want.value, got.value)
    return None if differs is None or differs.aspect in LIGHT else differs


def _parts(want: Parts, got: Parts) -> Difference | None:
    """A part that does not pass under torch says nothing about the target."""
    lost = [name for name in want.passed if got.fates.get(name) != PASSED]
    if not lost:
        return None
    first = lost[0]
    more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
    return Difference("exception", True, f"{first} passes", f"{first} ends in {got.fates.get(first, 'nothing')}{more}")


def ending_said(ending: Ending) -> str:
    """One line about how a program ended."""
    match ending:
        case Finished():
            return f"finishes with {describe(ending.value)}" if ending.has_value else "finishes"
        case Parts(fates):
            bad = [f"{name}: {fate}" for name, fate in fates.items() if fate not in (PASSED, SKIPPED)]
            return "; ".join(bad[:_SHOWN]) or "finishes"
        case Raised(failure):
            return raises(failure)
        case Exited(code):
            return f"exits with {code}"
        case Stopped():
            return "stopped where it was told to"
        case Died():
            return "dies"
        case _:
            assert_never(ending)


def raises(failure: Failure) -> str:
    """One line about an exception: its type and the first line of its message."""
    message = failure.first_line
    return f"raises {failure.type}: {message[:_MESSAGE]}" if message else f"raises {failure.type}"


def own_frame(frames: tuple[Frame, ...], trace: Trace) -> Frame | None:
    """The innermost frame of an exception that stands in observed code; the innermost of all where none does."""
    files = {place.path for place in trace.places}
    own = [frame for frame in frames if frame.path in files] or frames
    return own[-1] if own else None


def recorded(trace: Trace, failure: Failure) -> Event | None:
    """The observed event that raised an exception, if one did, and not the program's own code below it."""
    for event in reversed(trace.events):
        raised = event.failure
        if raised is None or raised.through or event.healed:
            continue
        if (raised.types, raised.message) == (failure.types, failure.message):
            return event
    return None


def suspect(trace: Trace, frame: Frame) -> Event | None:
    """The observed event whose result a failing statement was handling when it raised outside any observed call."""
    near = [event for event in trace.events if frame.runs(event.place)]
    special = [event for event in near if event.returned and tag(event.value) in SMALL_TYPES]
    candidates = special or near or trace.events
    return candidates[-1] if candidates else None
