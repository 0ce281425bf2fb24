"""A recorder that a user steers: zooms below chosen calls, stops at one, hands a given value over for others.

In: selectors (see ``migrate_lens.protocol.selector``) and values. Out: the frames that any recorder writes, and
``Unmet``, ``ThreadBegan``, ``Op`` and ``Counted`` (see ``migrate_lens.protocol.frames``).
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from migrate_lens.model.value import Encoded
from migrate_lens.protocol import frames
from migrate_lens.protocol.flags import Flags
from migrate_lens.protocol.journal import Journal
from migrate_lens.protocol.selector import Counter, parse
from migrate_lens.worker.backends.framework import Backend, Framework
from migrate_lens.worker.observe.call import Call
from migrate_lens.worker.observe.frames import hide
from migrate_lens.worker.observe.nodes import Node
from migrate_lens.worker.observe.recorder import Recorder
from migrate_lens.worker.run.rebuild import build

ALL = "all"
_OURS = -1


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a user wants done at chosen calls.

    Attributes:
        zoom: the selector of the call to look below, ``all``, or ``""``.
        stop_at: the selector of the call to stop after, or ``""``.
        substitute: selectors, each with the encoded value that the program is handed in the call's place.
    """

    zoom: str = ""
    stop_at: str = ""
    substitute: Sequence[tuple[str, Encoded]] = ()


class Steered(Recorder):
    """Records, and does at chosen calls what the user asked for.

    Args:
        framework: the framework of this process.
        backend: its side of the seam.
        journal: where frames go.
        wishes: what is to be done, and where.
    """

    def __init__(self, framework: Framework, backend: Backend, journal: Journal, wishes: Wishes) -> None:
        super().__init__(backend, journal, inputs=True)
        self._building = backend
        self._paths: list[str] = [""]
        self._all = wishes.zoom == ALL
        self._zoomed = Counter(parse(wishes.zoom)) if wishes.zoom and not self._all else None
        self._stop = Counter(parse(wishes.stop_at)) if wishes.stop_at else None
        self._values = [(Counter(parse(text)), value) for text, value in wishes.substitute]
        self._where: list[int] = [0]
        self._tally: Tally[str] = Tally()
        self._states: dict[int, tuple[Any, ...]] = {}
        self._ready: set[int] = set()
        self._zoom: Any = framework.zoom(self._note_op) if wishes.zoom else None
        self.caller = self.below if self._all else None
        self._watchful = bool(wishes.zoom or wishes.stop_at or wishes.substitute)

    def register(self, module: str, path: str, nodes: tuple[Node, ...]) -> int:
        self._paths.extend([path] * len(nodes))
        return super().register(module, path, nodes)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """With ``all``, operators outside any call are seen too, and all are counted."""
        if self._all:
            sys.addaudithook(self._heard)
            with self._zoom.open():
                yield
            self.journal.write(frames.Counted("counted", self._zoom.counted(), dict(self._tally)))
        else:
            yield
        counters = [self._stop, self._zoomed, *(counter for counter, _ in self._values)]
        unmet = [c.selector.text for c in counters if c is not None and c.waiting]
        if unmet:
            self.journal.write(frames.Unmet("unmet", unmet))

    def _heard(self, event: str, _: Any) -> None:
        """Note that a thread begins: what is dispatched in it cannot be seen from here."""
        if event == "_thread.start_new_thread":
            self.journal.write(frames.ThreadBegan("threads"))

    def encode_out(self, out: Any, flags: Flags) -> Encoded:
        if flags.made_layer:
            self._states[self.layer_serial(out)] = self._state_of(out)
        return super().encode_out(out, flags)

    def _note_state(self, call: Call, layer: Any) -> None:
        """Write a layer's state whenever it is not what was written last, so that the call can be made again."""
        now, serial = self._state_of(layer), self.layer_serial(layer)
        before = self._states.get(serial, ())
        if before != now or serial not in self._ready:
            self._states[serial] = now
            self._ready.add(serial)
            self.adopt(list(self.backend.held(layer)))
            self.write_state(call, layer, same=before[1:] == now[1:])

    def _state_of(self, layer: Any) -> tuple[Any, ...]:
        return (layer.training, *((id(t), self.backend.version(t)) for t in self.backend.held(layer)))

    def _note_op(self, name: str, out: Any) -> None:
        if self._where[-1] != _OURS:
            self.journal.write(frames.Op("op", self._where[-1], name, self.backend.encode(out)))

    def invoke(self, call: Call) -> Any:
        if not self._watchful:
            return super().invoke(call)
        if not call.api:
            call.api = self.function_name(call.node, call.func, call.args)
        with self._meeting(call.node, call.api) as given:
            if given:
                return self._hand(call.node, call.part, call.api, given[0])
            outer = self.caller
            self.caller = self.below if self._comes(self._zoomed, call.node, call.api) else outer
            try:
                return super().invoke(call)
            finally:
                self.caller = outer

    def observed(self, number: int, api: str, value: Any, base: Any = None) -> Any:
        if not self._watchful:
            return super().observed(number, api, value, base)
        with self._meeting(number, api) as given:
            return self._hand(number, "", api, given[0]) if given else super().observed(number, api, value, base)

    def imported(self, number: int, api: str, value: Any, name: str) -> Any:
        with self._meeting(number, api) as given:
            return self._hand(number, name, api, given[0]) if given else super().imported(number, api, value, name)

    def not_there(self, number: int, api: str, error: Exception, base: Any = None, part: str = "") -> Any:
        with self._meeting(number, api) as given:
            if given:
                return self._hand(number, part, api, given[0])
            return super().not_there(number, api, error, base, part)

    @contextlib.contextmanager
    def _meeting(self, number: int, api: str) -> Iterator[list[Encoded]]:
        """Around one call: the value that the program is to be handed, if any; stops the program after it if asked.

        What the recorder itself asks of the framework meanwhile is not the program's.
        """
        given = [value for counter, value in self._values if self._comes(counter, number, api)]
        stopping = self._comes(self._stop, number, api)
        self._where.append(_OURS)
        try:
            yield given
        finally:
            self._where.pop()
            if stopping:
                self._end_here()

    def _end_here(self) -> None:
        """End the program in the middle of whatever it is doing, in any of its threads."""
        self.journal.write(frames.Outcome("outcome", "stopped", None, []))
        self.journal.close()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    def starred(self, number: int, module: str, loaded: Any) -> dict[str, Any]:
        with self._meeting(number, f"{module}.__all__"):
            return super().starred(number, module, loaded)

    def _comes(self, counter: Counter | None, number: int, api: str) -> bool:
        node = self.nodes[number]
        line = node.line if node else 0
        return counter is not None and counter.comes(api, self._paths[number], line)

    def _hand(self, number: int, part: str, api: str, value: Encoded) -> Any:
        self.note_read(number, api, value, part, healed="substituted")
        return build(self._building, value)

    def below(self, call: Call) -> Any:
        """Make a call and note the operators below it."""
        before = self._zoom.counted() if self._all else {}
        outermost = not any(n > 0 for n in self._where)
        self._where.append(call.node)
        try:
            with contextlib.nullcontext() if self._all else self._zoom.open():
                return call.func(*call.args, **call.kwargs)
        finally:
            self._where.pop()
            if self._all and outermost:
                self._tally.update(Tally(self._zoom.counted()) - Tally(before))


hide(sys.modules[__name__])
