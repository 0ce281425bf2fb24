"""Operators of Paddle's eager mode below a call: a way to note them in, one note an operator out.

Paddle has no seam for that, so the C functions of ``paddle._C_ops`` and the C-level methods of its tensors are wrapped,
in this process alone, and its own counter of operators (``FLAGS_low_precision_op_list``) says whether any of them went
by unseen.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import paddle

from migrate_lens.worker.backends.framework import Note

# C-level tensor methods that run an operator and go through no function of paddle._C_ops (measured on 3.3.1).
_METHODS = ("_getitem_dygraph", "_setitem_dygraph", "clone", "copy_", "set_value")
# Names that every object has, and that no operator stands behind.
_OBJECT = frozenset(dir(object)) | {"__array__", "__dlpack__", "__dlpack_device__", "__len__", "__hash__"}
_FLAG = "FLAGS_low_precision_op_list"


class PaddleZoom:
    """Operators of Paddle's eager mode.

    Args:
        note: is told the operator's name and its result (for a call that returns nothing, its receiver).
    """

    def __init__(self, note: Note) -> None:
        self._note = note
        self._open = 0
        self._inside = 0
        self._core: Any = paddle.base.core
        paddle.set_flags({_FLAG: 1})
        self._core.clear_low_precision_op_list()
        ops: Any = paddle._C_ops
        for name in dir(ops):
            if not name.startswith("__") and callable(getattr(ops, name)):
                setattr(ops, name, self._wrapped(name, getattr(ops, name)))
        tensor: Any = paddle.Tensor
        dunders = [n for n in dir(tensor) if n.startswith("__") and type(getattr(tensor, n)) is type(tensor.clone)]
        for name in (*_METHODS, *(n for n in dunders if n not in _OBJECT)):
            setattr(tensor, name, self._wrapped(name, getattr(tensor, name)))

    def _wrapped(self, name: str, func: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if not self._open or self._inside:
                return func(*args, **kwargs)
            self._inside += 1
            try:
                out = func(*args, **kwargs)
                self._note(name, args[0] if out is None and args else out)
            finally:
                self._inside -= 1
            return out

        return call

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Note what runs inside."""
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1

    def counted(self) -> dict[str, int]:
        """How often each kernel has run so far, by Paddle's own count."""
        counts = self._core.get_low_precision_op_list()
        return {str(name): sum(map(int, str(by).split(","))) for name, by in counts.items()}
