"""A trace in; what of the program it could not keep, each with a code, what it means and what to do, out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from migrate_lens.model.report import Level
from migrate_lens.model.trace import Event, Trace
from migrate_lens.model.value import Encoded, tag, tensors


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
    for name, why in trace.refused:
        yield Limit("module-not-observed", f"{name}: {why}", "give its source as plain Python")
    if "forked" in trace.apart:
        said = f"the program forked {trace.apart.count('forked')} time(s): what the new processes do is not recorded"
        yield Limit("child-process-not-observed", said, "let it work in one process: num_workers=0 for data loaders")
    if "threads" in trace.apart:
        said = "operators below calls in other threads are not seen; the calls are"
        yield Limit("threads-not-looked-below", said, "run what is to be looked below in the main thread")
    if trace.about.get("level") != Level.STRUCTURE:
        yield from _values(trace.events)
    yield from _opaque(trace.events)


def _values(events: Iterable[Event]) -> Iterator[Limit]:
    lost, sampled = [], []
    for number, event in enumerate(events, 1):
        data = [t[3] for t in _results(event)]
        if any(d is None for d in data):
            lost.append(number)
        if any(isinstance(d, tuple) for d in data):
            sampled.append(number)
    if lost:
        said = f"{_calls(lost)}: shapes only, the tensors are sparse, quantised, on meta, or not made yet"
        yield Limit("values-not-kept", said, "make them dense to compare their values: x.to_dense()")
    if sampled:
        said = f"{_calls(sampled)}: of large tensors, a sample of the elements"
        yield Limit("values-sampled", said, "--record values keeps them whole, --max-bytes says up to which size")


def _results(event: Event) -> list[Encoded]:
    if event.what != "call" or tag(event.value) == "K":
        return []
    return [*tensors(event.value), *(t for _, value in event.written for t in tensors(value))]


def _opaque(events: Iterable[Event]) -> Iterator[Limit]:
    named = {"torch.jit.script", "torch.jit.trace", "torch.jit.load", "torch.jit.ScriptModule"}
    scripted = [n for n, e in enumerate(events, 1) if e.api in named]
    if scripted:
        said = f"{_calls(scripted)}: scripted code is one call, what runs in it is not seen"
        yield Limit("scripted-code", said, "trace the module as Python, before torch.jit.script")
    compiled = [n for n, e in enumerate(events, 1) if e.api == "torch.compile"]
    if compiled:
        said = f"{_calls(compiled)}: compiled code runs eagerly here, with the same results"
        yield Limit("compiled-code", said, "nothing: this is so that its calls are seen")


def _calls(numbers: list[int]) -> str:
    more = f" and {len(numbers) - 3} more" if len(numbers) > 3 else ""
    return f"call {', '.join(map(str, numbers[:3]))}{more}"
