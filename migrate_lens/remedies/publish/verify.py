"""A command and a folder in; how a clean process ends in it out, and what all runs of a reproduction say together."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TIMES = 3
TIMEOUT, TIMEOUT_NATIVE = 120.0, 900.0  # seconds
# How anybody runs a file under Paddle's compat layer; nothing of ours is needed.
UNDER_PADDLE = "import runpy, sys, paddle; paddle.enable_compat(); runpy.run_path(sys.argv[1], run_name='__main__')"
# The same with compat for one package only.
IN_SCOPE = (
    "import runpy, sys, paddle; paddle.enable_compat(scope={'pkg'}); runpy.run_path(sys.argv[1], run_name='__main__')"
)
_RUNNING: set[subprocess.Popen[str]] = set()
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

    @property
    def missing(self) -> str:
        """The module that was not found, where that ended it."""
        names = re.findall(r"^ModuleNotFoundError: No module named '([\w.]+)'", self.output, re.MULTILINE)
        return names[-1] if names else ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """All clean runs of one reproduction."""

    torch: tuple[CleanRun, ...]
    paddle: tuple[CleanRun, ...]

    def holds(self, failure: str) -> bool:
        """Whether every run passed under torch and every run failed under Paddle in the expected way."""
        passes = all(run.passed for run in self.torch)
        return passes and all(same_failure(run.failure, failure) for run in self.paddle)

    @property
    def said(self) -> str:
        """What happened, in a line."""
        torch = "passes" if all(run.passed for run in self.torch) else f"fails ({self.torch[-1].failure})"
        paddle = ", ".join(sorted({run.failure or "passes" for run in self.paddle}))
        return f"torch {torch} {len(self.torch)} times; paddle: {paddle}, {len(self.paddle)} times"


def same_failure(one: str, other: str) -> bool:
    """Whether two failures are one: an exception may be named with its module or without."""
    return one.rpartition(".")[2] == other.rpartition(".")[2]


def run_files_under_paddle(files: Mapping[str, str], main: str, paddle: Path, switch: str = UNDER_PADDLE) -> CleanRun:
    """Run a project once under Paddle; compiling may take its time."""
    return next(runs_under_paddle(files, main, paddle, switch))


def runs_under_paddle(
    files: Mapping[str, str], main: str, paddle: Path, switch: str = UNDER_PADDLE
) -> Iterator[CleanRun]:
    """Run a project under Paddle, again and again as long as somebody asks; each time as a new process."""
    return _runs(files, main, [str(paddle), "-c", switch, main])


def runs_under_torch(files: Mapping[str, str], main: str, torch: Path) -> Iterator[CleanRun]:
    """Run a project under torch, again and again as long as somebody asks; what was compiled stays."""
    return _runs(files, main, [str(torch), main])


def _runs(files: Mapping[str, str], main: str, command: list[str]) -> Iterator[CleanRun]:
    with tempfile.TemporaryDirectory(prefix="migrate-lens-clean-", ignore_cleanup_errors=True) as folder:
        written(files, Path(folder))
        while True:
            yield run_in(Path(folder), command, TIMEOUT_NATIVE)


def written(files: Mapping[str, str], folder: Path) -> None:
    """Write a project into a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def run_in(folder: Path, command: list[str], limit: float, paths: Sequence[Path] = ()) -> CleanRun:
    """Run a command in a folder, in a process group of its own.

    Args:
        folder: the working folder; it is left out of what is shown.
        command: what to run.
        limit: seconds.
        paths: folders in which Python looks for modules first.
    """
    environment = surroundings()
    if paths:
        environment["PYTHONPATH"] = os.pathsep.join(map(str, paths))
    with subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        _RUNNING.add(process)
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            return CleanRun(typed(command), None, "", "timeout")
        finally:
            _RUNNING.discard(process)
            if process.returncode is None:
                _kill(process)
    return ended(folder, typed(command), process.returncode, out, err)


def stop() -> None:
    """End all runs that are under way, in whatever thread, with what they started."""
    for process in tuple(_RUNNING):
        _kill(process)


def _kill(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def surroundings() -> dict[str, str]:
    """The variables of a clean process: the user's own, and nothing is written beside the modules or about the run."""
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "GLOG_minloglevel": "3"}


def ended(folder: Path, command: str, code: int | None, out: str, err: str) -> CleanRun:
    """A run that is over.

    Args:
        folder: where it ran; it is left out of what is shown.
        command: what was typed.
        code: its exit status, negative for a signal, None where it did not end in time.
        out: what it wrote to stdout.
        err: what it wrote to stderr.
    """
    output = (out + err).replace(f"{folder}/", "").replace(str(folder), ".")
    return CleanRun(command, code, output, "timeout" if code is None else _failure(code, err))


def without(package: str) -> str:
    """Statements after which a package is not installed, as far as Python can tell."""
    return (
        "import sys, importlib.machinery as m\n"
        "class Finder(m.PathFinder):\n"
        "    @classmethod\n"
        "    def find_spec(cls, name, path=None, target=None):\n"
        f"        return None if name.partition('.')[0] == {package!r} else super().find_spec(name, path, target)\n"
        "sys.meta_path[:] = [Finder if f is m.PathFinder else f for f in sys.meta_path]"
    )


def typed(command: list[str]) -> str:
    """The command as a person types it."""
    name, *rest = command
    shown = ["python", *(f'"{part}"' if " " in part else part for part in rest)]
    return " ".join(shown) if name else ""


def _failure(code: int, stderr: str) -> str:
    if code == 0:
        return ""
    if code < 0:
        return signal.Signals(-code).name
    named = _TYPE.match(_last_exception(stderr))
    return named[1] if named else f"exit status {code}"


def _last_exception(stderr: str) -> str:
    """The first line after the frames of the last traceback: the exception, whose text may have many lines."""
    lines = stderr.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")]
    if not starts:
        return ""
    return next((line for line in lines[starts[-1] + 1 :] if line and not line.startswith(" ")), "")
