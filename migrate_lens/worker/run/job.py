"""One job in a forked child: a probe and a runtime in, a trace that ends with the program's outcome out."""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import os
import random
import sys
import traceback
import types
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from migrate_lens.protocol import frames, places
from migrate_lens.protocol.journal import Journal, read
from migrate_lens.worker.backends.encoding import BRIEF, WHOLE
from migrate_lens.worker.backends.framework import Backend, Framework, TargetBackend
from migrate_lens.worker.heal.copying import Copying
from migrate_lens.worker.heal.healer import Healer, Policy
from migrate_lens.worker.heal.reference import Reference
from migrate_lens.worker.heal.standins import import_unbuilt
from migrate_lens.worker.observe import forms
from migrate_lens.worker.observe.backward import as_leaves, of_layer, of_names, with_gradients
from migrate_lens.worker.observe.failures import failure_of
from migrate_lens.worker.observe.import_hook import Instrumenter
from migrate_lens.worker.observe.nodes import CALL, Node
from migrate_lens.worker.observe.recorder import Recorder
from migrate_lens.worker.run import suite
from migrate_lens.worker.run.replay import replay
from migrate_lens.worker.run.steering import Steered, Wishes

_OURS = str(Path(__file__).resolve().parent.parent)


class Steer(TypedDict):
    """``whole`` is how many bytes of a tensor are kept whole, ``STRUCTURE`` for none of any; the others are selectors.

    ``states`` writes the state of each layer that is called, as a call that is made again needs it;
    ``substitute`` is a file of ``frames.Substitute``, or ``""``.
    """

    whole: int
    states: bool
    zoom: str
    stop_at: str
    substitute: str


class Job(TypedDict):
    """What a child is told to do; JSON on the wire.

    ``heal`` is ``none``, ``draws`` (random draws and new layers get torch's values) or ``all`` (keep going); ``spare``
    lists nodes (see ``worker.heal``) that are not healed; ``skip`` those that are not even called, since they
    kill the process; ``unbuilt`` names extension modules that could not be built here, for which there are stand-ins;
    ``tests`` names pytest files and nodes from ``cwd``, of which ``test_select`` (``-k``) chooses and which are run
    until there are ``enough`` bytes of trace (0: all); ``gradients`` records the gradient that reaches each result;
    ``values`` keeps the values of large results whole, not sampled; ``observe`` False runs the program untouched;
    ``kernel_log`` is the file that marked C++ calls write to (see ``native``), each observed call begins a part of it;
    ``about`` is written at the head of the trace; ``steer`` is what a user wants done at chosen calls (see ``Steer``),
    or None; ``environ`` holds variables to set; ``backward`` differentiates the program's result at its end; ``finish``
    lets the process end as a program does, so that what is released then is released; ``most_output`` and
    ``most_trace`` are bytes after which a job is ended.
    The probe ``replay`` makes the calls of the file at ``path`` (see ``worker.run.replay``), and looks below them with
    ``all`` for zoom.
    The probe ``ask`` runs nothing: it says of each dotted name in ``modules`` what kind of thing it is.
    """

    runtime: str
    probe: str
    spec: str
    path: str
    modules: list[str]
    tests: list[str]
    test_select: str
    enough: int
    sys_path: list[str]
    cwd: str
    own: list[str]
    scope: list[str]
    seed: int
    observe: bool
    trace: str
    reference: str
    heal: str
    spare: list[str]
    skip: list[str]
    copy: list[str]
    hashable: bool
    unbuilt: list[str]
    gradients: bool
    values: bool
    kernel_log: str
    about: dict[str, Any]
    steer: Steer | None
    environ: dict[str, str]
    most_output: int
    most_trace: int
    backward: bool
    finish: bool
    timeout: float
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Running:
    """A job while it runs: what is to be done, in which framework, and who observes it."""

    job: Job
    framework: Framework
    backend: Backend
    recorder: Recorder
    instrumenter: Instrumenter

    def admit(self, module: types.ModuleType) -> None:
        """Put a script into the scope in which the framework answers for torch, where there is one."""
        if self.job["runtime"] == self.framework.name:
            self.framework.admit(module)


def run(job: Job, framework: Framework, backend: Backend) -> None:
    """Run the probe to its end and write its outcome; whatever the program raises is that outcome.

    Args:
        job: what to do.
        framework: the framework of this process.
        backend: its side of the seam.
    """
    # Nothing of a full disk may reach the program; what runs the job sees it in the file.
    journal = Journal(job["trace"], full=lambda: os._exit(1))
    journal.write(frames.About("about", job["about"]))
    # A process that the program forks off shares the file, and its end of it: it must not write there.
    os.register_at_fork(after_in_child=journal.mute, after_in_parent=lambda: journal.write(frames.Forked("forked")))
    recorder = _recorder(job, framework, backend, journal)
    recorder.gradients = job["gradients"]
    if job["kernel_log"]:
        os.environ["MIGRATE_LENS_KERNEL_LOG"] = job["kernel_log"]
        recorder.kernel_log = os.open(job["kernel_log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    backend.whole = _whole(job)
    if job["values"]:
        _shift_heap()
    instrumenter = Instrumenter(recorder, forms.make(recorder), frozenset(job["own"]))
    _prepare(job, framework, instrumenter)
    if job["observe"]:
        framework.watch_loaders(
            lambda iteration, item: journal.write(frames.Item("items", iteration, backend.encode(item)))
        )
    journal.write(_outcome(Running(job, framework, backend, recorder, instrumenter)))
    journal.write(frames.Users("users", instrumenter.users, instrumenter.refused))
    journal.close()


def _whole(job: Job) -> int:
    """Bytes up to which a tensor's values are kept whole."""
    if job["steer"]:
        return job["steer"]["whole"]
    return WHOLE if job["values"] else BRIEF


def _outcome(running: Running) -> frames.Outcome:
    """Run the probe; how it ended."""
    try:
        with running.recorder.watching():
            value = _PROBES[running.job["probe"]](running)
        if isinstance(value, _Parts):
            return frames.Outcome("outcome", "parts", dict(value), True)
        if value is _NOTHING:
            return frames.Outcome("outcome", "finished", None, False)
        encoded = running.backend.in_full(running.backend.encode, value)
        return frames.Outcome("outcome", "finished", encoded, True)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int | None) else str(error.code)
        return frames.Outcome("outcome", "exited", code, [])
    except BaseException as error:  # noqa: BLE001 - the worker's edge: a program may raise anything, and that is its outcome
        return frames.Outcome("outcome", "raised", failure_of(error), _frames(error))


_BALLAST: list[object] = []


def _shift_heap() -> None:
    """Begin with a heap full of holes, so that what a program makes of addresses differs from other runs."""
    for _ in range(500):
        _BALLAST.extend(bytes(length) for length in range(0, 480, 16))
    del _BALLAST[::3]


def _recorder(job: Job, framework: Framework, backend: Backend, journal: Journal) -> Recorder:
    steer = job["steer"]
    if steer and not job["reference"] and job["observe"] and _is_steered(steer):
        return Steered(framework, backend, journal, _wishes(steer))
    if job["copy"]:
        return Copying(backend, journal, frozenset(job["copy"]))
    if not job["reference"]:
        return Recorder(backend, journal, inputs=framework.baseline)
    if not isinstance(backend, TargetBackend):
        raise TypeError(f"nothing can be handed to a program in {framework.name}")
    policy = Policy(job["heal"] == "all", frozenset(job["spare"]), frozenset(job["skip"]), job["hashable"])
    return Healer(backend, journal, Reference(job["reference"]), policy)


def _is_steered(steer: Steer) -> bool:
    return bool(steer["states"] or steer["zoom"] or steer["stop_at"] or steer["substitute"])


def _wishes(steer: Steer) -> Wishes:
    values = []
    if steer["substitute"]:
        substitutes = map(frames.Substitute._make, read(steer["substitute"])[1])
        values = [(substitute.selector, substitute.value) for substitute in substitutes]
    return Wishes(steer["zoom"], steer["stop_at"], values)


def _prepare(job: Job, framework: Framework, instrumenter: Instrumenter) -> None:
    os.chdir(job["cwd"])
    os.environ.update(job["environ"])
    sys.path[:0] = job["sys_path"]
    sys.argv = [job["path"] or job["spec"]]
    if job["observe"]:
        instrumenter.install()
    if job["unbuilt"]:
        import_unbuilt(frozenset(job["unbuilt"]))
    _seed(job, framework)


def _seed(job: Job, framework: Framework) -> None:
    """Set all generators of random numbers."""
    random.seed(job["seed"])
    np.random.seed(job["seed"])
    framework.seed(job["seed"])


class _Parts(dict[str, str]):
    """What became of each part of a probe: modules that were imported, tests that were run, names that were asked."""


class _Nothing:
    """The program has no outcome of its own."""


_NOTHING = _Nothing()


def _script(running: Running) -> Any:
    job, instrumenter = running.job, running.instrumenter
    path = job["path"]
    source = Path(path).read_bytes()
    if job["observe"]:
        code = instrumenter.compile("__main__", path, source)
    else:
        code = compile(source, path, "exec", dont_inherit=True)
    module = types.ModuleType("__main__")
    module.__dict__.update({
        "__annotations__": {},
        "__builtins__": builtins,
        "__cached__": None,
        "__file__": path,
        "__loader__": SourceFileLoader("__main__", path),
    })  # fmt: skip
    running.admit(module)
    sys.modules["__main__"] = module
    exec(code, module.__dict__)
    value = module.__dict__.get("result", _NOTHING)
    if job["backward"] and value is not _NOTHING:
        leaves = of_names(module.__dict__, running.backend)
        return _differentiated(value, leaves, running)
    return value


def _differentiated(value: Any, leaves: Iterable[tuple[str, Any]], running: Running) -> Any:
    rewriting = running.instrumenter if running.job["observe"] else None
    return with_gradients(value, leaves, running.backend, rewriting, running.admit)


def _callable(running: Running) -> Any:
    job, backend = running.job, running.backend
    name, _, attribute = job["spec"].partition(":")
    value = getattr(importlib.import_module(name), attribute)()
    if not (isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], backend.module)):
        return value if value is not None else _NOTHING
    model, inputs = value
    if isinstance(inputs, dict):
        return model(**inputs)
    args = tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)
    if not job["backward"]:
        return _run_model(model, args, running)
    leaves, args = zip(*as_leaves(args, backend), strict=True) if args else ((), ())
    value = _run_model(model, args, running)
    named = [(f"input {n}", leaf) for n, leaf in enumerate(leaves) if leaf is not None]
    return _differentiated(value, [*of_layer(model), *named], running)


def _run_model(model: Any, args: tuple[Any, ...], running: Running) -> Any:
    recorder, spec = running.recorder, running.job["spec"]
    if not running.job["observe"]:
        return model(*args)
    base = recorder.register("__probe__", spec, (Node(1, 0, 1, 0, places.CALL, "", (), spec),))
    return forms.make(recorder)[CALL](base, model)(*args)


def _imports(running: Running) -> Any:
    parts = _Parts()
    for name in running.job["modules"]:
        try:
            importlib.import_module(name)
            parts[name] = "passed"
        except BaseException as error:  # noqa: BLE001 - the worker's edge: a module may raise anything when imported
            _note_failure(running, name, error)
            first = next(iter(str(error).splitlines()), "")
            parts[name] = f"{type(error).__name__}: {first}"[:200]
    return parts


def _note_failure(running: Running, name: str, error: BaseException) -> None:
    """Write that a module or a test failed."""
    failed = frames.ModuleFailed("module failed", name, failure_of(error), _frames(error))
    running.recorder.journal.write(failed)


def _pytest(running: Running) -> Any:
    job = running.job
    selection = suite.Selection(job["cwd"], job["tests"], job["test_select"], job["enough"])

    def failed(name: str, error: BaseException) -> None:
        _note_failure(running, name, error)

    def reseed() -> None:
        _seed(job, running.framework)

    watch = suite.Watch(selection, running.recorder.journal, running.recorder, reseed, failed)
    running.instrumenter.counting = running.recorder.counting
    outcomes = _Parts(suite.run(watch))
    if not job["observe"]:
        running.instrumenter.find_users()
    return outcomes


def _ask(running: Running) -> Any:
    return _Parts({name: _kind(name) for name in running.job["modules"]})


def _replay(running: Running) -> Any:
    steer = running.job["steer"]
    zoom = bool(steer and steer["zoom"])
    replay(running.framework, running.backend, running.recorder.journal, running.job["path"], zoom=zoom)
    return _NOTHING


def _kind(name: str) -> str:
    """``module``, ``class``, ``function``, ``other``, or ``""`` for what is not there."""
    parts = name.split(".")
    value: Any = importlib.import_module(parts[0])
    for index, part in enumerate(parts[1:], 2):
        try:
            value = getattr(value, part)
        except AttributeError:
            try:
                value = importlib.import_module(".".join(parts[:index]))
            except ImportError:
                return ""
    if isinstance(value, types.ModuleType):
        return "module"
    if isinstance(value, type):
        return "class"
    return "function" if callable(value) else "other"


_PROBES = {
    "ask": _ask,
    "replay": _replay,
    "script": _script,
    "callable": _callable,
    "imports": _imports,
    "pytest": _pytest,
}


def _frames(error: BaseException) -> list[frames.TraceFrame]:
    """Frames of the program, outermost first: file, line, end line, columns, module, and whether it is the last."""
    places = []
    walked = list(traceback.walk_tb(error.__traceback__))
    summary = traceback.StackSummary.extract(iter(walked), lookup_lines=False)
    for (frame, _), entry in zip(walked, summary, strict=True):
        if not entry.filename.startswith(_OURS) and "importlib" not in entry.filename:
            places.append((entry.filename, *_position(entry), frame.f_globals.get("__name__", "") or ""))
    if isinstance(error, SyntaxError) and error.filename:
        line = error.lineno or 0
        places.append((error.filename, line, line, 0, 0, ""))
    return [(*place, index == len(places)) for index, place in enumerate(places, 1)]


def _position(entry: traceback.FrameSummary) -> tuple[int, int, int, int]:
    """Line, end line, and columns; 0 for what is not known."""
    return (entry.lineno or 0, entry.end_lineno or 0, entry.colno or 0, entry.end_colno or 0)
