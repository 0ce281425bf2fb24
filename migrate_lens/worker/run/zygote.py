"""The worker process: a framework imported once, jobs in as JSON lines, each run in a fork, its fate out as a line.

A fork of a warm interpreter starts in milliseconds where a fresh one takes seconds; each job still has a process of
its own, so a crash, a hang or ``os._exit`` is that job's fate and nobody else's. On the first line out the worker says
what it is. Everything that is printed goes to files: the pipe carries the protocol alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import resource
import select
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from migrate_lens.worker.run.job import Job

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def main(argv: list[str]) -> int:
    """Serve jobs until the pipe closes. ``argv``: runtime family (``torch`` or ``paddle``), ``keep`` or ``hide``."""
    out = os.dup(1)
    commands = os.dup(0)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(null, stream)
    _die_with_parent()
    _adopt_orphans()
    family, keep = argv[0], argv[1] == "keep"
    try:
        backend, seed, about = _load(family, keep)
        importlib.import_module("migrate_lens.worker.run.job")  # once here, not in each fork; it needs numpy
    except Exception as error:  # noqa: BLE001 - the worker's edge: whatever importing a framework raises is the answer
        said = f"{type(error).__name__}: {error}"
        message = str(error.args[0]) if error.args else ""
        _say(out, {"error": said, "message": message, "kind": _kind(error)})
        return 0
    _say(out, about)
    for line in _lines(commands):
        _say(out, _serve(json.loads(line), backend, seed, commands))
    return 0


def _kind(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        return "missing"
    return "no_compat" if isinstance(error, LookupError) else "broken"


def _load(family: str, keep: bool) -> tuple[Any, Any, dict[str, Any]]:
    about: dict[str, Any] = {"python": sys.version.split()[0], "executable": sys.executable, "framework": family}
    if family == "torch":
        import torch

        from migrate_lens.worker.backends.torch.backend import TorchBackend
        from migrate_lens.worker.run import job  # noqa: F401 - loaded here once, not in each fork

        about |= {"version": torch.__version__, "commit": str(torch.version.git_version or "")}
        about["device"] = "cuda" if torch.cuda.is_available() else "cpu"
        return TorchBackend(), torch.manual_seed, about
    if not keep:
        from migrate_lens.worker.run.hide import hide_torch

        hide_torch()
    import paddle

    if not hasattr(paddle, "enable_compat"):
        raise LookupError(f"paddle {paddle.__version__} has no enable_compat")
    # Paddle's handler prints to stdout, and deadlocks in malloc after a heap corruption.
    paddle.disable_signal_handler()
    from migrate_lens.worker.backends.paddle.backend import PaddleBackend
    from migrate_lens.worker.heal import healer  # noqa: F401 - loaded here once, not in each fork

    about |= {"version": paddle.__version__, "commit": str(paddle.version.commit)}
    about["device"] = "gpu" if paddle.device.is_compiled_with_cuda() and paddle.device.cuda.device_count() else "cpu"
    return PaddleBackend(), paddle.seed, about


def _serve(job: Job, backend: Any, seed: Any, commands: int) -> dict[str, Any]:
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        _child(job, backend, seed)
    fate = _wait(child, job["timeout"], commands)
    return {**fate, "seconds": time.monotonic() - start}


def _child(job: Job, backend: Any, seed: Any) -> None:
    os.setsid()
    _die_with_parent()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for stream, path in ((1, job["stdout"]), (2, job["stderr"])):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), stream)
    code = 70
    try:
        from migrate_lens.worker.run.job import run

        _enable(job)
        run(job, backend, seed)
        sys.stdout.flush()
        sys.stderr.flush()
        code = 0
    finally:
        os._exit(code)


def _enable(job: Job) -> None:
    if job["runtime"] == "torch":
        return
    import warnings

    import paddle

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if job["runtime"] == "paddle":
            paddle.enable_compat(scope=set(job["scope"]))
        else:
            paddle.enable_compat()


def _wait(child: int, timeout: float, commands: int) -> dict[str, Any]:
    """Wait for a job, its time limit, or the driver's end, whichever comes first."""
    watch = os.pidfd_open(child)
    try:
        ready, _, _ = select.select([watch, commands], [], [], timeout)
        if watch not in ready and commands in ready:
            ready = []
        timed_out = not ready
        if timed_out:
            _kill_group(child)
        _, status, usage = os.wait4(child, 0)
    finally:
        os.close(watch)
    _kill_group(child)
    _kill_orphans()
    code = os.waitstatus_to_exitcode(status)
    return {"code": code, "timed_out": timed_out, "rss_kb": usage.ru_maxrss}


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
    mine, found = str(os.getpid()), []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
            if file.read().rpartition(")")[2].split()[1] == mine:
                found.append(int(name))
    return found


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
