"""Literals: what is written builds the very value again."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest
from fake_lab import tensor
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from migrate_lens.programs.literals import Unwritable, literal

_DTYPES = ("float32", "float64", "int64", "int32", "uint8", "bool")


def _namespace() -> dict[str, Any]:
    """A torch that is numpy, for what literals use of it."""

    def made(values: Any, dtype: str | None = None, requires_grad: bool = False) -> Any:
        array = np.asarray(values)
        plain = {"f": "float32", "i": "int64"}.get(array.dtype.kind)
        return array.astype(dtype or plain or array.dtype)

    def shaped(function: Any) -> Any:
        return lambda *shape, dtype="float32", requires_grad=False: function(shape if shape != ((),) else (), dtype)

    def arange(n: Any, dtype: str | None = None, requires_grad: bool = False) -> Any:
        return np.arange(n, dtype=dtype or ("float32" if isinstance(n, float) else "int64"))

    class Reshaped(np.ndarray[Any, Any]):
        pass

    names = {name: name for name in _DTYPES}
    torch = types.SimpleNamespace(tensor=made, ones=shaped(np.ones), zeros=shaped(np.zeros), arange=arange, **names)
    return {"torch": torch, "np": np}


@given(st.sampled_from(_DTYPES).flatmap(lambda d: hnp.arrays(d, hnp.array_shapes(min_dims=0, max_dims=3, max_side=3))))
def test_a_tensor_literal_builds_the_same_tensor(values: Any) -> None:
    built = eval(literal(tensor(values, str(values.dtype))), _namespace())
    assert built.dtype == values.dtype
    assert built.shape == values.shape
    assert np.array_equal(built, values, equal_nan=values.dtype.kind == "f")


_PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)


@given(st.recursive(
    _PLAIN | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3), max_leaves=8,
))  # fmt: skip
def test_plain_values_come_back(value: Any) -> None:
    def encoded(v: Any) -> Any:
        return ("L", [encoded(x) for x in v]) if isinstance(v, list) else v

    assert eval(literal(encoded(value))) == value


def test_a_long_range_is_written_as_one() -> None:
    assert literal(tensor(np.arange(600).reshape(20, 30))) == "torch.arange(600.).reshape(20, 30)"


def test_many_irregular_values_are_refused() -> None:
    with pytest.raises(Unwritable, match="100 irregular values"):
        literal(tensor(np.sin(np.arange(100))))


def test_a_gradient_is_asked_for() -> None:
    assert literal(tensor([2.5, 1.0, 3.0], grad=True)) == "torch.tensor([2.5, 1.0, 3.0], requires_grad=True)"


@pytest.mark.parametrize(("value", "text"), [
    (("D", "int64"), "torch.int64"),
    (("V", "cpu"), 'torch.device("cpu")'),
    (("t", [1]), "(1,)"),
    (("C", "torch.nn.Linear", "module"), "torch.nn.Linear"),
    (float("inf"), 'float("inf")'),
])  # fmt: skip
def test_small_types(value: Any, text: str) -> None:
    assert literal(value) == text


def test_what_has_no_literal_says_so() -> None:
    with pytest.raises(Unwritable, match=r"mypackage\.Thing"):
        literal(("O", "mypackage.Thing"))
