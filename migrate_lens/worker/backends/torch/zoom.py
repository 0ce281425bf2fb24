"""ATen operators below a call: a way to note them in, one note an operator out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from migrate_lens.worker.backends.framework import Note


class TorchZoom:
    """ATen operators, as torch dispatches them through a mode.

    Args:
        note: is told the operator's overload name and its result.
    """

    def __init__(self, note: Note) -> None:
        class Mode(TorchDispatchMode):  # type: ignore[misc]
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                out = func(*args, **(kwargs or {}))
                note(str(func), out)
                return out

        self._mode = Mode

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Note what is dispatched inside."""
        with self._mode():
            yield

    def counted(self) -> dict[str, int]:
        """Torch has no counter of its own, and needs none: nothing goes by a mode."""
        return {}
