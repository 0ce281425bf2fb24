"""What torch's data loaders hand out: a way to note items in, each item of each iteration noted out.

This is the one class of a framework that is wrapped, and in a run's own process alone: an iteration is no call of the
program's, and where Paddle lacks the loader the program can only go on with the items that torch's handed out.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any

Note = Callable[[int, Any], None]


class _Noted:
    """An iterator that notes what it hands out, and is otherwise the one that it stands for."""

    def __init__(self, iterator: Any, number: int, note: Note) -> None:
        self._iterator, self._number, self._note = iterator, number, note

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        item = next(self._iterator)
        self._note(self._number, item)
        return item

    def __len__(self) -> int:
        return len(self._iterator)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._iterator, name)


def watch(note: Note) -> None:
    """Note every item that a loader hands out, with the number of the iteration, from 1."""
    data = sys.modules.get("torch.utils.data")
    if data is None:
        return
    numbers = itertools.count(1)
    original = data.DataLoader.__iter__

    def __iter__(loader: Any) -> Any:  # noqa: N807 - it takes the place of the method of that name
        return _Noted(original(loader), next(numbers), note)

    data.DataLoader.__iter__ = __iter__
