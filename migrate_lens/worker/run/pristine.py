"""A clean interpreter: a framework imported, nothing else, jobs in as JSON lines; each runs in a fork, its fate out.

Run by path, in an interpreter that need not have migrate-lens installed. A fork of it is what a fresh interpreter is
after the first line of a reproduction, `import torch` or the target's, and it lives on as that interpreter would: a
program's exit, its traceback and the end of the interpreter are Python's own.

On the first line out it says whether it may be forked: a framework built for a GPU may not be, once it is loaded.
"""

import contextlib
import ctypes
import importlib
import json
import os
import select
import signal
import sys
import tempfile
import types
from collections.abc import Callable, Sequence
from typing import Any

_PR_SET_PDEATHSIG = 1
_MUCH = 1 << 20  # bytes of what an import says
Hook = Callable[[type[BaseException], BaseException, types.TracebackType | None], object]


def main(family: str) -> None:
    """Serve jobs until the pipe closes; in a fork, be the program.

    Args:
        family: what the framework is imported as.
    """
    out, commands = os.dup(1), os.fdopen(os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as warned:
        for stream, file in ((1, said), (2, warned)):
            os.dup2(file.fileno(), stream)
        _say(out, {"forks": _load(family)})
        heard = tuple(os.pread(file.fileno(), _MUCH, 0) for file in (said, warned))
    for line in commands:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(job, heard)
            return
        _say(out, {"pid": child})
        _say(out, _wait(child, job["limit"]))


def _load(family: str) -> bool:
    """Import a framework; whether a process that did may be forked."""
    try:
        framework = importlib.import_module(family)
    except ImportError:
        return False  # a fresh interpreter will say so
    sys.stdout.flush()
    sys.stderr.flush()
    return not _built_for_gpu(framework)


def _built_for_gpu(framework: Any) -> bool:
    """Whether a framework was built for a GPU, as it says itself: by functions, or by its version."""
    if hasattr(framework, "is_compiled_with_cuda"):
        return bool(framework.is_compiled_with_cuda() or framework.is_compiled_with_xpu())
    return bool(framework.version.cuda or framework.version.hip)


def _say(out: int, message: dict[str, object]) -> None:
    os.write(out, json.dumps(message).encode() + b"\n")


def _wait(child: int, limit: float) -> dict[str, object]:
    """Wait for a fork, and end what it leaves behind."""
    watch = os.pidfd_open(child)
    ended = bool(select.select([watch], [], [], limit)[0])
    os.close(watch)
    if not ended:
        os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return {"code": os.waitstatus_to_exitcode(status) if ended else None}


def _become(job: dict[str, str], heard: Sequence[bytes]) -> None:
    """Be ``python MAIN``, or ``python -c SWITCH MAIN``, in a folder.

    Args:
        job: ``folder``, ``main``, ``switch``, and the files for stdout and stderr, ``1`` and ``2``.
        heard: what the framework wrote there when it was imported.
    """
    os.setsid()
    _die_with_parent()
    sys.excepthook = _without_us(sys.excepthook)
    os.chdir(job["folder"])
    for stream, text in zip((1, 2), heard, strict=True):
        os.dup2(os.open(job[str(stream)], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), stream)
        os.write(stream, text)
    switch, program = job["switch"], job["main"]
    sys.path.insert(0, "" if switch else job["folder"])
    sys.argv = ["-c", program] if switch else [program]
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    name = "<string>" if switch else os.path.join(job["folder"], program)
    if not switch:
        module.__dict__["__file__"] = name
    with open(program, "rb") as file:
        code = compile(switch or file.read(), name, "exec", dont_inherit=True)
    exec(code, module.__dict__)


def _without_us(hook: Hook) -> Hook:
    """The way in which a traceback is written, without the frames of this file."""

    def written(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        hook(kind, error.with_traceback(trace), trace)

    return written


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this script
    main(sys.argv[1])
