"""Values as they travel on the wire, and whether two of them agree; standard library and numpy only.

Scalars, ``None``, ``str`` and ``bytes`` travel as themselves. All else is a tuple with a tag first:

====================  ==================================================================================
``T``                 tensor: dtype, shape, data, device, requires_grad
``N``                 numpy array: dtype, shape, data
``Z``                 size: extents            ``D``  dtype: name             ``V``  device: name
``L`` ``t`` ``s``     list, tuple, set: items  ``n``  named tuple: type name, fields, items
``d``                 dict: (key, value) pairs
``C``                 class: name, kind        ``F``  function: name          ``M``  module: name
``K``                 layer: type name, state (name, dtype, shape, data of each parameter and buffer) or None
``O``                 any other object: type name
``/``                 slice: start, stop, step
``+``                 what was left out of a long container: how many items
====================  ==================================================================================

``data`` is the raw bytes in C order (bfloat16 as float32), ``("S", stride, bytes)`` for a sample of a large tensor
(every stride-th element), or None where the values cannot be had (sparse, meta).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Encoded = Any

# Tolerances: torch.testing.assert_close's documented defaults (rtol), with float32 widened 16 times because the two
# frameworks sum in different orders; the absolute part is taken relative to the largest magnitude of the tensor.
RTOL = {
    "float16": 4e-3,
    "bfloat16": 1.6e-2,
    "float32": 2.1e-5,
    "float64": 1e-7,
    "complex64": 2.1e-5,
    "complex128": 1e-7,
}
SCALE = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-5, "float64": 1e-9, "complex64": 1e-5, "complex128": 1e-9}
FLOOR = {"float16": 1e-5, "bfloat16": 1e-5, "float32": 1e-6, "float64": 1e-12, "complex64": 1e-6, "complex128": 1e-12}

SCALARS = (bool, int, float, complex, str, bytes, type(None))
SEQUENCES = "Ltns"
LIGHT = ("gradient", "type")  # aspects that are no difference of what a program computed


@dataclass(frozen=True, slots=True)
class Difference:
    """One way in which two values differ.

    Attributes:
        aspect: ``shape``, ``dtype``, ``device``, ``value``, ``type`` or ``gradient``.
        hard: whether it is a difference of tensors, which counts by itself; a soft one (a Python type, a flag, a
            string) counts only where the program's outcome depends on it.
        expected: torch's side, for a person.
        actual: Paddle's side, for a person.
    """

    aspect: str
    hard: bool
    expected: str
    actual: str


def tag(value: Encoded) -> str:
    """The tag of an encoded value, or ``""`` for what travels as itself."""
    return value[0] if type(value) is tuple else ""


def array(value: Encoded) -> NDArray[Any] | None:
    """The values of an encoded tensor or array (a flat sample for a sampled one), None where there are none."""
    data = value[3]
    if data is None:
        return None
    dtype = np.dtype("float32" if value[1] == "bfloat16" else value[1])
    if type(data) is tuple:
        return np.frombuffer(data[2], dtype)
    return np.frombuffer(data, dtype).reshape(value[2])


def difference(want: Encoded, got: Encoded, *, values: bool = True) -> Difference | None:
    """Hold Paddle's value against torch's.

    Args:
        want: torch's value.
        got: Paddle's value.
        values: False compares types, shapes and dtypes only (random draws, uninitialised memory).

    Returns:
        The first difference, outermost first, or None.
    """
    kind, other = tag(want), tag(got)
    if kind == "T" and other == "T":
        return _tensors(want, got, values)
    if kind in SEQUENCES and other in SEQUENCES and kind and other:
        return _sequences(want, got, values)
    if kind == "T" or other == "T":
        return _tensor_or_not(want, got, kind)
    if kind == "N" and other == "N":
        return _tensors((*want, "cpu", False), (*got, "cpu", False), values)
    if kind == "d" and other == "d":
        return _dicts(want, got, values)
    return _others(want, got, kind, other, values)


def describe(value: Encoded) -> str:
    """A short description of an encoded value for a person."""
    kind = tag(value)
    if kind in ("T", "N"):
        return f"{'tensor' if kind == 'T' else 'ndarray'}{list(value[2])} {value[1]}{_numbers(value)}"
    if kind and kind in SEQUENCES:
        items = value[-1]
        name = {"L": "list", "t": "tuple", "n": "named tuple", "s": "set"}[kind]
        return (
            f"{name} of {len(items)}: "
            + ", ".join(describe(i) for i in items[:3])
            + (", ..." if len(items) > 3 else "")
        )
    if kind == "Z":
        return f"Size{list(value[1])}"
    if kind == "d":
        return f"dict of {len(value[1])}"
    if kind in ("D", "V"):
        return str(value[1])
    if kind:
        return {"C": "class", "F": "function", "M": "module", "K": "layer", "O": "object", "+": "more", "/": "slice"}[
            kind
        ] + f" {value[1]}"
    return repr(value) if len(repr(value)) <= 80 else repr(value)[:77] + "..."


def tensors(value: Encoded) -> list[Encoded]:
    """All encoded tensors in a value, in order."""
    kind = tag(value)
    if kind == "T":
        return [value]
    if kind and kind in SEQUENCES:
        return [t for item in value[-1] for t in tensors(item)]
    if kind == "d":
        return [t for _, item in value[1] for t in tensors(item)]
    return []


def references(inputs: Iterable[Encoded], *, nested: bool = True) -> list[tuple[int, int]]:
    """Serials and versions of the tensors among recorded inputs, in order; ``nested`` looks into inner containers."""
    found: list[tuple[int, int]] = []
    for value in inputs:
        kind = tag(value)
        if kind == "#":
            found.append((value[1], value[2]))
        elif kind == "kw":
            found.extend(references([value[2]], nested=nested))
        elif kind in ("L", "t"):
            found.extend(references(value[1]) if nested else [(v[1], v[2]) for v in value[1] if tag(v) == "#"])
    return found


def close(want: NDArray[Any], got: NDArray[Any], dtype: str) -> bool:
    """Whether two arrays of one shape agree: exactly for integers and bools, within tolerance for floats."""
    if dtype not in RTOL:
        return bool(np.array_equal(want, got))
    if want.size == 0 or bool(np.array_equal(want, got)):
        return True
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        wide = want.astype(np.complex128 if dtype.startswith("complex") else np.float64)
        other = got.astype(wide.dtype)
    finite = np.isfinite(wide)
    if not np.array_equal(finite, np.isfinite(other)) or not _same_specials(wide, other, finite):
        return False
    if not finite.any():
        return True
    wide, other = wide[finite], other[finite]
    scale = float(np.abs(wide).max())
    limit = RTOL[dtype] * np.abs(wide) + max(FLOOR[dtype], SCALE[dtype] * scale)
    return bool((np.abs(wide - other) <= limit).all())


def _same_specials(want: NDArray[Any], got: NDArray[Any], finite: NDArray[np.bool_]) -> bool:
    return bool(np.array_equal(want[~finite], got[~finite], equal_nan=True))


def _numbers(value: Encoded) -> str:
    numbers = array(value)
    if numbers is None or numbers.size == 0 or numbers.size > 6:
        return ""
    return " " + np.array2string(numbers, precision=4, separator=", ", threshold=6).replace("\n", "")


def _tensors(want: Encoded, got: Encoded, values: bool) -> Difference | None:
    if want[2] != got[2]:
        return Difference("shape", True, describe(want), describe(got))
    if want[1] != got[1]:
        return Difference("dtype", True, describe(want), describe(got))
    if want[4].split(":")[0] != got[4].split(":")[0]:
        return Difference("device", True, want[4], got[4])
    left, right = _alike(want, got)
    if values and left is not None and right is not None and not close(left, right, want[1]):
        return Difference("value", True, describe(want), describe(got) + _largest(left, right))
    if want[5] != got[5]:
        return Difference("gradient", False, f"requires_grad={want[5]}", f"requires_grad={got[5]}")
    return None


def _alike(want: Encoded, got: Encoded) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
    """The values of two tensors of one shape; where one side has a sample, the same elements of the other."""
    left, right = array(want), array(got)
    if left is None or right is None or left.shape == right.shape:
        return left, right
    if type(want[3]) is tuple and type(got[3]) is bytes:
        return left, right.reshape(-1)[:: want[3][1]]
    if type(got[3]) is tuple and type(want[3]) is bytes:
        return left.reshape(-1)[:: got[3][1]], right
    return None, None


def _largest(want: NDArray[Any], got: NDArray[Any]) -> str:
    if want.dtype.kind not in "fc" or want.size <= 6:
        return ""
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(want.astype(np.complex128) - got.astype(np.complex128))
    lost = int((np.isnan(got) & ~np.isnan(want)).sum())
    if lost:
        return f", {lost} of {want.size} are NaN"
    return f", differs by up to {float(np.nanmax(gap)):.3g}" if not np.isnan(gap).all() else ""


def _sequences(want: Encoded, got: Encoded, values: bool) -> Difference | None:
    left, right = want[-1], got[-1]
    if len(left) != len(right):
        hard = bool(tensors(want))
        return Difference("shape" if hard else "value", hard, describe(want), describe(got))
    found = _gravest(difference(one, other, values=values) for one, other in zip(left, right, strict=True))
    if found is None and want[0] == "n" and got[0] != "n":
        found = Difference("type", False, f"named tuple ({', '.join(want[2])})", "tuple" if got[0] == "t" else "list")
    return found


def _gravest(found: Iterable[Difference | None]) -> Difference | None:
    """The first hard difference, else the first that is more than a flag or a kind of tuple, else the first."""
    soft = None
    for each in found:
        if each and each.hard:
            return each
        if soft is None or (each and soft.aspect in LIGHT and each.aspect not in LIGHT):
            soft = each
    return soft


def _dicts(want: Encoded, got: Encoded, values: bool) -> Difference | None:
    left, right = dict(want[1]), dict(got[1])
    if list(left) != list(right):
        return Difference("value", False, f"keys {sorted(map(str, left))}", f"keys {sorted(map(str, right))}")
    return _gravest(difference(left[key], right[key], values=values) for key in left)


def _tensor_or_not(want: Encoded, got: Encoded, kind: str) -> Difference:
    several = kind in ("t", "n", "L") and bool(kind)
    hard = bool(several and tensors(want)) or (kind == "T" and tag(got) in ("t", "L", "n"))
    return Difference("shape" if several else "value", hard, describe(want), describe(got))


def _others(want: Encoded, got: Encoded, kind: str, other: str, values: bool) -> Difference | None:
    if kind in ("O", "F", "M", "+") and got is not None:
        return None  # an opaque object has no value to compare; what is done with it is compared
    if kind != other:
        return Difference("value", False, describe(want), describe(got))
    if kind == "K":
        return _states(want, got)
    if kind == "C":
        return None
    if kind:
        return None if want[1] == got[1] else Difference("value", False, describe(want), describe(got))
    if type(want) is not type(got):
        return Difference("value", False, describe(want), describe(got))
    if not values or _same_scalar(want, got):
        return None
    return Difference("value", False, describe(want), describe(got))


def _states(want: Encoded, got: Encoded) -> Difference | None:
    """Two layers by the shapes, then by the names, of their parameters and buffers."""
    if want[2] is None or got[2] is None:
        return None
    left, right = {s[0]: s for s in want[2]}, {s[0]: s for s in got[2]}
    for name in left.keys() & right.keys():
        if left[name][2] != right[name][2]:
            shapes = [f"{name} {list(side[name][2])}" for side in (left, right)]
            return Difference("shape", True, *shapes)
    if left.keys() == right.keys():
        return None
    lost, new = sorted(left.keys() - right.keys()), sorted(right.keys() - left.keys())
    return Difference(
        "state", False, f"state has {', '.join(lost) or 'no more'}", f"state has {', '.join(new) or 'none of these'}"
    )


def _same_scalar(want: Encoded, got: Encoded) -> bool:
    if isinstance(want, float) and isinstance(got, float):
        return close(np.asarray(want), np.asarray(got), "float32")
    if isinstance(want, complex):
        return close(np.asarray(want), np.asarray(got), "complex64")
    return bool(want == got)
