"""Two interpreters in; reproductions run in clean processes of both, and their verdicts, out.

Of the runs on each side the first is a fresh interpreter, started as a person starts it. The others are forks of an
interpreter that has imported the framework and nothing else (see ``worker.pristine``): the same process at a tenth of
its cost, which is nearly all import. Where a process with the framework may not be forked, every run is a fresh one.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from migrate_lens.remedies.publish.verify import (
    TIMEOUT,
    TIMES,
    UNDER_PADDLE,
    CleanRun,
    Verdict,
    ended,
    run_in,
    stop,
    surroundings,
    typed,
    written,
)
from migrate_lens.shipped import PACKAGE

_Running = tuple["Future[CleanRun]", "Future[tuple[CleanRun, ...]]"]
_NOT_RUN = CleanRun("", None, "", "not run")
_SCRIPT = PACKAGE / "worker" / "run" / "pristine.py"
_OWN_FRAME = re.compile(rf'^[ ]*File "{re.escape(str(_SCRIPT))}".*\n(?:[ ]{{4,}}(?!File ).*\n)*', re.MULTILINE)


class CleanRoom:
    """Clean processes of both frameworks; a context manager that leaves no process.

    Args:
        torch: interpreter with torch.
        paddle: interpreter with Paddle.
    """

    def __init__(self, torch: Path, paddle: Path) -> None:
        self._torch, self._paddle = _Pristine(torch, "torch"), _Pristine(paddle, "paddle")
        self._threads = ThreadPoolExecutor(4)

    def __enter__(self) -> CleanRoom:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:  # nobody waits for a verdict any more
            self._torch.close()
            self._paddle.close()
            self._threads.shutdown(wait=False, cancel_futures=True)
            stop()
        self._threads.shutdown()
        self._torch.close()
        self._paddle.close()

    def verify(self, files: Mapping[str, str], main: str, *, switch: str = UNDER_PADDLE, times: int = TIMES) -> Verdict:
        """Run a reproduction in clean processes, each in an empty folder, several times on each side.

        Args:
            files: text by name.
            main: the one to run.
            switch: how compat is switched on.
            times: how often on each side.
        """
        ours = self._started(self._torch, files, main, "", times)
        theirs = self._started(self._paddle, files, main, switch, times)
        return Verdict(_all(ours), _all(theirs))

    def _started(self, side: _Pristine, files: Mapping[str, str], main: str, switch: str, times: int) -> _Running:
        first = self._threads.submit(_fresh, side.python, files, main, switch)
        return first, self._threads.submit(lambda: tuple(side.run(files, main, switch) for _ in range(times - 1)))


def _all(running: _Running) -> tuple[CleanRun, ...]:
    first, others = running
    return first.result(), *others.result()


class _Pristine:
    """One clean interpreter, started when the first run asks for it; one run at a time."""

    def __init__(self, python: Path, family: str) -> None:
        self.python = python
        self._family = family
        self._process: subprocess.Popen[bytes] | None = None
        self._forks = True
        self._closed = False
        self._child: int | None = None

    def run(self, files: Mapping[str, str], main: str, switch: str) -> CleanRun:
        """Run a program in a fork, or afresh where that cannot be; not at all once this is closed."""
        with tempfile.TemporaryDirectory(prefix="migrate-lens-clean-") as name:
            folder = Path(name) / "empty"
            written(files, folder)
            job = {"folder": str(folder), "main": main, "switch": switch, "limit": TIMEOUT}
            streams = {"1": f"{name}/stdout", "2": f"{name}/stderr"}
            answer = self._ask(job | streams)
            if answer is not None:
                out, err = (_without_us(Path(path).read_text(errors="replace")) for path in streams.values())
                return ended(folder, typed(_command(self.python, main, switch)), answer["code"], out, err)
        return _NOT_RUN if self._closed else _fresh(self.python, files, main, switch)

    def _ask(self, job: dict[str, object]) -> dict[str, int | None] | None:
        """How a job ended; None where this interpreter does not fork, or has died."""
        process = self._started() if self._forks and not self._closed else None
        if process is None or process.stdin is None:
            return None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(job).encode() + b"\n")
            process.stdin.flush()
        began = _read(process)
        self._child = began["pid"] if began else None
        answer = _read(process)
        self._child = None
        self._forks = answer is not None
        return answer

    def _started(self) -> subprocess.Popen[bytes] | None:
        """The interpreter once it has said that it forks; None where it does not."""
        if self._process is None:
            self._process = subprocess.Popen(
                [str(self.python), str(_SCRIPT), self._family],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=surroundings(),
                start_new_session=True,
            )
            self._forks = bool((_read(self._process) or {}).get("forks"))
        return self._process if self._forks else None

    def close(self) -> None:
        """End it, and whatever it runs."""
        self._closed = True
        if self._process is None:
            return
        for group in filter(None, (self._child, self._process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


def _without_us(said: str) -> str:
    """What a fork said, without the frames of the interpreter that it is a fork of: a framework may show all."""
    return _OWN_FRAME.sub("", said)


def _read(process: subprocess.Popen[bytes]) -> dict[str, int | None] | None:
    """The next message, None at the end; what an interpreter prints as it starts is passed over."""
    assert process.stdout is not None
    for line in process.stdout:
        with contextlib.suppress(ValueError):
            message = json.loads(line)
            if isinstance(message, dict):
                return message
    return None


def _fresh(python: Path, files: Mapping[str, str], main: str, switch: str) -> CleanRun:
    with tempfile.TemporaryDirectory(prefix="migrate-lens-clean-") as folder:
        written(files, Path(folder))
        return run_in(Path(folder), _command(python, main, switch), TIMEOUT)


def _command(python: Path, main: str, switch: str) -> list[str]:
    return [str(python), *(["-c", switch] if switch else []), main]
