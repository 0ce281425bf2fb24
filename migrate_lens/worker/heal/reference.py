"""Torch's trace as the target's side looks it up: a trace file in; what torch did at each node, visit and part, out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from migrate_lens.model.value import OBJECT, Encoded, references, tag, tensors
from migrate_lens.protocol import journal as wire
from migrate_lens.protocol.frames import (
    About,
    Absent,
    Called,
    Event,
    Frame,
    Item,
    LayerState,
    Module,
    Raised,
    Value,
    typed,
)
from migrate_lens.worker.observe.nodes import Node

NodeKey = tuple[str, int, int, int, int, str]
Visit = tuple[int, str]
NO_EVENTS: Mapping[Visit, Event] = {}
NO_STATES: Mapping[Visit, LayerState] = {}


class Reference:
    """Torch's trace, looked up by node, visit and part.

    Args:
        path: the trace file.

    Attributes:
        values: tensors by (serial, version).
        items: what data loaders handed out, by the number of the iteration.
        version: torch's; ``0`` where the trace does not say.

    Raises:
        OSError: it cannot be read.
    """

    def __init__(self, path: str) -> None:
        self._events: dict[NodeKey, dict[Visit, Event]] = {}
        self._states: dict[NodeKey, dict[Visit, LayerState]] = {}
        self.values: dict[tuple[int, int], Encoded] = {}
        self.items: dict[int, list[Encoded]] = {}
        self.version = "0"
        self._calls: list[Called] = []
        self._keys: dict[int, NodeKey] = {}
        for frame in wire.read(path)[1]:
            self._add(typed(frame))

    def _add(self, frame: Frame) -> None:
        match frame:
            case Module(name=name, base=base, nodes=nodes):
                self._keys.update((number, key_of(name, Node._make(node))) for number, node in enumerate(nodes, base))
            case Called() | Raised() | Absent():
                if isinstance(frame, Called):
                    self._add_values(frame)
                events = self._events.setdefault(self._keys[frame.node], {})
                events[frame.visit, frame.part] = frame
            case About(about=about):
                self.version = about.get("version") or self.version
            case Value():
                self.values[frame.serial, frame.version] = frame.value
            case Item():
                self.items.setdefault(frame.iteration, []).append(frame.value)
            case LayerState() if frame.state is not None:
                states = self._states.setdefault(self._keys[frame.node], {})
                states[frame.visit, frame.part] = frame
            case _:
                return  # what a person reads of a trace

    def _add_values(self, call: Called) -> None:
        pairs = zip(call.serials, tensors(call.value), strict=False)
        self.values.update({(serial, version): tensor for (serial, version), tensor in pairs})
        self._calls.append(call)

    def events(self, key: NodeKey) -> Mapping[Visit, Event]:
        """What torch did at a node, by visit and part."""
        return self._events.get(key, NO_EVENTS)

    def states(self, key: NodeKey) -> Mapping[Visit, LayerState]:
        """States of layers that had changed before a visit."""
        return self._states.get(key, NO_STATES)

    def reaches(self, read: Called, calls: Sequence[Called]) -> bool:
        """Whether what was read may have gone into some of the calls, or come out of them; True where nobody knows.

        Args:
            read: what was read.
            calls: calls of torch's.
        """
        mine = given(read)
        if not mine or not any(mine & given(call) for call in self._calls if call is not read):
            return True
        if any(_takes_objects(call) for call in calls) and self._of_new_layer(mine):
            return True
        known, layers = set[int](), set[int]()
        for call in calls:
            known |= given(call) | made(call)
        for call in reversed(self._calls):
            if call.facts.made_layer:
                known |= made(call) if call.facts.layer in layers else set()
            elif known & made(call):
                known |= given(call)
                layers.add(call.facts.layer)
        return bool(mine & known)

    def _of_new_layer(self, serials: set[int]) -> bool:
        """Whether one of some tensors was made with a layer."""
        return any(serials & made(call) for call in self._calls if call.facts.made_layer)


def _takes_objects(call: Called) -> bool:
    """Whether a call was handed what ``m.parameters()`` gives, which nobody saw; it may be any layer's."""
    return any(tag(value) == OBJECT for value in call.inputs)


def given(call: Called) -> set[int]:
    """Serials of the tensors that a call was given."""
    return {serial for serial, _ in references(call.inputs)}


def made(call: Called) -> set[int]:
    """Serials of the tensors that a call returned."""
    return {serial for serial, _ in call.serials}


def key_of(module: str, node: Node) -> NodeKey:
    """What makes a node the same in two runs of one source."""
    return (module, node.line, node.column, node.end_line, node.end_column, node.kind)


def name_of(key: NodeKey) -> str:
    """A node as the driver names it: ``module:line:column:end line:end column:kind``."""
    return ":".join(map(str, key))
