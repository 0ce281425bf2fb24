"""Encoded values in, live objects of either framework out: what a user hands over, and a recorded call's inputs."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np

from migrate_lens.model.value import Encoded, tag
from migrate_lens.worker.backends.base import Backend


class CannotBuildError(ValueError):
    """A value that cannot be made anew from what was recorded; its text says why."""


def build(backend: Backend, value: Encoded) -> Any:
    """Make a live object.

    Raises:
        CannotBuildError: the values of a tensor were not kept whole, or the object is none that can be made anew.
    """
    kind = tag(value)
    if not kind:
        return value
    if kind in ("T", "N"):
        if not isinstance(value[3], bytes):
            raise CannotBuildError("the values of a tensor were not kept whole")
        return backend.build_tensor(value) if kind == "T" else _array(value)
    if kind in ("L", "t", "s"):
        made = [build(backend, v) for v in value[1]]
        return {"L": list, "t": tuple, "s": set}[kind](made)
    if kind == "n":
        return collections.namedtuple(value[1], value[2], rename=True)(*(build(backend, v) for v in value[3]))
    if kind == "d":
        return {k: build(backend, v) for k, v in value[1]}
    if kind == "/":
        return slice(*(build(backend, v) for v in value[1]))
    if kind == "Z":
        return tuple(value[1])
    if kind == "D":
        return backend.dtype_of(value[1])
    raise CannotBuildError(f"a {value[1] if len(value) > 1 else kind} cannot be made anew from what was recorded")


def _array(value: Encoded) -> Any:
    array = np.frombuffer(value[3], value[1]).reshape(value[2]).copy()
    return array if value[2] else array[()]
