"""A call while it is observed: what is known of it before it is made, and what is found out about it on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from migrate_lens.model.value import Encoded
from migrate_lens.protocol.flags import Flags
from migrate_lens.worker.backends.writes import ALLOCATES, MAY_DRAW, UNINITIALISED, WRITES_UNSEEN

Place = tuple[int, int, str]


class Traits(NamedTuple):
    """What a documented name says about its calls; ``may_allocate`` is a tensor class, which takes extents too."""

    may_draw: bool
    writes_unseen: bool
    uninitialised: bool
    may_allocate: bool
    framed: bool = False  # it asks which frame called it


def traits_of(api: str) -> Traits:
    """Look at a documented name."""
    last = api.rpartition(".")[2]
    return Traits(MAY_DRAW.search(api) is not None, last in WRITES_UNSEEN, last in UNINITIALISED, last in ALLOCATES)


NO_TRAITS = Traits(may_draw=False, writes_unseen=False, uninitialised=False, may_allocate=False)


@dataclass(slots=True, eq=False)
class Call:
    """One call.

    Attributes:
        node: the number of the place.
        func: what is called.
        args: positional arguments, without the receiver.
        kwargs: keyword arguments.
        given: the positional arguments, with the tensor first whose method is called.
        api: the documented name; empty until it is known.
        part: which layer of a container, or which name of an import.
        visit: the how-many-th visit of the place.
        traits: what the documented name says.
        operands: the tensors among the arguments, one container deep.
        inputs: the arguments encoded; the torch side only.
        versions: what changes of tensors where they are written: how often that was, or what they hold.
        before: that of the operands before the call.
        generator: the state of the random generator before the call; None where it is not looked at.
        behind: the state of the layer whose method is called; None where it is no layer's.
        written: indices of the operands that the call wrote to.
        making: whether it makes the framework's part of a layer of the program's own class.
    """

    node: int
    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    given: tuple[Any, ...]
    api: str = ""
    part: str = ""
    visit: int = 0
    traits: Traits = NO_TRAITS
    operands: Any = ()
    inputs: Any = ()
    versions: Any = None
    before: Any = None
    generator: bytes | None = None
    behind: Any = None
    written: Any = ()
    making: bool = False

    @property
    def place(self) -> Place:
        """What makes it the same call in two runs of one source."""
        return (self.node, self.visit, self.part)


class Returned(NamedTuple):
    """What a call came to: its result encoded, what it wrote, and what else is known of it."""

    value: Encoded
    written: list[tuple[int, Encoded]]
    flags: Flags
