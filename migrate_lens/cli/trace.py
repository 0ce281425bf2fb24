"""``migrate-lens trace``, ``diff`` and ``doctor``: flags in; a report of recorded calls and an exit code out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_lens import config
from migrate_lens.cli import exits, terminal
from migrate_lens.cli.flags import PaddlePython, TorchPython, add, format_of
from migrate_lens.model.errors import UsageError
from migrate_lens.model.report import Level, Runtime
from migrate_lens.reports import DIFF, DOCTOR, REPLAY, TRACE, View

if TYPE_CHECKING:
    from migrate_lens.model.trace import Trace
    from migrate_lens.runs.request import TraceRequest

WRITTEN = "How it is written."


@dataclass(frozen=True, slots=True)
class TraceFlags:
    """What can be typed after ``trace``."""

    program: Annotated[
        str,
        typer.Argument(metavar="PROGRAM", help="A script, package.module:callable, a pytest node, or a FILE.trace."),
    ]
    runtime: Annotated[Runtime, typer.Option(help="Who answers `import torch`.")] = Runtime.TORCH
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Keep the trace there.")] = None
    program_output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep there what the program itself prints.")
    ] = None
    record: Annotated[Level, typer.Option(help="How much of results is kept.")] = Level.DIGESTS
    max_bytes: Annotated[
        int, typer.Option(metavar="N", min=1, help="With values: the largest tensor that is kept whole.")
    ] = 1 << 22
    zoom: Annotated[
        str, typer.Option(metavar="CALL", help="Record the low-level operators below a call; `all` for each.")
    ] = ""
    stop_at: Annotated[str, typer.Option(metavar="CALL", help="Stop the program after a call.")] = ""
    substitute: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CALL=VALUE",
            help="Hand the program this in the call's place: a literal, a .npy or a .trace file; may be repeated.",
        ),
    ] = None
    like: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Give random draws and parameters the values that they have in that trace."),
    ] = None
    gradients: Annotated[
        bool, typer.Option("--gradients", help="Record the gradient that reaches each call's result.")
    ] = False
    backward: Annotated[bool, typer.Option("--backward", help="Differentiate the program's result at its end.")] = False
    replay: Annotated[
        str, typer.Option(metavar="CALL", help="Make a recorded call again, alone, on both sides; `all` for each.")
    ] = ""
    validate: Annotated[bool, typer.Option("--validate", help="Try whether the trace is true and complete.")] = False
    library: Annotated[Path, typer.Option(metavar="DIR", help="Where a program that is no file is looked for.")] = (
        Path()
    )
    scope: Annotated[
        list[str] | None, typer.Option(metavar="PACKAGE", help="Where Paddle answers; may be repeated.")
    ] = None
    torch_python: TorchPython = None
    paddle_python: PaddlePython = None
    timeout: Annotated[float | None, typer.Option(metavar="SECONDS", help="The time that a run may take.")] = None
    format: Annotated[str, format_of(TRACE, WRITTEN)] = "text"


@dataclass(frozen=True, slots=True)
class DiffFlags:
    """What can be typed after ``diff``."""

    left: Annotated[Path, typer.Argument(metavar="A", help="A trace: what is expected.")]
    right: Annotated[Path, typer.Argument(metavar="B", help="A trace: what is held against it.")]
    format: Annotated[str, format_of(DIFF, WRITTEN)] = "text"


@dataclass(frozen=True, slots=True)
class DoctorFlags:
    """What can be typed after ``doctor``."""

    torch_python: TorchPython = None
    paddle_python: PaddlePython = None
    format: Annotated[str, format_of(DOCTOR, WRITTEN)] = "text"


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    add(app, TraceFlags, trace)
    add(app, DiffFlags, diff)
    add(app, DoctorFlags, doctor)


def trace(flags: TraceFlags) -> int:
    """Run a program in one runtime and record every torch call that it makes; or look into a recording.

    CALL is a number, a name or a place: 12, torch.relu, torch.relu#3, model.py:7, model.py:7#3.
    """
    from migrate_lens.commands import trace as tracing

    asked = _asked(flags)
    if tracing.is_recording(flags.program):
        return _recorded(asked, flags)
    return _ran(asked, flags)


def _asked(flags: TraceFlags) -> TraceRequest:
    from migrate_lens.commands.trace import substitution
    from migrate_lens.runs.bench import Steering
    from migrate_lens.runs.request import TraceRequest

    handed = tuple(substitution(text) for text in flags.substitute or ())
    given = config.Given(
        scope=flags.scope or (),
        torch_python=flags.torch_python,
        paddle_python=flags.paddle_python,
        timeout=flags.timeout,
    )
    options = config.load(flags.library, given)
    return TraceRequest(
        program=flags.program,
        folder=flags.library,
        runtime=flags.runtime,
        torch_python=options.torch_python,
        paddle_python=options.paddle_python,
        scope=options.scope,
        timeout=options.timeout,
        steering=Steering(flags.record, flags.max_bytes, flags.zoom, flags.stop_at, handed, flags.gradients),
        like=flags.like,
        backward=flags.backward,
    )


def _recorded(asked: TraceRequest, flags: TraceFlags) -> int:
    """A trace file is shown, or calls of it are made again."""
    from migrate_lens.commands import trace as tracing
    from migrate_lens.runs.request import Recorded

    kept = flags.output or flags.program_output
    if flags.validate or kept is not None or tracing.asks_for_a_run(asked):
        raise UsageError("a recording can be shown or replayed, not recorded again", "name its program instead")
    recording = tracing.opened(Path(flags.program))
    if flags.replay:
        return _replayed(asked, recording, flags)
    terminal.show(TRACE.render(Recorded(recording), flags.format, View(kept=flags.program)))
    return exits.NO_GAPS


def _ran(asked: TraceRequest, flags: TraceFlags) -> int:
    """A program is recorded, and shown, or calls of it are made again."""
    from migrate_lens.commands import trace as tracing

    if flags.replay and flags.validate:
        raise UsageError("--replay and --validate are two questions", "ask one at a time")
    if flags.replay:
        asked = tracing.with_values(asked)
    recorded = tracing.trace(
        asked, tracing.Kept(flags.output, flags.program_output), terminal.progress(), validate=flags.validate
    )
    if flags.replay:
        return _replayed(asked, recorded.trace, flags)
    terminal.show(TRACE.render(recorded, flags.format, View(kept=str(flags.output or ""))))
    return exits.of(not recorded.is_wrong)


def _replayed(asked: TraceRequest, recording: Trace, flags: TraceFlags) -> int:
    from migrate_lens.commands import trace as tracing
    from migrate_lens.runs.replay import Verdict

    format = REPLAY.format(flags.format)
    judged = tracing.replay(recording, flags.replay, asked, terminal.progress())
    terminal.show(REPLAY.render(judged, format))
    differ = any(call.verdict in (Verdict.OPERATOR, Verdict.NOT_REPRODUCED) for call in judged)
    return exits.of(not differ)


def diff(flags: DiffFlags) -> int:
    """Hold one trace against another: of two runtimes, two versions, or a program before and after an edit."""
    from migrate_lens.commands.diff import diff

    comparison = diff(flags.left, flags.right)
    terminal.show(DIFF.render(comparison, flags.format))
    return exits.of(comparison.same)


def doctor(flags: DoctorFlags) -> int:
    """Say what is installed, and try what can be traced in each runtime."""
    from migrate_lens.commands.doctor import doctor

    given = config.Given(torch_python=flags.torch_python, paddle_python=flags.paddle_python)
    options = config.load(Path(), given)
    health = doctor(options, terminal.progress())
    terminal.show(DOCTOR.render(health, flags.format))
    return exits.of(health.well)
