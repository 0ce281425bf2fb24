"""The commands about traces: a Typer application in; ``trace``, ``diff``, ``doctor``, out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_lens import config
from migrate_lens.cli.terminal import terminal
from migrate_lens.model.errors import UsageError
from migrate_lens.model.report import Level, Runtime

if TYPE_CHECKING:
    from migrate_lens.model.trace import Trace
    from migrate_lens.runs.request import TraceRequest

OK, FOUND = 0, 1
FORMATS = ("text", "json")
Substitute = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CALL=VALUE",
        help="Hand the program this in the call's place: a literal, a .npy or a .trace file; may be repeated.",
    ),
]
Like = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Give random draws and parameters the values that they have in that trace."),
]
Format = Annotated[str, typer.Option(metavar="|".join(FORMATS), help="How it is written.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (trace, diff, doctor):
        app.command()(command)


def trace(
    program: Annotated[
        str,
        typer.Argument(metavar="PROGRAM", help="A script, package.module:callable, a pytest node, or a FILE.trace."),
    ],
    runtime: Annotated[Runtime, typer.Option(help="Who answers `import torch`.")] = Runtime.TORCH,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Keep the trace there.")] = None,
    record: Annotated[Level, typer.Option(help="How much of results is kept.")] = Level.DIGESTS,
    max_bytes: Annotated[
        int, typer.Option(metavar="N", min=1, help="With values: the largest tensor that is kept whole.")
    ] = 1 << 22,
    zoom: Annotated[
        str, typer.Option(metavar="CALL", help="Record the low-level operators below a call; `all` for each.")
    ] = "",
    stop_at: Annotated[str, typer.Option(metavar="CALL", help="Stop the program after a call.")] = "",
    substitute: Substitute = None,
    like: Like = None,
    gradients: Annotated[
        bool, typer.Option("--gradients", help="Record the gradient that reaches each call's result.")
    ] = False,
    backward: Annotated[
        bool, typer.Option("--backward", help="Differentiate the program's result at its end.")
    ] = False,
    replay: Annotated[
        str, typer.Option(metavar="CALL", help="Make a recorded call again, alone, on both sides; `all` for each.")
    ] = "",
    validate: Annotated[bool, typer.Option("--validate", help="Try whether the trace is true and complete.")] = False,
    library: Annotated[
        Path, typer.Option(metavar="DIR", help="Where a program that is no file is looked for.")
    ] = Path(),
    scope: Annotated[
        list[str] | None, typer.Option(metavar="PACKAGE", help="Where Paddle answers; may be repeated.")
    ] = None,
    torch_python: Annotated[str | None, typer.Option(metavar="P", help="The interpreter that has torch.")] = None,
    paddle_python: Annotated[str | None, typer.Option(metavar="P", help="The interpreter that has Paddle.")] = None,
    timeout: Annotated[float | None, typer.Option(metavar="SECONDS", help="The time that a run may take.")] = None,
    format: Format = "text",
) -> int:
    """Run a program in one runtime and record every torch call that it makes; or look into a recording.

    CALL is a number, a name or a place: 12, torch.relu, torch.relu#3, model.py:7, model.py:7#3.
    """
    from migrate_lens.commands import trace as pipeline
    from migrate_lens.runs.request import TraceRequest

    _known(format)
    steering = pipeline.Steering(
        record, max_bytes, zoom, stop_at, tuple(pipeline.substitution(text) for text in substitute or ()), gradients
    )
    options = config.load(
        library, scope=scope or (), torch_python=torch_python, paddle_python=paddle_python, timeout=timeout
    )
    asked = TraceRequest(
        program, library, runtime, options.torch_python, options.paddle_python, options.scope, options.timeout,
        steering, like, backward,
    )  # fmt: skip
    look = _recorded if pipeline.is_recording(program) else _ran
    return look(asked, replay, validate, output, format)


def _known(name: str) -> None:
    if name not in FORMATS:
        raise UsageError(f"--format: no format {name!r}", f"one of {', '.join(FORMATS)}")


def _recorded(asked: TraceRequest, replay: str, validate: bool, output: Path | None, format: str) -> int:
    """A trace file is shown, or calls of it are made again."""
    from migrate_lens.commands import trace as pipeline
    from migrate_lens.reports import trace_json, trace_text
    from migrate_lens.runs.limits import limits

    if validate or output is not None or asked.like or asked.backward or asked.steering != pipeline.Steering():
        raise UsageError("a recording can be shown or replayed, not recorded again", "name its program instead")
    found = pipeline.opened(Path(asked.program))
    if not replay:
        known = limits(found)
        shown = trace_text.trace(found, asked.program, known, None)
        terminal.show(trace_json.trace(found, known, None) if format == "json" else shown)
        return OK
    return _replayed(asked, found, replay, format)


def _replayed(asked: TraceRequest, found: Trace, replay: str, format: str) -> int:
    from migrate_lens.commands import trace as pipeline
    from migrate_lens.reports import trace_json, trace_text

    judged = pipeline.replay(found, replay, asked, terminal.progress())
    terminal.show(trace_json.replayed(judged) if format == "json" else trace_text.replayed(judged))
    return FOUND if any(j.verdict in ("operator", "not reproduced") for j in judged) else OK


def _ran(asked: TraceRequest, replay: str, validate: bool, output: Path | None, format: str) -> int:
    from migrate_lens.commands import trace as pipeline
    from migrate_lens.reports import trace_json, trace_text
    from migrate_lens.runs.limits import limits

    if replay and validate:
        raise UsageError("--replay and --validate are two questions", "ask one at a time")
    if replay:
        asked = pipeline.with_values(asked)
    done = pipeline.trace(asked, output, terminal.progress(), validate=validate)
    if replay:
        return _replayed(asked, done.trace, replay, format)
    known = limits(done.trace)
    shown = trace_text.trace(done.trace, str(output or ""), known, done.validation)
    terminal.show(trace_json.trace(done.trace, known, done.validation) if format == "json" else shown)
    wrong = done.validation is not None and done.validation.standing == "wrong"
    return FOUND if wrong else OK


def diff(
    left: Annotated[Path, typer.Argument(metavar="A", help="A trace: what is expected.")],
    right: Annotated[Path, typer.Argument(metavar="B", help="A trace: what is held against it.")],
    format: Format = "text",
) -> int:
    """Hold one trace against another: of two runtimes, two versions, or a program before and after an edit."""
    from migrate_lens.commands import trace as pipeline
    from migrate_lens.reports import trace_json, trace_text

    _known(format)
    found = pipeline.diff(left, right)
    terminal.show(trace_json.comparison(found) if format == "json" else trace_text.comparison(found))
    return OK if found.same else FOUND


def doctor(
    torch_python: Annotated[str | None, typer.Option(metavar="P", help="The interpreter that has torch.")] = None,
    paddle_python: Annotated[str | None, typer.Option(metavar="P", help="The interpreter that has Paddle.")] = None,
    format: Format = "text",
) -> int:
    """Say what is installed, and try what can be traced in each runtime."""
    from migrate_lens.commands import trace as pipeline
    from migrate_lens.doctor import examine as examination
    from migrate_lens.reports import trace_json, trace_text
    from migrate_lens.runs.request import TraceRequest

    _known(format)
    options = config.load(Path(), torch_python=torch_python, paddle_python=paddle_python)
    asked = TraceRequest(
        "", Path(), Runtime.TORCH, options.torch_python, options.paddle_python, (), 60.0, pipeline.Steering()
    )  # fmt: skip
    found = examination.examine(asked, terminal.progress())
    terminal.show(trace_json.health(found) if format == "json" else trace_text.health(found))
    return OK if found.well else FOUND
