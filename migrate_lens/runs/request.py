"""What a user asks for: what a trace is to be of, the workers that it needs, and what came of it.

From a ``TraceRequest`` come the bench, a ``Setting`` (its scope and limits), and with its ``Steering`` the
``RunRequest`` of each run (see ``runs.bench``).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from migrate_lens.model.report import Runtime
from migrate_lens.model.target import TARGET
from migrate_lens.model.trace import Trace
from migrate_lens.runs.bench import Bench, Steering
from migrate_lens.runs.tracer import Standing, Validation
from migrate_lens.runs.worker import Worker


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """What a trace was asked to be of.

    Attributes:
        program: a script, ``package.module:callable``, a pytest file or node.
        folder: where a program that is no file is looked for.
        runtime: where it runs.
        torch_python: interpreter of the torch side.
        paddle_python: interpreter of the target's side.
        scope: where the target answers; empty means the program's own modules.
        timeout: seconds that the run may take.
        steering: what is recorded, and done at chosen calls.
        like: a trace of the same program, whose random draws and parameters this run gets.
        backward: differentiate the program's result at its end.
    """

    program: str
    folder: Path
    runtime: Runtime
    torch_python: Path
    paddle_python: Path
    scope: tuple[str, ...]
    timeout: float
    steering: Steering
    like: Path | None = None
    backward: bool = False


@dataclass(frozen=True, slots=True)
class Recorded:
    """A trace, and whether it can be believed; None where that was not tried."""

    trace: Trace
    validation: Validation | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether it was tried, and something in it is not so."""
        return self.validation is not None and self.validation.standing is Standing.WRONG


@contextmanager
def workers(asked: TraceRequest, runtimes: Sequence[Runtime]) -> Iterator[Bench]:
    """Workers for some runtimes, and a private folder that is gone afterwards."""
    with ExitStack() as stack:  # one that runs is ended also where the other cannot be started
        folder = tempfile.TemporaryDirectory(prefix="migrate-lens-", ignore_cleanup_errors=True)
        name = stack.enter_context(folder)
        torch = target = None
        if Runtime.TORCH in runtimes:
            torch = stack.enter_context(Worker(asked.torch_python, "torch"))
        if set(runtimes) - {Runtime.TORCH}:
            target = stack.enter_context(Worker(asked.paddle_python, TARGET.name))
        yield Bench(torch, target, Path(name))
