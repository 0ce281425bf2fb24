"""Traces read back: a trace file in; nodes, events and the program's outcome, or calls that were made again, out.

Here the wire ends: what travels as letters, tuples and raw facts (see ``worker.observe.recorder``) has names and types
from here on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from migrate_lens.model.report import Level, Runtime
from migrate_lens.model.trace import (
    About,
    Answer,
    Answerer,
    Apart,
    Counted,
    Died,
    Ending,
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
    Refused,
    Stopped,
    Trace,
    Written,
)
from migrate_lens.model.value import Encoded
from migrate_lens.protocol import journal as wire

_Fields = tuple[Encoded, ...]
_FLAG = re.compile(r"(?P<name>[a-z@=])(?:(?P<number>\d+);)?")
_FLAG_NAMES = {
    "u": "uninitialised",
    "p": "other_object",
    "k": "made_layer",
    "v": "shares_memory",
    "r": "drew",
    "b": "own_layer",
    "c": "changed_layer",
    "w": "writes_unseen",
    "s": "moved",
    "i": "other_inputs",
}
_TUPLES_OF_FAILURES = ("types", "causes")
_FAILURE_FACTS = tuple(field.name for field in fields(Failure))


def load(path: Path) -> Trace:
    """Read a trace.

    Raises:
        OSError: the file cannot be read.
        ValueError, LookupError, TypeError: it is damaged.
    """
    in_flight, frames = wire.read(path)
    reader = _Reader()
    for frame in frames:
        reader.take(frame)
    return reader.trace(in_flight)


# -- parts of frames ---------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def flags_of(letters: str) -> Flags:
    """What the worker's letters say: ``r``, ``=0;``, ``@12;`` and so on."""
    said = list(_FLAG.finditer(letters))
    noticed = {_FLAG_NAMES[flag["name"]]: True for flag in said if flag["name"] in _FLAG_NAMES}
    numbers = {flag["name"]: int(flag["number"]) for flag in said if flag["number"] is not None}
    return replace(Flags(**noticed), argument=numbers.get("="), layer=numbers.get("@", 0))


def failure_of(facts: Mapping[str, Encoded]) -> Failure:
    """An exception, as the worker describes it."""
    known = {name: facts[name] for name in _FAILURE_FACTS if name in facts}
    return Failure(**known | {name: tuple(known[name]) for name in _TUPLES_OF_FAILURES if name in known})


def _frames(raw: Iterable[_Fields]) -> tuple[Frame, ...]:
    return tuple(Frame(*positions[:6]) for positions in raw)


def _about(said: Mapping[str, Encoded]) -> About:
    known = {field.name: said[field.name] for field in fields(About) if field.name in said}
    if "runtime" in known:
        known["runtime"] = Runtime(known["runtime"])
    if "level" in known:
        known["level"] = Level(known["level"])
    return About(**known)


class _Call(NamedTuple):
    """The fields of a ``call`` frame."""

    node: int
    visit: int
    part: str
    api: str
    inputs: Iterable[Encoded]
    out: Encoded
    serials: Iterable[_Fields]
    written: Iterable[_Fields]
    flags: str
    healed: str


# -- whole traces ------------------------------------------------------------------------------------------------------


class _Reader:
    """Takes frames in their order; what their parameters are is said in ``worker.observe.recorder``."""

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
        }

    def take(self, frame: _Fields) -> None:
        """Take one frame; one that only workers read is passed over."""
        taker = self._takers.get(frame[0])
        if taker is not None:
            taker(*frame[1:])

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
        )

    # -- around the calls --------------------------------------------------------------------------------------------

    def _head(self, about: Mapping[str, Encoded]) -> None:
        self._about = _about(about)

    def _module(self, module: str, path: str, base: int, nodes: Iterable[_Fields]) -> None:
        for number, node in enumerate(nodes, base):
            line, column, end_line, end_column, kind, _, caught, text = node
            place = Place(module, path, line, column, end_line, end_column, PlaceKind(kind), caught, text)
            self._places[number] = place

    def _value(self, serial: int, version: int, value: Encoded) -> None:
        self._values[serial, version] = value

    def _outcome(self, how: str, value: Encoded, more: Encoded) -> None:
        match how:
            case "finished":
                self._ending = Finished(value, bool(more))
            case "parts":
                self._ending = Parts(value)
            case "raised":
                self._ending = Raised(failure_of(value), _frames(more))
            case "exited":
                self._ending = Exited(value)
            case "stopped":
                self._ending = Stopped()
            case _:
                raise ValueError(f"a program cannot end in {how!r}")

    def _module_names(self, users: Iterable[str], refused: Iterable[_Fields]) -> None:
        self._users = tuple(users)
        self._refused = tuple(Refused(module, reason) for module, reason in refused)

    def _answered(self, node: int, who: str) -> None:
        self._answers.append(Answer(self._places[node], Answerer(who)))

    def _part_failed(self, part: str, facts: Mapping[str, Encoded], frames: Iterable[_Fields]) -> None:
        self._failures.append(PartFailure(part, failure_of(facts), _frames(frames)))

    def _unmet_calls(self, selectors: Iterable[str]) -> None:
        self._unmet = tuple(selectors)

    def _forked(self) -> None:
        self._apart.append(Apart.FORKED)

    def _threads(self) -> None:
        self._apart.append(Apart.THREADS)

    def _kernels(self, total: Mapping[str, int], below: Mapping[str, int]) -> None:
        self._counted = Counted(total, below)

    # -- the calls ---------------------------------------------------------------------------------------------------

    def _call(self, *fields: Encoded) -> None:
        call = _Call(*fields)
        flags = flags_of(call.flags)
        if flags.made_layer:
            self._known_states[flags.layer] = call.out[2]
        event = Event(
            EventKind.CALL,
            self._places[call.node],
            call.visit,
            call.part,
            call.api,
            tuple(call.inputs),
            call.out,
            tuple((serial, version) for serial, version in call.serials),
            tuple(Written(argument, value) for argument, value in call.written),
            flags,
            call.healed,
        )
        self._add(call.node, event)

    def _raised(self, node: int, *fields: Encoded) -> None:
        visit, part, api, inputs, facts, healed = fields
        failure = failure_of(facts)
        place = self._places[node]
        event = Event(EventKind.RAISE, place, visit, part, api, tuple(inputs), healed=healed, failure=failure)
        self._add(node, event)

    def _absent(self, node: int, *fields: Encoded) -> None:
        visit, part, api, facts, healed = fields
        failure = failure_of(facts)
        event = Event(EventKind.ABSENT, self._places[node], visit, part, api, (), healed=healed, failure=failure)
        self._add(node, event)

    def _handed(self, node: int, visit: int, part: str) -> None:
        self._add(node, Event(EventKind.HANDED, self._places[node], visit, part, "", (), healed="handed"))

    def _add(self, node: int, event: Event) -> None:
        """Add an event, with what came before it and is about it."""
        below = self._ops.pop(node, None)
        state = self._states.get(event.layer)
        if below or state:
            event = replace(event, ops=tuple(below or ()), state=state)
        self._events.append(event)

    def _state(self, _node: int, _visit: int, _part: str, state: Encoded, layer: int, training: bool) -> None:
        if state is None:  # it is as it was made or written last
            state = self._known_states.get(layer)
        self._known_states[layer] = state
        self._states[layer] = LayerState(state, training)

    def _op(self, node: int, name: str, value: Encoded) -> None:
        self._ops.setdefault(node, []).append(Op(name, value))

    def _gradient(self, node: int, visit: int, part: str, index: int, value: Encoded) -> None:
        key = EventKey(self._places[node].position, visit, part)
        self._gradients.setdefault(key, {})[index] = value


# -- calls that were made again ----------------------------------------------------------------------------------------


class Replayed(NamedTuple):
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
    node, frames = wire.read(path)
    return Replays(tuple(_replayed(frames)), node - 1 if node else None)


def _replayed(frames: Iterator[_Fields]) -> Iterator[Replayed]:
    ops: list[Op] = []
    for frame in frames:
        if frame[0] == "op":
            _, _, name, value = frame
            ops.append(Op(name, value))
        elif frame[0] == "replayed":
            _, number, how, value = frame
            yield Replayed(number, how, value, tuple(ops))
            ops = []
