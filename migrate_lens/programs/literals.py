"""Encoded values in, the Python expressions that build them under either framework out."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from migrate_lens.model.value import (
    ARRAY,
    DICT,
    LIST,
    NAMED_TUPLE,
    RAW,
    SET,
    TENSOR,
    TUPLE,
    ArrayValue,
    ClassValue,
    DeviceValue,
    DictValue,
    DtypeValue,
    Encoded,
    FunctionValue,
    SizeValue,
    SliceValue,
    array,
    tag,
    typed,
)
from migrate_lens.programs.values import GRADIENT, SPELLED, tensor_of

# An array of any dtype, and one element of it: numpy has no narrower type for either.
Array = NDArray[Any]
Element = Any
# Most elements that are written out one by one.
WRITTEN = 64
# Most elements that are shorter written out than as a range.
_SHORT = 4
_DEFAULT = {"f": "float32", "i": "int64", "b": "bool", "c": "complex64"}
_BUILTIN = frozenset(
    ("bool", "int", "float", "complex", "str", "bytes", "list", "tuple", "dict", "set", "slice", "range")
)
_DOTTED = re.compile(r"[A-Za-z_][\w.]*$")


class Unwritable(Exception):  # noqa: N818 - it is a result, not an error
    """A value that cannot be written as a short literal; its text says why."""


def literal(value: Encoded) -> str:
    """An expression for a value.

    Raises:
        Unwritable: there is no short one.
    """
    kind = tag(value)
    if not kind:
        return scalar(value)
    if kind == TENSOR:
        return tensor(value)
    if kind == ARRAY:
        return ndarray(value)
    if kind in (LIST, TUPLE, NAMED_TUPLE, SET):
        return _sequence(kind, [literal(item) for item in value[-1]])
    if kind == DICT:
        pairs = DictValue._make(value).pairs
        return "{" + ", ".join(f"{literal(key)}: {literal(item)}" for key, item in pairs) + "}"
    return _special(kind, value)


def _special(kind: str, value: Encoded) -> str:
    """What is neither a tensor nor a container of values."""
    match None if kind in (SPELLED, GRADIENT) else typed(value):
        case SizeValue(extents=extents):
            return f"torch.Size([{', '.join(map(str, extents))}])"
        case DtypeValue(name=name):
            return f"torch.{name}"
        case DeviceValue(name=name):
            return f'torch.device("{name}")'
        case SliceValue(bounds=bounds):
            return f"slice({', '.join(map(literal, bounds))})"
        case ClassValue(name=name) | FunctionValue(name=name) if _is_public(name):
            return name
    raise Unwritable(f"no literal for {kind} {value[1] if len(value) > 1 else ''}")


def _is_public(name: str) -> bool:
    """Whether a name can be written as it is: a builtin, or one of torch's."""
    known = name in _BUILTIN or name.startswith("torch.")
    return known and bool(_DOTTED.match(name)) and not any(keyword.iskeyword(p) for p in name.split("."))


def _sequence(kind: str, items: list[str]) -> str:
    if kind == LIST:
        return "[" + ", ".join(items) + "]"
    if kind == SET:
        return "{" + ", ".join(items) + "}" if items else "set()"
    return "(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")"


def scalar(value: Encoded) -> str:
    """A plain value."""
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f'float("{value}")'
    if isinstance(value, complex) and not (math.isfinite(value.real) and math.isfinite(value.imag)):
        return f"complex({scalar(value.real)}, {scalar(value.imag)})"
    if isinstance(value, str):
        return f'"{value}"' if value.isprintable() and '"' not in value and "\\" not in value else repr(value)
    return repr(value)


def number(value: Element, dtype: str) -> str:
    """One element: the shortest text that gives this very number in its dtype."""
    if dtype == "bool":
        return str(bool(value))
    if dtype.startswith("complex"):
        return f"{value.real:g}{value.imag:+g}j" if np.isfinite(value) else scalar(complex(value))
    if "float" in dtype:
        return scalar(float(str(value)))
    return str(int(value))


def nested(values: Array, dtype: str) -> str:
    """An array as nested lists."""
    if values.ndim == 0:
        return number(values[()], dtype)
    return "[" + ", ".join(nested(row, dtype) for row in values) + "]"


def tensor(value: Encoded) -> str:
    """A tensor of either framework, by the plainest constructor that gives these values.

    Raises:
        Unwritable: its values are not known, or too many to write.
    """
    known = tensor_of(value)
    if known.device == "meta":
        return f'torch.empty({_extents(known.shape)}, device="meta")'
    values, dtype = array(value), known.dtype
    if values is None or values.size != math.prod(known.shape):
        raise Unwritable("the values of a tensor are not known")
    extra = ", requires_grad=True" if known.requires_grad else ""
    return _constant(values, dtype, extra) or _regular(values, dtype, extra) or _written(values, dtype, extra)


def _extents(shape: Iterable[int]) -> str:
    items = list(shape)
    return ", ".join(map(str, items)) if items else "()"


def _constant(values: Array, dtype: str, extra: str) -> str:
    """``ones`` and ``zeros``."""
    if values.ndim == 0 or (values.size and values.size <= 2):
        return ""
    typed = "" if dtype == "float32" else f", dtype=torch.{dtype}"
    for name, constant in (("zeros", 0), ("ones", 1)):
        if bool((values == constant).all()):
            return f"torch.{name}({_extents(values.shape)}{typed}{extra})"
    return ""


def _regular(values: Array, dtype: str, extra: str) -> str:
    """``arange``, reshaped."""
    if values.size <= _SHORT or dtype == "bool" or not np.array_equal(values.reshape(-1), np.arange(values.size)):
        return ""
    flat = values.ndim == 1
    if extra and not flat:
        return ""
    typed = "" if dtype in ("float32", "int64") else f", dtype=torch.{dtype}"
    stop = f"{values.size}." if dtype == "float32" else str(values.size)
    text = f"torch.arange({stop}{typed}{extra})"
    return text if flat else f"{text}.reshape({_extents(values.shape)})"


def _written(values: Array, dtype: str, extra: str) -> str:
    if values.size > WRITTEN:
        raise Unwritable(f"a tensor of {values.size} irregular values")
    typed = "" if _DEFAULT.get(values.dtype.kind) == dtype else f", dtype=torch.{dtype}"
    return f"torch.tensor({nested(values, dtype)}{typed}{extra})"


def ndarray(value: Encoded) -> str:
    """A numpy array.

    Raises:
        Unwritable: its values are not known, or too many to write.
    """
    _, dtype, shape, data = ArrayValue._make(value)
    if not isinstance(data, RAW):
        raise Unwritable("the values of an array are not known")
    values = np.frombuffer(data, dtype).reshape(shape)
    if values.size > WRITTEN:
        raise Unwritable(f"an array of {values.size} values")
    for name, constant in (("zeros", 0), ("ones", 1)):
        if values.size > 1 and bool((values == constant).all()):
            return f'np.{name}({shape if len(shape) > 1 else shape[0]}, dtype="{dtype}")'
    return f'np.array({nested(values, dtype)}, dtype="{dtype}")'
