"""The worker process: a framework imported once, jobs in as JSON lines, each run in a fork, its fate out as a line.

A fork of a warm interpreter starts in milliseconds where a fresh one takes seconds; each job still has a process of
its own, so a crash, a hang or ``os._exit`` is that job's fate and nobody else's. On the first line out the worker says
what it is. Everything that is printed goes to files: the pipe carries the protocol alone.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import ctypes
import gc
import json
import os
import resource
import select
import signal
import sys
import threading
import time
import types
from typing import TYPE_CHECKING, Any, NoReturn

from migrate_lens.worker import backends

if TYPE_CHECKING:
    from migrate_lens.worker.backends.framework import Backend, Framework
    from migrate_lens.worker.run.job import Job

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def main(argv: list[str]) -> int:
    """Serve jobs until the pipe closes.

    Args:
        argv: the framework, as ``backends.load`` knows it; ``keep`` or ``hide``, for real torch beside a target; the
            descriptor that answers go to.
    """
    out = int(argv[2])
    os.set_inheritable(out, False)
    commands = os.dup(0)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(null, stream)
    _die_with_parent()
    _adopt_orphans()
    try:
        framework = backends.load(argv[0])
        about = _start(framework, keep_torch=argv[1] == "keep")
        # Once here, not in each fork; both need numpy, and one the framework.
        from migrate_lens.worker.run import job  # noqa: F401

        backend = framework.make_backend()
    except Exception as error:  # noqa: BLE001 - the worker's edge: whatever importing a framework raises is the answer
        said = f"{type(error).__name__}: {error}"
        message = str(error.args[0]) if error.args else ""
        _say(out, {"error": said, "message": message, "kind": _kind(error)})
        return 0
    _bind()
    gc.freeze()  # what is imported outlives each job: no job's collector need look at it, and copy its pages by that
    _say(out, about)
    for line in _lines(commands):
        _say(out, _serve(json.loads(line), framework, backend, commands))
    return 0


def _bind() -> None:
    """Give each module of ours the builtins, the standard library and numpy as they are now.

    A program may put others in their place. ``sys`` is not only read but written.
    """
    known = {name: value for name, value in vars(builtins).items() if not name.startswith("_")}
    copies: dict[str, types.ModuleType] = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == __name__.partition(".")[0]:
            space = module.__dict__
            used = {key: value for key, value in space.items() if type(value) is types.ModuleType}
            space.update({key: _as_it_is(value, copies) for key, value in used.items()})
            space.update({key: value for key, value in known.items() if key not in space})


def _as_it_is(module: types.ModuleType, copies: dict[str, types.ModuleType]) -> types.ModuleType:
    """A module that is read alone with all that it has now; any other as it is."""
    name = module.__name__
    if name in ("sys", "builtins") or not (name == "numpy" or name.partition(".")[0] in sys.stdlib_module_names):
        return module
    if name not in copies:
        copies[name] = types.ModuleType(name)
        copies[name].__dict__.update(module.__dict__)
    return copies[name]


def _kind(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        return "missing"
    return "no_compat" if isinstance(error, LookupError) else "broken"


def _start(framework: Framework, *, keep_torch: bool) -> dict[str, Any]:
    """Import a framework; what this worker is, for the driver."""
    started = framework.start(keep_torch=keep_torch)
    python = {"python": sys.version.split()[0], "executable": sys.executable}
    return {**python, "framework": framework.name, **started._asdict()}


def _serve(job: Job, framework: Framework, backend: Backend, commands: int) -> dict[str, Any]:
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        _child(job, framework, backend)
    fate = _wait(child, job, commands)
    return {**fate, "seconds": time.monotonic() - start}


def _child(job: Job, framework: Framework, backend: Backend) -> NoReturn:
    os.setsid()
    _die_with_parent()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for stream, path in ((1, job["stdout"]), (2, job["stderr"])):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), stream)
    code = 70
    try:
        from migrate_lens.worker.run.job import run

        if not framework.baseline:
            framework.answer_torch(job["scope"] if job["runtime"] == framework.name else None)
        run(job, framework, backend)
        if framework.baseline and not job["finish"]:
            # An end like any program's, but for what the interpreter releases: its threads, then what it registered.
            threading._shutdown()  # type: ignore[attr-defined]
            atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        code = 0
    finally:
        if code or not job["finish"]:
            os._exit(code)
    raise SystemExit(0)  # an end like any program's: what it still holds is released


def _wait(child: int, job: Job, commands: int) -> dict[str, Any]:
    """Wait for a job, one of its limits, or the driver's end, whichever comes first."""
    watch = os.pidfd_open(child)
    try:
        excess = _watched(watch, job, commands)
        if excess is not None:
            _kill_group(child)
        _, status, usage = os.wait4(child, 0)
    finally:
        os.close(watch)
    _kill_group(child)
    _kill_orphans()
    code = os.waitstatus_to_exitcode(status)
    return {"code": code, "timed_out": excess is not None, "rss_kb": usage.ru_maxrss, "excess": excess or ""}


def _watched(watch: int, job: Job, commands: int) -> str | None:
    """What a job had too much of, ``""`` for time; None where it ended by itself."""
    end = time.monotonic() + job["timeout"]
    pause = 0.01
    while time.monotonic() < end:
        ready, _, _ = select.select([watch, commands], [], [], min(pause, end - time.monotonic()))
        if watch in ready:
            return None
        if commands in ready:
            return ""
        pause = min(pause * 2, 0.1)
        if _size(job["stdout"]) + _size(job["stderr"]) > job["most_output"]:
            return "output"
        if _size(job["trace"]) > job["most_trace"]:
            return "trace"
    return ""


def _size(path: str) -> int:
    """Bytes of a file; none where there is none yet."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _kill_orphans() -> None:
    """End what a job left behind in sessions of its own: their parent is gone, so they are this process's children."""
    for _ in range(100):
        try:
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
        for orphan in _children():
            os.kill(orphan, signal.SIGKILL)
        time.sleep(0.01)


def _children() -> list[int]:
    mine = str(os.getpid())
    children = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
            if file.read().rpartition(")")[2].split()[1] == mine:
                children.append(int(name))
    return children


def _adopt_orphans() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _say(out: int, message: dict[str, Any]) -> None:
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(out, data) :]


def _lines(commands: int) -> Any:
    buffer = b""
    while True:
        chunk = os.read(commands, 1 << 16)
        if not chunk:
            return
        buffer += chunk
        while b"\n" in buffer:
            line, _, buffer = buffer.partition(b"\n")
            yield line
