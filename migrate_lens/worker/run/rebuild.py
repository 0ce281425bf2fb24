"""Encoded values in, live objects of a framework out: what a user hands over, and a recorded call's inputs."""

from __future__ import annotations

import collections
from typing import Any

from migrate_lens.model.value import (
    ArrayValue,
    DictValue,
    DtypeValue,
    Encoded,
    ListValue,
    NamedTupleValue,
    SetValue,
    SizeValue,
    SliceValue,
    TensorValue,
    TupleValue,
    typed,
)
from migrate_lens.worker.backends.building import Building, built_array


class CannotBuildError(ValueError):
    """A value that cannot be made anew from what was recorded; its text says why."""


def build(backend: Building, value: Encoded) -> Any:
    """Make a live object.

    Raises:
        CannotBuildError: the values of a tensor were not kept whole, or the object is none that can be made anew.
    """
    match typed(value):
        case TensorValue(data=data) | ArrayValue(data=data) if not isinstance(data, bytes):
            raise CannotBuildError("the values of a tensor were not kept whole")
        case TensorValue():
            return backend.build_tensor(value)
        case ArrayValue() as array:
            return built_array(array)
        case ListValue(items=items):
            return _all(backend, items)
        case TupleValue(items=items):
            return tuple(_all(backend, items))
        case SetValue(items=items):
            return set(_all(backend, items))
        case NamedTupleValue(name=name, fields=fields, items=items):
            return collections.namedtuple(name, fields, rename=True)(*_all(backend, items))
        case DictValue(pairs=pairs):
            return {key: build(backend, item) for key, item in pairs}
        case SliceValue(bounds=bounds):
            return slice(*_all(backend, bounds))
        case SizeValue(extents=extents):
            return tuple(extents)
        case DtypeValue(name=name):
            return backend.dtype_of(name)
        case tuple() as other:
            raise CannotBuildError(f"a {other[1]} cannot be made anew from what was recorded")
        case scalar:
            return scalar


def _all(backend: Building, values: list[Encoded]) -> list[Any]:
    return [build(backend, value) for value in values]
