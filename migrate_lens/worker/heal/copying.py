"""A recorder under which chosen calls share no memory: what would the program do if these results were copies?"""

from __future__ import annotations

from typing import Any

import numpy as np

from migrate_lens.protocol.flags import Flags
from migrate_lens.protocol.journal import Journal
from migrate_lens.worker.backends.writes import Writes
from migrate_lens.worker.heal.reference import key_of, name_of
from migrate_lens.worker.observe.call import Call
from migrate_lens.worker.observe.nodes import Node
from migrate_lens.worker.observe.recorder import Recorder


class Copying(Recorder):
    """Records, and hands the program copies of what chosen calls return.

    Args:
        backend: the framework's side of the seam.
        journal: where frames go.
        names: nodes, as ``module:line:column:end line:end column:kind``.
    """

    def __init__(self, backend: Writes, journal: Journal, names: frozenset[str]) -> None:
        super().__init__(backend, journal, inputs=True)
        self._chosen = names
        self._copied: set[int] = set()

    def register(self, module: str, path: str, nodes: tuple[Node, ...]) -> int:
        base = super().register(module, path, nodes)
        for number, node in enumerate(nodes, base):
            if name_of(key_of(module, node)) in self._chosen:
                self._copied.add(number)
        return base

    def returned(self, call: Call, flags: Flags, out: Any) -> Any:
        if call.node in self._copied:
            out = self._copy(out)
        return super().returned(call, flags, out)

    def _copy(self, value: Any) -> Any:
        tensor: Any = self.backend.tensor
        if isinstance(value, tensor):
            return value.clone()
        if isinstance(value, np.ndarray):
            return value.copy()
        return type(value)(map(self._copy, value)) if type(value) in (list, tuple) else value
