"""A program or trace files in; a trace, the comparison of two, or calls made again alone, out. No printing."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from migrate_lens import state
from migrate_lens.compare.comparison import Comparison, compare
from migrate_lens.discovery.discover import discover
from migrate_lens.model.errors import LibraryError, UsageError
from migrate_lens.model.progress import Progress
from migrate_lens.model.report import Level, Library, Probe, Runtime
from migrate_lens.model.trace import Event, Trace
from migrate_lens.model.value import SCALARS, Encoded, tensors
from migrate_lens.protocol.journal import is_trace
from migrate_lens.protocol.selector import Counter, parse
from migrate_lens.runs.bench import Steering
from migrate_lens.runs.replay import Became, Judged, Remade, Replayer, Verdict, alone, disagrees, replayable
from migrate_lens.runs.request import TraceRequest, workers
from migrate_lens.runs.store import load
from migrate_lens.runs.tracer import Tracer, Validation

SUFFIX = ".trace"
_REPLAY_BYTES = 1 << 26
_MAKE = "migrate-lens trace PROGRAM -o FILE makes one"
_LIST = "migrate-lens trace PROGRAM lists its calls"


@dataclass(frozen=True, slots=True)
class Recorded:
    """A trace, and whether it can be believed."""

    trace: Trace
    validation: Validation | None = None


# -- files -------------------------------------------------------------------------------------------------------------


def opened(path: Path) -> Trace:
    """Read a trace file.

    Raises:
        UsageError: there is none, or it is no trace of this version's form.
    """
    try:
        known = is_trace(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", _MAKE) from error
    if not known:
        raise UsageError(f"{path} is no trace of this version", _MAKE)
    try:
        return load(path)
    except (ValueError, EOFError, TypeError, LookupError) as error:
        raise UsageError(f"{path} is damaged: {error}", _MAKE) from error


def is_recording(program: str) -> bool:
    """Whether what the user named is a trace, or is named like one."""
    path = Path(program)
    return program.endswith(SUFFIX) or (path.is_file() and is_trace(path))


def diff(left: Path, right: Path) -> Comparison:
    """Hold the second trace against the first.

    Raises:
        UsageError: one of them is no trace.
    """
    return compare(opened(left), opened(right))


# -- one run -----------------------------------------------------------------------------------------------------------


def trace(asked: TraceRequest, output: Path | None, progress: Progress, *, validate: bool = False) -> Recorded:
    """Run a program in one runtime and record it; the file is kept at ``output``.

    Raises:
        LensError: the program, a selector or an interpreter cannot be used.
    """
    library, probe = _program(asked)
    _selectors(asked.steering)
    like = opened(asked.like) if asked.like else None
    _together(asked, validate)
    if output is not None:
        _check_output(output)
    with workers(asked, (asked.runtime,)) as bench:
        tracer = Tracer(bench, asked.runtime, _scope(asked, library, like), asked.timeout, backward=asked.backward)
        progress(f"{probe.spec} under {asked.runtime}")
        run = tracer.run(library, probe, asked.steering, asked.like)
        if not run.trace.events and run.trace.ending.how in ("finished", "parts"):
            raise LibraryError(
                f"nothing-recorded: {probe.spec} makes no call of torch's in Python that can be observed",
                "name a program whose own source imports torch",
            )
        if run.trace.unmet:
            raise UsageError(f"no call {', '.join(run.trace.unmet)} came by", _LIST)
        if output is not None:
            state.copy(run.file, output)
        if not validate:
            return Recorded(run.trace)
        progress("trying whether the trace is true and complete")
        return Recorded(run.trace, tracer.checked(library, probe, run.trace))


def _together(asked: TraceRequest, validate: bool) -> None:
    """See that what was asked for goes together."""
    steering = asked.steering
    chosen = [f"--{n}" for n in ("zoom", "stop_at", "substitute") if getattr(steering, n)]
    names = [name.replace("_", "-") for name in chosen]
    if asked.like and names:
        raise UsageError(f"--like does not go together with {names[0]}", "leave out one of them")
    if validate and (asked.like or {"--stop-at", "--substitute"} & set(names)):
        raise UsageError("--validate tries a program as it is", "leave out --like, --stop-at and --substitute")


def _check_output(output: Path) -> None:
    """See that a trace can be put there, and that nothing else is lost by it."""
    state.check_output(output)
    if output.is_file() and output.stat().st_size and not is_trace(output):
        raise UsageError(f"{output} is no trace, and is not overwritten", "name another file")


def with_values(asked: TraceRequest) -> TraceRequest:
    """The same, with results kept whole, as calls that are made again need them."""
    steering = replace(asked.steering, level=Level.VALUES, max_bytes=max(asked.steering.max_bytes, _REPLAY_BYTES))
    return replace(asked, steering=steering)


def _program(asked: TraceRequest) -> tuple[Library, Probe]:
    path = Path(asked.program)
    if asked.program.endswith(".py") and path.is_file():
        library = discover(path)
        return library, library.probes[0]
    if asked.program.endswith(".py") and not (asked.folder / path).is_file():
        raise UsageError(f"no such program: {path}", "name a script, package.module:callable or a pytest node")
    library = discover(asked.folder, [asked.program])
    return library, library.probes[0]


def _scope(asked: TraceRequest, library: Library, like: Trace | None) -> tuple[str, ...]:
    """What was asked for; else what was seen to import torch; else the library's packages or a script's neighbours."""
    if asked.scope:
        return asked.scope
    seen = {m.partition(".")[0] for m in like.users} - {"__main__", "__probe__"} if like else set()
    beside = library.script.parent.glob("*.py") if library.script else ()
    names = {*seen, *library.packages, *(p.stem for p in beside if p != library.script)}
    return tuple(sorted(n for n in names if n.isidentifier()))


def _selectors(steering: Steering) -> None:
    """See that what names calls can be read, before anything is started."""
    texts = [t for t in (steering.stop_at, steering.zoom) if t and t != "all"]
    for text in (*texts, *(selector for selector, _ in steering.substitute)):
        selected(text)


def selected(text: str) -> Counter:
    """A selector.

    Raises:
        UsageError: it is none.
    """
    try:
        return Counter(parse(text))
    except ValueError as error:
        raise UsageError(str(error), "12, torch.relu, torch.relu#3, model.py:7 or model.py:7#3") from error


def numbers(trace: Trace, text: str) -> list[int]:
    """The number of the call that a selector names; all calls for ``all``.

    Raises:
        UsageError: the trace has no such call.
    """
    if text == "all":
        return list(range(1, len(trace.events) + 1))
    counter = selected(text)
    for number, event in enumerate(trace.events, 1):
        if counter.comes(event.api, event.place.path, event.place.line):
            return [number]
    near = sorted(
        {e.api for e in trace.events if e.api.rpartition(".")[2] == text.rpartition(".")[2].partition("#")[0]}
    )
    raise UsageError(
        f"no call {text} among {len(trace.events)}",
        f"did you mean {near[0]}?" if near else "migrate-lens trace FILE lists them",
    )


# -- values that are handed over ---------------------------------------------------------------------------------------


def substitution(text: str) -> tuple[str, Encoded]:
    """``CALL=VALUE``: a Python literal, a ``.npy`` file as a tensor, or a ``.trace`` file's own result of that call.

    Raises:
        UsageError: it is none of these.
    """
    selector, equals, value = text.partition("=")
    if not equals or not value:
        raise UsageError(f"--substitute {text}: not CALL=VALUE", "for example torch.rand=rand.npy, or model.py:7=None")
    selected(selector)
    if value.endswith(".npy"):
        return selector, _array(Path(value))
    if value.endswith(SUFFIX):
        other = opened(Path(value))
        event = other.events[numbers(other, selector)[0] - 1]
        if event.what != "call" or any(not isinstance(t[3], bytes) for t in tensors(event.value)):
            raise UsageError(f"{value} has no whole result of {selector}", "record it with --record values")
        return selector, event.value
    try:
        return selector, encoded(ast.literal_eval(value))
    except (ValueError, SyntaxError) as error:
        remedy = "a Python literal, a .npy file or a .trace file"
        raise UsageError(f"--substitute {text}: {value!r} is no value", remedy) from error


def _array(path: Path) -> Encoded:
    try:
        return encoded(np.load(path))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {error}", "numpy.save makes one") from error


def encoded(value: Any) -> Encoded:
    """A value as it travels; a numpy array stands for a tensor.

    Raises:
        UsageError: it cannot be handed over.
    """
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        native = np.ascontiguousarray(value.astype(value.dtype.newbyteorder("=")))
        return ("T", str(native.dtype), native.shape, native.tobytes(), "cpu", False)
    if isinstance(value, list | tuple | set):
        return ({list: "L", tuple: "t", set: "s"}[type(value)], [encoded(v) for v in value])
    if isinstance(value, dict):
        return ("d", [(k, encoded(v)) for k, v in value.items()])
    if isinstance(value, SCALARS):
        return value
    raise UsageError(f"a {type(value).__name__} cannot be handed over", "numbers, strings, lists and numpy arrays can")


# -- calls made again --------------------------------------------------------------------------------------------------


def replay(trace: Trace, call: str, asked: TraceRequest, progress: Progress) -> tuple[Judged, ...]:
    """Make recorded calls again, each alone, under torch and under Paddle.

    Args:
        trace: a recording with values.
        call: a selector, or ``all``.
        asked: interpreters.

    Raises:
        UsageError: there is no such call.
    """
    wanted = numbers(trace, call)
    able, unable = replayable(trace, wanted)
    home = trace.about.runtime or Runtime.TORCH
    other = Runtime.TARGET_GLOBAL if home is Runtime.TORCH else Runtime.TORCH
    sides: dict[Runtime, dict[int, Became]] = {home: {}, other: {}}
    if able:
        with workers(asked, (home, other)) as bench:
            replayer = Replayer(bench, alone(_nothing(asked)))
            for runtime in sides:
                progress(f"{len(able)} calls alone under {runtime}")
                sides[runtime] = replayer.make(able, _global(runtime), zoom=call != "all")
    return tuple(_judged(n, trace.events[n - 1], unable.get(n, ""), home, sides) for n in wanted)


def _global(runtime: Runtime) -> Runtime:
    """A call alone is no module that a scope could name."""
    return runtime if runtime is Runtime.TORCH else Runtime.TARGET_GLOBAL


def _nothing(asked: TraceRequest) -> Library:
    folder = asked.folder.resolve()
    return Library(
        root=folder, name="replay", script=None, import_root=folder, packages=(), modules=(), build=None,
        native_sources=(), probes=(), probes_from="found",
    )  # fmt: skip


def _judged(number: int, event: Event, cannot: str, home: Runtime, sides: dict[Runtime, dict[int, Became]]) -> Judged:
    if cannot:
        return Judged(number, event, cannot, (), (), Verdict.CANNOT)
    became = tuple((runtime, done[number]) for runtime, done in sides.items())
    reasons = [b.reason for r, b in became if b.how is Remade.CANNOT or (b.how is Remade.UNPREPARED and r is home)]
    if reasons:
        return Judged(number, event, reasons[0], became, (), Verdict.CANNOT)
    found = ((runtime, disagrees(event, b)) for runtime, b in became)
    differs = tuple((runtime, d) for runtime, d in found if d is not None)
    at_home = any(runtime is home for runtime, _ in differs)
    verdict = Verdict.NOT_REPRODUCED if at_home else Verdict.OPERATOR if differs else Verdict.INPUTS
    return Judged(number, event, "", became, differs, verdict)


__all__ = [
    "SUFFIX",
    "Judged",
    "Recorded",
    "Steering",
    "Trace",
    "TraceRequest",
    "diff",
    "opened",
    "replay",
    "substitution",
    "trace",
    "with_values",
]  # fmt: skip
