"""Commands that are told to write where the user's own files are, in; the same files, to the last byte, out."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from fake_world import FakeBench, FakeWorker, Step, World
from sample_events import call, tensor

from migrate_lens import state
from migrate_lens.cli.app import main
from migrate_lens.commands import diagnose as pipeline
from migrate_lens.commands.issue import IssueRequest, _Maker
from migrate_lens.model.errors import StateError

PROGRAM = "import torch\nresult = torch.ones(1)\n"
WORLD = World([Step(call(1, tensor(1.0)))])
MINE = {
    "prog.py": PROGRAM,
    "report.json": '{"mine": true}',
    "traces/index.json": "[]",
    "traces/0.trace": "mine",
    "traces.backup/old": "mine",
    "traces.1/old": "mine",
    "issues/torch.ones/notes.md": "mine",
    "empty.py": "",
    "README.md": "# about migrate-lens\n",
}
Capture = pytest.CaptureFixture[str]


def fingerprint(folder: Path) -> dict[str, str]:
    """What is in a folder: kinds, modes and contents."""
    seen = {}
    for path in sorted(folder.rglob("*")):
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        seen[str(path.relative_to(folder))] = f"{path.lstat().st_mode:o} {content}"
    return seen


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the user's, the working folder at once; runs in it are made up."""
    root = tmp_path / "mine"
    for name, text in MINE.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for folder in ("traces.backup", "traces.1"):
        os.utime(root / folder, (0, 0))
    monkeypatch.chdir(root)
    monkeypatch.setattr(pipeline, "Worker", FakeWorker)
    monkeypatch.setattr(pipeline, "Bench", lambda torch, target, folder: FakeBench(WORLD, folder))
    return root


REFUSED = {
    "the folder itself": ["diagnose", "prog.py", "--state", "."],
    "its traces": ["diagnose", "prog.py", "--state", "traces"],
    "a folder of theirs": ["diagnose", "prog.py", "--state", "traces.backup"],
    "the program": ["diagnose", "prog.py", "--output", "prog.py", "--state", "../s"],
    "the program by another way": ["diagnose", "prog.py", "--output", "traces/../prog.py", "--state", "../s"],
    "the program by a link": ["diagnose", "prog.py", "--output", "../link", "--state", "../s"],
    "a report of theirs": ["diagnose", "prog.py", "--format", "json", "--output", "report.json", "--state", "../s"],
    "an empty module": ["diagnose", "prog.py", "--output", "empty.py", "--state", "../s"],
    "a module beside": ["diagnose", ".", "--probe", "prog.py", "--output", "empty.py", "--state", "../s"],
    "text that names us": ["diagnose", "prog.py", "--output", "README.md", "--state", "../s"],
    "a trace over an empty module": ["trace", "prog.py", "--output", "empty.py"],
    "a trace over the program": ["trace", "prog.py", "--output", "prog.py"],
    "an audit over the audited": ["audit", ".", "--output", "prog.py"],
    "an audit over one file": ["audit", "prog.py", "--output", "prog.py"],
    "a baseline over the audited": ["audit", ".", "--write-baseline", "report.json"],
    "a surface over the audited": ["audit", ".", "--save-surface", "empty.py"],
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_ours_is_refused(name: str, tree: Path, capsys: Capture) -> None:
    (tree.parent / "link").symlink_to(tree / "prog.py")
    before = fingerprint(tree.parent)
    assert main(REFUSED[name]) == 2
    error, hint = capsys.readouterr().err.splitlines()
    assert error.startswith("error: ")
    assert "name an" in hint
    assert fingerprint(tree.parent) == before


def test_a_second_diagnosis_replaces_its_own_results_alone(tree: Path, capsys: Capture) -> None:
    before = fingerprint(tree)
    argv = ["diagnose", "prog.py", "--format", "json", "--output", "new.json", "--state", "kept"]
    assert main(argv) == 0
    first = (tree / "kept" / "report.json").read_bytes()
    (tree / "kept" / "notes.txt").write_text("mine")
    (tree / "kept" / "traces.backup").mkdir()
    (tree / "kept" / f"traces.{2**22 + 1}").mkdir()
    assert main(argv) == 0
    assert (tree / "kept" / "report.json").read_bytes() == first
    kept = {path.name for path in (tree / "kept").iterdir()}
    assert kept == {".gitignore", state.MARK, "report.json", "traces", "notes.txt", "traces.backup"}
    after = {name: value for name, value in fingerprint(tree).items() if name in before}
    assert after == before


@pytest.mark.parametrize("name", ["json", "markdown", "sarif"])
def test_a_report_may_replace_a_report(name: str, tree: Path) -> None:
    argv = ["diagnose", "prog.py", "--format", name, "--output", "new", "--state", "kept"]
    assert [main(argv), main(argv)] == [0, 0]


def test_a_full_disk_leaves_the_results_of_before(tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    argv = ["diagnose", "prog.py", "--state", "kept"]
    assert main(argv) == 0
    before = fingerprint(tree)

    def full(path: Path, text: str) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(state, "_write_synced", full)
    assert main(argv) == 2
    assert "No space left" in capsys.readouterr().err
    assert fingerprint(tree) == before


def test_an_issue_is_written_over_an_issue_of_ours_alone(tree: Path) -> None:
    maker = _Maker.__new__(_Maker)
    maker._request = IssueRequest(tree / "kept", emit=True, output=tree / "issues")
    with pytest.raises(StateError, match="no issue of migrate-lens"):
        maker._check_free(tree / "issues" / "torch.ones")
    maker._check_free(tree / "issues" / "torch.zeros")
