"""Gradients: two traces with the gradients that reached each result in; which of them differ, and the call whose
backward made them differ, out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from migrate_lens.compare.divergences import Divergence
from migrate_lens.model.report import Symptom
from migrate_lens.model.trace import Event, Key, Trace
from migrate_lens.model.value import describe, difference, references, tensors

BACKWARD = ("backward", "grad")


def apart(left: Trace, right: Trace, aligned: Sequence[tuple[Event, Event]]) -> Iterator[Divergence]:
    """Results that another gradient reached, the last one made first: it is nearest to where the backward pass began.

    One that a gradient reached on the left side alone is told and does not count by itself: the right side may have
    stopped before its backward pass.
    """
    if not (left.gradients and right.gradients):
        return
    for one, other in reversed(aligned):
        mine, theirs = left.gradients.get(one.key, {}), right.gradients.get(other.key, {})
        for index, gradient in sorted(mine.items()):
            if index not in theirs:
                yield _apart(one, other, False, describe(gradient), "no gradient")
            elif (found := difference(gradient, theirs[index])) is not None and found.hard:
                yield _apart(one, other, True, found.expected, found.actual)


def _apart(want: Event, got: Event, hard: bool, expected: str, actual: str) -> Divergence:
    said = (f"the gradient that reached it: {text}" for text in (expected, actual))
    return Divergence(want, got, Symptom.GRADIENT, "gradient", hard, *said)


def culprit(want: Trace, got: Trace, seen: Key) -> Event | None:
    """The torch event whose backward gives another gradient although it was reached by the same one.

    Walks back from the end: of the results whose gradient differs, the last one made is nearest to the loss, and of the
    calls that take it, the one reached by an equal gradient (or by none, at the root) is at fault.

    Args:
        want: torch's trace.
        got: Paddle's trace.
        seen: the event that showed a gradient that differs; the backward pass before it is looked at.
    """
    graph = behind(want, seen)
    for event in reversed(graph):
        mine, theirs = want.gradients.get(event.key), got.gradients.get(event.key)
        if mine and theirs and _differs(mine, theirs):
            consumers = [e for e in graph if e.key != event.key and _takes(e, event) and _makes(e)]
            equal = [e for e in consumers if not _differs_at(e, want, got)]
            if equal:
                return equal[0]
    return None


def behind(trace: Trace, seen: Key) -> list[Event]:
    """The events that led to a backward pass, in their order.

    It is the event itself, or the last one before it; where a gradient was read, the last one that reaches its tensor.
    """
    at = next((i for i, e in enumerate(trace.events) if e.key == seen), len(trace.events) - 1)
    leaf = set[int]() if _is_backward(trace.events[at]) else _given(trace.events[at])
    starts = [i for i in range(at, -1, -1) if _is_backward(trace.events[i])] or [at]
    graphs = (_graph(trace.events[: start + 1]) for start in starts)
    first = next(graphs)
    if not leaf or any(leaf & _given(e) for e in first):
        return first[:-1]
    return next((graph for graph in graphs if any(leaf & _given(e) for e in graph)), first)[:-1]


def _graph(events: tuple[Event, ...]) -> list[Event]:
    """The last event and those that made what it was given."""
    known, found = _given(events[-1]), [events[-1]]
    for event in reversed(events[:-1]):
        if known & {serial for serial, _ in event.serials}:
            known |= _given(event)
            found.append(event)
    return found[::-1]


def _given(event: Event) -> set[int]:
    return {serial for serial, _ in references(event.inputs)}


def _is_backward(event: Event) -> bool:
    """Whether an event is a backward pass; ``x.grad``, which is read, is none."""
    return bool(event.api.rpartition(".")[2] in BACKWARD and event.place.kind not in "ads" and _given(event))


def _differs(mine: dict[int, object], theirs: dict[int, object]) -> bool:
    found = (difference(gradient, theirs[index]) for index, gradient in mine.items() if index in theirs)
    return any(d is not None and d.hard for d in found)  # Paddle's gradients say requires_grad: no matter here


def _differs_at(event: Event, want: Trace, got: Trace) -> bool:
    return _differs(want.gradients.get(event.key, {}), got.gradients.get(event.key, {}))


def _takes(consumer: Event, producer: Event) -> bool:
    serials = {serial for serial, _ in producer.serials}
    return bool(serials & _given(consumer))


def _makes(event: Event) -> bool:
    """Whether an event makes a tensor that takes part in the graph, and is not its receiver handed back."""
    return any(t[5] for t in tensors(event.value)) and "=" not in event.flags
