"""Worker processes: an interpreter and a framework in, a running worker out; jobs in, their fates out."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypedDict

from migrate_lens.model.errors import RuntimeUnavailable
from migrate_lens.model.report import Environment
from migrate_lens.shipped import PACKAGE

# Nobody reads more of what a program prints; a trace is read into memory.
MOST_OUTPUT, MOST_TRACE = 64 << 20, 8 << 30
_BOOT = PACKAGE / "worker" / "run" / "boot.py"
_PACKAGE = {"torch": "torch==2.13.0", "paddle": "paddlepaddle==3.3.1"}


class _Message(TypedDict, total=False):
    """What a worker says: who it is, why it cannot start, or how a job ended; one JSON object a line."""

    python: str
    executable: str
    version: str
    commit: str
    device: str
    error: str
    message: str
    kind: str
    code: int
    timed_out: bool
    seconds: float
    rss_kb: int
    excess: str


class Excess(StrEnum):
    """What a run may have only so much of, beside time."""

    NONE = ""
    OUTPUT = "output"
    TRACE = "trace"

    @property
    def most(self) -> int:
        """Bytes that a run may have of it."""
        return MOST_TRACE if self is Excess.TRACE else MOST_OUTPUT


@dataclass(frozen=True, slots=True)
class Fate:
    """How a job's process ended.

    Attributes:
        code: its exit status, negative for a signal.
        timed_out: whether it was killed for taking longer than its limit.
        seconds: wall time.
        rss_kb: its largest resident set, in kB.
        excess: what it was killed for having too much of, where that is not time.
    """

    code: int
    timed_out: bool
    seconds: float
    rss_kb: int
    excess: Excess = Excess.NONE

    @property
    def bound(self) -> str:
        """Within what it did not end, where it was killed for that."""
        if self.excess is Excess.NONE:
            return f"within {self.seconds:.0f} s"
        return f"before there are {self.excess.most >> 20} MiB of its {self.excess}"

    @property
    def signal_name(self) -> str:
        """``SIGSEGV`` and the like, or ``""``."""
        return signal.Signals(-self.code).name if self.code < 0 else ""


class Worker:
    """One interpreter with one framework, started at once and asked later; a context manager that leaves no process.

    Args:
        python: the interpreter.
        family: the framework: ``torch``, or the name of the target.
        keep_torch: leave real torch visible in a worker of the target's.
    """

    def __init__(self, python: Path, family: str, *, keep_torch: bool = False) -> None:
        self.python = python
        self.family = family
        self._about: Environment | None = None
        # Answers have a pipe of their own: whatever an interpreter's start-up prints is nobody's answer.
        answers, out = os.pipe()
        command = [str(python), str(_BOOT), family, "keep" if keep_torch else "hide", str(out)]
        self._answers = os.fdopen(answers, "rb")
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=_environment(),
                start_new_session=True,
                pass_fds=(out,),
            )
        except OSError as error:
            self._answers.close()
            raise RuntimeUnavailable(
                f"cannot start {python}: {error.strerror}", f"give an interpreter with --{family}-python"
            ) from error
        finally:
            os.close(out)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def environment(self) -> Environment:
        """Wait until the framework is imported; what the worker says of itself.

        Raises:
            RuntimeUnavailable: the interpreter has no such framework, or it cannot be imported.
        """
        if self._about is None:
            self._about = self._greeting()
        return self._about

    def _greeting(self) -> Environment:
        line = self._read()
        if line is None:
            raise RuntimeUnavailable(
                f"{self.python} ended before it could import {self.family}",
                f"run {self.python} -c 'import {self.family}, numpy' to see why, or give --{self.family}-python",
            )
        if "error" in line:
            raise RuntimeUnavailable(*self._complaint(line))
        return Environment(
            line["python"], line["executable"], self.family, line["version"], line["commit"], line["device"]
        )

    def _complaint(self, line: _Message) -> tuple[str, str]:
        """What is wrong, and what to do about it."""
        option = f"--{self.family}-python"
        package = _PACKAGE[self.family]
        error = line["error"]
        match line["kind"]:
            case "missing":
                remedy = f"{self.python} -m pip install {package} numpy, or give {option}"
                return f"{self.python} has no usable {self.family} ({error})", remedy
            case "no_compat":
                return line["message"], f"install {package} or newer, or give {option}"
            case _:
                return f"importing {self.family} failed in {self.python}: {error}", f"repair it, or give {option}"

    def run(self, job: Mapping[str, object]) -> Fate:
        """Run one job to its end.

        Raises:
            RuntimeUnavailable: the worker itself is gone.
        """
        self.environment()
        answer = None
        with contextlib.suppress(BrokenPipeError):
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(job).encode() + b"\n")
            self._process.stdin.flush()
            answer = self._read()
        if answer is None:
            raise RuntimeUnavailable(f"the {self.family} worker ended unexpectedly", "run the command again")
        return Fate(answer["code"], answer["timed_out"], answer["seconds"], answer["rss_kb"], Excess(answer["excess"]))

    def _read(self) -> _Message | None:
        """The next message, None at the end."""
        line = self._answers.readline()
        if not line.endswith(b"\n"):
            return None
        message: _Message = json.loads(line)
        return message

    def close(self) -> None:
        """End the worker and whatever it runs."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(timeout=2 if self._about else 0)  # one that has not spoken yet has nothing to end well
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._answers.close()


def _environment() -> dict[str, str]:
    """The user's environment, with what makes two runs comparable."""
    extra = {
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        # torch.compile would trace through the observed code; it runs eagerly instead, with the same results.
        "TORCHDYNAMO_DISABLE": "1",
        "GLOG_minloglevel": "3",
    }
    return {**os.environ, **extra}
