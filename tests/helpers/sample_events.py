"""A few words about what a program did, in; events and traces as a worker would have left them, out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from migrate_lens.model.trace import (
    Died,
    Ending,
    EndingKind,
    Event,
    EventKind,
    Exited,
    Failure,
    Finished,
    Frame,
    Parts,
    Place,
    PlaceKind,
    Raised,
    Stopped,
    Trace,
    Written,
)
from migrate_lens.model.value import Encoded
from migrate_lens.runs.store import flags_of

SCRIPT = "/lib/script.py"


def place(
    line: int,
    *,
    text: str = "",
    kind: str = "m",
    caught: tuple[str, ...] = (),
    column: int = 0,
    module: str = "__main__",
) -> Place:
    """A place in the script."""
    return Place(module, SCRIPT, line, column, line, column + 10, PlaceKind(kind), caught, text or f"f{line}()")


def failure(kind: str = "ValueError", message: str = "no", **facts: Any) -> Failure:
    """What is known about an exception."""
    types = (kind, *(["LookupError"] if kind in ("KeyError", "IndexError") else []), "Exception")
    return Failure(types, message, **{"where": "a/b.py:1 f", "callee": "function", **facts})


def call(at: Place | int, value: Encoded = None, *, api: str = "torch.f", visit: int = 1, flags: str = "",
         healed: str = "", part: str = "", inputs: tuple[Encoded, ...] = (), serials: tuple[tuple[int, int], ...] = (),
         written: tuple[tuple[int, Encoded], ...] = ()) -> Event:  # fmt: skip
    """A call that returned."""
    at = place(at) if isinstance(at, int) else at
    writes = tuple(Written(*write) for write in written)
    return Event(EventKind.CALL, at, visit, part, api, inputs, value, serials, writes, flags_of(flags), healed)


def failed(at: Place | int, what: str = "raise", *, api: str = "torch.f", visit: int = 1, **facts: Any) -> Event:
    """A call that raised, or a name that was not there (``absent``)."""
    at = place(at) if isinstance(at, int) else at
    return Event(EventKind(what), at, visit, "", api, (), failure=failure(**facts))


def handed(at: int) -> Event:
    """A stand-in that answered."""
    return handed_at(place(at))


def handed_at(at: Place) -> Event:
    """A stand-in that answered at a place."""
    return Event(EventKind.HANDED, at, 1, "", "", (), healed="handed")


def tensor(*numbers: float, dtype: str = "float32", grad: bool = False) -> Encoded:
    """An encoded tensor of one dimension."""
    return ("T", dtype, (len(numbers),), np.asarray(numbers, dtype).tobytes(), "cpu", grad)


def ended(how: str = "finished", value: Any = None, *frames: Frame, has: bool | None = None) -> Ending:
    """How a program ended."""
    match EndingKind(how):
        case EndingKind.FINISHED:
            return Finished(value, value is not None if has is None else has)
        case EndingKind.PARTS:
            return Parts(value)
        case EndingKind.RAISED:
            return Raised(value, frames)
        case EndingKind.EXITED:
            return Exited(value)
        case EndingKind.STOPPED:
            return Stopped()
        case EndingKind.DIED:
            return Died()


def trace(events: Iterable[Event], ending: Ending | None = None, *, in_flight: Place | None = None,
          gradients: dict[Any, Any] | None = None, users: tuple[str, ...] = ("__main__",)) -> Trace:  # fmt: skip
    """A trace of the script."""
    events = tuple(events)
    places = tuple(dict.fromkeys(e.place for e in events))
    return Trace(events, ending or ended(), in_flight, places, {}, users, (), (), (), gradients or {})
