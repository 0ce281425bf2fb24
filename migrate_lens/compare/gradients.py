"""Gradients: two traces with the gradients that reached each result in; which of them differ, and the call whose
backward made them differ, out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from migrate_lens.compare.divergences import GRADIENT, Divergence
from migrate_lens.model.report import Symptom
from migrate_lens.model.trace import Event, EventKey, PlaceKind, Trace
from migrate_lens.model.value import Encoded, TensorValue, describe, difference, references, tensors

BACKWARD = ("backward", "grad")
# Places where something is read, handed to a decorator or written, so that no backward pass is made.
_NO_CALL = (PlaceKind.ATTRIBUTE, PlaceKind.DECORATOR, PlaceKind.SET_ITEM)
NO_GRADIENTS: Mapping[int, Encoded] = {}


def gradient_divergences(left: Trace, right: Trace, aligned: Sequence[tuple[Event, Event]]) -> Iterator[Divergence]:
    """Results that another gradient reached, the last one made first: it is nearest to where the backward pass began.

    One that a gradient reached on the left side alone is told and does not count by itself: the right side may have
    stopped before its backward pass.
    """
    if not (left.gradients and right.gradients):
        return
    for ours, theirs in reversed(aligned):
        wanted = left.gradients.get(ours.key, NO_GRADIENTS)
        reached = right.gradients.get(theirs.key, NO_GRADIENTS)
        for index, gradient in sorted(wanted.items()):
            if index not in reached:
                yield _apart(ours, theirs, False, describe(gradient), "no gradient")
                continue
            differs = difference(gradient, reached[index])
            if differs is not None and differs.hard:
                yield _apart(ours, theirs, True, differs.expected, differs.actual)


def _apart(want: Event, got: Event, hard: bool, expected: str, actual: str) -> Divergence:
    said = [f"the gradient that reached it: {text}" for text in (expected, actual)]
    return Divergence(want, got, Symptom.GRADIENT, GRADIENT, hard, *said)


def culprit(want: Trace, got: Trace, seen: EventKey) -> Event | None:
    """The torch event whose backward gives another gradient although it was reached by the same one.

    Walks back from the end: of the results whose gradient differs, the last one made is nearest to the loss, and of the
    calls that take it, the one reached by an equal gradient (or by none, at the root) is at fault.

    Args:
        want: torch's trace.
        got: the target's trace.
        seen: the event that showed a gradient that differs; the backward pass before it is looked at.
    """
    graph = graph_behind(want, seen)
    for event in reversed(graph):
        if not _differs_at(event, want, got):
            continue
        consumers = [other for other in graph if other.key != event.key and _takes(other, event) and _makes(other)]
        equal = [consumer for consumer in consumers if not _differs_at(consumer, want, got)]
        if equal:
            return equal[0]
    return None


def graph_behind(trace: Trace, seen: EventKey) -> list[Event]:
    """The events that led to a backward pass, in their order.

    It is the event itself, or the last one before it; where a gradient was read, the last one that reaches its tensor.
    """
    events = trace.events
    at = next((i for i, event in enumerate(events) if event.key == seen), len(events) - 1)
    leaf = set[int]() if is_backward(events[at]) else _given(events[at])
    starts = [i for i in range(at, -1, -1) if is_backward(events[i])] or [at]
    graphs = (_graph(events[: start + 1]) for start in starts)
    first = next(graphs)
    if not leaf or _reaches(first, leaf):
        return first[:-1]
    reaching = (graph for graph in graphs if _reaches(graph, leaf))
    return next(reaching, first)[:-1]


def leaves_before(trace: Trace, seen: EventKey) -> set[int]:
    """Serials of the tensors that a backward pass reaches, parameters of the layers on its way among them."""
    at = next((i for i, event in enumerate(trace.events) if event.key == seen), 0)
    graph = _graph(trace.events[: at + 1])
    layers = {event.layer for event in graph} - {0}
    made = [event for event in trace.events if event.flags.made_layer and event.layer in layers]
    return {serial for event in made for serial, _ in event.serials}.union(*map(_given, graph))


def _reaches(graph: list[Event], leaf: set[int]) -> bool:
    """Whether a tensor was given to one of the events."""
    return any(leaf & _given(event) for event in graph)


def _graph(events: tuple[Event, ...]) -> list[Event]:
    """The last event and those that made what it was given."""
    known, graph = _given(events[-1]), [events[-1]]
    for event in reversed(events[:-1]):
        if known & {serial for serial, _ in event.serials}:
            known |= _given(event)
            graph.append(event)
    return graph[::-1]


def _given(event: Event) -> set[int]:
    return {serial for serial, _ in references(event.inputs)}


def is_backward(event: Event) -> bool:
    """Whether an event is a backward pass; ``x.grad``, which is read, is none."""
    named = event.api.rpartition(".")[2] in BACKWARD
    return named and event.place.kind not in _NO_CALL and bool(_given(event))


def _differs_at(event: Event, want: Trace, got: Trace) -> bool:
    """Whether gradients that reached an event on both sides differ; the target's say requires_grad: no matter here."""
    ours = want.gradients.get(event.key, NO_GRADIENTS)
    theirs = got.gradients.get(event.key, NO_GRADIENTS)
    differences = (difference(gradient, theirs[index]) for index, gradient in ours.items() if index in theirs)
    return any(differs is not None and differs.hard for differs in differences)


def _takes(consumer: Event, producer: Event) -> bool:
    serials = {serial for serial, _ in producer.serials}
    return bool(serials & _given(consumer))


def _makes(event: Event) -> bool:
    """Whether an event makes a tensor that takes part in the graph, and is not its receiver handed back."""
    in_graph = any(TensorValue._make(tensor).requires_grad for tensor in tensors(event.value))
    return in_graph and not event.flags.hands_back
