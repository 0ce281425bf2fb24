"""A command line goes in; its exit status, bounded output and wall time come out, and no process of it stays."""

from __future__ import annotations

import contextlib
import ctypes
import glob
import os
import resource
import selectors
import signal
import subprocess
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HEAD = 64 * 1024
TAIL = 256 * 1024
GRACE = 1.0
LEAST_MEMORY = 4 << 30
PR_SET_PDEATHSIG = 1
MARK = "MIGRATE_LENS_COMMAND"


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended; ``returncode`` is None when it was not there to be started."""

    returncode: int | None
    output: str
    seconds: float
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with status 0."""
        return self.returncode == 0 and not self.timed_out


class Bounded:
    """Keeps the head and the tail of a byte stream of any length."""

    def __init__(self, head: int = HEAD, tail: int = TAIL) -> None:
        self._head, self._tail = head, tail
        self._first = bytearray()
        self._last: deque[bytes] = deque()
        self._kept = 0
        self._lost = 0

    def add(self, data: bytes) -> None:
        """Takes the next piece of the stream."""
        room = self._head - len(self._first)
        if room > 0:
            self._first += data[:room]
            data = data[room:]
        if not data:
            return
        self._last.append(data)
        self._kept += len(data)
        while self._kept - len(self._last[0]) >= self._tail:
            dropped = len(self._last.popleft())
            self._kept -= dropped
            self._lost += dropped

    def text(self) -> str:
        """What was kept; a gap says how much is missing."""
        gap = f"\n[... {self._lost} bytes left out ...]\n".encode() if self._lost else b""
        return (bytes(self._first) + gap + b"".join(self._last)).decode("utf-8", "replace")


def _dies_with_parent() -> Callable[[], None] | None:
    """The child's half of PR_SET_PDEATHSIG where there is one; loaded here, as a fork must not load libraries."""
    try:
        prctl = ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        return None
    return lambda: prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


_PREEXEC = _dies_with_parent()
_RUNNING: set[subprocess.Popen[bytes]] = set()


def kill_running() -> None:
    """Ends every command that another thread is waiting for."""
    for process in tuple(_RUNNING):
        kill_group(process)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Ends the whole session that ``process`` leads, also when the leader is gone already.

    A group is not enough: ninja gives each compiler a group of its own.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for _ in range(10):  # one that was forking just then shows up in the next round
        members = session(process.pid)
        if not members:
            break
        for member in members:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(member, signal.SIGKILL)
    process.wait()  # what is killed ends; how soon depends on how busy the machine is


def kill_marked(mark: str) -> None:
    """Ends what a command left running in sessions of its own: it has the mark of the command in its environment."""
    said = f"{MARK}={mark}".encode()
    for _ in range(10):
        marked = [pid for pid in _all_processes() if said in _environment(pid)]
        if not marked:
            break
        for pid in marked:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _all_processes() -> list[int]:
    return [int(folder.removeprefix("/proc/")) for folder in glob.iglob("/proc/[0-9]*")]


def _environment(pid: int) -> bytes:
    """The environment that a process was started with; empty for one that has ended, or is somebody else's."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def session(leader: int) -> list[int]:
    """The living processes of a session, its leader apart; none where there is no /proc."""
    members = []
    for folder in glob.iglob("/proc/[0-9]*"):
        try:
            with open(f"{folder}/stat", encoding="utf-8", errors="replace") as file:
                state, _, _, owner = file.read().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            continue  # it has ended since
        pid = int(folder.removeprefix("/proc/"))
        if owner == str(leader) and state != "Z" and pid != leader:
            members.append(pid)
    return members


def memory_limit() -> int:
    """Bytes that one compiler may take: half of the machine, as two of them run at a time."""
    try:
        whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        whole = 0
    return max(LEAST_MEMORY, whole // 2)


def _limited(memory: int) -> Callable[[], None] | None:
    """What a child does before it becomes the command."""
    if not memory:
        return _PREEXEC

    def before() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        if _PREEXEC is not None:
            _PREEXEC()

    return before


def run_bounded(
    argv: Sequence[str | Path], *, cwd: Path, env: Mapping[str, str], timeout: float, memory: int = 0
) -> Ran:
    """Runs ``argv`` in a session of its own, with nothing on stdin, for at most ``timeout`` seconds.

    ``memory`` is how many bytes each of its processes may take, 0 for as many as there are.
    """
    start = time.monotonic()
    mark = uuid.uuid4().hex
    try:
        process = subprocess.Popen(
            [str(part) for part in argv],
            cwd=cwd,
            env={**env, MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_limited(memory),
        )
    except OSError as error:
        return Ran(None, f"{argv[0]}: {error.strerror}", time.monotonic() - start)
    kept = Bounded()
    _RUNNING.add(process)
    try:
        in_time = _drain(process, kept, start + timeout)
    finally:
        _RUNNING.discard(process)
        kill_group(process)
        kill_marked(mark)
        if process.stdout is not None:
            process.stdout.close()
    return Ran(process.returncode, kept.text(), time.monotonic() - start, timed_out=not in_time)


def _drain(process: subprocess.Popen[bytes], kept: Bounded, deadline: float) -> bool:
    """Reads until the command has ended; False if the deadline came first.

    Something that the command left running may hold the pipe open for ever, so its end is waited for only shortly.
    """
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        ended: float | None = None
        while True:
            now = time.monotonic()
            if ended is None and process.poll() is not None:
                ended = now
            if ended is not None and now - ended > GRACE:
                return True
            if ended is None and now > deadline:
                return False
            if selector.select(0.1):
                data = os.read(process.stdout.fileno(), 65536)
                if not data:
                    return _wait(process, deadline)
                kept.add(data)


def _wait(process: subprocess.Popen[bytes], deadline: float) -> bool:
    """After the pipe was closed: whether the command itself ends in time."""
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True
