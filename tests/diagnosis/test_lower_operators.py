"""The operators below the first difference of values, in a diagnosis as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from migrate_lens.cli.app import main

pytestmark = pytest.mark.real


def test_a_difference_of_values_names_the_operators_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("program.py").write_text(
        "import torch\nimport torch.nn.functional as F\nx = torch.ones(1, 1, 2, 2)\n"
        "result = F.avg_pool2d(x, 3, padding=1)\n"
    )
    assert main(["diagnose", "program.py", "--format", "json"]) == 1
    (gap,) = json.loads(capsys.readouterr().out)["gaps"]
    (said,) = [line for line in gap["evidence"] if "on equal inputs" in line]
    assert "torch runs aten.avg_pool2d" in said
    assert "Paddle pool2d" in said
    assert "which none of Paddle's does" in said
