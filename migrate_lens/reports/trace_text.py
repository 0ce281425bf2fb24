"""A trace, a comparison of two, or calls made again, in; lines for a terminal, out. Loops are folded here only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import PurePath

from migrate_lens.compare.comparison import Comparison
from migrate_lens.compare.outcome import ending_said
from migrate_lens.doctor.examine import Health, rows
from migrate_lens.model.trace import Event, Op, Trace
from migrate_lens.model.value import Encoded, describe
from migrate_lens.reports.wording import clean, count, environment
from migrate_lens.runs.limits import Limit
from migrate_lens.runs.replay import Judged, odd_one
from migrate_lens.runs.tracer import Validation

MOST_CALLS = 60
MOST_DIVERGENCES = 20
_LONGEST_LOOP = 40
_LEAST_TIMES = 3


def trace(found: Trace, where: str, limits: Sequence[Limit], validation: Validation | None) -> str:
    """What a trace is of, its calls, how its program ended, what it does not hold, and whether it can be believed."""
    about = found.about
    side = f"{about.framework or '?'} {about.version or ''} ({about.runtime or '?'})"
    kept = f", kept in {where}" if where else ""
    lines = [f"{clean(about.spec or '')} under {side}: {count(len(found.events), 'call')}{kept}", ""]
    lines += [*_calls(found), "", f"outcome: {clean(ending_said(found.ending))}"]
    if found.ending.how == "died" and found.in_flight is not None:
        lines.append(f"in flight: {clean(found.in_flight.text)}")
    lines += [f"{x.code}: {x.said}\n  try: {x.remedy}" for x in limits]
    if validation is not None:
        lines.append(f"trace: {validation.standing}")
        lines += [f"  {c.name}: {c.standing}: {clean(c.said)}" for c in validation.checks]
    return "\n".join(lines) + "\n"


def comparison(found: Comparison) -> str:
    """Two traces side by side: what differs, where it began, and what only one of them has."""
    left, right = (f"{t.about.runtime or '?'} {t.about.version or ''}".strip() for t in (found.left, found.right))
    by = "by place" if found.by_place else "by order of names, since they are of two sources"
    lines = [
        f"A: {left}, {count(len(found.left.events), 'call')}",
        f"B: {right}, {count(len(found.right.events), 'call')}",
        f"{len(found.aligned)} aligned {by}",
    ]
    numbers = [{id(e): n for n, e in enumerate(t.events, 1)} for t in (found.left, found.right)]
    lines += [*_divergences(found, *numbers), *_one_sided(found)]
    fault = found.backward_at_fault
    if fault is not None:
        lines += ["", f"The backward of {fault.api} makes it: {called(numbers[0][id(fault)], fault)}"]
    if found.outcome is not None:
        lines += ["", f"outcome: A {clean(found.outcome.expected)}", f"         B {clean(found.outcome.actual)}"]
    if found.random_apart:
        lines += ["", "Both drew random numbers of their own. Give B those of A: migrate-lens trace ... --like A"]
    apart = "" if found.values_compared else " in structure; values were not compared"
    return "\n".join([*lines, "", f"They are the same{apart}." if found.same else "They differ."]) + "\n"


def _divergences(found: Comparison, ours: dict[int, int], theirs: dict[int, int]) -> Iterator[str]:
    ordered = [*found.hard, *(d for d in found.divergences if not d.hard)]
    for index, each in enumerate(ordered[:MOST_DIVERGENCES]):
        left, right = ours[id(each.want)], theirs[id(each.got)]
        pair = str(left) if left == right else f"{left}|{right}"
        first = "first divergence, " if index == 0 and each.hard else "" if each.hard else "beside that, "
        yield ""
        yield f"{first}{each.symptom} in {each.want.api or each.got.api}, call {pair} at {_where(each.got)}"
        yield f"  {clean(each.got.place.text)}"
        yield f"  A {clean(each.expected)}"
        yield f"  B {clean(each.actual)}"
        yield from (f"  {line}" for line in _beside(each.want.ops, each.got.ops))
    if len(ordered) > MOST_DIVERGENCES:
        yield f"... {len(ordered) - MOST_DIVERGENCES} more: --format json"


def _one_sided(found: Comparison) -> Iterator[str]:
    for name, events in (("A", found.only_left), ("B", found.only_right)):
        if events:
            yield ""
            yield f"only {name}: {count(len(events), 'call')}"
            yield from (f"  {_where(e)} {e.api or clean(e.place.text)} -> {came(e)}" for e in events[:5])


def replayed(judged: Sequence[Judged]) -> str:
    """Calls that were made again; of many, those that are the same are only counted."""
    lines: list[str] = []
    for each in judged:
        if len(judged) > 1 and each.verdict == "inputs":
            continue
        lines.append(f"{called(each.number, each.event)}: {_VERDICTS[each.verdict]}")
        if each.cannot:
            lines.append(f"  {clean(each.cannot)}")
        for runtime, differs in each.differs:
            lines += [f"  recorded {clean(differs.expected)}", f"  {runtime} {clean(differs.actual)}"]
        if len(each.sides) > 1:
            lines += [f"  {line}" for line in _beside(*(b.ops for _, b in each.sides))]
    tally = Counter(j.verdict for j in judged)
    if len(judged) > 1:
        lines += ["", ", ".join(f"{n} {_COUNTED[v]}" for v, n in tally.most_common())]
    return "\n".join(lines) + "\n"


_VERDICTS = {
    "operator": "it differs on equal inputs",
    "inputs": "the same on equal inputs; a difference in the program came in with its inputs",
    "not reproduced": "alone, it does not give what was recorded",
    "cannot": "it cannot be made alone",
}
_COUNTED = {
    "operator": "differ on equal inputs", "inputs": "are the same on equal inputs",
    "not reproduced": "do not give what was recorded", "cannot": "cannot be made alone",
}  # fmt: skip


def _beside(left: Sequence[Op], right: Sequence[Op]) -> Iterator[str]:
    """Low-level operators of two sides in columns; the first result of the left that the right never has is marked."""
    if not left and not right:
        return
    odd = odd_one(left, right) if right else None
    ours = [
        f"{op.name} -> {clean(describe(op.value))}" + (" <- not on the other side" if op is odd else "") for op in left
    ]
    width = max(map(len, ours), default=0)
    for one, other in zip_longest(ours, _ops(right), fillvalue=""):
        yield f"| {one:<{width}} | {other}"


def _calls(trace: Trace) -> Iterator[str]:
    """One line a call, with loops folded and low-level operators below."""
    width = max((len(_where(e)) for e in trace.events), default=0)
    for shown, line in enumerate(_folded(trace, width)):
        if shown == MOST_CALLS:
            yield f"... all {len(trace.events)} calls: --format json"
            return
        yield line


def _folded(trace: Trace, width: int) -> Iterator[str]:
    events = trace.events
    marks = [_mark(e) for e in events]
    at = 0
    while at < len(events):
        period, times = _loop(marks, at)
        for number in range(at, at + period):
            yield _line(number + 1, events[number], width)
            below = (*_ops(events[number].ops), *_gradients(trace.gradients.get(events[number].key, {})))
            yield from (f"{'':{width + 8}}{line}" for line in below)
        if times > 1:
            last = at + period * times
            yield f"      {'^ this call' if period == 1 else f'^ these {period} calls'} {times} times, up to {last}"
        at += period * times


def _loop(marks: Sequence[Hashable], at: int) -> tuple[int, int]:
    """Length and times of the shortest loop that begins here; (1, 1) where none does."""
    for period in range(1, _LONGEST_LOOP + 1):
        times = 1
        while marks[at : at + period] == marks[at + period * times : at + period * (times + 1)]:
            times += 1
        if times >= _LEAST_TIMES:
            return period, times
    return 1, 1


def _mark(event: Event) -> Hashable:
    return (event.place.position, event.part, event.what, event.api, repr(_shape(event)))


def _shape(event: Event) -> object:
    value = event.value
    return value[1:3] if isinstance(value, tuple) and value and value[0] == "T" else None


def _line(number: int, event: Event, width: int) -> str:
    how = f" [{event.healed}]" if event.healed else ""
    return f"{number:>5} {_where(event):<{width}}  {event.api or clean(event.place.text)} -> {came(event)}{how}"


def came(event: Event) -> str:
    """What came of a call."""
    if event.failure is not None:
        message = next(iter(event.failure.message.splitlines()), "")
        return clean(f"raises {event.failure.type}: {message}")[:100]
    return clean(describe(event.value))


def _where(event: Event) -> str:
    return f"{PurePath(event.place.path).name}:{event.place.line}"


def _ops(below: Sequence[Op]) -> Iterator[str]:
    """Low-level operators, a line each."""
    for op in below:
        yield f"{op.name} -> {clean(describe(op.value))}"


def _gradients(reached: Mapping[int, Encoded]) -> Iterator[str]:
    """The gradients that reached the tensors of a result, a line each."""
    for index, gradient in sorted(reached.items()):
        yield f"gradient{f' of {index}' if index else ''}: {clean(describe(gradient))}"


def called(number: int, event: Event) -> str:
    """A call by number, place and source."""
    return f"call {number} at {_where(event)}: {clean(event.place.text)}"


def health(found: Health) -> str:
    """What is installed, and the scorecard."""
    lines = [f"system        {found.system}", f"compiler      {found.compiler}"]
    for side in found.sides:
        if side.environment is not None:
            lines.append(f"{side.runtime:<13} {environment(side.environment)}")
        else:
            lines += [f"{side.runtime:<13} {clean(side.problem)}", f"{'':13} try: {clean(side.remedy)}"]
    table = rows(found)
    widths = [max(len(row[n]) for row in table) for n in range(len(table[0]))]
    lines += ["", *("  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in table)]
    for side in found.sides:
        lines += [
            f"{side.runtime}: {t.cell.name}: {clean(t.failure)}" for t in side.tried if not t.honest and t.failure
        ]
    return "\n".join(lines) + "\n"
