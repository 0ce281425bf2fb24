"""Pairs of encoded values, in; whether they agree, and how they differ, out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate_lens.model.value import (
    RTOL,
    SAMPLE_SIZE,
    Difference,
    Encoded,
    LayerValue,
    TensorValue,
    close,
    describe,
    difference,
    sampled,
    tensors,
    typed,
)

ANY_FLOAT = st.floats(width=32, allow_nan=True, allow_infinity=True)


def tensor(values: Any, dtype: str = "float32", device: str = "cpu", grad: bool = False) -> Encoded:
    data = np.asarray(values, np.dtype("float32" if dtype == "bfloat16" else dtype))
    return ("T", dtype, data.shape, data.tobytes(), device, grad)


def encodings(leaf: st.SearchStrategy[Encoded]) -> st.SearchStrategy[Encoded]:
    def larger(inner: st.SearchStrategy[Encoded]) -> st.SearchStrategy[Encoded]:
        items = st.lists(inner, max_size=3)
        return (
            items.map(lambda i: ("L", i)) | items.map(lambda i: ("t", i))
            | items.map(lambda i: ("n", "R", tuple("abc"), i))
            | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3).map(lambda d: ("d", list(d.items())))
        )  # fmt: skip

    return st.recursive(leaf, larger, max_leaves=6)


SCALARS = st.none() | st.booleans() | st.integers() | ANY_FLOAT | st.text(max_size=4) | st.binary(max_size=4)
TENSORS = st.builds(
    tensor,
    st.lists(ANY_FLOAT, max_size=8),
    st.sampled_from(["float32", "float64", "bfloat16", "float16"]),
    grad=st.booleans(),
)
OTHERS = st.sampled_from([
    ("Z", (2, 3)), ("D", "float32"), ("V", "cpu"), ("C", "torch.Size", ""), ("F", "f"), ("M", "torch"), ("O", "x"),
    ("/", [1, None, None]), ("N", "int64", (2,), np.arange(2).tobytes()),
    ("K", "torch.nn.Linear", [("w", "float32", (2,), None)]),
    ("T", "float32", (3,), None, "cpu", False), ("s", [1, 2]), ("+", "items"),
])  # fmt: skip


@pytest.mark.filterwarnings("ignore:overflow encountered in cast:RuntimeWarning")
@given(encodings(SCALARS | TENSORS | OTHERS))
def test_a_value_agrees_with_itself(value: Encoded) -> None:
    assert difference(value, value) is None
    assert describe(value)


@pytest.mark.filterwarnings("ignore:overflow encountered in cast:RuntimeWarning")
@given(encodings(SCALARS | TENSORS | OTHERS), encodings(SCALARS | TENSORS | OTHERS))
def test_any_two_values_can_be_held_against_each_other(want: Encoded, got: Encoded) -> None:
    found = difference(want, got)
    assert found is None or (found.expected and found.actual)
    assert difference(want, got, values=False) is None or found is not None


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=8), st.data())
def test_one_changed_number_is_a_difference_and_noise_is_none(numbers: list[float], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(numbers) - 1))
    scale = max(1.0, *(abs(n) for n in numbers))
    changed, noisy = list(numbers), list(numbers)
    changed[index] += scale * 1e-3
    noisy[index] *= 1 + 1e-7
    assert difference(tensor(numbers), tensor(changed)) == Difference(
        "value", True, describe(tensor(numbers)), describe(tensor(changed)) + _note(numbers, changed)
    )
    assert difference(tensor(numbers), tensor(noisy)) is None


def _note(numbers: list[float], changed: list[float]) -> str:
    if len(numbers) <= 6:
        return ""
    gap = np.abs(np.asarray(numbers, "float32").astype("f8") - np.asarray(changed, "float32").astype("f8"))
    return f", differs by up to {float(gap.max()):.3g}"


@pytest.mark.parametrize(
    ("want", "got", "aspect", "hard"),
    [
        (tensor([1.0]), tensor([1.0, 2.0]), "shape", True),
        (tensor([1.0]), tensor([[1.0]]), "shape", True),
        (tensor([1.0]), tensor(1.0), "shape", True),
        (tensor([1.0]), tensor([1.0], "float64"), "dtype", True),
        (tensor([1], "int64"), tensor([1], "int32"), "dtype", True),
        (tensor([1.0]), tensor([1.0], device="cuda"), "device", True),
        (tensor([1], "int64"), tensor([2], "int64"), "value", True),
        (tensor([True], "bool"), tensor([False], "bool"), "value", True),
        (tensor([math.nan]), tensor([1.0]), "value", True),
        (tensor([math.inf]), tensor([-math.inf]), "value", True),
        (tensor([1.0], grad=True), tensor([1.0]), "gradient", False),
        (tensor(2, "int64"), 2, "value", False),
        (2, tensor(2, "int64"), "value", False),
        (("t", [tensor([1.0])]), tensor([1.0]), "shape", True),
        (tensor([1.0]), ("t", [tensor([1.0]), tensor([1.0])]), "value", True),
        (("t", [tensor([1.0])]), ("t", []), "shape", True),
        (("t", [1]), ("t", []), "value", False),
        (("n", "R", ("v", "i"), [1, 2]), ("t", [1, 2]), "type", False),
        (("N", "int64", (1,), b"\1" + b"\0" * 7), ("N", "int64", (1,), b"\2" + b"\0" * 7), "value", True),
        (("Z", (1, 2)), ("Z", (1, 3)), "value", False),
        (("Z", (1, 2)), ("L", [1, 2]), "value", False),
        (("D", "int64"), ("D", "int32"), "value", False),
        (("d", [("a", 1)]), ("d", [("b", 1)]), "value", False),
        (1, True, "value", False),
        (1, 1.0, "value", False),
        ("a", "b", "value", False),
        (None, 1, "value", False),
        (("O", "x"), None, "value", False),
        (("K", "L", [("w", "f", (2, 3), None)]), ("K", "L", [("w", "f", (3, 2), None)]), "shape", True),
        (("K", "L", [("w", "f", (2,), None)]), ("K", "L", [("v", "f", (2,), None)]), "state", False),
    ],
)
def test_how_two_values_differ(want: Encoded, got: Encoded, aspect: str, hard: bool) -> None:
    found = difference(want, got)
    assert found is not None
    assert (found.aspect, found.hard) == (aspect, hard)


@pytest.mark.parametrize(
    ("want", "got"),
    [
        (tensor([math.nan, 1.0]), tensor([math.nan, 1.0])),
        (tensor([math.inf, -math.inf]), tensor([math.inf, -math.inf])),
        (tensor([]), tensor([])),
        (tensor([1.0]), tensor([1.0 + 1e-7])),
        (tensor([1e10, 0.0]), tensor([1e10, 1.0])),
        (("T", "float32", (2,), None, "cpu", False), tensor([1.0, 2.0])),
        (("O", "x"), ("O", "y")),
        (("L", [1, tensor([1.0])]), ("t", [1, tensor([1.0])])),
        (1.0, 1.0 + 1e-9),
        (1j, 1j + 1e-9),
        (math.nan, math.nan),
    ],
)
def test_what_is_no_difference(want: Encoded, got: Encoded) -> None:
    assert difference(want, got) is None


def test_the_sensitivity_that_is_promised() -> None:
    x = np.linspace(-3, 3, 64)
    erf = np.asarray([v * 0.5 * (1 + math.erf(v / math.sqrt(2))) for v in x])
    tanh = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    assert difference(tensor(erf), tensor(tanh)) is not None
    assert difference(tensor(erf), tensor(erf * (1 + 1.8e-7))) is None


def test_values_that_were_drawn_are_compared_by_shape_and_dtype_only() -> None:
    assert difference(tensor([1.0]), tensor([2.0]), values=False) is None
    assert difference(("L", [1.0, tensor([1.0])]), ("L", [2.0, tensor([2.0])]), values=False) is None
    assert difference(tensor([1.0]), tensor([2.0, 3.0]), values=False) is not None


FLAG = tensor([1.0], grad=True), tensor([1.0])
HARD = tensor([1.0]), tensor([2.0])
SOFT = 1, 2


@pytest.mark.parametrize(
    ("pairs", "aspect"), [([FLAG, HARD], "value"), ([FLAG, SOFT], "value"), ([FLAG, FLAG], "gradient")]
)
@pytest.mark.parametrize("form", ["L", "t", "d", "nested"])
def test_a_flag_does_not_hide_what_comes_after_it(form: str, pairs: list[Any], aspect: str) -> None:
    sides = [[pair[i] for pair in pairs] for i in (0, 1)]
    want, got = (
        ("d", list(zip("ab", s, strict=True))) if form == "d" else ("L" if form == "nested" else form, s) for s in sides
    )
    if form == "nested":
        want, got = ("d", [("x", want)]), ("d", [("x", got)])
    found = difference(want, got)
    assert found is not None
    assert found.aspect == aspect


def test_numbers_that_are_infinite_on_both_sides_do_not_warn() -> None:
    want, got = [math.inf, -math.inf] * 4, [math.inf, -math.inf] * 3 + [math.inf, 1.0]
    found = difference(tensor(want), tensor(got))
    assert found is not None
    assert found.aspect == "value"


def test_a_sample_of_a_large_tensor_is_compared() -> None:
    data = np.arange(4, dtype="float32")
    want = ("T", "float32", (400,), ("S", 100, data.tobytes()), "cpu", False)
    got = ("T", "float32", (400,), ("S", 100, (data + 1).tobytes()), "cpu", False)
    assert difference(want, want) is None
    found = difference(want, got)
    assert found is not None
    assert found.aspect == "value"


@pytest.mark.parametrize("dtype", sorted(RTOL))
def test_tolerance_follows_the_dtype(dtype: str) -> None:
    kind = np.dtype("float32" if dtype == "bfloat16" else dtype)
    one = np.ones(3, kind)
    step = RTOL[dtype]
    assert close(one, (one * (1 + step / 2)).astype(kind), dtype)
    assert not close(one, (one * (1 + step * 10)).astype(kind), dtype)


def test_all_tensors_of_a_value_in_order() -> None:
    a, b, c = tensor([1.0]), tensor([2.0]), tensor([3.0])
    value = ("L", [a, 1, ("t", [b]), ("d", [("x", c)])])
    assert tensors(value) == [a, b, c]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (tensor([1.0, 2.5]), "tensor[2] float32 [1. , 2.5]"),
        (tensor(np.zeros(9)), "tensor[9] float32"),
        (("L", [1, 2, 3, 4]), "list of 4: 1, 2, 3, ..."),
        (("n", "R", ("a",), [1]), "named tuple of 1: 1"),
        (("Z", (1, 2)), "Size[1, 2]"),
        (("d", [("a", 1)]), "dict of 1"),
        (("D", "int64"), "int64"),
        (("C", "torch.Size", ""), "class torch.Size"),
        ("x" * 100, "'" + "x" * 76 + "..."),
        (None, "None"),
    ],
)
def test_what_a_person_reads(value: Encoded, text: str) -> None:
    assert describe(value) == text


def test_every_tag_has_a_type_that_gives_its_places_names() -> None:
    tensor_value = typed(tensor([1.0, 2.0], grad=True))
    assert isinstance(tensor_value, TensorValue)
    assert (tensor_value.dtype, tensor_value.shape, tensor_value.device) == ("float32", (2,), "cpu")
    assert tensor_value.requires_grad
    layer = typed(("K", "torch.nn.Linear", [("w", "float32", (2,), None)]))
    assert isinstance(layer, LayerValue)
    assert [p.name for p in layer.parameters] == ["w"]
    assert layer.parameters[0].tensor == ("T", "float32", (2,), None, "cpu", False)
    assert typed(("kw", "dim", 1)) == ("kw", "dim", 1)
    assert typed("text") == "text"


@pytest.mark.filterwarnings("ignore:overflow encountered in cast:RuntimeWarning")
@given(encodings(SCALARS | TENSORS | OTHERS))
def test_what_is_read_by_name_is_what_travelled(value: Encoded) -> None:
    assert typed(value) is value or typed(value) == value


@pytest.mark.parametrize("value", [("?", 1), ("T", "float32")])
def test_what_is_no_value_is_refused(value: Encoded) -> None:
    with pytest.raises((KeyError, TypeError)):
        typed(value)


@given(st.integers(0, 40_000), st.integers(0, 40_000))
def test_a_sample_says_where_a_large_tensor_differs_if_it_has_that_element(size: int, at: int) -> None:
    values = np.arange(size, dtype="float32")
    brief = sampled(tensor(values), most=1 << 12)
    other = values.copy()
    other[at : at + 1] += 1e6
    assert difference(tensor(values), brief) is None
    stride = max(1, size // SAMPLE_SIZE) if size * 4 > 1 << 12 else 1
    seen = at < size and at % stride == 0
    assert (difference(tensor(other), brief) is not None) == seen


def test_samples_are_taken_in_containers_and_of_what_is_large_alone() -> None:
    large, small = tensor(np.zeros(5000)), tensor(np.zeros(5))
    brief = sampled(("L", [large, ("d", [("k", large)]), small, 3]), most=1 << 12)
    assert [len(data[2]) for data in (brief[1][0][3], brief[1][1][1][0][1][3])] == [20_000, 20_000]
    assert brief[1][2:] == [small, 3]


def test_a_list_is_no_iterator_and_an_iterator_of_the_target_s_is_not_asked() -> None:
    iterator = ("O", "builtins.generator")
    assert difference(iterator, ("L", [])) == Difference("type", False, "an iterator", "list of 0: ")
    assert difference(iterator, iterator) is None
    assert difference(("O", "module.Thing"), ("L", [])) is None
