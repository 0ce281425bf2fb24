"""The frames of a trace: one type a kind, in the order in which their places travel.

A frame travels as a plain tuple whose first place says its kind. Who writes one makes it here and hands it to
``Journal.write``; who reads one sees it through ``typed``. ``node`` is the number of an observed place, ``visit`` the
how-many-th visit of it, and ``part`` which layer of a container, or which name of an import, is meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from migrate_lens.protocol.flags import Flags, parse

# An encoded value, see ``migrate_lens.model.value``; a failure, see ``migrate_lens.worker.observe.failures``.
Encoded = Any
Failure = Mapping[str, Any]
# Why torch's value was handed over, or the user's: empty where the program has the framework's own.
Healed = Literal["", "raised", "state", "draw", "differs", "absent", "substituted"]
Written = tuple[int, Encoded]  # which tensor argument, and what it holds after the call
TraceFrame = tuple[str, int, int, int, int, str, bool]


class About(NamedTuple):
    """What the trace is one of; the first frame."""

    kind: Literal["about"]
    about: Mapping[str, Any]


class Module(NamedTuple):
    """The observed places of a module, numbered from ``base``."""

    kind: Literal["module"]
    name: str
    path: str
    base: int
    nodes: Sequence[tuple[Any, ...]]


class Value(NamedTuple):
    """A tensor that no recorded call made."""

    kind: Literal["value"]
    serial: int
    version: int
    value: Encoded


class Called(NamedTuple):
    """A call returned.

    ``inputs`` are positional arguments, the receiver first, then ``("kw", keyword, value)``; tensors among them are
    ``("#", serial, version)``. ``serials`` are (serial, version) of the result's tensors; ``written`` are the tensor
    arguments that the call wrote to; ``flags`` see ``migrate_lens.protocol.flags``; ``healed`` says why torch's value
    was handed over, and is empty where it was not.
    """

    kind: Literal["call"]
    node: int
    visit: int
    part: str
    api: str
    inputs: Sequence[Encoded]
    value: Encoded
    serials: Sequence[tuple[int, int]]
    written: Sequence[Written]
    flags: str
    healed: Healed

    @property
    def facts(self) -> Flags:
        """Its flags, read.

        Raises:
            ValueError: they are none.
        """
        return parse(self.flags)


class Raised(NamedTuple):
    """A call raised."""

    kind: Literal["raise"]
    node: int
    visit: int
    part: str
    api: str
    inputs: Sequence[Encoded]
    failure: Failure
    healed: Healed


class Absent(NamedTuple):
    """A name or attribute was not there."""

    kind: Literal["absent"]
    node: int
    visit: int
    part: str
    api: str
    failure: Failure
    healed: Healed


class Handed(NamedTuple):
    """A stand-in answered with torch's value."""

    kind: Literal["handed"]
    node: int
    visit: int
    part: str


class Answered(NamedTuple):
    """``torch`` or ``proxy`` answered an import of torch."""

    kind: Literal["answered"]
    node: int
    who: str


class Item(NamedTuple):
    """An item that the n-th iteration of a data loader gave."""

    kind: Literal["items"]
    iteration: int
    value: Encoded


class Gradient(NamedTuple):
    """The gradient that reached the which-th tensor of a call's result."""

    kind: Literal["grad"]
    node: int
    visit: int
    part: str
    which: int
    value: Encoded


class LayerState(NamedTuple):
    """A layer's state before a call, changed unseen; ``state`` None: as it was made or written last."""

    kind: Literal["state"]
    node: int
    visit: int
    part: str
    state: Sequence[tuple[Any, ...]] | None
    layer: int
    training: bool


class Op(NamedTuple):
    """A low-level operator ran below the call at a node; node 0: below no recorded call."""

    kind: Literal["op"]
    node: int
    name: str
    value: Encoded


class Counted(NamedTuple):
    """Kernels that ran by the framework's own count, and those of them below a call."""

    kind: Literal["counted"]
    everywhere: Mapping[str, int]
    below: Mapping[str, int]


class Unmet(NamedTuple):
    """Calls that were named for something to be done at, and did not come."""

    kind: Literal["unmet"]
    selectors: Sequence[str]


class Forked(NamedTuple):
    """The program forked; its child is not followed."""

    kind: Literal["forked"]


class ThreadBegan(NamedTuple):
    """A thread began, in which operators are not seen."""

    kind: Literal["threads"]


class ModuleFailed(NamedTuple):
    """A module of an import probe, or a test, failed."""

    kind: Literal["module failed"]
    name: str
    failure: Failure
    frames: Sequence[TraceFrame]


class Collected(NamedTuple):
    """The tests that are to be run, in their order."""

    kind: Literal["collected"]
    nodes: Sequence[str]


class TestBegan(NamedTuple):
    """A test began; ``number`` is the part of the program that it is (see ``protocol.parts``)."""

    kind: Literal["test"]
    number: int
    node: str


class TestEnded(NamedTuple):
    """What became of a test, and after how many seconds."""

    kind: Literal["tested"]
    number: int
    outcome: str
    seconds: float


class Outcome(NamedTuple):
    """How the program ended.

    ``rest`` is whether there is a result where it ``finished`` or came to its ``parts``, and the frames of the
    exception where it ``raised``; nothing where it ``exited`` or was ``stopped``.
    """

    kind: Literal["outcome"]
    how: str
    value: Encoded
    rest: bool | Sequence[TraceFrame]


class Users(NamedTuple):
    """Modules that import torch; and those that could not be observed, with why."""

    kind: Literal["users"]
    users: Sequence[str]
    refused: Sequence[tuple[str, str]]


class Replay(NamedTuple):
    """A call to be made again: its source, its recorded inputs, and the state of the layer that is called."""

    kind: Literal["replay"]
    number: int
    source: str
    given: Sequence[Encoded]
    state: Sequence[tuple[Any, ...]] | None
    training: bool


class Replayed(NamedTuple):
    """What became of a call that was made again."""

    kind: Literal["replayed"]
    number: int
    how: str
    value: Encoded


class Substitute(NamedTuple):
    """A value that the program is to be handed at a call."""

    kind: Literal["substitute"]
    selector: str
    value: Encoded


Event = Called | Raised | Absent
Frame = (
    About
    | Module
    | Value
    | Event
    | Handed
    | Answered
    | Item
    | Gradient
    | LayerState
    | Op
    | Counted
    | Unmet
    | Forked
    | ThreadBegan
    | ModuleFailed
    | Collected
    | TestBegan
    | TestEnded
    | Outcome
    | Users
    | Replay
    | Replayed
    | Substitute
)
_TYPES: dict[str, Any] = {
    "about": About, "module": Module, "value": Value, "call": Called, "raise": Raised, "absent": Absent,
    "handed": Handed, "answered": Answered, "items": Item, "grad": Gradient, "state": LayerState, "op": Op,
    "counted": Counted, "unmet": Unmet, "forked": Forked, "threads": ThreadBegan, "module failed": ModuleFailed,
    "collected": Collected, "test": TestBegan, "tested": TestEnded,
    "outcome": Outcome, "users": Users, "replay": Replay, "replayed": Replayed, "substitute": Substitute,
}  # fmt: skip


def typed(frame: tuple[Any, ...]) -> Frame:
    """A frame with names for its places.

    Raises:
        KeyError: its kind is none.
        TypeError: it has more or fewer places than its kind says.
    """
    view: Frame = _TYPES[frame[0]]._make(frame)
    return view
