"""A trace in; what of the program it could not keep, each with a code, what it means and what to do, out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from migrate_lens.model.report import Level
from migrate_lens.model.trace import Apart, Event, Trace
from migrate_lens.model.value import LAYER, Encoded, TensorValue, tag, tensors

_SHOWN = 3
_SCRIPTED = frozenset(("torch.jit.script", "torch.jit.trace", "torch.jit.load", "torch.jit.ScriptModule"))


@dataclass(frozen=True, slots=True)
class Limit:
    """Something that a trace does not hold.

    Attributes:
        code: stable, for scripts.
        said: what is missing, and where.
        remedy: what to do to have it.
    """

    code: str
    said: str
    remedy: str


def limits(trace: Trace) -> tuple[Limit, ...]:
    """What a trace does not hold, and why."""
    return tuple(_limits(trace))


def _limits(trace: Trace) -> Iterator[Limit]:
    for refused in trace.refused:
        said = f"{refused.module}: {refused.reason}"
        yield Limit("module-not-observed", said, "give its source as plain Python")
    forks = trace.apart.count(Apart.FORKED)
    if forks:
        said = f"the program forked {forks} time(s): what the new processes do is not recorded"
        yield Limit("child-process-not-observed", said, "let it work in one process: num_workers=0 for data loaders")
    if Apart.THREADS in trace.apart:
        said = "operators below calls in other threads are not seen; the calls are"
        yield Limit("threads-not-looked-below", said, "run what is to be looked below in the main thread")
    if trace.about.level is not Level.STRUCTURE:
        yield from _values(trace.events)
    yield from _opaque(trace.events)


def _values(events: Iterable[Event]) -> Iterator[Limit]:
    lost, sampled = [], []
    for number, event in enumerate(events, 1):
        data = [TensorValue._make(tensor).data for tensor in _tensors_made(event)]
        if None in data:
            lost.append(number)
        if any(isinstance(values, tuple) for values in data):
            sampled.append(number)
    if lost:
        said = f"{_calls(lost)}: shapes only, the tensors are sparse, quantised, on meta, or not made yet"
        yield Limit("values-not-kept", said, "make them dense to compare their values: x.to_dense()")
    if sampled:
        said = f"{_calls(sampled)}: of large tensors, a sample of the elements"
        yield Limit("values-sampled", said, "--record values keeps them whole, --max-bytes says up to which size")


def _tensors_made(event: Event) -> list[Encoded]:
    """Tensors that a call returned or wrote; what a layer holds is none of them."""
    if not event.returned or tag(event.value) == LAYER:
        return []
    written = [tensor for _, value in event.written for tensor in tensors(value)]
    return [*tensors(event.value), *written]


def _opaque(events: Iterable[Event]) -> Iterator[Limit]:
    numbered = list(enumerate(events, 1))
    scripted = [number for number, event in numbered if event.api in _SCRIPTED]
    if scripted:
        said = f"{_calls(scripted)}: scripted code is one call, what runs in it is not seen"
        yield Limit("scripted-code", said, "trace the module as Python, before torch.jit.script")
    compiled = [number for number, event in numbered if event.api == "torch.compile"]
    if compiled:
        said = f"{_calls(compiled)}: compiled code runs eagerly here, with the same results"
        yield Limit("compiled-code", said, "nothing: this is so that its calls are seen")


def _calls(numbers: list[int]) -> str:
    more = f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else ""
    return f"call {', '.join(map(str, numbers[:_SHOWN]))}{more}"
