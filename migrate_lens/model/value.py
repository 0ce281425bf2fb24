"""Values as they travel on the wire, and whether two of them agree; standard library and numpy only.

Scalars, ``None``, ``str`` and ``bytes`` travel as themselves. All else is a plain tuple with a tag first:

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
``#``                 among inputs, a tensor: serial, version
``kw``                among inputs, a keyword argument: name, value
====================  ==================================================================================

``data`` is the raw bytes in C order (bfloat16 as float32), ``("S", stride, bytes)`` for a sample of a large tensor
(every stride-th element), or None where the values cannot be had (sparse, meta).

Who reads such a tuple sees it through ``typed`` (or one class's ``_make``), which gives its places names. Who writes
one writes the plain tuple, with a tag of those below: a named tuple does not travel.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Encoded = Any
Data = bytes | tuple[str, int, bytes] | None
Scalar = bool | int | float | complex | str | bytes | None

TENSOR: Final = "T"
ARRAY: Final = "N"
SIZE: Final = "Z"
DTYPE: Final = "D"
DEVICE: Final = "V"
LIST: Final = "L"
TUPLE: Final = "t"
SET: Final = "s"
NAMED_TUPLE: Final = "n"
DICT: Final = "d"
CLASS: Final = "C"
FUNCTION: Final = "F"
MODULE: Final = "M"
LAYER: Final = "K"
OBJECT: Final = "O"
SLICE: Final = "/"
LEFT_OUT: Final = "+"
REFERENCE: Final = "#"
KEYWORD: Final = "kw"
SAMPLE: Final = "S"

RAW = (bytes, memoryview)  # how values in whole are held: in memory, or as a view of the file that they are in
# Of a large tensor that need not be kept in whole, about so many elements are.
SAMPLE_SIZE = 1 << 12

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
SEQUENCES = frozenset((LIST, TUPLE, NAMED_TUPLE, SET))
LIGHT = ("gradient", "type")  # aspects that are no difference of what a program computed


class TensorValue(NamedTuple):
    """A tensor; ``dtype`` and ``device`` by torch's names."""

    tag: str
    dtype: str
    shape: tuple[int, ...]
    data: Data
    device: str
    requires_grad: bool


class ArrayValue(NamedTuple):
    """A numpy array; a scalar of numpy's has no extents."""

    tag: str
    dtype: str
    shape: tuple[int, ...]
    data: Data


class SizeValue(NamedTuple):
    """A size, as a tensor's ``shape`` is one."""

    tag: str
    extents: tuple[int, ...]


class DtypeValue(NamedTuple):
    """A dtype."""

    tag: str
    name: str


class DeviceValue(NamedTuple):
    """A device, without its number."""

    tag: str
    name: str


class ListValue(NamedTuple):
    """A list."""

    tag: str
    items: list[Encoded]


class TupleValue(NamedTuple):
    """A tuple without names."""

    tag: str
    items: list[Encoded]


class SetValue(NamedTuple):
    """The plain items of a set, sorted."""

    tag: str
    items: list[Encoded]


class NamedTupleValue(NamedTuple):
    """A named tuple, or a framework's own pair of results."""

    tag: str
    name: str
    fields: tuple[str, ...]
    items: list[Encoded]


class DictValue(NamedTuple):
    """A dict."""

    tag: str
    pairs: list[tuple[Encoded, Encoded]]


class ClassValue(NamedTuple):
    """A class; ``base`` is ``module``, ``exception``, ``tensor``, or empty for any other."""

    tag: str
    name: str
    base: str


class FunctionValue(NamedTuple):
    """A function."""

    tag: str
    name: str


class ModuleValue(NamedTuple):
    """A module."""

    tag: str
    name: str


class ParameterValue(NamedTuple):
    """A parameter or buffer of a layer, by its dotted name."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    data: Data

    @property
    def tensor(self) -> Encoded:
        """The tensor that it holds."""
        return (TENSOR, self.dtype, tuple(self.shape), self.data, "cpu", False)


class LayerValue(NamedTuple):
    """A layer; its state where it was recorded with it."""

    tag: str
    name: str
    state: list[tuple[str, str, tuple[int, ...], Data]] | None

    @property
    def parameters(self) -> list[ParameterValue]:
        """Its parameters and buffers; none where its state was not recorded."""
        return parameters(self.state)


class ObjectValue(NamedTuple):
    """Any other object, by the name of its class."""

    tag: str
    name: str


class SliceValue(NamedTuple):
    """A slice: start, stop and step."""

    tag: str
    bounds: list[Encoded]


class LeftOutValue(NamedTuple):
    """The end of a container that is too long or too deep; ``what`` it was that was left out."""

    tag: str
    what: str


class ReferenceValue(NamedTuple):
    """A tensor among the inputs of a call: which, and how often it had been written."""

    tag: str
    serial: int
    version: int


class KeywordValue(NamedTuple):
    """A keyword argument among the inputs of a call."""

    tag: str
    name: str
    value: Encoded


class SampleData(NamedTuple):
    """Every stride-th element of a large tensor."""

    tag: str
    stride: int
    raw: bytes


SequenceValue = ListValue | TupleValue | NamedTupleValue | SetValue
NameValue = DtypeValue | DeviceValue | ClassValue | FunctionValue | ModuleValue | LayerValue | ObjectValue
Typed = (
    TensorValue
    | ArrayValue
    | SizeValue
    | SequenceValue
    | DictValue
    | NameValue
    | SliceValue
    | LeftOutValue
    | ReferenceValue
    | KeywordValue
    | Scalar
)
_TYPES: dict[str, Any] = {
    TENSOR: TensorValue, ARRAY: ArrayValue, SIZE: SizeValue, DTYPE: DtypeValue, DEVICE: DeviceValue, LIST: ListValue,
    TUPLE: TupleValue, SET: SetValue, NAMED_TUPLE: NamedTupleValue, DICT: DictValue, CLASS: ClassValue,
    FUNCTION: FunctionValue, MODULE: ModuleValue, LAYER: LayerValue, OBJECT: ObjectValue, SLICE: SliceValue,
    LEFT_OUT: LeftOutValue, REFERENCE: ReferenceValue, KEYWORD: KeywordValue,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Difference:
    """One way in which two values differ.

    Attributes:
        aspect: ``shape``, ``dtype``, ``device``, ``value``, ``type``, ``state`` or ``gradient``.
        hard: whether it is a difference of tensors, which counts by itself; a soft one (a Python type, a flag, a
            string) counts only where the program's outcome depends on it.
        expected: torch's side, for a person.
        actual: the target's side, for a person.
    """

    aspect: str
    hard: bool
    expected: str
    actual: str


def tag(value: Encoded) -> str:
    """The tag of an encoded value, or ``""`` for what travels as itself."""
    return value[0] if isinstance(value, tuple) else ""


def typed(value: Encoded) -> Typed:
    """An encoded value with names for its places; what travels as itself is handed back.

    Raises:
        KeyError: the tag is none.
        TypeError: it has more or fewer places than its tag says.
    """
    if not isinstance(value, tuple):
        scalar: Scalar = value
        return scalar
    view: Typed = _TYPES[value[0]]._make(value)
    return view


def parameters(state: Iterable[Encoded] | None) -> list[ParameterValue]:
    """Parameters and buffers of a recorded state of a layer; none where there is no state."""
    return [ParameterValue._make(entry) for entry in state or ()]


def array(value: Encoded) -> NDArray[Any] | None:
    """The values of an encoded tensor or array (a flat sample for a sampled one), None where there are none."""
    _, dtype, shape, data, *_ = value
    if data is None:
        return None
    kind = np.dtype("float32" if dtype == "bfloat16" else dtype)
    if isinstance(data, tuple):
        return np.frombuffer(SampleData._make(data).raw, kind)
    return np.frombuffer(data, kind).reshape(shape)


def difference(want: Encoded, got: Encoded, *, values: bool = True) -> Difference | None:
    """Hold the target's value against torch's.

    Args:
        want: torch's value.
        got: the target's value.
        values: False compares types, shapes and dtypes only (random draws, uninitialised memory).

    Returns:
        The first difference, outermost first, or None.
    """
    match typed(want), typed(got):
        case TensorValue() as left, TensorValue() as right:
            return _tensors(left, right, values)
        case (
            ListValue() | TupleValue() | NamedTupleValue() | SetValue() as left,
            ListValue() | TupleValue() | NamedTupleValue() | SetValue() as right,
        ):
            return _sequences(left, right, values)
        case (TensorValue() as left, right) | (left, TensorValue() as right):
            return _tensor_or_not(left, right)
        case ArrayValue() as left, ArrayValue() as right:
            return _arrays(left, right, values)
        case DictValue() as left, DictValue() as right:
            return _dicts(left, right, values)
        case (ObjectValue() as left, ListValue() | TupleValue() as right) if is_iterator(left):
            return Difference("type", False, "an iterator", describe(got))
        case left, right:
            return _others(left, right, values)


def is_iterator(value: Encoded) -> bool:
    """Whether a value can be gone through once, from wherever it has come to: a list cannot be asked for its next."""
    return tag(value) == OBJECT and value[1] in ITERATORS


def describe(value: Encoded) -> str:
    """A short description of an encoded value for a person."""
    match typed(value):
        case TensorValue() as tensor:
            return f"tensor{list(tensor.shape)} {tensor.dtype}{_numbers(tensor)}"
        case ArrayValue() as numbers:
            return f"ndarray{list(numbers.shape)} {numbers.dtype}{_numbers(numbers)}"
        case ListValue() | TupleValue() | NamedTupleValue() | SetValue() as sequence:
            return _describe_sequence(sequence)
        case SizeValue(extents=extents):
            return f"Size{list(extents)}"
        case DictValue(pairs=pairs):
            return f"dict of {len(pairs)}"
        case DtypeValue(name=name) | DeviceValue(name=name):
            return str(name)
        case tuple() as other:
            return f"{_WORDS[other.tag]} {other[1]}"
        case scalar:
            text = repr(scalar)
            return text if len(text) <= 80 else text[:77] + "..."


_SEQUENCE_WORDS = {LIST: "list", TUPLE: "tuple", NAMED_TUPLE: "named tuple", SET: "set"}
_WORDS = {
    CLASS: "class", FUNCTION: "function", MODULE: "module", LAYER: "layer", OBJECT: "object", LEFT_OUT: "more",
    SLICE: "slice",
}  # fmt: skip


def _describe_sequence(sequence: SequenceValue) -> str:
    items = sequence.items
    shown = ", ".join(describe(item) for item in items[:3])
    rest = ", ..." if len(items) > 3 else ""
    return f"{_SEQUENCE_WORDS[sequence.tag]} of {len(items)}: {shown}{rest}"


def tensors(value: Encoded) -> list[Encoded]:
    """All encoded tensors in a value, in order."""
    kind = tag(value)
    if kind == TENSOR:
        return [value]
    if kind in SEQUENCES:
        return [tensor for item in value[-1] for tensor in tensors(item)]
    if kind == DICT:
        return [tensor for _, item in value[1] for tensor in tensors(item)]
    return []


def references(inputs: Iterable[Encoded], *, nested: bool = True) -> list[tuple[int, int]]:
    """Serials and versions of the tensors among recorded inputs, in order; ``nested`` looks into inner containers."""
    pairs: list[tuple[int, int]] = []
    for value in inputs:
        match typed(value):
            case ReferenceValue(serial=serial, version=version):
                pairs.append((serial, version))
            case KeywordValue(value=argument):
                pairs.extend(references([argument], nested=nested))
            case ListValue(items=items) | TupleValue(items=items):
                inner = items if nested else [item for item in items if tag(item) == REFERENCE]
                pairs.extend(references(inner))
            case _:
                continue
    return pairs


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


def _numbers(value: TensorValue | ArrayValue) -> str:
    numbers = array(value)
    if numbers is None or numbers.size == 0 or numbers.size > 6:
        return ""
    return " " + np.array2string(numbers, precision=4, separator=", ", threshold=6).replace("\n", "")


def _tensors(want: TensorValue, got: TensorValue, values: bool) -> Difference | None:
    known = _form(want, got)
    if known is not None:
        return known
    if want.device.split(":")[0] != got.device.split(":")[0]:
        return Difference("device", True, want.device, got.device)
    known = _numbers_differ(want, got) if values else None
    if known is None and want.requires_grad != got.requires_grad:
        flags = [f"requires_grad={side.requires_grad}" for side in (want, got)]
        return Difference("gradient", False, *flags)
    return known


def _arrays(want: ArrayValue, got: ArrayValue, values: bool) -> Difference | None:
    known = _form(want, got)
    if known is None and values:
        return _numbers_differ(want, got)
    return known


def _form(want: TensorValue | ArrayValue, got: TensorValue | ArrayValue) -> Difference | None:
    """Two tensors or arrays by shape and dtype."""
    if want.shape != got.shape:
        return Difference("shape", True, describe(want), describe(got))
    if want.dtype != got.dtype:
        return Difference("dtype", True, describe(want), describe(got))
    return None


def _numbers_differ(want: TensorValue | ArrayValue, got: TensorValue | ArrayValue) -> Difference | None:
    """Two tensors or arrays of one shape and dtype by their values."""
    left, right = _alike(want, got)
    if left is None or right is None or close(left, right, want.dtype):
        return None
    return Difference("value", True, describe(want), describe(got) + _largest(left, right))


def _alike(
    want: TensorValue | ArrayValue, got: TensorValue | ArrayValue
) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
    """The values of two tensors of one shape; where one side has a sample, the same elements of the other."""
    left, right = array(want), array(got)
    if left is None or right is None or left.shape == right.shape:
        return left, right
    if isinstance(want.data, tuple) and isinstance(got.data, RAW):
        return left, right.reshape(-1)[:: SampleData._make(want.data).stride]
    if isinstance(got.data, tuple) and isinstance(want.data, RAW):
        return left.reshape(-1)[:: SampleData._make(got.data).stride], right
    return None, None


def _largest(want: NDArray[Any], got: NDArray[Any]) -> str:
    if want.dtype.kind not in "fc" or want.size <= 6:
        return ""
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(want.astype(np.complex128) - got.astype(np.complex128))
    lost = int((np.isnan(got) & ~np.isnan(want)).sum())
    if lost:
        return f", {lost} of {want.size} are NaN"
    if np.isnan(gap).all():
        return ""
    return f", differs by up to {float(np.nanmax(gap)):.3g}"


def _sequences(want: SequenceValue, got: SequenceValue, values: bool) -> Difference | None:
    if len(want.items) != len(got.items):
        hard = bool(tensors(want))
        return Difference("shape" if hard else "value", hard, describe(want), describe(got))
    pairs = zip(want.items, got.items, strict=True)
    gravest = _gravest(difference(left, right, values=values) for left, right in pairs)
    if gravest is None and isinstance(want, NamedTupleValue) and not isinstance(got, NamedTupleValue):
        expected = f"named tuple ({', '.join(want.fields)})"
        return Difference("type", False, expected, "tuple" if isinstance(got, TupleValue) else "list")
    if gravest is None and isinstance(want, TupleValue) and isinstance(got, ListValue):
        return Difference("type", False, "tuple", "list")
    return gravest


def _gravest(differences: Iterable[Difference | None]) -> Difference | None:
    """The first hard difference, else the first that is more than a flag or a kind of tuple, else the first."""
    soft = None
    for one in differences:
        if one is None:
            continue
        if one.hard:
            return one
        if soft is None or (soft.aspect in LIGHT and one.aspect not in LIGHT):
            soft = one
    return soft


def _dicts(want: DictValue, got: DictValue, values: bool) -> Difference | None:
    left, right = dict(want.pairs), dict(got.pairs)
    if list(left) != list(right):
        return Difference("value", False, f"keys {sorted(map(str, left))}", f"keys {sorted(map(str, right))}")
    return _gravest(difference(left[key], right[key], values=values) for key in left)


_RESULTS = (TUPLE, LIST, NAMED_TUPLE)  # in which several tensors are returned


def _tensor_or_not(want: Typed, got: Typed) -> Difference:
    """A tensor on one side only."""
    several = tag(want) in _RESULTS
    lost = tag(want) == TENSOR and tag(got) in _RESULTS
    hard = lost or bool(several and tensors(want))
    return Difference("shape" if several else "value", hard, describe(want), describe(got))


def _others(want: Typed, got: Typed, values: bool) -> Difference | None:
    kind = tag(want)
    if kind in _OPAQUE and got is not None:
        return None  # an opaque object has no value to compare; what is done with it is compared
    if kind == tag(got):
        match want, got:
            case LayerValue(), LayerValue():
                return _states(want, got)
            case ClassValue(), _:
                return None
            case tuple(), tuple():
                same = want[1] == got[1]
            case _:
                same = type(want) is type(got) and (not values or _same_scalar(want, got))
        if same:
            return None
    return Difference("value", False, describe(want), describe(got))


def sampled(value: Encoded, most: int) -> Encoded:
    """A value with a sample in place of the data of each tensor, array and layer that has more than so many bytes."""
    match typed(value):
        case TensorValue() | ArrayValue() as numbers:
            return tuple(numbers._replace(data=_sample(numbers.data, most, math.prod(numbers.shape))))
        case ListValue() | TupleValue() | NamedTupleValue() as sequence:
            return tuple(sequence._replace(items=[sampled(item, most) for item in sequence.items]))
        case DictValue(pairs=pairs) as mapping:
            return tuple(mapping._replace(pairs=[(key, sampled(item, most)) for key, item in pairs]))
        case _:
            return value


def _sample(data: Encoded, most: int, size: int) -> Encoded:
    if not isinstance(data, RAW) or len(data) <= most or not size:
        return data
    stride = max(1, size // SAMPLE_SIZE)
    elements = np.frombuffer(data, f"V{len(data) // size}")
    return (SAMPLE, stride, elements[::stride].tobytes())


ITERATORS = frozenset(("builtins.generator", "generator"))
_OPAQUE = frozenset((OBJECT, FUNCTION, MODULE, LEFT_OUT))


def _states(want: LayerValue, got: LayerValue) -> Difference | None:
    """Two layers by the shapes, then by the names, of their parameters and buffers."""
    if want.state is None or got.state is None:
        return None
    left, right = ({p.name: p for p in side.parameters} for side in (want, got))
    for name in left.keys() & right.keys():
        if left[name].shape != right[name].shape:
            shapes = [f"{name} {list(side[name].shape)}" for side in (left, right)]
            return Difference("shape", True, *shapes)
    if left.keys() == right.keys():
        return None
    lost = ", ".join(sorted(left.keys() - right.keys())) or "no more"
    new = ", ".join(sorted(right.keys() - left.keys())) or "none of these"
    return Difference("state", False, f"state has {lost}", f"state has {new}")


def _same_scalar(want: Typed, got: Typed) -> bool:
    if isinstance(want, float) and isinstance(got, float):
        return close(np.asarray(want), np.asarray(got), "float32")
    if isinstance(want, complex):
        return close(np.asarray(want), np.asarray(got), "complex64")
    return bool(want == got)
