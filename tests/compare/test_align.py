"""Two traces of one source, in; which of their events are the same, out, in time that grows with their length."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from sample_events import call, handed, place, trace

from migrate_lens.compare.align import counts, pairs
from migrate_lens.compare.divergences import divergences
from migrate_lens.model.trace import Event, PlaceKind

PLACES = [place(line) for line in range(1, 501)]


def events_of(number: int) -> list[Event]:
    """A program that goes through its places again and again; each event has a value of its own."""
    return [call(PLACES[i % 500], i, visit=i // 500 + 1) for i in range(number)]


def edited(events: list[Event], seed: int) -> tuple[list[Event], set[int], int]:
    """One event in a hundred lost, and one in a hundred added; what was lost, by value, and how many were added."""
    chance = random.Random(seed)
    kept: list[Event] = []
    lost, added = set(), 0
    for event in events:
        if chance.random() < 0.01:
            lost.add(event.value)
            continue
        kept.append(event)
        if chance.random() < 0.01:
            added += 1
            kept.append(call(place(1000 + added, module="other"), -added))
    return kept, lost, added


def test_a_hundred_thousand_events_with_insertions_and_deletions_are_aligned_right() -> None:
    whole = events_of(100_000)
    other, lost, added = edited(whole, 1)
    want, got = trace(whole), trace(other)
    found = list(pairs(want, got))
    assert len(lost) > 500
    assert added > 500
    assert all(a.value == b.value for a, b in found)
    assert {a.value for a, _ in found} == set(range(100_000)) - lost
    assert counts(want, got) == (100_000 - len(lost), 100_000 - len(lost))
    assert list(divergences(want, got)) == []


def seconds_of(function: Callable[[], object]) -> float:
    """CPU seconds of this process, the least of three."""
    spent = []
    for _ in range(3):
        start = time.process_time()
        function()
        spent.append(time.process_time() - start)
    return min(spent)


def test_ten_times_the_events_take_about_ten_times_as_long() -> None:
    def aligning(number: int) -> Callable[[], object]:
        whole = events_of(number)
        want, got = trace(whole), trace(edited(whole, 2)[0])
        return lambda: list(divergences(want, got))

    assert seconds_of(aligning(100_000)) < 40 * seconds_of(aligning(10_000))


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 9)), max_size=20))
def test_a_trace_is_aligned_with_itself_and_nothing_diverges(steps: list[tuple[int, int]]) -> None:
    visits: dict[int, int] = {}
    events = []
    for line, value in steps:
        visits[line] = visits.get(line, 0) + 1
        events.append(call(line, value, visit=visits[line]))
    both = trace(events)
    assert list(pairs(both, both)) == [(e, e) for e in events]
    assert counts(both, both) == (len(events), len(events))
    assert list(divergences(both, both)) == []


@given(st.integers(1, 40), st.data())
def test_one_edited_event_gives_exactly_one_divergence(number: int, data: st.DataObject) -> None:
    events = [call(line, line) for line in range(1, number + 1)]
    index = data.draw(st.integers(0, number - 1))
    other = [replace(e, value=-1) if i == index else e for i, e in enumerate(events)]
    found = list(divergences(trace(events), trace(other)))
    assert [d.want for d in found] == [events[index]]


@given(st.integers(1, 40), st.data())
def test_a_lost_event_is_no_divergence_and_is_counted(number: int, data: st.DataObject) -> None:
    events = [call(line, line) for line in range(1, number + 1)]
    index = data.draw(st.integers(0, number - 1))
    got = trace(events[:index] + events[index + 1 :])
    assert list(divergences(trace(events), got)) == []
    assert counts(trace(events), got) == (number - 1, number - 1)


def test_what_a_stand_in_answered_is_reached_and_not_aligned() -> None:
    want = trace([call(1, 1), call(2, 2), call(3, 3)])
    got = trace([call(1, 1), handed(2)])
    assert counts(want, got) == (1, 2)


def test_visits_parts_and_kinds_are_told_apart() -> None:
    at = place(1)
    events = [
        call(at, 1), call(at, 2, visit=2), call(at, 3, part="0"), call(replace(at, kind=PlaceKind.OPERATOR), 4),
        call(replace(at, end_column=99), 5), call(replace(at, module="m"), 6),
    ]  # fmt: skip
    both = trace(events)
    assert [b.value for _, b in pairs(both, trace(reversed(events)))] == [6, 5, 4, 3, 2, 1]
