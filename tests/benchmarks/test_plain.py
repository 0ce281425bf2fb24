"""What ``benchmarks/claims/plain.py`` says of programs, in plain interpreters of both sides."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.claims.judges import Claimed, Truth, difference, judge_replays
from benchmarks.claims.patches import Tree, replays
from benchmarks.claims.runs import Plain

pytestmark = pytest.mark.real

LIBRARY = """
import torch

def same(x):
    return x

def frozen(x, y):
    return x * y

def cut(x):
    cutter = torch.detach if x.ndim else same
    return cutter(x)

def like(x):
    return x.new_tensor([1.0, 2.0])
"""
PROGRAM = """
import torch, lib
x = torch.tensor([1.0, 2.0], requires_grad=True)
result = {}
result["frozen"] = lib.frozen(x, torch.tensor([True, False]))
result["cut"] = lib.cut(x)
result["like"] = lib.like(x)
"""
CUT = ("if x.ndim else", "if x.ndim and hasattr(torch, 'detach') else")
LIKE, MADE = "x.new_tensor([1.0, 2.0])", "torch.tensor([1.0, 2.0], dtype=x.dtype{})"
FALSE = {
    "torch.Tensor.mul:exception": ("x * y", "x * y.to(torch.float32)", "dtype float16 -> float32"),
    "torch.detach:missing_api": (*CUT, "requires_grad False -> True"),
    "torch.Tensor.new_tensor:missing_api": (LIKE, MADE.format(""), "meta tensor -> tensor"),
}
TRUE = {
    "torch.Tensor.mul:exception": ("x * y", "x * y.to(x.dtype)"),
    "torch.Tensor.new_tensor:missing_api": (LIKE, MADE.format(", device=x.device")),
}


@pytest.fixture
def plain(tmp_path: Path) -> Plain:
    (tmp_path / "upstream").mkdir()
    (tmp_path / "upstream" / "lib.py").write_text(LIBRARY)
    (tmp_path / "program.py").write_text(PROGRAM)
    return Plain(tmp_path / "jobs", [tmp_path / "trial"])


def _judged(plain: Plain, folder: Path, gap: str, old: str, new: str) -> tuple[Truth, str]:
    tree = Tree(folder / "upstream", folder / "trial")
    files: Mapping[str, str] = {"lib.py": LIBRARY.replace(old, new)}
    api, _, symptom = gap.partition(":")
    found = list(replays([files, {}, files], tree, plain, folder / "program.py"))
    judged = judge_replays(Claimed(gap, api, symptom), found)
    return judged.truth, judged.reason


@pytest.mark.parametrize("gap", FALSE)
def test_a_planted_false_patch_is_seen(gap: str, plain: Plain, tmp_path: Path) -> None:
    old, new, why = FALSE[gap]
    truth, reason = _judged(plain, tmp_path, gap, old, new)
    assert truth is Truth.FALSE
    assert why in reason


@pytest.mark.parametrize("gap", TRUE)
def test_a_patch_that_keeps_torch_s_meaning_is_true(gap: str, plain: Plain, tmp_path: Path) -> None:
    assert _judged(plain, tmp_path, gap, *TRUE[gap]) == (Truth.TRUE, "")


def test_a_program_is_run_as_python_runs_it(plain: Plain, tmp_path: Path) -> None:
    program = tmp_path / "union.py"
    program.write_text("import torch\ndef f(device: str | torch.device = 'cpu'): ...\nresult = {'f': 1}\n")
    torch, paddle = (plain.run(side, program) for side in ("torch", "paddle"))
    assert torch.ending.passed
    assert (paddle.ending.error, paddle.ending.line_in("union.py")) == ("TypeError", 2)


def test_what_later_calls_see_is_seen(plain: Plain, tmp_path: Path) -> None:
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    text = "import torch\nx = torch.ones(2, requires_grad=True)\ny = x * 2\nz = y{}\nresult = {{'y': y.detach()}}\n"
    one.write_text(text.format(".detach()"))
    other.write_text(text.format(""))
    assert "requires_grad False -> True" in difference(plain.run("torch", one), plain.run("torch", other))


def test_names_and_keywords_are_asked_on_both_sides(plain: Plain) -> None:
    owned = ("torch.autograd.function.FunctionCtx.saved_tensors", "torch.utils.data.DataLoader.batch_size")
    names = ["torch.triu", "torch.nowhere", "torch.Tensor.new_tensor", *owned]
    answers: dict[str, Any] = {side: plain.job(side, names=names, keywords=[]) for side in ("torch", "paddle")}
    assert list(answers["torch"]["names"].values()) == ["yes", "no", "yes", "yes", "yes"]
    assert list(answers["paddle"]["names"].values()) == ["yes", "no", "no", "no", "no"]


def test_a_reproduction_goes_on_without_the_statement_that_fails(plain: Plain) -> None:
    source = "import torch\nx = torch.ones(2)\ny = x.new_tensor([3.0])\nassert y.item() == 3.0\n"
    made: Any = plain.job("torch", heal=source, line=3)
    assert made["whole"]
    answer: Any = plain.job("paddle", heal=source, line=3, made=made["made"])
    assert answer["ending"]["error"] == ""
