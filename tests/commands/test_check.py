"""The finishing check of a port, on planted good and bad ports."""

from __future__ import annotations

import json
import subprocess
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
import sample_reports as samples
from sample_reports import gap

from migrate_lens.cli.app import main
from migrate_lens.commands import check as pipeline
from migrate_lens.model.errors import UsageError
from migrate_lens.model.report import Decision, Gap, Site, Verdict
from migrate_lens.remedies.port.checking import check_text

_GOOD = """
    import torch

    # TODO(https://example.com/issues/1): remove this workaround after Paddle compat supports torch.fmod
    # What: torch.fmod is missing
    # Why now: the kernel needs it
    # Delete: put torch.fmod back
    y = x - torch.trunc(x / 3) * 3
"""


_FORM = "remove this workaround after Paddle compat supports torch.fmod"


def _rules(text: str, name: str = "pkg/ops.py") -> list[str]:
    return [c.rule for c in check_text(name, textwrap.dedent(text))]


def test_a_finished_port_has_nothing_to_settle() -> None:
    assert _rules(_GOOD) == []


@pytest.mark.parametrize(("text", "rule"), [
    (f"# TODO(me please): {_FORM}\ny = 1", "todo"),
    (f"# TODO(): {_FORM}\n# What: a\n# Why now: b\n# Delete: c", "todo"),
    ("# workaround for paddle\ny = 1", "todo"),
    ("try:\n    import torch.fx\nexcept Exception:\n    pass", "broad_except"),
    ("try:\n    y = torch.fmod(x, 2)\nexcept:\n    pass", "broad_except"),
    ("import paddle as torch", "mechanical_rewrite"),
    ("import paddle\na = paddle.add(x, y)\nb = paddle.sum(x)\nc = paddle.ones([2])", "mechanical_rewrite"),
    ("import paddle\na = paddle._C_ops.add(x, y)", "private_api"),
    ("from paddle.base import core", "private_api"),
    ("import paddle\npaddle.enable_compat()", "global_compat"),
    ("import paddle\ny = paddle.ones([2])", "unmarked"),
], ids=str)  # fmt: skip
def test_each_rule_can_fail(text: str, rule: str) -> None:
    assert rule in _rules(text)


def test_private_names_of_paddle_in_native_sources_are_named() -> None:
    assert _rules("auto y = x._PD_GetInner();  // inner\n", "csrc/a.cc") == ["private_api"]
    assert _rules("auto y = x;  // not x._PD_GetInner()\n", "csrc/a.cc") == []


@pytest.mark.parametrize(("text", "name"), [
    ("import paddle\npaddle.enable_compat()\n", "setup.py"),
    ("import paddle\npaddle.enable_compat(scope={'mylib'})\n", "pkg/__init__.py"),
    ("try:\n    import json5\nexcept Exception:\n    pass\n", "pkg/a.py"),
    ("try:\n    import torch.fx\nexcept ImportError:\n    fx = None\n", "pkg/a.py"),
    ("# a todo of upstream's own\ny = 1\n", "pkg/a.py"),
    ("from paddle.utils.cpp_extension import CppExtension\n", "setup.py"),
])  # fmt: skip
def test_what_is_allowed(text: str, name: str) -> None:
    assert _rules(text, name) == []


def test_a_comment_in_cpp_is_read_too() -> None:
    text = "// TODO(jane): remove this workaround after Paddle compat supports at::cumsum\nint x;\n"
    assert _rules(text, "csrc/a.cc") == ["todo"]


def _port(folder: Path) -> Path:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.com")
        subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)

    folder.mkdir()
    (folder / "ops.py").write_text(
        "import torch\n\ndef f(x):\n    return torch.fmod(x,3)\n\ndef g(a):\n    return (a+1)\n"
    )
    (folder / "setup.py").write_text("from torch.utils import cpp_extension\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "upstream")
    return folder


def test_edits_are_sorted_by_layer_and_churn_is_named(tmp_path: Path) -> None:
    port = _port(tmp_path / "port")
    (port / "ops.py").write_text(
        "import torch\n\ndef f(x):\n    return x - torch.trunc(x / 3) * 3\n\ndef g(a):\n    return (a + 1)\n"
    )
    (port / "setup.py").write_text("import paddle\npaddle.enable_compat()\nfrom torch.utils import cpp_extension\n")
    done = pipeline.check(port, "HEAD", tmp_path / "no-state", tmp_path / "issues")
    assert [(c.path, c.rule) for c in done.complaints] == [("ops.py", "churn")]
    assert {(h.path, str(h.layer)) for h in done.edits} == {("ops.py", "python_interface"), ("setup.py", "build")}


def test_an_unknown_revision_is_a_usage_error(tmp_path: Path) -> None:
    port = _port(tmp_path / "port")
    with pytest.raises(UsageError, match="--base nowhere"):
        pipeline.check(port, "nowhere", tmp_path, tmp_path)


def _diagnosed(folder: Path, gaps: tuple[Gap, ...], verdict: Verdict = Verdict.GAPS) -> None:
    """Keep a diagnosis of ``port``."""
    library = replace(samples.LIBRARY, root=folder / "port")
    report = replace(samples.GAPS, library=library, gaps=gaps, verdict=verdict)
    (folder / "report.json").write_text(json.dumps(report.to_json()))


def test_a_tree_that_was_never_diagnosed_is_not_finished(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "port").mkdir()
    assert main(["check", str(tmp_path / "port"), "--state", str(tmp_path / "none")]) == 2
    shown = capsys.readouterr().out
    assert "never diagnosed" in shown
    assert "is finished:" not in shown


def test_a_diagnosis_of_another_tree_says_nothing(tmp_path: Path) -> None:
    _diagnosed(tmp_path, ())
    (tmp_path / "other").mkdir()
    assert "is of " in pipeline.check(tmp_path / "other", "", tmp_path, tmp_path / "issues").missing


@pytest.mark.parametrize("verdict", [Verdict.BASELINE_FAILED, Verdict.NOT_EXERCISED])
@pytest.mark.parametrize("command", ["check", "fix", "issue"])
def test_after_a_diagnosis_that_says_nothing(
    tmp_path: Path, command: str, verdict: Verdict, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "port").mkdir()
    _diagnosed(tmp_path, (), verdict)
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "index.json").write_text("{}")
    path = [str(tmp_path / "port")] if command == "check" else []
    assert main([command, *path, "--state", str(tmp_path)]) == 2
    shown = capsys.readouterr()
    assert "says nothing about Paddle" in shown.out + shown.err


def test_what_could_not_be_reproduced_is_not_asked_for(tmp_path: Path) -> None:
    (tmp_path / "port").mkdir()
    _diagnosed(tmp_path, (gap("torch.fmod", "missing_api", no_mre="no program fails in the same way"),))
    done = pipeline.check(tmp_path / "port", "", tmp_path, tmp_path / "issues")
    assert (done.complaints, done.missing) == ((), "")


def test_a_gap_without_reproduction_is_named(tmp_path: Path) -> None:
    open_ = gap("torch.fmod", "missing_api", sites=(Site("ops.py", 4),))
    note = gap("torch._C", "missing_api", decision=Decision.NOTE)
    (tmp_path / "port").mkdir()
    _diagnosed(tmp_path, (open_, note))
    done = pipeline.check(tmp_path / "port", "", tmp_path, tmp_path / "issues")
    assert [(c.path, c.line, c.rule) for c in done.complaints] == [("ops.py", 4, "gap")]
    record = tmp_path / "issues" / "one" / "mre.json"
    record.parent.mkdir(parents=True)
    record.write_text(json.dumps({"api": "torch.fmod", "symptom": "missing_api"}))
    assert pipeline.check(tmp_path / "port", "", tmp_path, tmp_path / "issues").complaints == ()
