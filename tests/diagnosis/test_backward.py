"""Gradients of a probe that makes no backward pass of its own: ``diagnose --backward``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from migrate_lens.cli.app import main

pytestmark = pytest.mark.real

NET = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
    def forward(self, x):
        {body}
def make():
    return Net(), (torch.tensor([[1.0, 0.0, 2.0], [0.5, 2.0, 3.0]]),)
"""


@pytest.fixture
def gaps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.chdir(tmp_path)

    def diagnosed(text: str, *options: str) -> list[tuple[str, list[int]]]:
        Path("net.py").write_text(text)
        main(["diagnose", "net.py", *options, "--format", "json"])
        report = json.loads(capsys.readouterr().out)
        return [(gap["id"], [site["line"] for site in gap["sites"]]) for gap in report["gaps"]]

    return diagnosed


def test_a_gradient_that_differs_is_found_only_when_asked_for_and_at_its_call(gaps: Any) -> None:
    text = NET.format(body="return torch.prod(self.layer(x) * 0.0 + x, 1)")
    assert gaps(text, "--probe", "net:make") == []
    assert gaps(text, "--probe", "net:make", "--backward") == [("torch.prod:gradient", [8])]


@pytest.mark.parametrize("body", ["return torch.softmax(self.layer(x), -1)", "return torch.relu(self.layer(x)).t()"])
def test_equal_gradients_are_no_gap(gaps: Any, body: str) -> None:
    assert gaps(NET.format(body=body), "--probe", "net:make", "--backward") == []


def test_a_script_is_differentiated_by_what_it_names(gaps: Any) -> None:
    script = """
import torch
x = torch.tensor([1.0, 0.0, 2.0])
x.requires_grad_(True)
result = torch.prod(x)
"""
    assert gaps(script) == []
    assert gaps(script, "--backward") == [("torch.prod:gradient", [5])]


def test_a_result_without_a_graph_is_left_alone(gaps: Any) -> None:
    assert gaps("import torch\nresult = torch.ones(3), 'text', {'a': torch.arange(3)}\n", "--backward") == []
