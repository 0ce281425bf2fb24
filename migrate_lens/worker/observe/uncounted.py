"""Tensors whose writes nobody counts, in; versions that tell what they hold apart, out.

A framework counts writes in place. Through ``.data``, an array that shares the memory, or a kernel that keeps running
statistics, a tensor is written without being counted; its versions are then counted by what it holds.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from migrate_lens.model.value import Encoded, TensorValue

# A version is the framework's own count and, above it, how often the contents were found to be others.
_EPOCH = 1 << 32


@dataclass(slots=True)
class _Watched:
    """One tensor: what it held when it was last looked at (a hash), and how many times that was something else."""

    tensor: weakref.ref[Any]
    contents: int
    epoch: int = 0


class Uncounted:
    """Counts writes by contents, for the tensors that were named.

    Args:
        version: how many writes to a tensor the framework counted.
        contents: what tensors hold.
    """

    def __init__(self, version: Callable[[Any], int], contents: Callable[[list[Any]], list[Encoded]]) -> None:
        self._version = version
        self._contents = contents
        self._watched: dict[int, _Watched] = {}

    def watch(self, tensors: Iterable[Any]) -> None:
        """From now on, writes to these may not be counted."""
        for tensor in tensors:
            if self._of(tensor) is None:
                self._watched[id(tensor)] = _Watched(weakref.ref(tensor), self._hash(tensor))

    def version(self, tensor: Any) -> int:
        """What tells the contents of a tensor from what it held before."""
        version = self._version(tensor)
        watched = self._of(tensor) if self._watched else None
        if watched is None:
            return version
        contents = self._hash(tensor)
        if contents != watched.contents:
            watched.contents = contents
            watched.epoch += 1
        return version + watched.epoch * _EPOCH

    def _of(self, tensor: Any) -> _Watched | None:
        watched = self._watched.get(id(tensor))
        return watched if watched is not None and watched.tensor() is tensor else None

    def _hash(self, tensor: Any) -> int:
        value = TensorValue._make(self._contents([tensor])[0])
        return hash((value.dtype, tuple(value.shape), value.data))
