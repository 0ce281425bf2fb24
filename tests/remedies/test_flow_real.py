"""One small program with real torch and real Paddle: diagnosed, reported, worked around, and diagnosed again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate_lens.cli import app as cli
from migrate_lens.remedies.publish.verify import UNDER_PADDLE
from migrate_lens.remedies.reproduce.reproduce import length

pytestmark = [pytest.mark.real, pytest.mark.native]

_PROGRAM = """import torch
import torch.nn.functional as F

x = torch.ones(4, 6)
y = torch.add(x, 1)  # kept
result = F.mse_loss(y, target=torch.zeros(4, 6))
"""


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in which the program was diagnosed and its issues were emitted."""
    folder = tmp_path_factory.mktemp("port")
    (folder / "prog.py").write_text(_PROGRAM)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert cli.main(["diagnose", "prog.py"]) == cli.GAPS
        assert cli.main(["issue", "--emit"]) == 0
        yield folder


def _runs(file: Path, *, paddle: bool) -> int:
    command = [sys.executable, *(["-c", UNDER_PADDLE] if paddle else []), file.name]
    return subprocess.run(command, cwd=file.parent, capture_output=True, check=False).returncode


def test_each_gap_has_a_short_reproduction_that_holds_by_itself(port: Path, tmp_path: Path) -> None:
    found = sorted(port.glob("issues/*/mre.py"))
    assert len(found) == 2
    for file in found:
        copy = tmp_path / "mre.py"
        copy.write_bytes(file.read_bytes())
        assert length(copy.read_text()) <= 10
        assert (_runs(copy, paddle=False) == 0, _runs(copy, paddle=True) != 0) == (True, True)
        assert (file.parent / "issue.md").read_text().count("mre.py") >= 2
        assert "AttributeError" not in (file.parent / "torch.log").read_text()


def test_the_report_knows_the_reproductions(port: Path) -> None:
    gaps = json.loads((port / ".migrate-lens" / "report.json").read_text())["gaps"]
    assert [gap["mre"]["verified"] for gap in gaps] == [True, True]


def test_a_key_is_not_emitted_twice(port: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["issue", "--emit"]) == 0
    assert capsys.readouterr().out.count("already emitted") == 2


def test_the_workarounds_work_and_a_second_run_has_nothing_to_do(
    port: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["fix", "--apply", "--owner", "jane"]) == 0
    assert "verified: run stage passes, values equal torch" in capsys.readouterr().out
    text = (port / "prog.py").read_text()
    assert text.count("# TODO(jane): remove this workaround after Paddle compat supports") == 2
    assert "  # kept\n" in text
    assert cli.main(["diagnose", "prog.py", "--state", "after"]) == cli.NO_GAPS
    assert cli.main(["fix", "--state", "after"]) == 0
    assert (port / "prog.py").read_text() == text
    assert cli.main(["check", "prog.py"]) == 0


def test_recheck_says_that_the_gaps_are_open(port: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["recheck", "."]) == 0
    assert "2 of 2 still open" in capsys.readouterr().out


def test_recheck_names_what_can_be_deleted(port: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A reproduction that passes now: planted, since the installed Paddle still has the gap."""
    record = {
        "id": "torch.add:exception",
        "api": "torch.add",
        "symptom": "exception",
        "file": "mre.py",
        "failure": "ValueError",
    }
    folder = tmp_path / "issues" / "one"
    folder.mkdir(parents=True)
    (folder / "mre.json").write_text(json.dumps(record))
    (folder / "mre.py").write_text("import torch\n")
    (tmp_path / "ops.py").write_text(
        "# TODO(jane): remove this workaround after Paddle compat supports torch.add as torch does (exception)\ny = 1\n"
    )
    assert cli.main(["recheck", str(tmp_path), "--issues", str(folder.parent)]) == 1
    assert "delete the workaround at ops.py:1" in capsys.readouterr().out


def test_recheck_tells_another_error_from_the_one_that_was_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A native reproduction fails with an error of the same type that names another construct: planted."""
    folder = tmp_path / "issues" / "one"
    folder.mkdir(parents=True)
    record = {"id": "at::cumsum:compile_error", "api": "at::cumsum", "symptom": "compile_error", "file": "mre.py",
              "failure": "RuntimeError", "needle": "cumsum"}  # fmt: skip
    (folder / "mre.json").write_text(json.dumps(record))
    for error, said in (("no cumsum", "still fails"), ("no compiler", "fails otherwise")):
        (folder / "mre.py").write_text(f"raise RuntimeError('{error}')\n")
        assert cli.main(["recheck", str(tmp_path), "--issues", str(folder.parent)]) == 0
        assert f"at::cumsum:compile_error: {said} (RuntimeError)" in capsys.readouterr().out
