"""Two whole traces in; what stands on one side only, what differs and where it began, out."""

from __future__ import annotations

from dataclasses import dataclass

from migrate_lens.compare.align import in_order, pairs, same_source
from migrate_lens.compare.divergences import Divergence, diverges
from migrate_lens.compare.gradients import apart, culprit
from migrate_lens.compare.outcome import disagreement, ending_said
from migrate_lens.model.report import Level, Symptom
from migrate_lens.model.trace import Died, Ending, Event, Raised, Trace
from migrate_lens.model.value import Difference, difference


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two traces side by side.

    Attributes:
        left, right: the traces.
        aligned: pairs of positions of events that are the same call, in the right one's order.
        by_place: whether they are of one source, so that a call's place says which it is; else names in order do.
        divergences: what differs between aligned events, and then between the gradients that reached them.
        outcome: how the outcomes differ, None where they are the same.
    """

    left: Trace
    right: Trace
    aligned: tuple[tuple[Event, Event], ...]
    by_place: bool
    divergences: tuple[Divergence, ...]
    outcome: Difference | None

    @property
    def only_left(self) -> tuple[Event, ...]:
        """Events of the left trace alone."""
        known = {id(ours) for ours, _ in self.aligned}
        return tuple(event for event in self.left.events if id(event) not in known)

    @property
    def only_right(self) -> tuple[Event, ...]:
        """Events of the right trace alone."""
        known = {id(theirs) for _, theirs in self.aligned}
        return tuple(event for event in self.right.events if id(event) not in known)

    @property
    def hard(self) -> tuple[Divergence, ...]:
        """Differences that count by themselves; a Python type or a flag is none."""
        return tuple(d for d in self.divergences if d.hard)

    @property
    def same(self) -> bool:
        """Whether both did the same: every call on both sides, no difference that counts, one outcome."""
        calls = max(len(self.left.events), len(self.right.events))
        return len(self.aligned) == calls and not self.hard and not self.outcome

    @property
    def backward_at_fault(self) -> Event | None:
        """The left trace's call that an equal gradient reached on both sides, and whose backward made another of it."""
        wrong = self.by_place and any(d.symptom is Symptom.GRADIENT for d in self.hard)
        return culprit(self.left, self.right, self.left.events[-1].key) if wrong else None

    @property
    def values_compared(self) -> bool:
        """Whether both hold values; a trace of structure alone says nothing of them."""
        return all(trace.about.level is not Level.STRUCTURE for trace in (self.left, self.right))

    @property
    def random_apart(self) -> bool:
        """Whether both drew random numbers of their own, so that values after them say nothing."""
        drawn = ((ours, theirs) for ours, theirs in self.aligned if ours.flags.drew and ours.returned)
        return any(difference(ours.value, theirs.value) is not None for ours, theirs in drawn)


def compare(left: Trace, right: Trace) -> Comparison:
    """Hold the right trace against the left one."""
    by_place = same_source(left, right)
    aligned = tuple(pairs(left, right) if by_place else in_order(left, right))
    by_event = (diverges(ours, theirs) for ours, theirs in aligned)
    of_events = [divergence for divergence in by_event if divergence is not None]
    of_gradients = apart(left, right, aligned)
    outcome = outcome_difference(left.ending, right.ending)
    return Comparison(left, right, aligned, by_place, (*of_events, *of_gradients), outcome)


def outcome_difference(left: Ending, right: Ending) -> Difference | None:
    """How the outcomes differ, whatever the left one is."""
    if isinstance(left, Died) and isinstance(right, Died):
        return None
    if isinstance(left, Raised) and isinstance(right, Raised):
        same = left.failure.types == right.failure.types
        return None if same else Difference("exception", True, ending_said(left), ending_said(right))
    return disagreement(left, right)
