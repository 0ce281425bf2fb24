"""Commands, in; processes that mind an interrupt and end with their test, and who is still alive, out."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

PATIENCE = 300.0
"""Seconds that something may take on the busiest machine; nothing that goes well takes a part of them."""

PIPES: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}

MAIN = "import sys; from migrate_lens.cli import main; sys.exit(main(sys.argv[1:]))"


def lens(*arguments: object) -> list[str]:
    """``migrate-lens`` with arguments, in this interpreter."""
    return [sys.executable, "-c", MAIN, *map(str, arguments)]


_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _minds_an_interrupt() -> None:
    for number in _ENDS:
        signal.signal(number, signal.SIG_DFL)


def _ignores_an_interrupt() -> None:
    _minds_an_interrupt()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextlib.contextmanager
def running(command: Sequence[str], *, ignoring: bool = False, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Start a command; at the end, whatever the test came to, it is killed and waited for and its pipes are closed.

    Args:
        command: what to run.
        ignoring: leave SIGINT ignored, as a shell's ``&`` does. Otherwise it has its ordinary meaning, as SIGTERM and
            SIGHUP have it, also where the suite itself was started with them ignored (``nohup``).
        options: what ``Popen`` takes.
    """
    before = _ignores_an_interrupt if ignoring else _minds_an_interrupt
    with subprocess.Popen(command, text=True, preexec_fn=before, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(condition: Callable[[], bool]) -> bool:
    """Whether something comes true before patience ends."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def alive(pid: int) -> bool:
    """Whether a process runs; a dead one that nobody has waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def gone(pid: int) -> bool:
    """Whether a process ends; one that is being ended is given its time."""
    return wait_for(lambda: not alive(pid))


def marked_with(mark: str) -> set[int]:
    """The living processes that were started, at any remove, with some text in their environment or on their line."""
    pids = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            said = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
            if mark.encode() in said and alive(int(entry.name)):
                pids.add(int(entry.name))
    return pids
