"""A recorded trace, in; lines for a terminal, out. Loops are folded here only."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from migrate_lens import media
from migrate_lens.compare.outcome import ending_said
from migrate_lens.model.trace import Died, Event, Trace
from migrate_lens.model.value import TENSOR, Encoded, TensorValue, describe, tag
from migrate_lens.reports import PLAIN, View
from migrate_lens.reports.calls import came, operators, where
from migrate_lens.reports.wording import count
from migrate_lens.runs.limits import limits
from migrate_lens.runs.request import Recorded
from migrate_lens.runs.tracer import Validation

MOST_CALLS = 60
_LONGEST_LOOP = 40
_LEAST_TIMES = 3


def render(recorded: Recorded, view: View = PLAIN) -> str:
    """What a trace is of, its calls, how its program ended, what it does not hold, and whether it can be believed."""
    trace = recorded.trace
    lines = [_headline(trace, view.kept), ""]
    lines += [*_calls(trace), "", f"outcome: {media.line(ending_said(trace.ending))}"]
    if isinstance(trace.ending, Died) and trace.in_flight is not None:
        lines.append(f"in flight: {media.line(trace.in_flight.text)}")
    lines += [f"{limit.code}: {media.line(limit.said)}\n  try: {media.line(limit.remedy)}" for limit in limits(trace)]
    if recorded.validation is not None:
        lines += _validation(recorded.validation)
    return "\n".join(lines) + "\n"


def _headline(trace: Trace, kept: str) -> str:
    about = trace.about
    side = f"{about.framework or '?'} {about.version or ''} ({about.runtime or '?'})"
    line = f"{media.line(about.spec or '')} under {side}: {count(len(trace.events), 'call')}"
    return f"{line}, kept in {kept}" if kept else line


def _validation(validation: Validation) -> Iterator[str]:
    yield f"trace: {validation.standing}"
    for check in validation.checks:
        yield f"  {check.name}: {check.standing}: {media.line(check.said)}"


# -- calls, with loops folded ------------------------------------------------------------------------------------------


class Loop(NamedTuple):
    """Calls that repeat: how many of them, and how many times; 1 and 1 for a call that does not."""

    period: int
    times: int


def _calls(trace: Trace) -> Iterator[str]:
    """One line a call, with loops folded and low-level operators below."""
    width = max((len(where(event)) for event in trace.events), default=0)
    for shown, line in enumerate(_folded(trace, width)):
        if shown == MOST_CALLS:
            yield f"... all {len(trace.events)} calls: --format json"
            return
        yield line


def _folded(trace: Trace, width: int) -> Iterator[str]:
    marks = [_mark(event) for event in trace.events]
    at = 0
    while at < len(marks):
        loop = _loop(marks, at)
        for position in range(at, at + loop.period):
            yield from _call(trace, position, width)
        at += loop.period * loop.times
        if loop.times > 1:
            what = "this call" if loop.period == 1 else f"these {loop.period} calls"
            yield f"      ^ {what} {loop.times} times, up to {at}"


def _loop(marks: Sequence[Hashable], at: int) -> Loop:
    """The shortest loop that begins here."""
    for period in range(1, _LONGEST_LOOP + 1):
        first_round = marks[at : at + period]
        times = 1
        while first_round == marks[at + period * times : at + period * (times + 1)]:
            times += 1
        if times >= _LEAST_TIMES:
            return Loop(period, times)
    return Loop(1, 1)


def _mark(event: Event) -> Hashable:
    """What makes two calls rounds of the same one: all but the visit and the values."""
    return (event.place.position, event.part, event.what, event.api, repr(_shape(event)))


def _shape(event: Event) -> object:
    """Dtype and shape of a result that is a tensor."""
    if tag(event.value) != TENSOR:
        return None
    tensor = TensorValue._make(event.value)
    return tensor.dtype, tensor.shape


def _call(trace: Trace, position: int, width: int) -> Iterator[str]:
    """A call, and below it its operators and the gradients that reached its result."""
    event = trace.events[position]
    healed = f" [{event.healed}]" if event.healed else ""
    name = media.line(event.api or event.place.text)
    yield f"{position + 1:>5} {where(event):<{width}}  {name} -> {came(event)}{healed}"
    indent = " " * (width + 8)
    for line in (*operators(event.ops), *_gradients(trace.gradients.get(event.key, {}))):
        yield indent + line


def _gradients(reached: Mapping[int, Encoded]) -> Iterator[str]:
    """The gradients that reached the tensors of a result, a line each."""
    for index, gradient in sorted(reached.items()):
        of_which = f" of {index}" if index else ""
        yield f"gradient{of_which}: {media.line(describe(gradient))}"
