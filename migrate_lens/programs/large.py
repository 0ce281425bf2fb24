"""Drafts with large inputs in, drafts whose large inputs are regular and so can be written out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from migrate_lens.model.value import Encoded, tag
from migrate_lens.programs.drafts import Argument, Draft
from migrate_lens.programs.literals import WRITTEN

_LIMIT = 1 << 20
Fill = Callable[[int], NDArray[Any]]


def plain_large(draft: Draft) -> Iterator[Draft]:
    """The draft itself where its inputs are small; else with its large inputs replaced by a range, then by ones."""
    if not any(_is_large(v) for _, _, a in draft.inputs() for v in _leaves(a.value)):
        yield draft
        return
    for fill in (np.arange, np.ones):
        changed = draft
        for number, position, argument in list(draft.inputs()):
            value = _filled(argument.value, fill)
            changed = changed.with_argument(number, position, Argument(argument.keyword, value))
        yield changed


def _leaves(value: Encoded) -> Iterator[Encoded]:
    if tag(value) in ("L", "t"):
        for item in value[1]:
            yield from _leaves(item)
    else:
        yield value


def _is_large(value: Encoded) -> bool:
    return tag(value) in ("T", "N") and math.prod(value[2]) > WRITTEN


def _filled(value: Encoded, fill: Fill) -> Encoded:
    if tag(value) in ("L", "t"):
        return (value[0], [_filled(v, fill) for v in value[1]])
    size = math.prod(value[2]) if tag(value) in ("T", "N") else 0
    if not _is_large(value) or size > _LIMIT:
        return value
    dtype = "float32" if value[1] == "bfloat16" else value[1]
    # Integers are most often indices, so they stay small.
    made = fill(size) if "float" in dtype else np.zeros(size)
    return (*value[:3], made.astype(dtype).tobytes(), *value[4:])
