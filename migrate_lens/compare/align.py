"""Alignment: two traces in, pairs of events out.

Both runtimes run the same source, so an event's key (module, position, visit, part) is the same in both, and a
dictionary aligns them in linear time. What a program does only on one side stays alone. Traces of two sources (a
program before and after an edit) are aligned as sequences of names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator

from migrate_lens.compare.sequence import match
from migrate_lens.model.trace import Event, EventKind, Position, Trace


def pairs(want: Trace, got: Trace) -> Iterator[tuple[Event, Event]]:
    """Events of one source that both sides have, in the second one's order."""
    known = {event.key: event for event in want.events}
    for event in got.events:
        other = known.get(event.key)
        if other is not None:
            yield other, event


def in_order(want: Trace, got: Trace) -> Iterator[tuple[Event, Event]]:
    """Events of two sources with the same name in the same order."""
    ours = [_token(event) for event in want.events]
    theirs = [_token(event) for event in got.events]
    for i, j in match(ours, theirs):
        yield want.events[i], got.events[j]


def _token(event: Event) -> Hashable:
    return (event.place.kind, event.api or event.place.text, event.part)


def same_source(want: Trace, got: Trace) -> bool:
    """Whether both traces know a module, and those that both know have the same observed places in both."""
    ours, theirs = _modules(want), _modules(got)
    common = ours.keys() & theirs.keys()
    return bool(common) and all(ours[name] == theirs[name] for name in common)


def _modules(trace: Trace) -> dict[str, list[tuple[Position, str]]]:
    """The observed places of each module, with their source."""
    modules: dict[str, list[tuple[Position, str]]] = defaultdict(list)
    for place in trace.places:
        modules[place.module].append((place.position, place.text))
    return modules


def counts(want: Trace, got: Trace) -> tuple[int, int]:
    """Events aligned, and events of the first trace that the second one reached.

    The second number counts those handed to the program by a stand-in too.
    """
    keys = {event.key for event in want.events}
    reached = keys & {event.key for event in got.events}
    aligned = keys & {event.key for event in got.events if event.what is not EventKind.HANDED}
    return len(aligned), len(reached)
