"""Encoded values in, live objects of a framework out: what a user hands over, and a recorded call's inputs."""

from __future__ import annotations

import collections
from typing import Any

from migrate_lens.model.value import (
    RAW,
    ArrayValue,
    DictValue,
    DtypeValue,
    Encoded,
    ListValue,
    NamedTupleValue,
    SequenceValue,
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
        case TensorValue(data=data) | ArrayValue(data=data) if not isinstance(data, RAW):
            raise CannotBuildError("the values of a tensor were not kept whole")
        case TensorValue():
            return backend.build_tensor(value)
        case ArrayValue() as array:
            return built_array(array)
        case ListValue() | TupleValue() | NamedTupleValue() | SetValue() as sequence:
            return _sequence(backend, sequence)
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


def _sequence(backend: Building, want: SequenceValue) -> Any:
    items = _all(backend, want.items)
    match want:
        case ListValue():
            return items
        case TupleValue():
            return tuple(items)
        case SetValue():
            return set(items)
        case NamedTupleValue(name=name, fields=fields):
            return collections.namedtuple(name, fields, rename=True)(*items)


def _all(backend: Building, values: list[Encoded]) -> list[Any]:
    return [build(backend, value) for value in values]
