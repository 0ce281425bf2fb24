"""Traces read back: a trace file in, nodes, events and the program's outcome out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from migrate_lens.model.trace import Ending, Event, Frame, Key, Op, Place, Trace
from migrate_lens.model.value import Encoded
from migrate_lens.protocol import journal as wire


def load(path: Path) -> Trace:
    """Read a trace.

    Raises:
        OSError: the file cannot be read.
    """
    in_flight, frames = wire.read(path)
    return _Reader().read(in_flight, list(frames))


class _Reader:
    def __init__(self) -> None:
        self.places: dict[int, Place] = {}
        self.events: list[Event] = []
        self.values: dict[tuple[int, int], Encoded] = {}
        self.ending = Ending("died", None)
        self.users: tuple[list[str], list[tuple[str, str]]] = ([], [])
        self.answers: list[tuple[Place, str]] = []
        self.gradients: dict[Key, dict[int, Encoded]] = {}
        self.failures: list[tuple[str, Any, tuple[Frame, ...]]] = []
        self.about: dict[str, Any] = {}
        self.ops: dict[int, list[Op]] = {}
        self.written: dict[int, Encoded] = {}
        self.states: dict[int, tuple[Encoded, bool]] = {}
        self.unmet: list[str] = []
        self.apart: list[str] = []
        self.counted: tuple[dict[str, int], dict[str, int]] = ({}, {})

    def read(self, in_flight: int, frames: list[tuple[Any, ...]]) -> Trace:
        for frame in frames:
            self._one(frame)
        users, refused = self.users
        return Trace(
            tuple(self.events), self.ending, self.places.get(in_flight), tuple(self.places.values()), self.values,
            tuple(users), tuple(refused), tuple(self.answers), tuple(self.failures),
            self.gradients, self.about, tuple(self.ops.get(0, ())), self.counted,
            tuple(self.unmet), tuple(self.apart),
        )  # fmt: skip

    def _one(self, frame: tuple[Any, ...]) -> None:
        kind = frame[0]
        if kind == "module":
            self._module(*frame[1:])
        elif kind == "value":
            self.values[frame[1], frame[2]] = frame[3]
        elif kind == "outcome":
            has = frame[1] in ("finished", "parts") and frame[3]
            self.ending = Ending(frame[1], frame[2], has, _frames(frame[3]) if frame[1] == "raised" else ())
        elif kind == "users":
            self.users = (frame[1], frame[2])
        elif kind == "answered":
            self.answers.append((self.places[frame[1]], frame[2]))
        elif kind == "module failed":
            self.failures.append((frame[1], frame[2], _frames(frame[3])))
        elif kind == "grad":
            p = self.places[frame[1]]
            key = (p.module, p.line, p.column, p.end_line, p.end_column, p.kind, frame[2], frame[3])
            self.gradients.setdefault(key, {})[frame[4]] = frame[5]
        elif kind == "about":
            self.about = frame[1]
        elif kind == "op":
            self.ops.setdefault(frame[1], []).append(Op(frame[2], frame[3]))
        elif kind == "unmet":
            self.unmet = frame[1]
        elif kind in ("forked", "threads"):
            self.apart.append(kind)
        elif kind == "counted":
            self.counted = (frame[1], frame[2])
        elif kind == "state":
            _, _, _, _, state, layer, training = frame
            self.written[layer] = state = self.written.get(layer) if state is None else state
            self.states[layer] = (state, training)
        elif kind in ("call", "raise", "absent", "handed"):
            event = self._event(frame)
            if kind == "call" and "k" in event.flags:
                self.written[event.layer] = frame[6][2]
            below, state = self.ops.pop(frame[1], ()), self.states.get(event.layer)
            self.events.append(replace(event, ops=tuple(below), state=state) if below or state else event)

    def _module(self, module: str, path: str, base: int, nodes: list[Any]) -> None:
        for index, (line, column, end_line, end_column, kind, _, caught, text) in enumerate(nodes):
            self.places[base + index] = Place(module, path, line, column, end_line, end_column, kind, caught, text)

    def _event(self, frame: tuple[Any, ...]) -> Event:
        kind, place = frame[0], self.places[frame[1]]
        if kind == "call":
            _, _, visit, part, api, inputs, out, serials, written, flags, healed = frame
            return Event(
                kind,
                place,
                visit,
                part,
                api,
                tuple(inputs),
                out,
                tuple(map(tuple, serials)),
                tuple(written),
                flags,
                healed,
            )
        if kind == "raise":
            _, _, visit, part, api, inputs, failure, healed = frame
            return Event(kind, place, visit, part, api, tuple(inputs), failure, (), (), "", healed)
        if kind == "absent":
            _, _, visit, part, api, failure, healed = frame
            return Event(kind, place, visit, part, api, (), failure, (), (), "", healed)
        return Event(kind, place, frame[2], frame[3], "", (), None, (), (), "", "handed")


def _frames(raw: Any) -> tuple[Frame, ...]:
    return tuple(Frame(*f[:6]) for f in raw)
