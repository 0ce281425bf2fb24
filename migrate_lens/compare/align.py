"""Alignment: two traces of one source in, pairs of events out.

Both runtimes run the same source, so an event's key (module, position, visit, part) is the same in both, and a
dictionary aligns them in linear time. What a program does only on one side stays alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate_lens.events import Event, Trace


def pairs(want: Trace, got: Trace) -> Iterator[tuple[Event, Event]]:
    """Events that both sides have, in Paddle's order."""
    known = {event.key: event for event in want.events}
    for event in got.events:
        other = known.get(event.key)
        if other is not None:
            yield other, event


def counts(want: Trace, got: Trace) -> tuple[int, int]:
    """Events aligned, and events of the first trace that the second one reached.

    The second number counts those handed to the program by a stand-in too.
    """
    keys = {event.key for event in want.events}
    reached = keys & {event.key for event in got.events}
    aligned = keys & {event.key for event in got.events if event.what != "handed"}
    return len(aligned), len(reached)
