"""Drafts with large inputs in, drafts whose large inputs are regular and so can be written out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from migrate_lens.model.value import Encoded, tag
from migrate_lens.programs.drafts import Draft
from migrate_lens.programs.literals import WRITTEN, Array
from migrate_lens.programs.values import ARRAYS, LISTS, array_of, items_of

_LIMIT = 1 << 20
Fill = Callable[[int], Array]


def plain_large(draft: Draft) -> Iterator[Draft]:
    """The draft itself where its inputs are small; else with its large inputs replaced by a range, then by ones."""
    if not any(_is_large(leaf) for place in draft.inputs() for leaf in _leaves(place.argument.value)):
        yield draft
        return
    for fill in (np.arange, np.ones):
        changed = draft
        for place in list(draft.inputs()):
            changed = changed.with_value(place, _filled(place.argument.value, fill))
        yield changed


def _leaves(value: Encoded) -> Iterator[Encoded]:
    if tag(value) in LISTS:
        for item in items_of(value):
            yield from _leaves(item)
    else:
        yield value


def _is_large(value: Encoded) -> bool:
    return tag(value) in ARRAYS and math.prod(array_of(value).shape) > WRITTEN


def _filled(value: Encoded, fill: Fill) -> Encoded:
    if tag(value) in LISTS:
        return (tag(value), [_filled(item, fill) for item in items_of(value)])
    if not _is_large(value):
        return value
    large = array_of(value)
    size = math.prod(large.shape)
    if size > _LIMIT:
        return value
    dtype = "float32" if large.dtype == "bfloat16" else large.dtype
    # Integers are most often indices, so they stay small.
    made = fill(size) if "float" in dtype else np.zeros(size)
    return large._replace(data=made.astype(dtype).tobytes())
