"""Reduction: the failure stays the same, and nothing grows."""

from __future__ import annotations

import ast

import numpy as np
from fake_lab import tensor
from hypothesis import given
from hypothesis import strategies as st

from migrate_lens.programs.drafts import Argument, Draft, Step, StepForm, write
from migrate_lens.remedies.reproduce.reduce import DRAFT_PASSES, PROGRAM_PASSES, Budget, plainer_constants, reduce


def _draft(shape: tuple[int, ...], keywords: list[str]) -> Draft:
    values = np.arange(int(np.prod(shape)), dtype="float32").reshape(shape) + 0.5
    given_ = (Argument("", tensor(values)), *(Argument(k, 3) for k in keywords))
    return Draft(("import torch",), (Step(StepForm.CALL, "torch.f", "out", given_),))


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple), st.sets(st.sampled_from("abcd")))
def test_a_reduced_draft_passes_the_test_and_is_no_longer(shape: tuple[int, ...], keywords: set[str]) -> None:
    first = _draft(shape, sorted(keywords))
    needed = sorted(keywords)[:1]

    def same(draft: Draft) -> bool:
        present = [a.keyword for _, _, a in draft.inputs()]
        return bool(present) and present[0] == "" and all(k in present for k in needed)

    small = reduce(first, DRAFT_PASSES, same, Budget(500, 60))
    assert same(small)
    assert len(write(small).measured) <= len(write(first).measured)
    assert [a.keyword for _, _, a in small.inputs()] == ["", *needed]
    size = next(a.value[2] for _, _, a in small.inputs())
    assert int(np.prod(size)) == 1


@given(st.permutations(["a = 1", "b = 2", "c = [a0 for a0 in (1, 2)]", "def f():\n    x = 1\n    return x", "d = 4"]))
def test_a_reduced_program_keeps_what_the_failure_needs(statements: list[str]) -> None:
    source = "\n".join([*statements, "result = f()"]) + "\n"

    def same(program: str) -> bool:
        space: dict[str, object] = {}
        try:
            exec(program, space)
        except Exception:  # noqa: BLE001 - a program that was cut may raise anything, and then it is not the same
            return False
        return space.get("result") == 1

    small = reduce(source, PROGRAM_PASSES, same, Budget(300, 60))
    assert same(small)
    assert len(small) <= len(source)
    assert len(ast.parse(small).body) == 2


def test_a_budget_ends_a_reduction() -> None:
    budget = Budget(3, 60)
    reduce(_draft((4, 4, 4), ["a", "b"]), DRAFT_PASSES, lambda d: True, budget)
    assert budget.used == 3


def test_an_extent_shrinks_everywhere_at_once() -> None:
    """Two inputs that must agree, and a number that must agree with them."""
    inputs = (Argument("", tensor(np.ones((2, 6)))), Argument("", tensor(np.zeros((6, 3)))), Argument("n", 6))
    first = Draft((), (Step(StepForm.CALL, "torch.f", "out", inputs),))

    def same(draft: Draft) -> bool:
        values = [a.value for _, _, a in draft.inputs()]
        return len(values) == 3 and bool(values[0][2][1] == values[1][2][0] == values[2])

    small = reduce(first, DRAFT_PASSES, same, Budget(500, 60))
    assert [a.value[2] for _, _, a in small.inputs() if isinstance(a.value, tuple)] == [(1, 1), (1, 1)]


def test_equal_inputs_stay_two_variables() -> None:
    one, other = ((*tensor([0.0]), serial) for serial in (1, 2))
    draft = Draft(
        (), (Step(StepForm.CALL, "torch.f", "out", (Argument("", one), Argument("", other), Argument("", one))),)
    )
    assert "torch.f(x, y, x)" in write(draft).measured


def test_a_string_that_says_more_than_it_must_is_plain() -> None:
    source = 'name = "Jane Doe"\nmode = "bilinear"\nresult = {name: mode, "Jane Doe": 1}\n'
    assert list(plainer_constants(source)) == ["name = 'a'\nmode = 'bilinear'\nresult = {name: mode, 'a': 1}\n"]
