"""Small libraries with a branch of their own, with real torch and real Paddle: no workaround that trains otherwise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from migrate_lens.cli import app as cli

pytestmark = [pytest.mark.real, pytest.mark.native]

_STOP = (
    "import torch\n\n\ndef same(x):\n    return x\n\n\n"
    "def stopped(x, hard=True):\n    stop = torch.detach if hard else same\n    return stop(x)\n",
    "import torch\nfrom lib import stopped\n\nlayer = torch.nn.Linear(2, 2)\n"
    "torch.nn.init.constant_(layer.weight, 0.5)\n"
    "torch.nn.init.constant_(layer.bias, 0.5)\nx = torch.tensor([[1.0, 2.0]])\ny = layer(x)\n"
    "loss = (y * stopped(y)).sum()\nloss.backward()\nresult = loss.item()\n",
)
_SHARED = (
    "import torch\n\n\ndef head(x, copied=True):\n    return torch.narrow_copy(x, 0, 0, 2) if copied else x[:2]\n",
    "import torch\nfrom lib import head\n\nx = torch.arange(4.0)\nresult = head(x)\n",
)
_SCALED = (
    "import torch\n\n\ndef moments(x, fast=True):\n    if fast:\n        return torch.var_mean(x, dim=0)\n"
    "    return x.var(0), x.detach().mean(0)\n",
    "import torch\nfrom lib import moments\n\nx = torch.tensor([1.0, 2.0, 4.0], requires_grad=True)\n"
    "var, mean = moments(x)\nresult = var + mean\n",
)
_SOUND = (
    "import torch\n\n\ndef moments(x, fast=True):\n    if fast:\n        return torch.var_mean(x, dim=0)\n"
    "    return x.var(0), x.mean(0)\n",
    _SCALED[1],
)


def _fixes(library: tuple[str, str], *more: str) -> tuple[list[dict[str, Any]], int]:
    source, program = library
    Path("src/lib").mkdir(parents=True)
    Path("src/lib/__init__.py").write_text(source)
    Path("src/pyproject.toml").write_text('[project]\nname = "lib"\nversion = "1"\n')
    Path("prog.py").write_text(program)
    assert cli.main(["diagnose", "src", "--probe", "prog.py"]) == cli.GAPS
    code = cli.main(["fix", *more])
    return [gap["workaround"] or {} for gap in json.loads(Path(".migrate-lens/report.json").read_text())["gaps"]], code


@pytest.mark.parametrize("library", [_STOP, _SHARED, _SCALED], ids=["gradient", "memory", "part of a gradient"])
def test_a_branch_that_does_something_else_is_no_workaround(
    library: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    workarounds, code = _fixes(library, "--apply")
    assert (workarounds, code) == ([{}], 1)
    assert "Nothing was written" in capsys.readouterr().out
    assert Path("src/lib/__init__.py").read_text() == library[0]


def test_a_branch_that_does_the_same_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (workaround,), code = _fixes(_SOUND)
    assert (workaround["verified"], code) == (True, 0)
    assert 'if fast and hasattr(torch, "var_mean"):' in workaround["patch"]
    assert "a runtime without it" not in workaround["patch"]
    assert "values and gradients equal torch" in capsys.readouterr().out


@pytest.mark.parametrize("call", [
    "x.addcdiv(x, x + 2, value=-0.3)", "x.addcmul(x, x + 0.3, value=0.7)", "torch.addcmul(x, x, x)",
])  # fmt: skip
def test_what_the_call_alone_refuses_is_not_offered_for_the_library(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    library = f"import torch\n\n\ndef mixed(x):\n    return {call}\n"
    program = "import torch\nfrom lib import mixed\n\nresult = mixed(torch.tensor([0.7, 1.9, 3.3]))\n"
    workarounds, _ = _fixes((library, program))
    assert workarounds == [{}]
