"""The nouns of a trace: what a program did in one runtime; frozen types, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from migrate_lens.model.value import Encoded


@dataclass(frozen=True, slots=True)
class Place:
    """An observed place in a program.

    Attributes:
        module: the module's name.
        path: its file.
        line, column, end_line, end_column: where; lines from 1, columns in bytes from 0.
        kind: ``c`` call, ``m`` method call, ``a`` attribute, ``o`` operator, ``i`` in-place operator, ``s`` item
            assignment, ``d`` decorator, ``f`` from-import, ``p`` import.
        caught: exception names that the program's own handlers around it catch.
        text: its source.
    """

    module: str
    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    kind: str
    caught: tuple[str, ...]
    text: str


Key = tuple[str, int, int, int, int, str, int, str]


@dataclass(frozen=True, slots=True)
class Op:
    """A low-level operator that ran below a call: its name as the framework has it, and its encoded result."""

    name: str
    value: Encoded


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that a program did: a call that returned or raised, or a name that was not there.

    Attributes:
        what: ``call``, ``raise``, ``absent`` or ``handed``.
        place: where.
        visit: the how-many-th visit of that place.
        part: which layer of a container, or which name of an import.
        api: the torch name as documented.
        inputs: encoded arguments (the torch side only).
        value: the result, or the failure.
        serials: (serial, version) of the result's tensors.
        written: tensor arguments that were written, as (index, encoded).
        flags: see ``worker.recorder``.
        healed: why torch's value was handed over; empty where it was not.
        ops: the low-level operators below it, where they were asked for.
        state: of a layer that was called: its parameters and buffers, where they were written, and whether it trains.
    """

    what: str
    place: Place
    visit: int
    part: str
    api: str
    inputs: tuple[Encoded, ...]
    value: Encoded
    serials: tuple[tuple[int, int], ...]
    written: tuple[tuple[int, Encoded], ...]
    flags: str
    healed: str
    ops: tuple[Op, ...] = ()
    state: tuple[Encoded, bool] | None = None

    @property
    def layer(self) -> int:
        """The number of the layer that was made or called; 0 where it was none."""
        _, found, rest = self.flags.partition("@")
        return int(rest.partition(";")[0]) if found else 0

    @property
    def key(self) -> Key:
        """What makes it the same event in two runs of one source."""
        p = self.place
        return (p.module, p.line, p.column, p.end_line, p.end_column, p.kind, self.visit, self.part)


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of an exception's traceback, outermost first; positions as in ``Place``."""

    path: str
    line: int
    end_line: int
    column: int
    end_column: int
    module: str


@dataclass(frozen=True, slots=True)
class Ending:
    """How a program ended.

    Attributes:
        how: ``finished``, ``parts`` (a probe of several: modules, tests), ``raised``, ``exited``, ``stopped`` (at the
            call where it was told to), or ``died`` where the process left no outcome.
        value: the result, what became of each part, the failure, or the exit code.
        has_value: whether the program has a result of its own.
        frames: of the exception.
    """

    how: str
    value: Encoded
    has_value: bool = False
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """All events of one probe in one runtime, in order.

    Attributes:
        in_flight: the place of the call that was running when the process died.
        values: tensors that no recorded call made, by (serial, version).
        users: modules that import torch.
        refused: modules that could not be observed, and why.
        answers: imports of torch: (place, ``torch`` or ``proxy``).
        failures: failures of single modules or tests: (name, failure, frames).
        gradients: by event, the gradient that reached each tensor of its result, by index.
        about: what it is a trace of: runtime, versions, probe, level (see ``trace.bench``).
        loose: low-level operators that ran below no recorded call, where all were asked for.
        counted: kernels that the framework itself counted, in all and below recorded calls.
        unmet: calls that were named for something to be done at, and did not come.
        apart: ``forked`` and ``threads``, as often as the program did what cannot be followed.
    """

    events: tuple[Event, ...]
    ending: Ending
    in_flight: Place | None
    places: tuple[Place, ...]
    values: dict[tuple[int, int], Encoded]
    users: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]
    answers: tuple[tuple[Place, str], ...]
    failures: tuple[tuple[str, Any, tuple[Frame, ...]], ...]
    gradients: dict[Key, dict[int, Encoded]]
    about: Mapping[str, Any] = field(default_factory=dict)
    loose: tuple[Op, ...] = ()
    counted: tuple[Mapping[str, int], Mapping[str, int]] = ({}, {})
    unmet: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
