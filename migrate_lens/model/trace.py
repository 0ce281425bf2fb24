"""The nouns of a trace: what a program did in one runtime; frozen types, no I/O.

What travels as letters and tuples on the wire has names here; ``runs.store`` is where one becomes the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, NamedTuple

from migrate_lens.model.report import Level, Runtime
from migrate_lens.model.value import Encoded

# -- where -------------------------------------------------------------------------------------------------------------


class PlaceKind(StrEnum):
    """What an observed place is; the values are the letters by which the worker knows it."""

    CALL = "c"
    METHOD = "m"
    ATTRIBUTE = "a"
    OPERATOR = "o"
    IN_PLACE = "i"
    SET_ITEM = "s"
    SET_ATTRIBUTE = "t"
    DECORATOR = "d"
    FROM_IMPORT = "f"
    IMPORT = "p"

    @property
    def imports(self) -> bool:
        """Whether an import stands there."""
        return self in (PlaceKind.FROM_IMPORT, PlaceKind.IMPORT)


class Position(NamedTuple):
    """What makes a place the same in two runs of one source; lines from 1, columns in bytes from 0."""

    module: str
    line: int
    column: int
    end_line: int
    end_column: int
    kind: PlaceKind


@dataclass(frozen=True, slots=True)
class Place:
    """An observed place in a program.

    Attributes:
        module: the module's name.
        path: its file.
        line, column, end_line, end_column: where; lines from 1, columns in bytes from 0.
        kind: what stands there.
        caught: exception names that the program's own handlers around it catch.
        text: its source.
    """

    module: str
    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    kind: PlaceKind
    caught: tuple[str, ...]
    text: str

    @property
    def position(self) -> Position:
        """Which place it is, in any run of the same source."""
        return Position(self.module, self.line, self.column, self.end_line, self.end_column, self.kind)


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of an exception's traceback, outermost first; positions as in ``Place``."""

    path: str
    line: int
    end_line: int
    column: int
    end_column: int
    module: str

    def runs(self, place: Place) -> bool:
        """Whether a place stands in the statement that the frame was running."""
        return place.path == self.path and self.line <= place.line <= max(self.line, self.end_line)


# -- what --------------------------------------------------------------------------------------------------------------


class EventKind(StrEnum):
    """What happened at a place: a call returned or raised, a name was not there, or a stand-in answered."""

    CALL = "call"
    RAISE = "raise"
    ABSENT = "absent"
    HANDED = "handed"


class EventKey(NamedTuple):
    """What makes an event the same in two runs of one source: where, which visit of it, and which part of that."""

    position: Position
    visit: int
    part: str


@dataclass(frozen=True, slots=True)
class Flags:
    """What the worker noticed about a call.

    Attributes:
        uninitialised: the result is memory that nobody wrote.
        other_object: the proxy handed out another object than the target's own package for torch's names has.
        made_layer: a layer was made.
        layer: the number of the layer that was made or called, from 1; 0 where it was none.
        argument: the how-many-th tensor argument was handed back as the result, from 0; None where it is another.
        shares_memory: the result lies in the memory of an argument.
        drew: random numbers were drawn.
        own_layer: the result is the layer whose method was called.
        changed_layer: and its tensors are others than before.
        writes_unseen: an argument may be written without that being counted.
        moved: a tensor that is known was written by no recorded call.
        other_inputs: the call got other inputs than torch's.
        inner: another call of the framework's was running, which ran the program's code.
        hidden: what was stored in a layer is not found there, since the layer's base class has that name too.
    """

    uninitialised: bool = False
    other_object: bool = False
    made_layer: bool = False
    layer: int = 0
    argument: int | None = None
    shares_memory: bool = False
    drew: bool = False
    own_layer: bool = False
    changed_layer: bool = False
    writes_unseen: bool = False
    moved: bool = False
    other_inputs: bool = False
    inner: bool = False
    hidden: bool = False

    @property
    def hands_back(self) -> bool:
        """Whether the result is one of the arguments."""
        return self.argument is not None

    @property
    def by_chance(self) -> bool:
        """Whether the values of the result are a matter of luck."""
        return self.drew or self.uninitialised


NO_FLAGS = Flags()


@dataclass(frozen=True, slots=True)
class Failure:
    """What is known about an exception without reading its prose.

    Attributes:
        types: the class names, nearest first.
        message: what it says.
        where: tail of the file, line and function of the raising frame.
        argument: the keyword that the callable does not take; empty where that is not what failed.
        missing: the name that an ImportError or AttributeError names itself.
        causes: the types along ``__cause__``.
        callee: the type of what was called.
        proxied: whether the proxy handed out another object than the target's own compat package has.
        through: whether it came out of the program's own code, which the call ran.
        on_object: whether a missing name was looked up on an object, not on a module.
    """

    types: tuple[str, ...]
    message: str = ""
    where: str = ""
    argument: str = ""
    missing: str = ""
    causes: tuple[str, ...] = ()
    callee: str = ""
    proxied: bool = False
    through: bool = False
    on_object: bool = False

    @property
    def type(self) -> str:
        """The name of its class."""
        return self.types[0]

    @property
    def first_line(self) -> str:
        """The first line of its message that is not blank."""
        return next((line.strip() for line in self.message.splitlines() if line.strip()), "")


@dataclass(frozen=True, slots=True)
class Op:
    """A low-level operator that ran below a call: its name as the framework has it, and its encoded result."""

    name: str
    value: Encoded


class Written(NamedTuple):
    """A tensor argument that was written to: which (by index), and what it holds afterwards."""

    argument: int
    value: Encoded


class LayerState(NamedTuple):
    """Parameters and buffers of a layer when it was called, and whether it trains."""

    tensors: Encoded
    training: bool


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that a program did: a call that returned or raised, or a name that was not there.

    Attributes:
        what: which of these.
        place: where.
        visit: the how-many-th visit of that place.
        part: which layer of a container, or which name of an import.
        api: the torch name as documented.
        inputs: encoded arguments (the torch side only).
        value: the result, encoded; None where nothing was returned.
        serials: (serial, version) of the result's tensors.
        written: tensor arguments that were written.
        flags: what the worker noticed about the call.
        healed: why torch's value was handed over; empty where it was not.
        ops: the low-level operators below it, where they were asked for.
        state: of a layer that was called.
        failure: of a call that raised, and of a name that was not there; None of all else.
    """

    what: EventKind
    place: Place
    visit: int
    part: str
    api: str
    inputs: tuple[Encoded, ...]
    value: Encoded = None
    serials: tuple[tuple[int, int], ...] = ()
    written: tuple[Written, ...] = ()
    flags: Flags = NO_FLAGS
    healed: str = ""
    ops: tuple[Op, ...] = ()
    state: LayerState | None = None
    failure: Failure | None = None

    @property
    def returned(self) -> bool:
        """Whether it is a call that returned."""
        return self.what is EventKind.CALL

    @property
    def layer(self) -> int:
        """The number of the layer that was made or called; 0 where it was none."""
        return self.flags.layer

    @property
    def key(self) -> EventKey:
        """What makes it the same event in two runs of one source."""
        return EventKey(self.place.position, self.visit, self.part)


# -- how it ended ------------------------------------------------------------------------------------------------------


class EndingKind(StrEnum):
    """The ways in which a program ends; shown in reports of traces."""

    FINISHED = "finished"
    PARTS = "parts"
    RAISED = "raised"
    EXITED = "exited"
    STOPPED = "stopped"
    DIED = "died"


class _AnyEnding:
    """What can be asked of every ending.

    Attributes:
        how: which ending it is.
    """

    __slots__ = ()
    how: ClassVar[EndingKind]

    @property
    def value(self) -> Encoded:
        """What it left behind: a result, what became of each part, or an exit code; None where it left nothing."""
        return None

    @property
    def has_value(self) -> bool:
        """Whether the program has a result of its own."""
        return False


@dataclass(frozen=True, slots=True)
class Finished(_AnyEnding):
    """The program ran to its end; ``value`` is its result, if it has one of its own."""

    how: ClassVar[EndingKind] = EndingKind.FINISHED
    value: Encoded = None
    has_value: bool = False


@dataclass(frozen=True, slots=True)
class Parts(_AnyEnding):
    """A probe of several parts (modules, tests, names) ran to its end; what became of each.

    A part that went well is ``passed``, one that was left out ``skipped``; others say what became of them.
    """

    how: ClassVar[EndingKind] = EndingKind.PARTS
    fates: Mapping[str, str]

    @property
    def value(self) -> Encoded:
        """What became of each part."""
        return self.fates

    @property
    def has_value(self) -> bool:
        """Always."""
        return True

    @property
    def passed(self) -> tuple[str, ...]:
        """The parts that went well."""
        return tuple(name for name, fate in self.fates.items() if fate == PASSED)


PASSED, SKIPPED = "passed", "skipped"


@dataclass(frozen=True, slots=True)
class Raised(_AnyEnding):
    """An exception ended the program; ``frames`` are the program's own, outermost first."""

    how: ClassVar[EndingKind] = EndingKind.RAISED
    failure: Failure
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class Exited(_AnyEnding):
    """The program called ``sys.exit`` with a status, or with a text to be shown."""

    how: ClassVar[EndingKind] = EndingKind.EXITED
    code: int | str | None = None

    @property
    def value(self) -> Encoded:
        """The status."""
        return self.code


@dataclass(frozen=True, slots=True)
class Stopped(_AnyEnding):
    """The program was stopped at the call where it was told to."""

    how: ClassVar[EndingKind] = EndingKind.STOPPED


@dataclass(frozen=True, slots=True)
class Died(_AnyEnding):
    """The process left no outcome."""

    how: ClassVar[EndingKind] = EndingKind.DIED


Ending = Finished | Parts | Raised | Exited | Stopped | Died


# -- the whole ---------------------------------------------------------------------------------------------------------


class Answerer(StrEnum):
    """Who answered an import of torch."""

    TORCH = "torch"
    PROXY = "proxy"


@dataclass(frozen=True, slots=True)
class Answer:
    """An import of torch, and who answered it."""

    place: Place
    who: Answerer


@dataclass(frozen=True, slots=True)
class Refused:
    """A module that could not be observed, and why."""

    module: str
    reason: str


@dataclass(frozen=True, slots=True)
class PartFailure:
    """Why a single module or test of a probe failed."""

    part: str
    failure: Failure
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class RanTest:
    """A test of a probe: which, and what became of it; empty where the process ended in it.

    Attributes:
        node: as pytest names it.
        number: of the part of the program that it is (see ``protocol.parts``).
        outcome: pytest's word.
        seconds: how long it took.
    """

    node: str
    number: int
    outcome: str = ""
    seconds: float = 0.0


class Apart(StrEnum):
    """What a program can do that is not followed: fork a process, or begin a thread, where operators are not seen."""

    FORKED = "forked"
    THREADS = "threads"


@dataclass(frozen=True, slots=True)
class About:
    """What a trace is of; None for what it does not say.

    Attributes:
        runtime: the runtime that it was recorded in.
        framework, version, commit, python, device: what answered there.
        level: how much of results is kept.
        probe, spec: what kind of program it is, and which.
        max_bytes: the largest tensor that is kept whole, where a user said so.
    """

    runtime: Runtime | None = None
    framework: str | None = None
    version: str | None = None
    commit: str | None = None
    python: str | None = None
    device: str | None = None
    level: Level | None = None
    probe: str | None = None
    spec: str | None = None
    max_bytes: int | None = None

    def as_json(self) -> dict[str, str | int]:
        """All that it says, for a report; what it does not say is left out."""
        said = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in said.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Counted:
    """Kernels by name, as often as the framework itself counted them: in all, and below recorded calls."""

    total: Mapping[str, int] = field(default_factory=dict)
    below: Mapping[str, int] = field(default_factory=dict)


Gradients = Mapping[EventKey, Mapping[int, Encoded]]


@dataclass(frozen=True, slots=True)
class Trace:
    """All events of one probe in one runtime, in order.

    Attributes:
        events: what the program did.
        ending: how it ended.
        in_flight: the place of the call that was running when the process died.
        places: all observed places, in the order of their numbers.
        values: tensors that no recorded call made, by (serial, version).
        users: modules that import torch.
        refused: modules that could not be observed.
        answers: imports of torch.
        failures: failures of single modules or tests.
        gradients: by event, the gradient that reached each tensor of its result, by index.
        about: what it is a trace of.
        loose: low-level operators that ran below no recorded call, where all were asked for.
        counted: kernels that the framework itself counted.
        unmet: calls that were named for something to be done at, and did not come.
        apart: what cannot be followed, as often as the program did it.
        tests: the tests that were begun, in their order.
        collected: the tests that were to be run.
    """

    events: tuple[Event, ...]
    ending: Ending
    in_flight: Place | None
    places: tuple[Place, ...]
    values: dict[tuple[int, int], Encoded]
    users: tuple[str, ...]
    refused: tuple[Refused, ...]
    answers: tuple[Answer, ...]
    failures: tuple[PartFailure, ...]
    gradients: Gradients
    about: About = field(default_factory=About)
    loose: tuple[Op, ...] = ()
    counted: Counted = field(default_factory=Counted)
    unmet: tuple[str, ...] = ()
    apart: tuple[Apart, ...] = ()
    tests: tuple[RanTest, ...] = ()
    collected: tuple[str, ...] = ()


EMPTY = Trace((), Died(), None, (), {}, (), (), (), (), {})
