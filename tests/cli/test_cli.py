"""What a user types, held against what is printed, the exit code, and what is left on disk."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import sample_reports as samples
from files import Write
from processes import PATIENCE, running, wait_for

import migrate_lens.commands
from migrate_lens.cli.app import EXIT_CODES, main
from migrate_lens.config import Options
from migrate_lens.discovery.discover import discover
from migrate_lens.model.errors import LibraryError
from migrate_lens.model.report import Report

Diagnose = Callable[[Options, Callable[[str], None]], Report]
Capture = pytest.CaptureFixture[str]


@dataclass
class Pipeline:
    """A pipeline that gives one report, after reading the library as the real one does."""

    report: Report = samples.HEALTHY
    options: Options | None = None
    error: BaseException | None = None

    def diagnose(self, options: Options, progress: Callable[[str], None]) -> Report:
        self.options = options
        discover(options.path, options.probes, options.configured)
        progress("torch: run smoke.py")
        if self.error is not None:
            raise self.error
        return self.report


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    fake = Pipeline()
    _replace(monkeypatch, migrate_lens.commands, "diagnose", diagnose=fake.diagnose)
    return fake


def _replace(monkeypatch: pytest.MonkeyPatch, package: ModuleType, name: str, **members: object) -> None:
    module: Any = ModuleType(f"{package.__name__}.{name}")
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(package, name, module, raising=False)


@pytest.fixture
def lib(write: Write, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library, and an empty working folder beside it."""
    root = write({"kit/__init__.py": "", "smoke.py": ""})
    (root.parent / "work").mkdir()
    monkeypatch.chdir(root.parent / "work")
    return root


# --- diagnose ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("report", [samples.HEALTHY, samples.GAPS, samples.BASELINE_FAILED], ids=lambda r: r.verdict)
@pytest.mark.parametrize("name", ["text", "json", "markdown"])
def test_exit_code_and_stored_report(lib: Path, pipeline: Pipeline, capsys: Capture, report: Report, name: str) -> None:
    pipeline.report = report
    assert (
        main(["diagnose", str(lib), "--format", name])
        == {"no_gaps": 0, "gaps": 1, "baseline_failed": 3}[report.verdict]
    )
    shown = capsys.readouterr()
    assert "mylib" in shown.out
    assert shown.err == ""
    assert json.loads(Path(".migrate-lens/report.json").read_text())["verdict"] == report.verdict
    assert Path(".migrate-lens/.gitignore").read_text().splitlines()[-1] == "*"
    assert [path.name for path in Path.cwd().iterdir()] == [".migrate-lens"]


def test_every_verdict_has_an_exit_code() -> None:
    assert set(EXIT_CODES) == {"no_gaps", "gaps", "baseline_failed", "not_exercised"}


def test_json_on_stdout_is_one_document(lib: Path, pipeline: Pipeline, capsys: Capture) -> None:
    main(["diagnose", str(lib), "--format", "json"])
    assert json.loads(capsys.readouterr().out)["schema"] == 1


def test_text_says_where_the_rest_is_and_is_not_coloured(lib: Path, pipeline: Pipeline, capsys: Capture) -> None:
    main(["diagnose", str(lib), "--state", "kept"])
    shown = capsys.readouterr().out
    assert "kept/report.json" in shown
    assert "\x1b" not in shown


def test_output_goes_to_the_file_alone(lib: Path, pipeline: Pipeline, capsys: Capture) -> None:
    Path("r.json").write_text("old")
    assert main(["diagnose", str(lib), "--format", "json", "--output", "r.json"]) == 0
    assert capsys.readouterr().out == ""
    assert json.loads(Path("r.json").read_text())["schema"] == 1
    assert sorted(path.name for path in Path.cwd().iterdir()) == [".migrate-lens", "r.json"]


def test_flags_reach_the_pipeline(lib: Path, pipeline: Pipeline) -> None:
    argv = "--probe smoke.py --scope kit --scope other --keep-torch --tests --timeout 5 --stop-at-first"
    python = ["--torch-python", sys.executable, "--paddle-python", sys.executable]
    assert main(["diagnose", str(lib), *argv.split(), *python]) == 0
    options = pipeline.options
    assert options is not None
    assert (options.path, options.probes, options.scope) == (lib, ("smoke.py",), ("kit", "other"))
    assert (options.keep_torch, options.tests, options.timeout, options.stop_at_first) == (True, True, 5.0, True)


def test_output_may_lie_in_the_state_folder(lib: Path, pipeline: Pipeline) -> None:
    assert main(["diagnose", str(lib), "--format", "markdown", "--output", ".migrate-lens/report.md"]) == 0
    assert Path(".migrate-lens/report.md").read_text().startswith("# migrate-lens: mylib")


@pytest.mark.parametrize("mine", ["traces/run.txt", "report.json", "traces.backup/a", "notes.txt", ".gitignore"])
def test_a_folder_with_other_files_is_no_state_folder(
    lib: Path, pipeline: Pipeline, mine: str, capsys: Capture
) -> None:
    """What lies there is the user's, whatever its name."""
    Path(mine).parent.mkdir(exist_ok=True)
    Path(mine).write_text("{}")
    os.utime(Path(mine).parent, (0, 0))
    assert main(["diagnose", str(lib), "--state", "."]) == 2
    assert "--state DIR" in capsys.readouterr().err
    assert Path(mine).read_text() == "{}"
    assert [path for path in Path.cwd().rglob("*") if path.is_file()] == [Path(mine).absolute()]


def test_a_folder_of_ours_and_an_empty_one_are_state_folders(lib: Path, pipeline: Pipeline) -> None:
    Path("empty").mkdir()
    for _ in range(2):
        assert main(["diagnose", str(lib), "--state", "empty"]) == 0
    assert json.loads(Path("empty/report.json").read_text())["tool"]["name"] == "migrate-lens"


def test_what_a_user_keeps_beside_our_traces_stays(lib: Path, pipeline: Pipeline) -> None:
    assert main(["diagnose", str(lib)]) == 0
    for name in ("traces.backup", "traces.1.old", "traces.4194305"):
        Path(".migrate-lens", name).mkdir()
        os.utime(Path(".migrate-lens", name), (0, 0))
    assert main(["diagnose", str(lib)]) == 0
    assert sorted(path.name for path in Path(".migrate-lens").glob("traces.*")) == ["traces.1.old", "traces.backup"]


@pytest.mark.parametrize("command", ["diagnose", "audit"])
def test_no_file_of_the_library_is_written_over(lib: Path, pipeline: Pipeline, command: str, capsys: Capture) -> None:
    before = (lib / "smoke.py").read_text()
    assert main([command, str(lib), "--output", str(lib / "smoke.py")]) == 2
    assert "it is not overwritten" in capsys.readouterr().err
    assert (lib / "smoke.py").read_text() == before


def test_too_little_memory_is_one_line(lib: Path, pipeline: Pipeline, capsys: Capture) -> None:
    pipeline.error = MemoryError()
    assert main(["diagnose", str(lib)]) == 2
    assert "not enough memory" in capsys.readouterr().err
    assert list(Path.cwd().iterdir()) == []


BAD: list[tuple[list[str], str, str]] = [
    ([], "missing command", "--help"),
    (["diagnos"], "no such command", "--help"),
    (["diagnose"], "missing argument 'PATH'", "--help"),
    (["diagnose", "LIB", "--prob", "x"], "--probe", "--help"),
    (["diagnose", "LIB", "more"], "unexpected extra argument", "--help"),
    (["diagnose", "nope"], "no such path", "folder"),
    (["diagnose", "LIB", "--timeout", "soon"], "--timeout", "--help"),
    (["diagnose", "LIB", "--timeout", "0"], "--timeout must be a positive number", "--timeout 600"),
    (["diagnose", "LIB", "--format", "jsn"], "no format 'jsn'", "json"),
    (["diagnose", "LIB", "--scope", "a b"], "not a module name", "--scope"),
    (["diagnose", "LIB", "--probe", "smok.py"], "no such file", "smoke.py"),
    (["diagnose", "LIB", "--torch-python", "nowhere"], "no interpreter at 'nowhere'", "executable"),
    (["diagnose", "LIB", "--output", "no/such/r.json"], "no such folder", "mkdir -p no/such"),
    (["diagnose", "LIB", "--output", "."], "is a folder", "file"),
    (["diagnose", "LIB", "--state", "LIB/smoke.py/s"], "cannot write the state folder", "--state DIR"),
    (["diagnose", "LIB/../bytes.py"], "utf-8", "correct"),
    (["diagnose", "LIB/../syntax.py"], "syntax error in line 1", "correct"),
    (["diagnose", "LIB/../work"], "no Python", "folder"),
]


@pytest.mark.parametrize(("argv", "message", "remedy"), BAD, ids=lambda value: " ".join(value) if value else None)
def test_bad_input(lib: Path, pipeline: Pipeline, capsys: Capture, argv: list[str], message: str, remedy: str) -> None:
    (lib.parent / "bytes.py").write_bytes(b"x = '\xff'\n")
    (lib.parent / "syntax.py").write_text("def (:\n")
    before = sorted(lib.parent.rglob("*"))
    assert main([part.replace("LIB", str(lib)) for part in argv]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    error, hint = shown.err.splitlines()
    assert error.startswith("error: ")
    assert hint.startswith("  try: ")
    assert message in error
    assert remedy in hint
    assert sorted(lib.parent.rglob("*")) == before


def test_where_results_go_is_checked_before_the_work(lib: Path, pipeline: Pipeline) -> None:
    main(["diagnose", str(lib), "--state", str(lib / "smoke.py" / "s")])
    main(["diagnose", str(lib), "--output", "no/such/r.json"])
    assert pipeline.options is None


def test_an_error_of_the_pipeline(lib: Path, pipeline: Pipeline, capsys: Capture) -> None:
    pipeline.error = LibraryError("two\nlines", "one remedy")
    assert main(["diagnose", str(lib)]) == 2
    assert capsys.readouterr().err == "error: two lines\n  try: one remedy\n"
    assert list(Path.cwd().iterdir()) == []


def test_a_full_disk_is_an_error_of_ours(lib: Path, pipeline: Pipeline, capsys: Capture) -> None:
    pipeline.error = OSError(28, "No space left on device", "/somewhere")
    assert main(["diagnose", str(lib)]) == 2
    assert "error: /somewhere: No space left on device" in capsys.readouterr().err


def test_ctrl_c(lib: Path, pipeline: Pipeline, capsys: Capture) -> None:
    pipeline.error = KeyboardInterrupt()
    assert main(["diagnose", str(lib)]) == 130
    assert capsys.readouterr().err == "interrupted\n"
    assert list(Path.cwd().iterdir()) == []


def test_the_library_is_not_touched(lib: Path, pipeline: Pipeline) -> None:
    paths = [lib, *lib.rglob("*")]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = [(path, path.stat().st_mtime_ns) for path in paths]
    assert main(["diagnose", str(lib)]) == 0
    assert [(path, path.stat().st_mtime_ns) for path in [lib, *lib.rglob("*")]] == before
    for path in paths:
        path.chmod(0o755)


# --- explain ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    id: str
    title: str = "a function that Paddle does not have"
    why: str = "The name\nis public."
    instead: str = "Ask for it."
    layer: str = "python_interface"
    category: str = "A"
    references: tuple[str, ...] = ("https://example.org/guide",)


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> None:
    from migrate_lens.commands import explain

    known = [Rule("missing-function"), Rule("missing-module", references=())]
    monkeypatch.setattr(explain, "load_rules", lambda: known)


def test_explain(rules: None, capsys: Capture) -> None:
    assert main(["explain", "missing-function"]) == 0
    assert capsys.readouterr().out == (
        "missing-function: a function that Paddle does not have\nlayer python_interface, category A\n\n"
        "Why\n  The name is public.\n\nInstead\n  Ask for it.\n\nReferences\n  - https://example.org/guide\n"
    )


def test_explain_a_gap_of_the_last_diagnosis(lib: Path, pipeline: Pipeline, rules: None, capsys: Capture) -> None:
    pipeline.report = samples.GAPS
    main(["diagnose", str(lib)])
    capsys.readouterr()
    assert main(["explain", samples.MISSING.id]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"{samples.MISSING.id}: issue")
    for part in ("src/mylib/ops.py:12", samples.MISSING.expected, "issue --emit", "missing-function: "):
        assert part in shown
    assert main(["explain", samples.UNKNOWN.id]) == 2
    assert f"no rule claims {samples.UNKNOWN.id}" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["{", "[]", "\x00"])
def test_explain_with_a_spoiled_report(rules: None, tmp_path: Path, capsys: Capture, text: str) -> None:
    (tmp_path / "report.json").write_text(text)
    assert main(["explain", "missing-function", "--state", str(tmp_path)]) == 2
    assert "  try: run migrate-lens diagnose again" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "remedy"), [("missing-funktion", "did you mean missing-function"), ("q", "explain")])
def test_explain_an_unknown_rule(rules: None, capsys: Capture, name: str, remedy: str) -> None:
    assert main(["explain", name]) == 2
    shown = capsys.readouterr().err
    assert f"no rule called '{name}'" in shown
    assert remedy in shown


def test_explain_lists_rules(rules: None, capsys: Capture) -> None:
    assert main(["explain"]) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        "missing-function",
        "missing-module",
    ]


# --- as a process -----------------------------------------------------------------------------------------------------

PROGRAM = """
import sys, types, time
from pathlib import Path
sys.path.insert(0, {tests!r})
import sample_reports as samples, migrate_lens.commands
fake = types.ModuleType("migrate_lens.commands.diagnose")
def diagnose(options, progress):
    progress("torch: run smoke.py")
    if {busy!r}:
        Path({busy!r}).touch()
        while Path({busy!r}).exists():
            time.sleep(0.01)
    return samples.GAPS
fake.diagnose = diagnose
sys.modules[fake.__name__] = migrate_lens.commands.diagnose = fake
from migrate_lens.cli import main
sys.exit(main())
"""


def _command(*argv: str, busy: Path | None = None) -> list[str]:
    """The command over a made-up diagnosis, which lasts as long as the file ``busy`` that it makes is there."""
    tests = str(Path(__file__).parents[1] / "helpers")
    program = PROGRAM.format(tests=tests, busy=str(busy or ""))
    return [sys.executable, "-c", program, *argv]


def test_help_imports_nothing_heavy() -> None:
    program = "import sys\nfrom migrate_lens.cli import main\nmain(['--help'])\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert not loaded & {"torch", "paddle", "libcst", "rich", "numpy", "jinja2"}
    assert "diagnose" in done.stdout


def test_version(capsys: Capture) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"migrate-lens {migrate_lens.__version__}\n"


@pytest.mark.parametrize("argv", [["diagnose", "LIB"], ["diagnose", "LIB", "--format", "json"], ["--help"]])
def test_a_reader_that_goes_away(lib: Path, argv: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = _command(*(part.replace("LIB", str(lib)) for part in argv))
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert done.stderr == ""
    assert done.returncode in (0, 1)


def test_a_narrow_encoding(lib: Path) -> None:
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(_command("diagnose", str(lib)), capture_output=True, text=True, env=env, check=False)
    assert (done.returncode, done.stderr) == (1, "")


def test_an_interrupt_is_one_line(lib: Path, tmp_path: Path) -> None:
    busy = tmp_path / "busy"
    with running(_command("diagnose", str(lib), busy=busy), stderr=subprocess.PIPE) as process:
        assert wait_for(lambda: busy.exists() or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        _, shown = process.communicate(timeout=PATIENCE)
    assert (process.returncode, shown) == (130, "interrupted\n")
    assert list(Path.cwd().iterdir()) == []


def test_an_interrupt_that_is_ignored_is_ignored(lib: Path, tmp_path: Path) -> None:
    """Started by ``nohup``, or by ``&`` in a shell without job control, it goes on as every command does there."""
    busy = tmp_path / "busy"
    command = _command("diagnose", str(lib), "--format", "json", busy=busy)
    with running(command, ignoring=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert wait_for(lambda: busy.exists() or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        busy.unlink()
        out, shown = process.communicate(timeout=PATIENCE)
    assert (process.returncode, shown) == (1, "")
    assert json.loads(out)["schema"] == 1


def _on_terminal(command: list[str], **env: str) -> str:
    """What the command shows on a terminal of its own."""
    parent, child = pty.openpty()
    settings = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", **env}
    with running(command, stdin=child, stdout=child, stderr=child, env=settings) as process:
        os.close(child)
        shown = b"".join(_chunks(parent))
        process.wait()
    os.close(parent)
    return shown.decode()


def _chunks(parent: int) -> Iterator[bytes]:
    """Linux says EIO when the last writer of a terminal is gone."""
    while True:
        try:
            chunk = os.read(parent, 65536)
        except OSError:
            return
        if not chunk:
            return
        yield chunk


def test_a_terminal_gets_progress_and_colours(lib: Path) -> None:
    shown = _on_terminal(_command("diagnose", str(lib)), NO_COLOR="")
    assert "- torch: run smoke.py" in shown
    assert "\x1b[" in shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert "2 gaps: 1 issue, 1 narrow_scope." in plain


def test_no_color_is_respected(lib: Path) -> None:
    shown = _on_terminal(_command("diagnose", str(lib)), NO_COLOR="1")
    assert "\x1b[" not in shown
    assert "2 gaps" in shown


def test_json_on_a_terminal_is_not_coloured(lib: Path) -> None:
    shown = _on_terminal(_command("diagnose", str(lib), "--format", "json"), NO_COLOR="")
    assert json.loads(shown.partition("\n")[2])["schema"] == 1


def test_a_fault_of_ours_does_not_end_in_the_status_of_gaps(lib: Path, pipeline: Pipeline, capsys: Capture) -> None:
    pipeline.error = ValueError("a bug")
    assert main(["diagnose", str(lib)]) == 2
    shown = capsys.readouterr().err
    assert "ValueError: a bug" in shown
    assert "fault of migrate-lens" in shown
