"""Planted defects, in; a tracer that has one, out: what the conformance suite must catch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from migrate_lens.model.trace import Ending, Event, EventKind, Finished, Flags, Trace
from migrate_lens.model.value import Encoded, tag
from migrate_lens.runs.bench import Steering
from migrate_lens.runs.tracer import Capability, Seam, Support, Validation


@dataclass(frozen=True)
class Defective:
    """A tracer whose traces have a defect."""

    seam: Seam
    defect: Callable[[Trace], Trace]

    def reference_output(self, program: Path) -> Ending:
        """As it is."""
        return self.seam.reference_output(program)

    def capture(self, program: Path, steering: Steering) -> Trace:
        """With the defect."""
        return self.defect(self.seam.capture(program, steering))

    def validate(self, program: Path, trace: Trace) -> Validation:
        """As it is."""
        return self.seam.validate(program, trace)

    def describe(self) -> Mapping[Capability, Support]:
        """As if it had none."""
        return self.seam.describe()


def each(change: Callable[[Event], Event]) -> Callable[[Trace], Trace]:
    """A defect of every event."""
    return lambda trace: replace(trace, events=tuple(change(e) for e in trace.events))


def tensors_of(change: Callable[[Encoded], Encoded]) -> Callable[[Trace], Trace]:
    """A defect of every result that is a tensor."""

    def changed(event: Event) -> Event:
        return replace(event, value=change(event.value)) if tag(event.value) == "T" else event

    return each(changed)


def _wrong_value(value: Encoded) -> Encoded:
    return (*value[:3], b"\0" * len(value[3]), *value[4:]) if isinstance(value[3], bytes) else value


def _flagged(change: Callable[[Flags], Flags]) -> Callable[[Trace], Trace]:
    return each(lambda event: replace(event, flags=change(event.flags)))


def _swapped(event: Event) -> Event:
    return replace(event, inputs=event.inputs[::-1])


def _dropped(api: str) -> Callable[[Trace], Trace]:
    return lambda trace: replace(trace, events=tuple(e for e in trace.events if e.api != api))


def _renamed(event: Event) -> Event:
    return replace(event, api=event.api.replace("torch.nn.functional.", "torch."))


def _as_call(event: Event) -> Event:
    return event if event.failure is None else replace(event, what=EventKind.CALL, failure=None)


def _outcome(trace: Trace) -> Trace:
    return replace(trace, ending=Finished())


def _of_versions(event: Event) -> Event:
    def stale(value: Any) -> Any:
        return (*value[:2], 0) if tag(value) == "#" else value

    return replace(event, inputs=tuple(stale(v) for v in event.inputs))


def _leaky(value: Encoded) -> Encoded:
    return (*value[:3], b"\0\0\0\0", *value[4:]) if value[3] is None else value


# By name: the defect, and a capability one of whose cells must fail.
DEFECTS: dict[str, tuple[Callable[[Trace], Trace], Capability]] = {
    "a wrong shape": (tensors_of(lambda v: (*v[:2], (*v[2], 1), *v[3:])), Capability.FORWARD),
    "a wrong dtype": (tensors_of(lambda v: (v[0], {"float32": "int32"}.get(v[1], v[1]), *v[2:])), Capability.FORWARD),
    "a wrong value": (tensors_of(_wrong_value), Capability.FORWARD),
    "a dropped call": (_dropped("torch.Tensor.reshape"), Capability.FORWARD),
    "a doubled call": (lambda t: replace(t, events=(*t.events, t.events[-1])), Capability.FORWARD),
    "calls out of order": (lambda t: replace(t, events=t.events[::-1]), Capability.FORWARD),
    "a swapped argument": (each(_swapped), Capability.FORWARD),
    "a wrong name": (each(_renamed), Capability.FORWARD),
    "a lost outcome": (_outcome, Capability.FORWARD),
    "a lost gradient": (lambda t: replace(t, gradients={}), Capability.BACKWARD),
    "a lost requires_grad": (tensors_of(lambda v: (*v[:5], False)), Capability.BACKWARD),
    "a lost write": (each(lambda e: replace(e, written=())), Capability.IN_PLACE),
    "a stale version": (each(_of_versions), Capability.IN_PLACE),
    "a stale alias": (_flagged(lambda flags: replace(flags, shares_memory=False)), Capability.ALIASING),
    "an invented alias": (_flagged(lambda flags: replace(flags, shares_memory=True)), Capability.ALIASING),
    "a receiver taken for a new tensor": (_flagged(lambda flags: replace(flags, argument=None)), Capability.IN_PLACE),
    "a draw taken for a value": (_flagged(lambda flags: replace(flags, drew=False)), Capability.RANDOMNESS),
    "a lost constant": (lambda t: replace(t, values={}), Capability.CONSTANTS),
    "a lost layer": (each(lambda e: replace(e, state=None)), Capability.LAYERS),
    "a lost visit": (each(lambda e: replace(e, visit=1)), Capability.CONTROL_FLOW),
    "a lost exception": (each(_as_call), Capability.EXCEPTIONS),
    "a lost hook": (_dropped("torch.sum"), Capability.HOOKS),
    "a lost thread": (lambda t: replace(t, events=t.events[:3]), Capability.THREADS),
    "a substitution passed over": (each(lambda e: replace(e, healed="")), Capability.INTERVENTION),
    "a stop passed over": (lambda t: replace(t, ending=Finished()), Capability.INTERVENTION),
    "calls lost in a crash": (lambda t: replace(t, events=t.events[:-1]), Capability.STREAMING),
    "values where none are wanted": (tensors_of(_leaky), Capability.STRUCTURE),
    "lost operators": (each(lambda e: replace(e, ops=())), Capability.LOW_LEVEL),
    "a lost loader": (_dropped("torch.Tensor.mul"), Capability.DATA_LOADER),
    "invented values of a sparse tensor": (tensors_of(_leaky), Capability.SPARSE),
    "a wrong input": (each(lambda e: replace(e, inputs=(*e.inputs, 1.0))), Capability.REPLAY),
}
