"""What torch gave and what Paddle gave in; plain assertions that hold under torch and fail under Paddle out.

The assertions use nothing but Python's own types, since comparing tensors may itself differ between the frameworks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from migrate_lens.model.value import RTOL, Encoded, array, close, describe, difference, tag
from migrate_lens.programs.literals import Unwritable, literal, nested, number, scalar

# Most elements of an expected tensor that are written out; of larger ones the element that differs most is named.
_SHOWN = 12
_MISSING = object()


def checks(expression: str, want: Encoded, got: Any = _MISSING) -> Iterator[tuple[str, ...]]:
    """Assertions about an expression that tell torch's value from Paddle's, the plainest first.

    Args:
        expression: what is looked at.
        want: torch's value.
        got: Paddle's value; left out where Paddle has none, and then the assertions only state what torch gives.
    """
    kind = tag(want)
    if kind == "T":
        yield from _tensor(expression, want, got)
    elif kind in ("L", "t", "n") and kind:
        yield from _sequence(expression, want, got)
    elif kind == "N":
        yield (f"assert {expression}.tolist() == {_listed(want)}, {expression}",)
    elif kind == "d":
        yield from _dict(expression, want, got)
    elif kind == "K":
        yield from _layer(expression, want)
    else:
        yield from _plain(expression, want, got)


def _tensor(e: str, want: Encoded, got: Any) -> Iterator[tuple[str, ...]]:
    other = tag(got) if got is not _MISSING else "T"
    if other in ("L", "t", "n"):
        yield (f"assert not isinstance({e}, (list, tuple)), {e}",)
    if other != "T":
        yield (f"assert isinstance({e}, torch.Tensor), {e}",)
        yield (f"assert hasattr({e}, 'shape'), {e}",)
        return
    if got is not _MISSING and want[2] != got[2]:
        yield (f"assert list({e}.shape) == {list(want[2])}, {e}.shape",)
    elif got is not _MISSING and want[1] != got[1]:
        yield (f"assert {e}.dtype == torch.{want[1]}, {e}.dtype",)
        yield (f"assert str({e}.dtype).endswith({want[1]!r}), {e}.dtype",)
    elif got is not _MISSING and want[4] != got[4]:
        yield (f"assert {e}.device.type == {want[4]!r}, {e}.device",)
    elif got is not _MISSING and want[5] != got[5] and _same(want, got):
        yield (f"assert {e}.requires_grad is {want[5]}, {e}.requires_grad",)
    else:
        yield from _values(e, want, got)


def _same(want: Encoded, got: Encoded) -> bool:
    left, right = array(want), array(got)
    return left is None or right is None or close(left, right, want[1])


def _values(e: str, want: Encoded, got: Any) -> Iterator[tuple[str, ...]]:
    values = array(want)
    other = array(got) if got is not _MISSING else None
    if values is None or values.size != math.prod(want[2]):
        yield (f"assert list({e}.shape) == {list(want[2])}, {e}.shape",)
        return
    if values.size > _SHOWN or (other is not None and values.size > 1 and not np.isfinite(values).all()):
        yield from _one_of(e, want, other)
        return
    if want[1] not in RTOL:
        yield (f"assert {e}.tolist() == {_listed(want)}, {e}",)
        return
    yield from _floats(e, values, want[1])


def _listed(want: Encoded) -> str:
    values = array(want)
    if values is None:
        raise Unwritable("the expected values are not known")
    return nested(values, want[1])


def _floats(e: str, values: Any, dtype: str) -> Iterator[tuple[str, ...]]:
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


def _tolerance(values: Any, dtype: str) -> str:
    finite = np.abs(values[np.isfinite(values)])
    scale = max(1.0, float(finite.max())) if finite.size else 1.0
    unit = 1e-2 if dtype in ("float16", "bfloat16") else 1e-3
    return f"{unit * 10 ** math.floor(math.log10(scale)):.0e}"


def _number_check(item: str, value: Any, dtype: str) -> str:
    if np.isnan(value):
        return f"assert {item} != {item}, {item}  # nan"
    if not np.isfinite(value) or float(round(complex(value).real, 4)) == value:
        return f"assert {item} == {number(value, dtype)}, {item}"
    return f"assert abs({item} - {number(np.round(value, 5), dtype)}) < {_tolerance(np.asarray(value), dtype)}, {item}"


def _one_of(e: str, want: Encoded, other: Any) -> Iterator[tuple[str, ...]]:
    """The element that differs most."""
    values = array(want)
    assert values is not None
    flat = values.reshape(-1)
    index = 0
    if other is not None and other.shape == values.shape:
        index = _worst(flat, other.reshape(-1))
    item = f"{e}.flatten().tolist()[{index}]"
    if want[1] in RTOL:
        yield (_number_check(item, flat[index], want[1]),)
    else:
        yield (f"assert {item} == {number(flat[index], want[1])}, {item}",)


def _worst(want: Any, got: Any) -> int:
    wide, other = want.astype(np.complex128), got.astype(np.complex128)
    special = np.isfinite(wide) != np.isfinite(other)
    if special.any():
        return int(special.argmax())
    return int(np.nan_to_num(np.abs(wide - other)).argmax())


def _sequence(e: str, want: Encoded, got: Any) -> Iterator[tuple[str, ...]]:
    items = want[-1]
    other = got[-1] if got is not _MISSING and tag(got) in ("L", "t", "n") else None
    if got is _MISSING:
        yield from _stated(e, items)
        return
    if other is None:
        yield (f"assert isinstance({e}, (list, tuple)), type({e})",)
        return
    if len(other) != len(items):
        yield (f"assert len({e}) == {len(items)}, {e}",)
        return
    for index, (one, two) in enumerate(zip(items, other, strict=True)):
        if difference(one, two) is not None or (not tag(one) and type(one) is not type(two)):
            yield from checks(f"{e}[{index}]", one, two)
    if tag(want) == "n" and tag(got) != "n":
        yield (f"assert hasattr({e}, {want[2][0]!r}), type({e})",)
    if tag(want) != tag(got):
        yield (f"assert type({e}) is {'list' if tag(want) == 'L' else 'tuple'}, type({e})",)


def _stated(e: str, items: list[Encoded]) -> Iterator[tuple[str, ...]]:
    if items and all(not tag(i) for i in items):
        yield (f"assert list({e}) == [{', '.join(scalar(i) for i in items)}], {e}",)
    elif items and tag(items[0]) == "T":
        yield from checks(f"{e}[0]", items[0])
    else:
        yield (f"assert len({e}) == {len(items)}, {e}",)


def _dict(e: str, want: Encoded, got: Any) -> Iterator[tuple[str, ...]]:
    keys = [k for k, _ in want[1]]
    if got is _MISSING or tag(got) != "d" or [k for k, _ in got[1]] != keys:
        yield (f"assert list({e}) == [{', '.join(scalar(k) for k in keys)}], list({e})",)
        return
    left, right = dict(want[1]), dict(got[1])
    for key in keys:
        if difference(left[key], right[key]) is not None:
            yield from checks(f"{e}[{scalar(key)}]", left[key], right[key])


def _layer(e: str, want: Encoded) -> Iterator[tuple[str, ...]]:
    if want[2] is None:
        return
    yield (f"assert sorted({e}.state_dict()) == {sorted(s[0] for s in want[2])}, sorted({e}.state_dict())",)
    for name, _, shape, _ in want[2]:
        yield (f"assert list({e}.state_dict()[{name!r}].shape) == {list(shape)}",)


def _plain(e: str, want: Encoded, got: Any) -> Iterator[tuple[str, ...]]:
    kind = tag(want)
    if kind == "Z":
        yield (f"assert tuple({e}) == {literal(('t', list(want[1])))}, {e}",)
        yield (f"assert isinstance({e}, tuple), type({e})",)
    elif kind == "D":
        yield (f"assert {e} == torch.{want[1]}, {e}",)
        yield (f'assert str({e}) == "torch.{want[1]}", str({e})',)
    elif kind == "V":
        yield (f'assert {e}.type == "{want[1]}", {e}',)
        yield (f'assert str({e}) == "{want[1]}", {e}',)
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


def said(value: Encoded) -> str:
    """A value for a comment or a report."""
    return describe(value)
