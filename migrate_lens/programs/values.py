"""Values of programs that are written anew: those that were recorded, and three kinds that only a draft has."""

from __future__ import annotations

from typing import Final, NamedTuple

from migrate_lens.model.value import (
    ARRAY,
    LIST,
    NAMED_TUPLE,
    TENSOR,
    TUPLE,
    ArrayValue,
    Data,
    Encoded,
    NamedTupleValue,
    tag,
)

# An expression that is written as it is, and the gradient of a value.
SPELLED: Final = "$"
GRADIENT: Final = "g"
ARRAYS = (TENSOR, ARRAY)
LISTS = (LIST, TUPLE)


class InputTensor(NamedTuple):
    """A tensor among the inputs of a draft; two with the same serial are one object."""

    tag: str
    dtype: str
    shape: tuple[int, ...]
    data: Data
    device: str = "cpu"
    requires_grad: bool = False
    serial: int | None = None


class Spelled(NamedTuple):
    """An expression that is written as it is."""

    tag: str
    text: str


class GradientOf(NamedTuple):
    """The gradient of an input."""

    tag: str
    value: Encoded


def tensor_of(value: Encoded) -> InputTensor:
    """A tensor, with names for its places."""
    return InputTensor._make((*value, None) if len(value) < len(InputTensor._fields) else value)


def array_of(value: Encoded) -> InputTensor | ArrayValue:
    """A tensor or an array, with names for its places."""
    return tensor_of(value) if tag(value) == TENSOR else ArrayValue._make(value)


def items_of(value: Encoded) -> list[Encoded]:
    """The items of a list or a tuple, whether it has names for them or not."""
    if tag(value) == NAMED_TUPLE:
        return NamedTupleValue._make(value).items
    _, items = value
    return list(items)
