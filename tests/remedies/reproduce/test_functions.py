"""Programs with a function of their own: what they hold for a gap's name, and that torch runs them all."""

from __future__ import annotations

import ast

import pytest

from migrate_lens.model.trace import Event, EventKind, Place, PlaceKind
from migrate_lens.remedies.reproduce.functions import programs

_APPLY = "torch.autograd.Function.apply"
_T = ("#", 1, 0)


def _applied(*inputs: object) -> list[str]:
    place = Place("m", "m.py", 1, 0, 1, 1, PlaceKind.METHOD, (), "")
    event = Event(EventKind.CALL, place, 1, "", _APPLY, inputs)
    return list(programs(_APPLY, [event, event]))


@pytest.mark.parametrize("name", ["saved_tensors", "needs_input_grad", "mark_dirty", "set_materialize_grads"])
def test_what_a_context_lacks_is_asked_of_it_forward_and_backward(name: str) -> None:
    made = list(programs(f"torch.autograd.function.FunctionCtx.{name}", []))
    for source in made:
        ast.parse(source)
        assert f"ctx.{name}" in source
    assert len(made) == len(set(made)) == 4


def test_a_function_has_as_many_inputs_as_were_recorded_and_as_many_gradients() -> None:
    (source,) = _applied(_T, _T, 3, "sum", ("O", "thing"))
    assert "def forward(ctx, x, a0, a1, a2, a3):" in source
    assert "return g * 2.0, None, None, None, None" in source
    assert "Double.apply(x, x, 3, 'sum', None)" in source


def test_other_names_have_none() -> None:
    assert list(programs("torch.autograd.grad", [])) == []
