"""A gap around torch.autograd.Function in; small programs with a function of their own that may show it, out.

Such a gap is not one call with literal inputs: what is missing is an attribute of the context that only a forward or a
backward sees, or it is the way in which the two belong together. The programs say nothing by themselves: they are run
on both sides, and reduced, like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from migrate_lens.model.trace import Event
from migrate_lens.model.value import REFERENCE, Encoded, tag

_CONTEXT = re.compile(r"torch\.autograd\.(?:function\.)?(?:FunctionCtx|Function)\.(\w+)$")
_PROGRAM = """\
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, {names}):
        y = x * 2.0
        {forward}
        return y

    @staticmethod
    def backward(ctx, g):
        {backward}
        return {gradients}


x = torch.tensor([1.0, 2.0], requires_grad=True)
Double.apply({values}).sum().backward()
result = x.grad
"""


def programs(api: str, events: Sequence[Event]) -> Iterator[str]:
    """Programs for a gap of this name.

    Args:
        api: the gap's name.
        events: what torch recorded of it.
    """
    named = _CONTEXT.match(api)
    if named is None:
        return
    if named[1] == "apply":
        yield from dict.fromkeys(_applied(event.inputs) for event in events if event.what == "call")
        return
    name = f"ctx.{named[1]}"
    for forward, backward in (
        ("ctx.save_for_backward(x)", name),
        (name, "pass"),
        (f"{name}(y)", "pass"),
        (f"{name}(False)", "pass"),
    ):
        yield _written([], forward, backward)


def _applied(inputs: Sequence[Encoded]) -> str:
    """A function of as many inputs as were recorded: tensors by their dtype, all else by None."""
    return _written([_input(value) for value in inputs[1:]], "pass", "pass")


def _input(value: Encoded) -> str:
    if tag(value) == REFERENCE:
        return "x"
    return repr(value) if isinstance(value, bool | int | float | str) else "None"


def _written(others: Sequence[str], forward: str, backward: str) -> str:
    names = ", ".join(("x", *(f"a{n}" for n in range(len(others)))))
    gradients = ", ".join(("g * 2.0", *("None" for _ in others)))
    return _PROGRAM.format(
        names=names, forward=forward, backward=backward, gradients=gradients, values=", ".join(("x", *others))
    )
