"""What torch gave and what Paddle gave in; plain assertions that hold under torch and fail under Paddle out.

The assertions use nothing but Python's own types, since comparing tensors may itself differ between the frameworks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from migrate_lens.model.value import (
    ARRAY,
    DEVICE,
    DICT,
    DTYPE,
    LAYER,
    LIST,
    NAMED_TUPLE,
    RTOL,
    SIZE,
    TENSOR,
    TUPLE,
    DeviceValue,
    DictValue,
    DtypeValue,
    Encoded,
    LayerValue,
    NamedTupleValue,
    SizeValue,
    array,
    close,
    difference,
    tag,
    typed,
)
from migrate_lens.programs.literals import Array, Element, Unwritable, literal, nested, number, scalar
from migrate_lens.programs.values import array_of, items_of, tensor_of

# Most elements of an expected tensor that are written out; of larger ones the element that differs most is named.
_SHOWN = 12
# Paddle's value where it has none.
NO_VALUE: Encoded = ("no value",)
_SEQUENCES = (LIST, TUPLE, NAMED_TUPLE)
Checks = Iterator[tuple[str, ...]]


def checks(expression: str, want: Encoded, got: Encoded = NO_VALUE) -> Checks:
    """Assertions about an expression that tell torch's value from Paddle's, the plainest first.

    Args:
        expression: what is looked at.
        want: torch's value.
        got: Paddle's value; left out where Paddle has none, and then the assertions only state what torch gives.
    """
    kind = tag(want)
    if kind == TENSOR:
        yield from _tensor(expression, want, got)
    elif kind in _SEQUENCES:
        yield from _sequence(expression, want, got)
    elif kind == ARRAY:
        yield (f"assert {expression}.tolist() == {_listed(want)}, {expression}",)
    elif kind == DICT:
        yield from _dict(expression, want, got)
    elif kind == LAYER:
        yield from _layer(expression, want)
    else:
        yield from _plain(expression, want, got)


# -- tensors -----------------------------------------------------------------------------------------------------------


def _tensor(e: str, want: Encoded, got: Encoded) -> Checks:
    if got is NO_VALUE:
        yield from _values(e, want, None)
    elif tag(got) == TENSOR:
        yield from _other_tensor(e, want, got)
    else:
        if tag(got) in _SEQUENCES:
            yield (f"assert not isinstance({e}, (list, tuple)), {e}",)
        yield (f"assert isinstance({e}, torch.Tensor), {e}",)
        yield (f"assert hasattr({e}, 'shape'), {e}",)


def _other_tensor(e: str, want: Encoded, got: Encoded) -> Checks:
    """By the first aspect in which two tensors differ."""
    torch, paddle = tensor_of(want), tensor_of(got)
    dtype, device = torch.dtype, torch.device
    if torch.shape != paddle.shape:
        yield (f"assert list({e}.shape) == {list(torch.shape)}, {e}.shape",)
    elif dtype != paddle.dtype:
        yield (f"assert {e}.dtype == torch.{dtype}, {e}.dtype",)
        yield (f"assert str({e}.dtype).endswith({dtype!r}), {e}.dtype",)
    elif device != paddle.device:
        yield (f"assert {e}.device.type == {device!r}, {e}.device",)
    elif torch.requires_grad != paddle.requires_grad and _same(want, got):
        yield (f"assert {e}.requires_grad is {torch.requires_grad}, {e}.requires_grad",)
    else:
        yield from _values(e, want, array(got))


def _same(want: Encoded, got: Encoded) -> bool:
    left, right = array(want), array(got)
    return left is None or right is None or close(left, right, tensor_of(want).dtype)


def _values(e: str, want: Encoded, other: Array | None) -> Checks:
    """By the values of a tensor, or by one of them where they are many."""
    values = array(want)
    tensor = tensor_of(want)
    dtype, shape = tensor.dtype, tensor.shape
    if values is None or values.size != math.prod(shape):
        yield (f"assert list({e}.shape) == {list(shape)}, {e}.shape",)
        return
    special = other is not None and values.size > 1 and not np.isfinite(values).all()
    if values.size > _SHOWN or special:
        yield from _one_of(e, values, dtype, other)
    elif dtype not in RTOL:
        yield (f"assert {e}.tolist() == {_listed(want)}, {e}",)
    else:
        yield from _floats(e, values, dtype)


def _listed(want: Encoded) -> str:
    values = array(want)
    if values is None:
        raise Unwritable("the expected values are not known")
    return nested(values, array_of(want).dtype)


def _floats(e: str, values: Array, dtype: str) -> Checks:
    rounded = np.round(values, 4)
    exact = bool((rounded == values).all()) if np.isfinite(values).all() else False
    if values.size == 1:
        item = f"{e}.item()"
        value = values.reshape(-1)[0]
        yield (_number_check(item, value, dtype),)
    elif exact:
        yield (f"assert {e}.tolist() == {nested(rounded, dtype)}, {e}",)
    near = f"all(abs(a - b) < {_tolerance(values, dtype)} for a, b in zip({e}.flatten().tolist(), expected))"
    yield (f"expected = {nested(rounded.reshape(-1), dtype)}", f"assert {near}, {e}")


def _tolerance(values: Array, dtype: str) -> str:
    finite = np.abs(values[np.isfinite(values)])
    scale = max(1.0, float(finite.max())) if finite.size else 1.0
    unit = 1e-2 if dtype in ("float16", "bfloat16") else 1e-3
    return f"{unit * 10 ** math.floor(math.log10(scale)):.0e}"


def _number_check(item: str, value: Element, dtype: str) -> str:
    if np.isnan(value):
        return f"assert {item} != {item}, {item}  # nan"
    if not np.isfinite(value) or float(round(complex(value).real, 4)) == value:
        return f"assert {item} == {number(value, dtype)}, {item}"
    return f"assert abs({item} - {number(np.round(value, 5), dtype)}) < {_tolerance(np.asarray(value), dtype)}, {item}"


def _one_of(e: str, values: Array, dtype: str, other: Array | None) -> Checks:
    """The element that differs most."""
    flat = values.reshape(-1)
    index = 0
    if other is not None and other.shape == values.shape:
        index = _worst(flat, other.reshape(-1))
    item = f"{e}.flatten().tolist()[{index}]"
    if dtype in RTOL:
        yield (_number_check(item, flat[index], dtype),)
    else:
        yield (f"assert {item} == {number(flat[index], dtype)}, {item}",)


def _worst(want: Array, got: Array) -> int:
    wide, other = want.astype(np.complex128), got.astype(np.complex128)
    special = np.isfinite(wide) != np.isfinite(other)
    if special.any():
        return int(special.argmax())
    return int(np.nan_to_num(np.abs(wide - other)).argmax())


# -- containers --------------------------------------------------------------------------------------------------------


def _sequence(e: str, want: Encoded, got: Encoded) -> Checks:
    items = items_of(want)
    if got is NO_VALUE:
        yield from _stated(e, items)
    elif tag(got) not in _SEQUENCES:
        yield (f"assert isinstance({e}, (list, tuple)), type({e})",)
    elif len(items_of(got)) != len(items):
        yield (f"assert len({e}) == {len(items)}, {e}",)
    else:
        for index, (one, other) in enumerate(zip(items, items_of(got), strict=True)):
            if _differ(one, other):
                yield from checks(f"{e}[{index}]", one, other)
        yield from _sequence_type(e, want, got)


def _differ(want: Encoded, got: Encoded) -> bool:
    return difference(want, got) is not None or (not tag(want) and type(want) is not type(got))


def _sequence_type(e: str, want: Encoded, got: Encoded) -> Checks:
    kind, other = tag(want), tag(got)
    if kind == NAMED_TUPLE and other != NAMED_TUPLE:
        first = NamedTupleValue._make(want).fields[0]
        yield (f"assert hasattr({e}, {first!r}), type({e})",)
    if kind != other:
        yield (f"assert type({e}) is {'list' if kind == LIST else 'tuple'}, type({e})",)


def _stated(e: str, items: list[Encoded]) -> Checks:
    if items and all(not tag(item) for item in items):
        yield (f"assert list({e}) == [{', '.join(scalar(item) for item in items)}], {e}",)
    elif items and tag(items[0]) == TENSOR:
        yield from checks(f"{e}[0]", items[0])
    else:
        yield (f"assert len({e}) == {len(items)}, {e}",)


def _dict(e: str, want: Encoded, got: Encoded) -> Checks:
    pairs = DictValue._make(want).pairs
    others = DictValue._make(got).pairs if tag(got) == DICT else []
    keys = [key for key, _ in pairs]
    if tag(got) != DICT or [key for key, _ in others] != keys:
        yield (f"assert list({e}) == [{', '.join(map(scalar, keys))}], list({e})",)
        return
    for (key, one), (_, other) in zip(pairs, others, strict=True):
        if difference(one, other) is not None:
            yield from checks(f"{e}[{scalar(key)}]", one, other)


def _layer(e: str, want: Encoded) -> Checks:
    layer = LayerValue._make(want)
    if layer.state is None:
        return
    names = sorted(parameter.name for parameter in layer.parameters)
    yield (f"assert sorted({e}.state_dict()) == {names}, sorted({e}.state_dict())",)
    for parameter in layer.parameters:
        yield (f"assert list({e}.state_dict()[{parameter.name!r}].shape) == {list(parameter.shape)}",)


# -- small values ------------------------------------------------------------------------------------------------------


def _plain(e: str, want: Encoded, got: Encoded) -> Checks:
    if tag(want) in (SIZE, DTYPE, DEVICE):
        yield from _torch_value(e, want)
    elif want is None or isinstance(want, bool):
        yield (f"assert {e} is {want}, {e}",)
    elif isinstance(want, float):
        yield (_number_check(e, np.float64(want), "float64"),)
        yield (f"assert isinstance({e}, float), type({e})",)
    elif isinstance(want, int | str | bytes | complex):
        yield (f"assert {e} == {scalar(want)}, {e}",)
        yield (f"assert type({e}) is {type(want).__name__}, type({e})",)
    elif got is None:
        yield (f"assert {e} is not None",)


def _torch_value(e: str, want: Encoded) -> Checks:
    """A size, a dtype or a device."""
    match typed(want):
        case SizeValue(extents=extents):
            yield (f"assert tuple({e}) == {literal((TUPLE, list(extents)))}, {e}",)
            yield (f"assert isinstance({e}, tuple), type({e})",)
        case DtypeValue(name=name):
            yield (f"assert {e} == torch.{name}, {e}",)
            yield (f'assert str({e}) == "torch.{name}", str({e})',)
        case DeviceValue(name=name):
            yield (f'assert {e}.type == "{name}", {e}',)
            yield (f'assert str({e}) == "{name}", {e}',)
        case _:
            return
