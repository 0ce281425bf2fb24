"""Torch's trace as the Paddle side looks it up: a trace file in, what torch did at each node, visit and part, out."""

from __future__ import annotations

from typing import Any

from migrate_lens.model.value import Encoded, references, tag, tensors
from migrate_lens.protocol import journal as wire

Frame = tuple[Any, ...]
NOTHING: dict[Any, Any] = {}


class Reference:
    """Torch's trace, looked up by node, visit and part.

    Args:
        path: the trace file.

    Raises:
        OSError: it cannot be read.
    """

    def __init__(self, path: str) -> None:
        self._events: dict[Any, dict[tuple[int, str], Frame]] = {}
        self._states: dict[Any, dict[tuple[int, str], Frame]] = {}
        self.values: dict[tuple[int, int], Encoded] = {}
        self.items: dict[int, list[Encoded]] = {}
        self._calls: list[Frame] = []
        keys: dict[int, Any] = {0: None}
        for frame in wire.read(path)[1]:
            self._add(frame, keys)

    def _add(self, frame: Frame, keys: dict[int, Any]) -> None:
        kind = frame[0]
        if kind == "module":
            _, module, _, base, nodes = frame
            keys.update({base + i: key_of(module, n) for i, n in enumerate(nodes)})
        elif kind in ("call", "raise", "absent"):
            if kind == "call":
                self.values.update({tuple(s): t for s, t in zip(frame[7], tensors(frame[6]), strict=False)})
                self._calls.append(frame)
            self._events.setdefault(keys[frame[1]], {})[frame[2], frame[3]] = frame
        elif kind == "value":
            self.values[frame[1], frame[2]] = frame[3]
        elif kind == "items":
            self.items.setdefault(frame[1], []).append(frame[2])
        elif kind == "state" and frame[4] is not None:
            self._states.setdefault(keys[frame[1]], {})[frame[2], frame[3]] = frame

    def events(self, key: Any) -> dict[tuple[int, str], Frame]:
        """What torch did at a node, by visit and part."""
        return self._events.get(key, NOTHING)

    def reaches(self, read: Frame, calls: list[Frame]) -> bool:
        """Whether what was read may have gone into some of the calls, or come out of them; True where nobody knows."""
        mine = given(read)
        if not mine or not any(mine & given(call) for call in self._calls if call is not read):
            return True
        # What ``m.parameters()`` handed to a call nobody saw; it may be any layer's.
        unseen = any(tag(v) == "O" for call in calls for v in call[5])
        if unseen and any("k" in call[9] and mine & made(call) for call in self._calls):
            return True
        known = {serial for call in calls for serial in (*given(call), *made(call))}
        for call in reversed(self._calls):
            if known & made(call):
                known |= given(call)
        return bool(mine & known)

    def states(self, key: Any) -> dict[tuple[int, str], Frame]:
        """States of layers that had changed before a visit."""
        return self._states.get(key, NOTHING)


def given(call: Frame) -> set[int]:
    """Serials of the tensors that a call was given."""
    return {serial for serial, _ in references(call[5])}


def made(call: Frame) -> set[int]:
    """Serials of the tensors that a call returned."""
    return {serial for serial, _ in call[7]}


def key_of(module: str, node: Any) -> tuple[Any, ...]:
    """What makes a node the same in two runs of one source."""
    return (module, *node[:5])


def name_of(key: tuple[Any, ...]) -> str:
    """A node as the driver names it: ``module:line:column:end line:end column:kind``."""
    return ":".join(map(str, key))
