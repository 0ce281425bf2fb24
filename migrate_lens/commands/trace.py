"""A program or a trace file in; its trace, or calls of it made again alone, out."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np

from migrate_lens import state
from migrate_lens.discovery.discover import discover
from migrate_lens.model.errors import LibraryError, UsageError
from migrate_lens.model.progress import Progress
from migrate_lens.model.report import Level, Library, Probe, Runtime
from migrate_lens.model.trace import Event, Finished, Parts, Trace
from migrate_lens.model.value import RAW, SCALARS, Encoded, TensorValue, tensors
from migrate_lens.protocol.journal import is_sound, is_trace, seal
from migrate_lens.protocol.selector import Counter, parse
from migrate_lens.runs.bench import Steering
from migrate_lens.runs.replay import Became, Judged, Remade, Replayer, Verdict, alone, disagrees, replayable
from migrate_lens.runs.request import Recorded, TraceRequest, workers
from migrate_lens.runs.store import load
from migrate_lens.runs.tracer import Tracer

SUFFIX = ".trace"
ALL = "all"
_STORED = {"bfloat16": "float32"}
_REPLAY_BYTES = 1 << 26
_MAKE = "migrate-lens trace PROGRAM -o FILE makes one"
_LIST = "migrate-lens trace PROGRAM lists its calls"


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
    if not is_sound(path):
        raise UsageError(f"{path} is damaged", _MAKE)
    try:
        read = load(path)
        _check_values(read)
        return read
    except (ValueError, EOFError, TypeError, LookupError, AttributeError, RecursionError, MemoryError) as error:
        raise UsageError(f"{path} is damaged: {error}", _MAKE) from error


def _check_values(read: Trace) -> None:
    """See that the values of tensors are as many as their shapes say.

    Raises:
        ValueError, TypeError: they are not.
    """
    for event in read.events:
        for value in chain.from_iterable(map(tensors, (*event.inputs, event.value))):
            tensor = TensorValue._make(value)
            if isinstance(tensor.data, RAW):
                np.frombuffer(tensor.data, _STORED.get(tensor.dtype, tensor.dtype)).reshape(tensor.shape)


def is_recording(program: str) -> bool:
    """Whether what the user named is a trace, or is named like one."""
    path = Path(program)
    return program.endswith(SUFFIX) or (path.is_file() and is_trace(path))


# -- one run -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of a run, and where: its trace, and what the program itself printed."""

    trace: Path | None = None
    printed: Path | None = None


def trace(asked: TraceRequest, kept: Kept, progress: Progress, *, validate: bool = False) -> Recorded:
    """Run a program in one runtime and record it.

    Raises:
        LensError: the program, a selector or an interpreter cannot be used.
    """
    library, probe = _program(asked)
    _check_selectors(asked.steering)
    like = opened(asked.like) if asked.like else None
    _check_together(asked, validate)
    if kept.trace is not None:
        _check_output(kept.trace, library.root)
    if kept.printed is not None:
        state.check_output(kept.printed, [library.script or library.root])
    with workers(asked, (asked.runtime,)) as bench:
        tracer = Tracer(bench, asked.runtime, _scope(asked, library, like), asked.timeout, backward=asked.backward)
        progress(f"{probe.spec} under {asked.runtime}")
        run = tracer.run(library, probe, asked.steering, asked.like)
        _check_recorded(run.trace, probe)
        if kept.trace is not None:
            seal(run.file)
            state.copy(run.file, kept.trace)
        if kept.printed is not None:
            state.copy(run.printed, kept.printed)
        if not validate:
            return Recorded(run.trace)
        progress("trying whether the trace is true and complete")
        return Recorded(run.trace, tracer.checked(library, probe, run.trace))


def _check_recorded(recorded: Trace, probe: Probe) -> None:
    """See that there are calls, and among them all that were named."""
    if not recorded.events and isinstance(recorded.ending, Finished | Parts):
        raise LibraryError(
            f"nothing-recorded: {probe.spec} makes no call of torch's in Python that can be observed",
            "name a program whose own source imports torch",
        )
    if recorded.unmet:
        raise UsageError(f"no call {', '.join(recorded.unmet)} came by", _LIST)


def asks_for_a_run(asked: TraceRequest) -> bool:
    """Whether something is asked for that only a new run can give."""
    return bool(asked.like or asked.backward) or asked.steering != Steering()


def _check_together(asked: TraceRequest, validate: bool) -> None:
    """See that what was asked for goes together."""
    steering = asked.steering
    given = {"--zoom": steering.zoom, "--stop-at": steering.stop_at, "--substitute": steering.substitute}
    options = [option for option, value in given.items() if value]
    if asked.like and options:
        raise UsageError(f"--like does not go together with {options[0]}", "leave out one of them")
    if validate and (asked.like or steering.stop_at or steering.substitute):
        raise UsageError("--validate tries a program as it is", "leave out --like, --stop-at and --substitute")


def _check_output(output: Path, library: Path) -> None:
    """See that a trace can be put there, and that nothing else is lost by it."""
    state.check_output(output, [library])
    if output.is_file() and output.stat().st_size and not is_trace(output):
        raise UsageError(f"{output} is no trace, and is not overwritten", "name another file")


def with_values(asked: TraceRequest) -> TraceRequest:
    """The same, with results kept whole, as calls that are made again need them."""
    max_bytes = max(asked.steering.max_bytes, _REPLAY_BYTES)
    return replace(asked, steering=replace(asked.steering, level=Level.VALUES, max_bytes=max_bytes))


def _program(asked: TraceRequest) -> tuple[Library, Probe]:
    path = Path(asked.program)
    is_script = asked.program.endswith(".py")
    if is_script and path.is_file():
        library = discover(path)
        return library, library.probes[0]
    if is_script and not (asked.folder / path).is_file():
        raise UsageError(f"no such program: {path}", "name a script, package.module:callable or a pytest node")
    library = discover(asked.folder, [asked.program])
    return library, library.probes[0]


def _scope(asked: TraceRequest, library: Library, like: Trace | None) -> tuple[str, ...]:
    """What was asked for; else what was seen to import torch; else the library's packages or a script's neighbours."""
    if asked.scope:
        return asked.scope
    packages = set(library.packages)
    if like is not None:
        packages |= {module.partition(".")[0] for module in like.users} - {"__main__", "__probe__"}
    if library.script is not None:
        packages |= {path.stem for path in library.script.parent.glob("*.py") if path != library.script}
    return tuple(sorted(name for name in packages if name.isidentifier()))


# -- calls by name -----------------------------------------------------------------------------------------------------


def _check_selectors(steering: Steering) -> None:
    """See that what names calls can be read, before anything is started."""
    for text in (steering.stop_at, steering.zoom):
        if text and text != ALL:
            selected(text)
    for text, _ in steering.substitute:
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


def numbers(recorded: Trace, text: str) -> list[int]:
    """The number of the call that a selector names; all calls for ``all``.

    Raises:
        UsageError: the trace has no such call.
    """
    if text == ALL:
        return list(range(1, len(recorded.events) + 1))
    counter = selected(text)
    for number, event in enumerate(recorded.events, 1):
        if counter.comes(event.api, event.place.path, event.place.line):
            return [number]
    near = _near(recorded, text)
    remedy = f"did you mean {near}?" if near else "migrate-lens trace FILE lists them"
    raise UsageError(f"no call {text} among {len(recorded.events)}", remedy)


def _near(recorded: Trace, text: str) -> str:
    """The first API of the trace whose last name is that of the selector; empty where there is none."""
    wanted = text.rpartition(".")[2].partition("#")[0]
    return min((event.api for event in recorded.events if event.api.rpartition(".")[2] == wanted), default="")


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
        return selector, _result(Path(value), selector)
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


def _result(path: Path, selector: str) -> Encoded:
    """What a call of another trace gave."""
    other = opened(path)
    event = other.events[numbers(other, selector)[0] - 1]
    is_whole = event.returned and all(isinstance(tensor[3], RAW) for tensor in tensors(event.value))
    if not is_whole:
        raise UsageError(f"{path} has no whole result of {selector}", "record it with --record values")
    return event.value


def encoded(value: object) -> Encoded:
    """A value as it travels; a numpy array stands for a tensor.

    Raises:
        UsageError: it cannot be handed over.
    """
    match value:
        case np.ndarray() if value.dtype.kind in "biufc":
            native = np.ascontiguousarray(value.astype(value.dtype.newbyteorder("=")))
            return ("T", str(native.dtype), native.shape, native.tobytes(), "cpu", False)
        case list():
            return ("L", [encoded(item) for item in value])
        case tuple():
            return ("t", [encoded(item) for item in value])
        case set():
            return ("s", [encoded(item) for item in value])
        case dict():
            return ("d", [(key, encoded(item)) for key, item in value.items()])
    if isinstance(value, SCALARS):
        return value
    raise UsageError(f"a {type(value).__name__} cannot be handed over", "numbers, strings, lists and numpy arrays can")


# -- calls made again --------------------------------------------------------------------------------------------------


def replay(recorded: Trace, call: str, asked: TraceRequest, progress: Progress) -> tuple[Judged, ...]:
    """Make recorded calls again, each alone, under torch and under the target.

    Args:
        recorded: a recording with values.
        call: a selector, or ``all``.
        asked: interpreters.

    Raises:
        UsageError: there is no such call.
    """
    wanted = numbers(recorded, call)
    able, unable = replayable(recorded, wanted)
    home = recorded.about.runtime or Runtime.TORCH
    other = Runtime.TARGET_GLOBAL if home is Runtime.TORCH else Runtime.TORCH
    sides: dict[Runtime, dict[int, Became]] = {home: {}, other: {}}
    if able:
        with workers(asked, (home, other)) as bench:
            replayer = Replayer(bench, alone(_nothing(asked)))
            for runtime in sides:
                progress(f"{len(able)} calls alone under {runtime}")
                sides[runtime] = replayer.make(able, _unscoped(runtime), zoom=call != ALL)
    judged = []
    for number in wanted:
        event = recorded.events[number - 1]
        if number in unable:
            judged.append(Judged(number, event, unable[number], (), (), Verdict.CANNOT))
        else:
            became = [(runtime, made[number]) for runtime, made in sides.items()]
            judged.append(_judged(number, event, became, home))
    return tuple(judged)


def _unscoped(runtime: Runtime) -> Runtime:
    """A call alone is no module that a scope could name."""
    return runtime if runtime is Runtime.TORCH else Runtime.TARGET_GLOBAL


def _nothing(asked: TraceRequest) -> Library:
    """A library with nothing in it: what a call alone belongs to."""
    folder = asked.folder.resolve()
    return Library(
        root=folder,
        name="replay",
        script=None,
        import_root=folder,
        packages=(),
        modules=(),
        build=None,
        native_sources=(),
        probes=(),
        probes_from="found",
    )


def _judged(number: int, event: Event, became: Sequence[tuple[Runtime, Became]], home: Runtime) -> Judged:
    """What a call shows that was made again in the runtime of its recording and in the other one."""
    sides = tuple(became)
    for runtime, side in sides:
        # A layer that cannot be made in the other runtime is a difference; in its own, there is nothing to compare.
        if side.how is Remade.CANNOT or (side.how is Remade.UNPREPARED and runtime is home):
            return Judged(number, event, side.reason, sides, (), Verdict.CANNOT)
    apart = {runtime: disagrees(event, side) for runtime, side in sides}
    differs = tuple((runtime, difference) for runtime, difference in apart.items() if difference is not None)
    return Judged(number, event, "", sides, differs, _verdict(dict(differs), home))


def _verdict(differs: Mapping[Runtime, object], home: Runtime) -> Verdict:
    if home in differs:
        return Verdict.NOT_REPRODUCED
    return Verdict.OPERATOR if differs else Verdict.INPUTS
