"""Backward passes that go wrong in; the calls at fault, each at its own place, and without what only follows, out.

A pass that raises is tried: differentiable calls are cut out of its graph, more and more of them, as long as it raises;
the first of those that are left is at fault. With that one cut out for good the next one is looked for, in this pass
and then in those behind it, and in derivatives of its gradients.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from migrate_lens.compare.divergences import Divergence, divergences
from migrate_lens.compare.findings import node_name
from migrate_lens.compare.gradients import BACKWARD, culprit, graph_behind, is_backward, leaves_before
from migrate_lens.compare.outcome import raises
from migrate_lens.diagnosis.causes import Trial, serials_given
from migrate_lens.model.report import Symptom
from migrate_lens.model.trace import Event, EventKey, EventKind, Trace
from migrate_lens.model.value import Encoded, TensorValue, tensors
from migrate_lens.protocol.journal import BACKWARD_PASS
from migrate_lens.protocol.parts import part_of
from migrate_lens.runs.bench import Run

# Backward passes that are looked at in one diagnosis of a probe.
_PASSES = 8
# Trials in the search for the calls that make one of them raise.
_TRIALS = 96
# Seconds that it may take at least, and how many healed runs' worth.
_SECONDS, _RUNS = 20.0, 8.0
Nodes = tuple[str, ...]


def without_consequences(trace: Trace, met: Sequence[Divergence]) -> list[Divergence]:
    """Leave out the gradients that are missing, or others, since the pass that makes them raised."""
    failed = [d for d in met if raises_in_backward(d)]
    if not failed:
        return list(met)
    order = {event.key: number for number, event in enumerate(trace.events)}
    return [d for d in met if not any(_follows(trace, order, d, one) for one in failed)]


def _follows(trace: Trace, order: dict[EventKey, int], read: Divergence, failed: Divergence) -> bool:
    """Whether a gradient that was read is one that a failed pass did not make."""
    is_read = read.want.api.rpartition(".")[2] == "grad" and not raises_in_backward(read) and read.got.returned
    if not is_read or order[read.want.key] < order[failed.want.key]:
        return False
    leaves = serials_given(read.want)
    return read.got.value is None or not leaves or bool(leaves & leaves_before(trace, failed.want.key))


def raises_in_backward(divergence: Divergence) -> bool:
    """Whether it is a backward pass that raises on the target's side."""
    raised = divergence.got.what is EventKind.RAISE
    return raised and divergence.want.api.rpartition(".")[2] in BACKWARD


def named_by_backward(trial: Trial, kept: Sequence[Divergence]) -> list[Divergence]:
    """Gradients that differ, and backward passes that raise, by the calls whose backward is at fault."""
    kept = _gradients_by_fault(trial, kept)
    failed = [d for d in kept if raises_in_backward(d) and d.symptom is Symptom.EXCEPTION]
    if not failed:
        return kept
    faults = _Passes(trial, failed).faults()
    named: list[Divergence] = []
    for divergence in kept:
        named += faults.pop(divergence.want.key, []) if divergence in failed else [divergence]
    return [*named, *(fault for later in faults.values() for fault in later)]


@dataclass(slots=True)
class _Passes:
    """The passes that raise, one after the other."""

    trial: Trial
    failed: list[Divergence]
    cut: Nodes = ()
    seen: set[EventKey] = field(default_factory=set)
    unnamed: list[Divergence] = field(default_factory=list)

    def faults(self) -> dict[EventKey, list[Divergence]]:
        """What is at fault, by the pass that shows it."""
        faults: dict[EventKey, list[Divergence]] = {}
        known = {d.want.key for d in self.failed}
        waiting = self.failed
        while len(self.seen) < _PASSES:
            one = next((d for d in waiting if d.want.key not in self.seen), None)
            if one is None:
                break
            self.seen.add(one.want.key)
            found = _Search(self.trial, one, self.cut).faults()
            faults[one.want.key] = [fault.shown(one) for fault in found]
            if found:
                self.cut += tuple(node_name(fault.event.place) for fault in found)
                waiting = [*self._raising(), *(d for d in self.failed if d.want.key not in known)]
            elif one.want.key in known and not self._is_consequence(one):
                faults[one.want.key] = [one]
                self.unnamed.append(one)
        faults |= {d.want.key: [d] for d in self.failed if d.want.key not in self.seen and not self.cut}
        return faults

    def _raising(self) -> list[Divergence]:
        """The passes that raise once the calls at fault are cut out."""
        run = self.trial.of_tests(self.failed).healed(skip=self.cut)
        met = divergences(self.trial.base.trace, run.trace)
        return [d for d in met if raises_in_backward(d) and d.symptom is Symptom.EXCEPTION]

    def _is_consequence(self, divergence: Divergence) -> bool:
        """Whether a pass goes through the result of one that raised before: there is no graph there."""
        failed = {d.want.key for d in self.unnamed}
        return any(event.key in failed for event in graph_behind(self.trial.base.trace, divergence.want.key))


@dataclass(frozen=True, slots=True)
class _Went:
    """How a backward pass that does not return went.

    Attributes:
        symptom: how that shows.
        detail: exception type or signal.
        actual: the same, for a person.
    """

    symptom: Symptom
    detail: str
    actual: str

    @classmethod
    def of(cls, base: Run, run: Run, divergence: Divergence) -> _Went | None:
        """How a pass went in a run; None where it returned."""
        place = run.trace.in_flight
        if run.cut_off and place is not None and node_name(place) == node_name(divergence.want.place):
            if run.fate.timed_out:
                return cls(Symptom.TIMEOUT, "timeout", "does not return")
            how = run.fate.signal_name or f"exit status {run.fate.code}"
            return cls(Symptom.CRASH, how, f"kills the process: {how}")
        there = (d.got for d in divergences(base.trace, run.trace) if d.want.key == divergence.want.key)
        failure = next((got.failure for got in there if got.what is EventKind.RAISE), None)
        return cls(Symptom.EXCEPTION, failure.type, raises(failure)) if failure is not None else None


@dataclass(frozen=True, slots=True)
class _Fault:
    """A call that makes a backward pass fail, and how that shows."""

    event: Event
    went: _Went

    def shown(self, divergence: Divergence) -> Divergence:
        """The pass, by the name and at the place of the call."""
        went = self.went
        told = replace(divergence, symptom=went.symptom, detail=went.detail, actual=went.actual)
        return moved(told, self.event)


class _Search:
    """Looks for the calls that make one pass raise.

    Args:
        trial: how to try.
        divergence: the pass.
        cut: places that are cut out of the graph already.
    """

    def __init__(self, trial: Trial, divergence: Divergence, cut: Nodes) -> None:
        self._trial = trial.of_tests([divergence])
        self._pass = divergence
        self._cut = cut
        self._left = _TRIALS
        self._end = time.monotonic() + max(_SECONDS, _RUNS * trial.healed_seconds)
        self._went: _Went | None = None
        self._calls = _candidates(trial.base.trace, divergence.want.key, frozenset(cut))

    def faults(self) -> list[_Fault]:
        """These calls, in the order of the program; none where the pass raises without any of them."""
        nodes = tuple(self._calls)
        if not nodes or self._fails_with(()):
            return []
        found: list[_Fault] = []
        while self._fails_with(nodes) and self._went is not None:
            # What lies before the call that raises does not matter, what joins its result to the rest may.
            fewest = self._fewest(nodes)
            found.append(_Fault(self._calls[fewest[0]], self._went))
            nodes = tuple(node for node in nodes if node != fewest[0])
        order = {id(event): number for number, event in enumerate(self._trial.base.trace.events)}
        return sorted(found, key=lambda fault: order[id(fault.event)])

    def _fewest(self, nodes: Nodes) -> Nodes:
        """Few places at which calls make the pass raise: parts of them are cut out, ever smaller ones."""
        size = len(nodes) // 2
        while size:
            start = 0
            while start < len(nodes) and len(nodes) > 1:
                fewer = nodes[:start] + nodes[start + size :]
                if fewer and self._fails_with(fewer):
                    nodes = fewer
                else:
                    start += size
            size = min(size // 2, len(nodes) // 2) if size > 1 else 0
        return nodes

    def _fails_with(self, nodes: Nodes) -> bool:
        """Whether the pass fails with nothing in its graph but the calls at some places."""
        if self._left <= 0 or time.monotonic() > self._end:
            return False
        self._left -= 1
        others = [node for node in self._calls if node not in nodes]
        run = self._trial.healed(skip=[*self._cut, *others])
        went = _Went.of(self._trial.base, run, self._pass)
        self._went = went or self._went
        return went is not None


def _candidates(trace: Trace, seen: EventKey, cut: frozenset[str]) -> dict[str, Event]:
    """The calls before a pass that have a backward, by their places; a layer may have parameters of its own alone."""
    position = next((i for i, event in enumerate(trace.events) if event.key == seen), 0)
    known = _differentiable(trace)
    calls: dict[str, Event] = {}
    for event in trace.events[:position]:
        if part_of(event.visit) != part_of(seen.visit):
            continue  # of another test
        node = node_name(event.place)
        if node not in cut and _in_graph(event, known):
            calls.setdefault(node, event)
    return calls


def _in_graph(event: Event, differentiable: set[int]) -> bool:
    """Whether a call has a backward: it makes a tensor with a gradient from one that has one, or from its own."""
    makes = event.returned and not event.flags.hands_back and not event.flags.made_layer
    if not makes or is_backward(event) or not _requires_grad(event.value):
        return False
    return bool(event.layer) or bool(differentiable & serials_given(event))


def _requires_grad(value: Encoded) -> bool:
    return any(TensorValue._make(tensor).requires_grad for tensor in tensors(value))


def _differentiable(trace: Trace) -> set[int]:
    """Serials of the tensors that take part in the graph."""
    serials = {serial for (serial, _), value in trace.values.items() if _requires_grad(value)}
    for event in trace.events:
        if event.returned:
            made = zip(event.serials, tensors(event.value), strict=False)
            serials |= {serial for (serial, _), value in made if _requires_grad(value)}
    return serials


# -- gradients that differ ---------------------------------------------------------------------------------------------


def _gradients_by_fault(trial: Trial, kept: Sequence[Divergence]) -> list[Divergence]:
    gradients = [d for d in kept if d.symptom is Symptom.GRADIENT and d.hard]
    if not gradients:
        return list(kept)
    trial = trial.of_tests(gradients)
    ours = trial.with_gradients().trace
    theirs = trial.healed(gradients=True).trace
    faults = {id(d): culprit(ours, theirs, d.want.key) for d in gradients}
    named = []
    for divergence in kept:
        event = faults.get(id(divergence))
        named.append(divergence if event is None else _by_name(divergence, event))
    return named


def _by_name(divergence: Divergence, event: Event) -> Divergence:
    """A divergence by the name of the call at fault; in a pass that the program does not make, at its place too."""
    if divergence.got.place.module == BACKWARD_PASS:
        return moved(divergence, event)
    return replace(divergence, want=replace(divergence.want, api=event.api))


def moved(divergence: Divergence, event: Event) -> Divergence:
    """A divergence by the name of the call at fault, and at its place."""
    want = replace(divergence.want, api=event.api)
    return replace(divergence, want=want, got=replace(divergence.got, place=event.place))
