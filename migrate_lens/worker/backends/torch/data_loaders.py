"""What torch's data loaders hand out: a way to note items in, each item of each iteration noted out.

These are the only methods of a framework that are wrapped, and in a run's own process alone: an iteration is no call
of the program's, and where Paddle lacks the loader the program can only go on with the items that torch's handed out.
"""

from __future__ import annotations

import functools
import itertools
import sys
import weakref
from collections.abc import Callable
from typing import Any

Note = Callable[[int, Any], None]


def watch(note: Note) -> None:
    """Note every item that a loader hands out, with the number of the iteration, from 1."""
    data = sys.modules.get("torch.utils.data")
    if data is None:
        return
    counter = itertools.count(1)
    numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
    iterators = data.dataloader._BaseDataLoaderIter
    begin, following = data.DataLoader.__iter__, iterators.__next__

    @functools.wraps(begin)
    def __iter__(self: Any) -> Any:  # noqa: N807 - it takes the place of the method of that name
        iterator = begin(self)
        numbers[iterator] = next(counter)
        return iterator

    @functools.wraps(following)
    def __next__(self: Any) -> Any:  # noqa: N807 - the same
        item = following(self)
        if self in numbers:
            note(numbers[self], item)
        return item

    data.DataLoader.__iter__, iterators.__next__ = __iter__, __next__
