"""Programs and tests that say nothing about the target, in; that nothing is claimed of it, and what is missing, out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from files import Write

from migrate_lens.cli.app import main

pytestmark = pytest.mark.real

LIBRARY: dict[str, str | bytes] = {
    "softmask/__init__.py": "import torch\n\n\ndef mask(x):\n    return torch.sigmoid(x) * x\n",
    "pyproject.toml": '[project]\nname = "softmask"\nversion = "0.1"\n',
}
SKIPPED = """
import pytest
import torch
from softmask import mask

pytestmark = pytest.mark.skip(reason="slow")

def test_mask():
    assert mask(torch.ones(1)) < 1
"""
FAILING = """
import torch

def test_that_does_not_hold():
    assert float(torch.ones(1)) == 3.0
"""
NO_CALL = "numbers = [n * n for n in range(3)]\nresult = sum(numbers)\n"
UNTRUE = "import torch\nassert float(torch.ones(1)) == 2.0\n"
UNREAD = "import torch\nrows = [torch.ones(1)]\nresult = rows[1]\n"
BROKEN = "import torch\nimport a_package_that_nobody_has\nresult = torch.ones(1)\n"


def _diagnosed(root: Path, state: Path, *options: str) -> tuple[int, dict[str, Any]]:
    code = main(["diagnose", str(root), "--state", str(state), *options])
    return code, json.loads((state / "report.json").read_text())


@pytest.fixture
def without_pytest(tmp_path: Path) -> Path:
    """An interpreter that has the frameworks, and no pytest."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "pytest.py").write_text("raise ModuleNotFoundError(\"No module named 'pytest'\", name='pytest')\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{hidden}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return python


def test_tests_that_an_interpreter_cannot_run_are_no_pass(
    write: Write, without_pytest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write({**LIBRARY, "tests/test_mask.py": FAILING})
    state = tmp_path / "state"
    assert main(["diagnose", str(root), "--tests", "--torch-python", str(without_pytest), "--state", str(state)]) == 2
    assert f"torch has no pytest: {without_pytest}" in capsys.readouterr().err
    code, report = _diagnosed(root, state, "--torch-python", str(without_pytest))
    assert (code, report["gaps"]) == (3, [])
    (aside,) = [one for one in report["skipped"] if one["path"] == "tests/test_mask.py"]
    assert "needs pytest" in aside["reason"]


def test_tests_of_which_none_runs_under_torch_are_no_pass(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write({**LIBRARY, "tests/test_skipped.py": SKIPPED, "tests/test_failing.py": FAILING})
    code, report = _diagnosed(root, tmp_path / "state", "--tests")
    assert (code, report["gaps"]) == (3, [])
    said = capsys.readouterr().out
    assert "No gaps" not in said
    aside = {one["path"].partition("::")[0] for one in report["skipped"]}
    assert aside >= {"tests/test_skipped.py", "tests/test_failing.py"}


@pytest.mark.parametrize("source", [NO_CALL, BROKEN, UNTRUE, UNREAD])
def test_a_program_that_says_nothing_leaves_nothing_to_go_on_from(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, state = tmp_path / "program.py", tmp_path / "state"
    script.write_text(source)
    code, report = _diagnosed(script, state)
    assert (code, report["gaps"]) == (3, [])
    for command in (["check", str(script)], ["fix"], ["issue", "--emit", "--all"]):
        assert main([*command, "--state", str(state)]) in (2, 3)
        said = capsys.readouterr()
        assert "No gaps" not in said.out
        assert "The port is finished" not in said.out


@pytest.mark.parametrize("more", [
    {}, {"tests/test_mask.py": FAILING}, {"softmask/kernels.cpp": "#include <torch/extension.h>\n"},
], ids=["alone", "with tests", "with native sources"])  # fmt: skip
def test_a_library_that_was_never_diagnosed_is_not_finished(
    more: dict[str, str | bytes], write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(write({**LIBRARY, **more})), "--state", str(tmp_path / "state")]) in (2, 3)
    assert "The port is finished" not in capsys.readouterr().out
