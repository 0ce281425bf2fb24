"""A recorder that a user steers: zooms below chosen calls, stops at one, hands a given value over for others.

In: selectors (see ``migrate_lens.protocol.selector``) and values. Out: the frames of ``worker.recorder``, and these:

====================================  ================================================================================
``("unmet", selectors)``              calls that were named and did not come
``("threads",)``                      a thread began, in which operators are not seen
``("op", node, name, encoded)``       a low-level operator ran below the call at a node; 0: below no recorded call
``("counted", all, below)``           kernels that ran by the framework's own count, and those of them below a call
====================================  ================================================================================
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from typing import Any

from migrate_lens.model.value import Encoded
from migrate_lens.protocol.journal import Journal
from migrate_lens.protocol.selector import Counter, parse
from migrate_lens.worker.backends.base import Backend
from migrate_lens.worker.observe.nodes import Node
from migrate_lens.worker.observe.recorder import Recorder
from migrate_lens.worker.observe.zoom import ZOOMS
from migrate_lens.worker.run.rebuild import build

ALL = "all"
SUBSTITUTED = "substituted"
_OURS = -1


class Steered(Recorder):
    """Records, and does at chosen calls what the user asked for.

    Args:
        backend: the framework's side of the seam.
        journal: where frames go.
        zoom: a selector, ``all``, or ``""``.
        stop_at: a selector or ``""``.
        substitute: selectors, each with the encoded value that the program is handed in the call's place.
    """

    def __init__(self, backend: Backend, journal: Journal, zoom: str, stop_at: str,
                 substitute: Sequence[tuple[str, Encoded]]) -> None:  # fmt: skip
        super().__init__(backend, journal, inputs=True)
        self._paths: list[str] = [""]
        self._all = zoom == ALL
        self._zoomed = Counter(parse(zoom)) if zoom and not self._all else None
        self._stop = Counter(parse(stop_at)) if stop_at else None
        self._values = [(Counter(parse(text)), value) for text, value in substitute]
        self._where: list[int] = [0]
        self._tally: Tally[str] = Tally()
        self._states: dict[int, tuple[Any, ...]] = {}
        self._ready: set[int] = set()
        self._zoom: Any = ZOOMS[backend.name](self._note_op) if zoom else None
        self.caller = self.below if self._all else None
        self._watchful = bool(zoom or stop_at or substitute)

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
            self.journal.write(("counted", self._zoom.counted(), dict(self._tally)))
        else:
            yield
        counters = [self._stop, self._zoomed, *(counter for counter, _ in self._values)]
        unmet = [c.selector.text for c in counters if c is not None and c.waiting]
        if unmet:
            self.journal.write(("unmet", unmet))

    def _heard(self, event: str, _: Any) -> None:
        """Note that a thread begins: what is dispatched in it cannot be seen from here."""
        if event == "_thread.start_new_thread":
            self.journal.write(("threads",))

    def encode_out(self, out: Any, flags: str) -> Encoded:
        if "k" in flags:
            self._states[self.layer_serial(out)] = self._state_of(out)
        return super().encode_out(out, flags)

    def _note_state(self, number: int, visit: int, sub: str, layer: Any) -> None:
        """Write a layer's state whenever it is not what was written last, so that the call can be made again."""
        now, serial = self._state_of(layer), self.layer_serial(layer)
        before = self._states.get(serial, ())
        if before != now or serial not in self._ready:
            self._states[serial] = now
            self._ready.add(serial)
            self.adopt(list(self.backend.held(layer)))
            self.write_state(number, visit, sub, layer, same=before[1:] == now[1:])

    def _state_of(self, layer: Any) -> tuple[Any, ...]:
        return (layer.training, *((id(t), self.backend.version(t)) for t in self.backend.held(layer)))

    def _note_op(self, name: str, out: Any) -> None:
        if self._where[-1] != _OURS:
            self.journal.write(("op", self._where[-1], name, self.backend.encode(out)))

    def invoke(self, number: int, func: Any, base: Any, args: Any, kwargs: Any, name: str | None, sub: str = "") -> Any:
        if not self._watchful:
            return super().invoke(number, func, base, args, kwargs, name, sub)
        api = name if name is not None else self.function_name(number, func, args)
        with self._meeting(number, api) as given:
            if given:
                return self._hand(number, sub, api, given[0])
            outer = self.caller
            self.caller = self.below if self._comes(self._zoomed, number, api) else outer
            try:
                return super().invoke(number, func, base, args, kwargs, api, sub)
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

    def not_there(self, number: int, api: str, error: Exception, base: Any = None, sub: str = "") -> Any:
        with self._meeting(number, api) as given:
            return self._hand(number, sub, api, given[0]) if given else super().not_there(number, api, error, base, sub)

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
        self.journal.write(("outcome", "stopped", None, []))
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

    def _hand(self, number: int, sub: str, api: str, value: Encoded) -> Any:
        self._note(number, sub, api, value, healed=SUBSTITUTED)
        return build(self.backend, value)

    def below(self, number: int, func: Any, args: Any, kwargs: Any) -> Any:
        """Make a call and note the operators below it."""
        before = self._zoom.counted() if self._all else {}
        outermost = not any(n > 0 for n in self._where)
        self._where.append(number)
        try:
            with contextlib.nullcontext() if self._all else self._zoom.open():
                return func(*args, **kwargs)
        finally:
            self._where.pop()
            if self._all and outermost:
                self._tally.update(Tally(self._zoom.counted()) - Tally(before))
