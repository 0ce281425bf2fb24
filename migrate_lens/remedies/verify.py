"""Files and two interpreters in; whether they pass under torch and fail under Paddle, in clean processes, out."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

TIMES = 3
TIMEOUT, TIMEOUT_NATIVE = 120.0, 900.0
# How anybody runs a file under Paddle's compat layer; nothing of ours is needed.
UNDER_PADDLE = "import runpy, sys, paddle; paddle.enable_compat(); runpy.run_path(sys.argv[1], run_name='__main__')"
# The same with compat for one package only.
IN_SCOPE = (
    "import runpy, sys, paddle; paddle.enable_compat(scope={'pkg'}); runpy.run_path(sys.argv[1], run_name='__main__')"
)
_TYPE = re.compile(r"^([A-Za-z_][\w.]*)(?::|$)")


@dataclass(frozen=True, slots=True)
class CleanRun:
    """One run in a process of its own.

    Attributes:
        command: what was typed.
        code: its exit status, negative for a signal, None where it did not end in time.
        output: what it wrote, stdout and stderr together.
        failure: exception type, signal, or ``timeout``; empty where it passed.
    """

    command: str
    code: int | None
    output: str
    failure: str

    @property
    def passed(self) -> bool:
        """Whether it ended well."""
        return self.code == 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """All clean runs of one reproduction."""

    torch: tuple[CleanRun, ...]
    paddle: tuple[CleanRun, ...]

    def holds(self, failure: str) -> bool:
        """Whether every run passed under torch and every run failed under Paddle in the expected way."""
        return all(r.passed for r in self.torch) and all(_same(r.failure, failure) for r in self.paddle)

    @property
    def said(self) -> str:
        """What happened, in a line."""
        ours = "passes" if all(r.passed for r in self.torch) else f"fails ({self.torch[-1].failure})"
        theirs = ", ".join(sorted({r.failure or "passes" for r in self.paddle}))
        return f"torch {ours} {len(self.torch)} times; paddle: {theirs}, {len(self.paddle)} times"


def _same(one: str, other: str) -> bool:
    return one.rpartition(".")[2] == other.rpartition(".")[2]


def verify(files: Mapping[str, str], main: str, torch: Path, paddle: Path, *, times: int = TIMES,
           switch: str = UNDER_PADDLE) -> Verdict:  # fmt: skip
    """Run a reproduction in clean processes, in an empty folder, several times on each side.

    Args:
        files: text by name.
        main: the one to run.
        torch: interpreter with torch.
        paddle: interpreter with Paddle.
        times: how often on each side.
        switch: how compat is switched on.
    """
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        theirs = [pool.submit(_run, files, main, [str(paddle), "-c", switch, main]) for _ in range(times)]
        ours = [pool.submit(_run, files, main, [str(torch), main]) for _ in range(times)]
        return Verdict(tuple(f.result() for f in ours), tuple(f.result() for f in theirs))


def run_files_under_paddle(files: Mapping[str, str], main: str, paddle: Path, switch: str = UNDER_PADDLE) -> CleanRun:
    """Run a project once under Paddle; compiling may take its time."""
    return _run(files, main, [str(paddle), "-c", switch, main], TIMEOUT_NATIVE)


def passes_under_torch(files: Mapping[str, str], main: str, torch: Path) -> CleanRun:
    """Run a project once under torch; compiling may take its time."""
    return _run(files, main, [str(torch), main], TIMEOUT_NATIVE)


def _run(files: Mapping[str, str], main: str, command: list[str], limit: float = TIMEOUT) -> CleanRun:
    with tempfile.TemporaryDirectory(prefix="migrate-lens-clean-") as folder:
        for name, text in files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "GLOG_minloglevel": "3"}
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=limit, env=environment,
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return CleanRun(_typed(command), None, "", "timeout")
        output = (done.stdout + done.stderr).replace(folder + "/", "").replace(folder, ".")
    return CleanRun(_typed(command), done.returncode, output, _failure(done.returncode, done.stderr))


def _typed(command: list[str]) -> str:
    """The command as a person types it."""
    name, *rest = command
    shown = ["python", *(f'"{part}"' if " " in part else part for part in rest)]
    return " ".join(shown) if name else ""


def _failure(code: int, stderr: str) -> str:
    if code == 0:
        return ""
    if code < 0:
        return signal.Signals(-code).name
    for line in reversed(_last_traceback(stderr)):
        found = _TYPE.match(line)
        if found:
            return found[1]
    return f"exit status {code}"


def _last_traceback(stderr: str) -> list[str]:
    """Lines after the frames of the last traceback: the exception, whose text may have many lines."""
    lines = stderr.splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")]
    if not starts:
        return []
    body = lines[starts[-1] + 1 :]
    for index, line in enumerate(body):
        if line and not line.startswith(" "):
            return [body[index]]
    return []
