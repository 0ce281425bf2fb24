"""Traces read back: a trace file in; nodes, events and the program's outcome, or calls that were made again, out.

Here the wire ends: what travels as letters, tuples and raw facts (see ``protocol.frames``) has names and types
from here on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path

from migrate_lens.model.report import Level, Runtime
from migrate_lens.model.trace import (
    About,
    Answer,
    Answerer,
    Apart,
    Counted,
    Died,
    Ending,
    EndingKind,
    Event,
    EventKey,
    EventKind,
    Exited,
    Failure,
    Finished,
    Flags,
    Frame,
    LayerState,
    Op,
    PartFailure,
    Parts,
    Place,
    PlaceKind,
    Raised,
    RanTest,
    Refused,
    Stopped,
    Trace,
    Written,
)
from migrate_lens.model.value import Encoded, LayerValue
from migrate_lens.protocol import flags, frames
from migrate_lens.protocol import journal as wire

_TUPLES_OF_FAILURES = ("types", "causes")
_FAILURE_FACTS = tuple(field.name for field in fields(Failure))


def load(path: Path) -> Trace:
    """Read a trace.

    Raises:
        OSError: the file cannot be read.
        ValueError, LookupError, TypeError: it is damaged.
    """
    in_flight, written = wire.read(path)
    reader = _Reader()
    for frame in written:
        reader.take(frame)
    return reader.trace(in_flight)


# -- parts of frames ---------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def flags_of(letters: str) -> Flags:
    """What the worker's letters say.

    Raises:
        ValueError: they say nothing that is known.
    """
    return Flags(**vars(flags.parse(letters)))


def failure_of(facts: Mapping[str, Encoded]) -> Failure:
    """An exception, as the worker describes it."""
    known = {name: facts[name] for name in _FAILURE_FACTS if name in facts}
    return Failure(**known | {name: tuple(known[name]) for name in _TUPLES_OF_FAILURES if name in known})


def _frames(raw: Iterable[frames.TraceFrame]) -> tuple[Frame, ...]:
    return tuple(Frame(*frame[:6]) for frame in raw)


def _about(said: Mapping[str, Encoded]) -> About:
    known = {field.name: said[field.name] for field in fields(About) if field.name in said}
    if "runtime" in known:
        known["runtime"] = Runtime(known["runtime"])
    if "level" in known:
        known["level"] = Level(known["level"])
    return About(**known)


# -- whole traces ------------------------------------------------------------------------------------------------------


class _Reader:
    """Takes frames in their order; what their places mean is said in ``protocol.frames``."""

    def __init__(self) -> None:
        self._places: dict[int, Place] = {}
        self._events: list[Event] = []
        self._values: dict[tuple[int, int], Encoded] = {}
        self._ending: Ending = Died()
        self._users: tuple[str, ...] = ()
        self._refused: tuple[Refused, ...] = ()
        self._answers: list[Answer] = []
        self._gradients: dict[EventKey, dict[int, Encoded]] = {}
        self._failures: list[PartFailure] = []
        self._about = About()
        self._ops: dict[int, list[Op]] = {}
        self._known_states: dict[int, Encoded] = {}
        self._states: dict[int, LayerState] = {}
        self._unmet: tuple[str, ...] = ()
        self._apart: list[Apart] = []
        self._tests: dict[int, RanTest] = {}
        self._collected: tuple[str, ...] = ()
        self._counted = Counted()
        self._takers: Mapping[str, Callable[..., None]] = {
            "module": self._module,
            "value": self._value,
            "outcome": self._outcome,
            "users": self._module_names,
            "answered": self._answered,
            "module failed": self._part_failed,
            "grad": self._gradient,
            "about": self._head,
            "op": self._op,
            "unmet": self._unmet_calls,
            "forked": self._forked,
            "threads": self._threads,
            "counted": self._kernels,
            "state": self._state,
            "call": self._call,
            "raise": self._raised,
            "absent": self._absent,
            "handed": self._handed,
            "collected": self._tests_collected,
            "test": self._test_began,
            "tested": self._test_ended,
        }

    def take(self, frame: tuple[Encoded, ...]) -> None:
        """Take one frame; one that only workers read is passed over."""
        taker = self._takers.get(frame[0])
        if taker is not None:
            taker(frames.typed(frame))

    def trace(self, in_flight: int) -> Trace:
        """All that was taken."""
        return Trace(
            events=tuple(self._events),
            ending=self._ending,
            in_flight=self._places.get(in_flight),
            places=tuple(self._places.values()),
            values=self._values,
            users=self._users,
            refused=self._refused,
            answers=tuple(self._answers),
            failures=tuple(self._failures),
            gradients=self._gradients,
            about=self._about,
            loose=tuple(self._ops.get(0, ())),
            counted=self._counted,
            unmet=self._unmet,
            apart=tuple(self._apart),
            tests=tuple(self._tests.values()),
            collected=self._collected,
        )

    # -- around the calls --------------------------------------------------------------------------------------------

    def _head(self, frame: frames.About) -> None:
        self._about = _about(frame.about)

    def _module(self, frame: frames.Module) -> None:
        for number, node in enumerate(frame.nodes, frame.base):
            line, column, end_line, end_column, kind, _, caught, text = node
            self._places[number] = Place(
                frame.name, frame.path, line, column, end_line, end_column, PlaceKind(kind), caught, text
            )

    def _value(self, frame: frames.Value) -> None:
        self._values[frame.serial, frame.version] = frame.value

    def _outcome(self, frame: frames.Outcome) -> None:
        match EndingKind(frame.how):
            case EndingKind.FINISHED:
                self._ending = Finished(frame.value, bool(frame.rest))
            case EndingKind.PARTS:
                self._ending = Parts(frame.value)
            case EndingKind.RAISED:
                traceback = () if isinstance(frame.rest, bool) else frame.rest
                self._ending = Raised(failure_of(frame.value), _frames(traceback))
            case EndingKind.EXITED:
                self._ending = Exited(frame.value)
            case EndingKind.STOPPED:
                self._ending = Stopped()
            case EndingKind.DIED:
                self._ending = Died()

    def _module_names(self, frame: frames.Users) -> None:
        self._users = tuple(frame.users)
        self._refused = tuple(Refused(module, reason) for module, reason in frame.refused)

    def _answered(self, frame: frames.Answered) -> None:
        self._answers.append(Answer(self._places[frame.node], Answerer(frame.who)))

    def _part_failed(self, frame: frames.ModuleFailed) -> None:
        self._failures.append(PartFailure(frame.name, failure_of(frame.failure), _frames(frame.frames)))

    def _unmet_calls(self, frame: frames.Unmet) -> None:
        self._unmet = tuple(frame.selectors)

    def _forked(self, _: frames.Forked) -> None:
        self._apart.append(Apart.FORKED)

    def _threads(self, _: frames.ThreadBegan) -> None:
        self._apart.append(Apart.THREADS)

    def _kernels(self, frame: frames.Counted) -> None:
        self._counted = Counted(frame.everywhere, frame.below)

    def _tests_collected(self, frame: frames.Collected) -> None:
        self._collected = tuple(frame.nodes)

    def _test_began(self, frame: frames.TestBegan) -> None:
        self._tests[frame.number] = RanTest(frame.node, frame.number)

    def _test_ended(self, frame: frames.TestEnded) -> None:
        ended = replace(self._tests[frame.number], outcome=frame.outcome, seconds=frame.seconds)
        self._tests[frame.number] = ended

    # -- the calls ---------------------------------------------------------------------------------------------------

    def _call(self, frame: frames.Called) -> None:
        flags = flags_of(frame.flags)
        if flags.made_layer:
            self._known_states[flags.layer] = LayerValue._make(frame.value).state
        event = Event(
            EventKind.CALL,
            self._places[frame.node],
            frame.visit,
            frame.part,
            frame.api,
            tuple(frame.inputs),
            frame.value,
            tuple((serial, version) for serial, version in frame.serials),
            tuple(Written(argument, value) for argument, value in frame.written),
            flags,
            frame.healed,
        )
        self._add(frame.node, event)

    def _raised(self, frame: frames.Raised) -> None:
        self._failed(EventKind.RAISE, frame, tuple(frame.inputs))

    def _absent(self, frame: frames.Absent) -> None:
        self._failed(EventKind.ABSENT, frame, ())

    def _failed(self, what: EventKind, frame: frames.Raised | frames.Absent, inputs: tuple[Encoded, ...]) -> None:
        event = Event(
            what,
            self._places[frame.node],
            frame.visit,
            frame.part,
            frame.api,
            inputs,
            healed=frame.healed,
            failure=failure_of(frame.failure),
        )
        self._add(frame.node, event)

    def _handed(self, frame: frames.Handed) -> None:
        place = self._places[frame.node]
        self._add(frame.node, Event(EventKind.HANDED, place, frame.visit, frame.part, "", (), healed="handed"))

    def _add(self, node: int, event: Event) -> None:
        """Add an event, with what came before it and is about it."""
        below = self._ops.pop(node, None)
        state = self._states.get(event.layer)
        if below or state:
            event = replace(event, ops=tuple(below or ()), state=state)
        self._events.append(event)

    def _state(self, frame: frames.LayerState) -> None:
        state: Encoded = frame.state
        if state is None:  # it is as it was made or written last
            state = self._known_states.get(frame.layer)
        self._known_states[frame.layer] = state
        self._states[frame.layer] = LayerState(state, frame.training)

    def _op(self, frame: frames.Op) -> None:
        self._ops.setdefault(frame.node, []).append(Op(frame.name, frame.value))

    def _gradient(self, frame: frames.Gradient) -> None:
        key = EventKey(self._places[frame.node].position, frame.visit, frame.part)
        self._gradients.setdefault(key, {})[frame.which] = frame.value


# -- calls that were made again ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Replayed:
    """What the worker says of a call that it made again: which, how it went, the value, and operators below it."""

    number: int
    how: str
    value: Encoded
    ops: tuple[Op, ...]


@dataclass(frozen=True, slots=True)
class Replays:
    """What became of calls that were made again; ``in_flight`` is the call that the process died in, None for none."""

    done: tuple[Replayed, ...]
    in_flight: int | None


def load_replays(path: Path) -> Replays:
    """Read what became of calls that were made again.

    Raises:
        OSError: the file cannot be read.
    """
    node, written = wire.read(path)
    return Replays(tuple(_replayed(map(frames.typed, written))), node - 1 if node else None)


def _replayed(written: Iterator[frames.Frame]) -> Iterator[Replayed]:
    ops: list[Op] = []
    for frame in written:
        match frame:
            case frames.Op():
                ops.append(Op(frame.name, frame.value))
            case frames.Replayed():
                yield Replayed(frame.number, frame.how, frame.value, tuple(ops))
                ops = []
            case _:  # what else a trace holds is not about one call
                continue
