"""Programs whose outcome depends on what Python evaluates first, or on a forward that is replaced; their gaps out."""

from __future__ import annotations

import pytest
from real_lab import Lab, opened_lab

__all__ = ["opened_lab"]
pytestmark = pytest.mark.real

# The name is looked up before its arguments are evaluated: what these would use up is there still where it is missing.
ORDERS: dict[str, tuple[str, list[str]]] = {
    "a list that is used up": (
        """
        import torch
        steps = [2.0, 3.0]
        try:
            y = torch.special.bessel_j1(torch.tensor(steps.pop(0))) * 0 + 2
        except AttributeError:
            y = torch.tensor(steps.pop(0))
        result = y""",
        [],
    ),
    "a generator behind a function": (
        """
        import torch
        rows = (n for n in (5.0, 6.0))
        def draw():
            return torch.full((2,), next(rows))
        try:
            y = torch.segment_reduce(draw(), "sum", lengths=torch.tensor([2])) * 0.5
        except AttributeError:
            y = draw()[:1]
        result = y""",
        [],
    ),
    "a file that is read on": (
        """
        import io, torch
        text = io.StringIO("1 4".replace(" ", chr(10)) + chr(10))
        try:
            y = torch.special.i1e(torch.tensor(float(text.readline()))) * 0 + 1
            y = torch.special.bessel_y0(torch.tensor(float(text.readline()))) * 0 + 4
        except AttributeError:
            y = torch.tensor(float(text.readline()))
        result = y""",
        ["torch.special.i1e:missing_api"],
    ),
}
FORWARDS: dict[str, tuple[str, list[str]]] = {
    "of one layer": (
        """
        import torch
        from torch import nn
        m = nn.Linear(2, 2)
        m.forward = lambda x: torch.special.bessel_j1(x)
        result = m(torch.ones(2))""",
        ["torch.special.bessel_j1:missing_api"],
    ),
    "of a class": (
        """
        import torch
        from torch import nn
        class Net(nn.Module):
            def forward(self, x):
                return x
        def other(self, x):
            return torch.special.bessel_y0(x)
        Net.forward = other
        result = Net()(torch.ones(2))""",
        ["torch.special.bessel_y0:missing_api"],
    ),
    "of a layer in a list": (
        """
        import torch, types
        from torch import nn
        m = nn.ModuleList([nn.ReLU()])
        m[0].forward = types.MethodType(lambda self, x: torch.special.bessel_y1(x), m[0])
        result = m[0](torch.ones(2))""",
        ["torch.special.bessel_y1:missing_api"],
    ),
}


@pytest.mark.parametrize("name", ORDERS)
def test_what_a_missing_name_would_be_given_is_not_used_up(lab: Lab, name: str) -> None:
    source, expected = ORDERS[name]
    assert lab.diagnose(source).keys == expected


@pytest.mark.parametrize("name", FORWARDS)
def test_a_gap_in_a_forward_that_was_replaced_is_found(lab: Lab, name: str) -> None:
    source, expected = FORWARDS[name]
    assert lab.diagnose(source).keys == expected
