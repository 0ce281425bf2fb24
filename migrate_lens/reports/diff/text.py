"""Two traces held against each other, in; lines for a terminal, out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from migrate_lens import media
from migrate_lens.compare.comparison import Comparison
from migrate_lens.compare.divergences import Divergence
from migrate_lens.model.trace import Event, Trace
from migrate_lens.reports import PLAIN, View
from migrate_lens.reports.calls import Numbers, called, came, side_by_side, where
from migrate_lens.reports.wording import count

MOST_DIVERGENCES = 20
MOST_ONE_SIDED = 5


def render(comparison: Comparison, view: View = PLAIN) -> str:
    """What differs, where it began, and what only one of the traces has."""
    ours, theirs = Numbers(comparison.left), Numbers(comparison.right)
    lines = [
        *_headline(comparison),
        *_divergences(comparison, ours, theirs),
        *_one_sided("A", comparison.only_left),
        *_one_sided("B", comparison.only_right),
        *_fault(comparison, ours),
        *_outcome(comparison),
    ]
    if comparison.random_apart:
        lines += ["", "Both drew random numbers of their own. Give B those of A: migrate-lens trace ... --like A"]
    return "\n".join([*lines, "", _verdict(comparison)]) + "\n"


def _headline(comparison: Comparison) -> Iterator[str]:
    by = "by place" if comparison.by_place else "by order of names, since they are of two sources"
    yield f"A: {_side(comparison.left)}"
    yield f"B: {_side(comparison.right)}"
    yield f"{len(comparison.aligned)} aligned {by}"


def _side(trace: Trace) -> str:
    runtime = f"{trace.about.runtime or '?'} {trace.about.version or ''}".strip()
    return f"{runtime}, {count(len(trace.events), 'call')}"


def _divergences(comparison: Comparison, ours: Numbers, theirs: Numbers) -> Iterator[str]:
    """Those that count by themselves first."""
    ordered = [*comparison.hard, *(light for light in comparison.divergences if not light.hard)]
    for index, divergence in enumerate(ordered[:MOST_DIVERGENCES]):
        yield ""
        yield f"{_rank(index, divergence)}{_what(divergence, ours, theirs)}"
        yield f"  {media.line(divergence.got.place.text)}"
        yield f"  A {media.line(divergence.expected)}"
        yield f"  B {media.line(divergence.actual)}"
        yield from (f"  {line}" for line in side_by_side(divergence.want.ops, divergence.got.ops))
    left_out = len(ordered) - MOST_DIVERGENCES
    if left_out > 0:
        yield f"... {left_out} more: --format json"


def _rank(index: int, divergence: Divergence) -> str:
    if not divergence.hard:
        return "beside that, "
    return "first divergence, " if index == 0 else ""


def _what(divergence: Divergence, ours: Numbers, theirs: Numbers) -> str:
    want, got = divergence.want, divergence.got
    left, right = ours.of(want), theirs.of(got)
    numbers = str(left) if left == right else f"{left}|{right}"
    return f"{divergence.symptom} in {media.line(want.api or got.api)}, call {numbers} at {where(got)}"


def _one_sided(name: str, events: Sequence[Event]) -> Iterator[str]:
    """The first calls that only one trace has."""
    if not events:
        return
    yield ""
    yield f"only {name}: {count(len(events), 'call')}"
    for event in events[:MOST_ONE_SIDED]:
        yield f"  {where(event)} {media.line(event.api or event.place.text)} -> {came(event)}"


def _fault(comparison: Comparison, ours: Numbers) -> Iterator[str]:
    fault = comparison.backward_at_fault
    if fault is not None:
        yield ""
        yield f"The backward of {media.line(fault.api)} makes it: {called(ours.of(fault), fault)}"


def _outcome(comparison: Comparison) -> Iterator[str]:
    outcome = comparison.outcome
    if outcome is not None:
        yield ""
        yield f"outcome: A {media.line(outcome.expected)}"
        yield f"         B {media.line(outcome.actual)}"


def _verdict(comparison: Comparison) -> str:
    if not comparison.same:
        return "They differ."
    return "They are the same." if comparison.values_compared else _SAME_STRUCTURE


_SAME_STRUCTURE = "They are the same in structure; values were not compared."
