"""The three functions for use from Python: programs, trace files or a block of code in; traces and comparisons out."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from migrate_lens.commands import trace as tracing
from migrate_lens.compare import comparison
from migrate_lens.compare.comparison import Comparison
from migrate_lens.config import DEFAULT_TIMEOUT
from migrate_lens.model.report import Level, Runtime
from migrate_lens.model.trace import Trace
from migrate_lens.runs.bench import MAX_BYTES, Steering
from migrate_lens.runs.in_process import Recording, recording
from migrate_lens.runs.request import TraceRequest

_HERE = Path(sys.executable)


def trace(  # noqa: PLR0913 - the options of the command are the interface
    program: str | Path,
    *,
    runtime: str = "torch",
    output: str | Path | None = None,
    record: str = "digests",
    max_bytes: int = MAX_BYTES,
    zoom: str = "",
    stop_at: str = "",
    substitute: Mapping[str, object] | None = None,
    like: str | Path | None = None,
    gradients: bool = False,
    backward: bool = False,
    scope: Sequence[str] = (),
    library: str | Path = ".",
    torch_python: str | Path = _HERE,
    paddle_python: str | Path = _HERE,
    timeout: float = DEFAULT_TIMEOUT,
) -> Trace:
    """Run a program in a process of its own and record every torch call that it makes.

    The options are keywords, one for each flag of ``migrate-lens trace``: they are what this function is for, so they
    are no object that a user must make first.

    Args:
        program: a script, ``package.module:callable``, a pytest file or node.
        runtime: ``torch``, ``paddle`` (scoped compat) or ``paddle-global``.
        output: keep the trace there too.
        record: ``structure``, ``digests`` or ``values``.
        max_bytes: with ``values``, the largest tensor in bytes that is kept whole.
        zoom: the call below which low-level operators are recorded, or ``all``.
        stop_at: the call after which the program is stopped.
        substitute: by call, what the program is handed in its place: numbers, strings, lists, or numpy arrays, which
            stand for tensors.
        like: a trace whose random draws and parameters this run gets.
        gradients: record the gradient that reaches each call's result.
        backward: differentiate the program's result at its end.
        scope: where Paddle answers.
        library: where a program that is no file is looked for.
        torch_python: the interpreter that has torch.
        paddle_python: the interpreter that has Paddle.
        timeout: seconds that the run may take.

    Raises:
        LensError: the program, a call's name or an interpreter cannot be used, or no call was recorded.
    """
    handed = tuple((call, tracing.encoded(value)) for call, value in (substitute or {}).items())
    asked = TraceRequest(
        program=str(program),
        folder=Path(library),
        runtime=Runtime(runtime),
        torch_python=Path(torch_python),
        paddle_python=Path(paddle_python),
        scope=tuple(scope),
        timeout=timeout,
        steering=Steering(Level(record), max_bytes, zoom, stop_at, handed, gradients),
        like=Path(like) if like else None,
        backward=backward,
    )
    return tracing.trace(asked, tracing.Kept(Path(output) if output else None), lambda line: None).trace


def compare(left: Trace | str | Path, right: Trace | str | Path) -> Comparison:
    """Hold one trace against another.

    Args:
        left: what is expected: a trace or its file.
        right: what is held against it.

    Raises:
        UsageError: a file is no trace.
    """
    return comparison.compare(_opened(left), _opened(right))


def _opened(trace: Trace | str | Path) -> Trace:
    return trace if isinstance(trace, Trace) else tracing.opened(Path(trace))


def record(output: str | Path | None = None, *, level: str = "digests") -> AbstractContextManager[Recording]:
    """Record what the functions of loaded modules do, in this very process, while the block runs.

    The block itself is running code that cannot be observed any more, so what is to be recorded belongs in functions;
    torch calls written in the block are said to be missing (``body-not-observed``).

    Args:
        output: keep the trace there too.
        level: ``structure``, ``digests`` or ``values``.

    Raises:
        UsageError: neither torch nor Paddle is loaded.
    """
    return recording(Path(output) if output else None, Level(level), sys._getframe(1))


__all__ = ["Comparison", "Recording", "Trace", "compare", "record", "trace"]
