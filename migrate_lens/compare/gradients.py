"""Gradients: two traces with the gradients that reached each result in; the call whose backward differs out."""

from __future__ import annotations

from migrate_lens.encoded import difference, references, tensors
from migrate_lens.events import Event, Trace


def culprit(want: Trace, got: Trace) -> Event | None:
    """The torch event whose backward gives another gradient although it was reached by the same one.

    Walks back from the end: of the results whose gradient differs, the last one made is nearest to the loss, and of the
    calls that take it, the one reached by an equal gradient (or by none, at the root) is at fault.
    """
    made = {event.key: event for event in want.events}
    for event in reversed(want.events):
        mine, theirs = want.gradients.get(event.key), got.gradients.get(event.key)
        if mine and theirs and _differs(mine, theirs):
            consumers = [e for e in want.events if e.key != event.key and _takes(e, event) and _makes(e)]
            equal = [e for e in consumers if not _differs_at(e, want, got)]
            if equal:
                return made[equal[0].key]
    return None


def _differs(mine: dict[int, object], theirs: dict[int, object]) -> bool:
    found = (difference(gradient, theirs[index]) for index, gradient in mine.items() if index in theirs)
    return any(d is not None and d.hard for d in found)  # Paddle's gradients say requires_grad: no matter here


def _differs_at(event: Event, want: Trace, got: Trace) -> bool:
    return _differs(want.gradients.get(event.key, {}), got.gradients.get(event.key, {}))


def _takes(consumer: Event, producer: Event) -> bool:
    serials = {serial for serial, _ in producer.serials}
    return any(serial in serials for serial, _ in references(consumer.inputs))


def _makes(event: Event) -> bool:
    """Whether an event makes a tensor that takes part in the graph, and is not its receiver handed back."""
    return any(t[5] for t in tensors(event.value)) and "=" not in event.flags
