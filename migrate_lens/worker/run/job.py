"""One job in a forked child: a probe and a runtime in, a trace that ends with the program's outcome out."""

from __future__ import annotations

import importlib
import importlib.util
import os
import random
import sys
import traceback
import types
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from migrate_lens.protocol.journal import Journal, read
from migrate_lens.worker.backends.base import BRIEF, WHOLE, Backend
from migrate_lens.worker.heal.copying import Copying
from migrate_lens.worker.observe import forms
from migrate_lens.worker.observe.backward import as_leaves, of_layer, of_names, with_gradients
from migrate_lens.worker.observe.data_loaders import watch
from migrate_lens.worker.observe.failures import failure_of
from migrate_lens.worker.observe.import_hook import Instrumenter
from migrate_lens.worker.observe.nodes import CALL, Node
from migrate_lens.worker.observe.recorder import Recorder
from migrate_lens.worker.run.replay import replay
from migrate_lens.worker.run.steering import Steered

_OURS = str(Path(__file__).resolve().parent.parent)


_CHOSEN = ("zoom", "stop_at", "substitute")


class Steer(TypedDict):
    """``whole`` is how many bytes of a tensor are kept whole, ``STRUCTURE`` for none of any; the others are selectors.

    ``states`` writes the state of each layer that is called, as a call that is made again needs it;
    ``substitute`` is a file of ``("substitute", selector, encoded)`` frames, or ``""``.
    """

    whole: int
    states: bool
    zoom: str
    stop_at: str
    substitute: str


class Job(TypedDict):
    """What a child is told to do; JSON on the wire.

    ``heal`` is ``none``, ``draws`` (random draws and new layers get torch's values) or ``all`` (keep going); ``spare``
    lists nodes (see ``worker.healer``) that are not healed; ``skip`` those that are not even called, since they
    kill the process; ``unbuilt`` names extension modules that could not be built here, for which
    there are stand-ins; ``gradients`` records the gradient that reaches each result; ``values`` keeps the
    values of large results whole, not sampled; ``observe`` False runs the program untouched; ``kernel_log`` is the
    file that marked C++ calls write to (see ``ladder.kernels``), each observed call begins a part of it; ``about`` is
    written at the head of the trace; ``steer`` is what a user wants done at chosen calls (see ``Steer``), or None;
    ``environ`` holds variables to set; ``backward`` differentiates the program's result at its end.
    The probe ``replay`` makes the calls of the file at ``path`` (see ``worker.replay``), and looks below them with
    ``all`` for zoom.
    The probe ``ask`` runs nothing: it says of each dotted name in ``modules`` what kind of thing it is.
    """

    runtime: str
    probe: str
    spec: str
    path: str
    modules: list[str]
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
    backward: bool
    timeout: float
    stdout: str
    stderr: str


def run(job: Job, backend: Backend, seed: Any) -> None:
    """Run the probe to its end and write its outcome; whatever the program raises is that outcome.

    Args:
        job: what to do.
        backend: the framework of this process.
        seed: seeds the framework.
    """
    journal = Journal(job["trace"])
    journal.write(("about", job["about"]))
    # A process that the program forks off shares the file, and its end of it: it must not write there.
    os.register_at_fork(after_in_child=journal.mute, after_in_parent=lambda: journal.write(("forked",)))
    recorder = _recorder(job, backend, journal)
    recorder.gradients = job["gradients"]
    if job["kernel_log"]:
        os.environ["MIGRATE_LENS_KERNEL_LOG"] = job["kernel_log"]
        recorder.kernel_log = os.open(job["kernel_log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    backend.whole = WHOLE if job["values"] else BRIEF
    if job["steer"]:
        backend.whole = job["steer"]["whole"]
    if job["values"]:
        _shift_heap()
    instrumenter = Instrumenter(recorder, forms.make(recorder), frozenset(job["own"]))
    _prepare(job, instrumenter, seed)
    if backend.name == "torch" and job["observe"]:
        watch(lambda number, item: journal.write(("items", number, backend.encode(item))))
    try:
        with recorder.watching():
            value = _PROBES[job["probe"]](job, recorder, instrumenter)
        if isinstance(value, _Parts):
            journal.write(("outcome", "parts", dict(value), True))
        else:
            has = value is not _NOTHING
            encoded = backend.in_full(backend.encode, value) if has else None
            journal.write(("outcome", "finished", encoded, has))
    except SystemExit as error:
        journal.write(("outcome", "exited", error.code if isinstance(error.code, int | None) else str(error.code), []))
    except BaseException as error:  # noqa: BLE001 - the worker's edge: a program may raise anything, and that is its outcome
        journal.write(("outcome", "raised", failure_of(error), _frames(error)))
    journal.write(("users", instrumenter.users, instrumenter.refused))
    journal.close()


_BALLAST: list[object] = []


def _shift_heap() -> None:
    """Begin with a heap full of holes, so that what a program makes of addresses differs from other runs."""
    for _ in range(500):
        _BALLAST.extend(bytes(length) for length in range(0, 480, 16))
    del _BALLAST[::3]


def _recorder(job: Job, backend: Backend, journal: Journal) -> Recorder:
    steer = job["steer"]
    if steer and not job["reference"] and job["observe"] and (steer["states"] or any(map(steer.get, _CHOSEN))):
        given = [(f[1], f[2]) for f in read(steer["substitute"])[1]] if steer["substitute"] else []
        return Steered(backend, journal, steer["zoom"], steer["stop_at"], given)
    if job["copy"]:
        return Copying(backend, journal, frozenset(job["copy"]))
    if not job["reference"]:
        return Recorder(backend, journal, inputs=backend.name == "torch")
    healer = importlib.import_module("migrate_lens.worker.heal.healer")
    everything, spare, skip = job["heal"] == "all", job["spare"], job["skip"]
    made: Recorder = healer.make(backend, journal, job["reference"], everything, spare, skip, job["hashable"])
    return made


def _prepare(job: Job, instrumenter: Instrumenter, seed: Any) -> None:
    os.chdir(job["cwd"])
    os.environ.update(job["environ"])
    sys.path[:0] = job["sys_path"]
    sys.argv = [job["path"] or job["spec"]]
    if job["observe"]:
        instrumenter.install()
        # Each call of the program's goes through one of ours or two: what fits without them must fit with them.
        sys.setrecursionlimit(3 * sys.getrecursionlimit())
    if job["unbuilt"]:
        importlib.import_module("migrate_lens.worker.heal.standins").import_unbuilt(frozenset(job["unbuilt"]))
    random.seed(job["seed"])
    np.random.seed(job["seed"])
    seed(job["seed"])


class _Parts(dict[str, str]):
    """What became of each part of a probe: modules that were imported, tests that were run, names that were asked."""


class _Nothing:
    """The program has no outcome of its own."""


_NOTHING = _Nothing()


def _script(job: Job, recorder: Recorder, instrumenter: Instrumenter) -> Any:
    path = job["path"]
    source = Path(path).read_bytes()
    if job["observe"]:
        code = instrumenter.compile("__main__", path, source)
    else:
        code = compile(source, path, "exec", dont_inherit=True)
    module = types.ModuleType("__main__")
    module.__dict__.update({"__file__": path, "__builtins__": __builtins__, "__cached__": None})
    if job["observe"]:
        instrumenter.prepare(module)
    _mark(module, job)
    sys.modules["__main__"] = module
    exec(code, module.__dict__)
    value = module.__dict__.get("result", _NOTHING)
    if job["backward"] and value is not _NOTHING:
        leaves = of_names(module.__dict__, recorder.backend)
        return _differentiated(value, leaves, job, recorder, instrumenter)
    return value


def _differentiated(value: Any, leaves: Any, job: Job, recorder: Recorder, instrumenter: Instrumenter) -> Any:
    rewriting = instrumenter if job["observe"] else None
    return with_gradients(value, leaves, recorder.backend, rewriting, lambda module: _mark(module, job))


def _mark(module: types.ModuleType, job: Job) -> None:
    """Put a script into the compat scope, as its finder does with a module that it imports."""
    if job["runtime"] == "paddle":
        proxy = sys.modules.get("paddle.compat.proxy")
        marker = getattr(proxy, "MAGIC_ENABLED_MODULE_ATTR", None)
        if marker:
            module.__dict__[marker] = True


def _callable(job: Job, recorder: Recorder, instrumenter: Instrumenter) -> Any:
    name, _, attribute = job["spec"].partition(":")
    value = getattr(importlib.import_module(name), attribute)()
    if not (isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], recorder.backend.module)):
        return value if value is not None else _NOTHING
    model, inputs = value
    if isinstance(inputs, dict):
        return model(**inputs)
    args = tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)
    if not job["backward"]:
        return _run_model(model, args, job, recorder)
    leaves, args = zip(*as_leaves(args, recorder.backend), strict=True) if args else ((), ())
    value = _run_model(model, args, job, recorder)
    named = [(f"input {n}", leaf) for n, leaf in enumerate(leaves) if leaf is not None]
    return _differentiated(value, [*of_layer(model), *named], job, recorder, instrumenter)


def _run_model(model: Any, args: tuple[Any, ...], job: Job, recorder: Recorder) -> Any:
    if not job["observe"]:
        return model(*args)
    base = recorder.register("__probe__", job["spec"], (Node(1, 0, 1, 0, "c", "", (), job["spec"]),))
    return forms.make(recorder)[CALL](base, model, *args)


def _imports(job: Job, recorder: Recorder, instrumenter: Instrumenter) -> Any:
    done = _Parts()
    for name in job["modules"]:
        try:
            importlib.import_module(name)
            done[name] = "passed"
        except BaseException as error:  # noqa: BLE001 - the worker's edge: a module may raise anything when imported
            recorder.journal.write(("module failed", name, failure_of(error), _frames(error)))
            done[name] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200]
    return done


def _pytest(job: Job, recorder: Recorder, instrumenter: Instrumenter) -> Any:
    pytest = importlib.import_module("pytest")
    outcomes = _Parts()

    class Collect:
        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.when == "call" or report.outcome != "passed":
                outcomes[report.nodeid] = report.outcome

        def pytest_exception_interact(self, node: Any, call: Any, report: Any) -> None:
            error = call.excinfo.value
            recorder.journal.write(("module failed", node.nodeid, failure_of(error), _frames(error)))

    _, colons, node = job["spec"].partition("::")
    target = job["path"] + colons + node if job["path"] else job["spec"]
    code = pytest.main(["-q", "-p", "no:cacheprovider", "--assert=plain", target], plugins=[Collect()])
    if int(code) not in (0, 1):
        raise SystemExit(int(code))
    return outcomes


def _ask(job: Job, recorder: Recorder, instrumenter: Instrumenter) -> Any:
    return _Parts({name: _kind(name) for name in job["modules"]})


def _replay(job: Job, recorder: Recorder, instrumenter: Instrumenter) -> Any:
    steer = job["steer"]
    replay(recorder.backend, recorder.journal, job["path"], zoom=bool(steer and steer["zoom"]))
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


def _frames(error: BaseException) -> list[tuple[str, int, int, int, int, str, bool]]:
    """Frames of the program, outermost first: file, line, end line, columns, function, and whether it is the last."""
    found = []
    walked = list(traceback.walk_tb(error.__traceback__))
    summary = traceback.StackSummary.extract(iter(walked), lookup_lines=False)
    for (frame, _), entry in zip(walked, summary, strict=True):
        if entry.filename.startswith(_OURS) or "importlib" in entry.filename:
            continue
        code = (entry.lineno or 0, entry.end_lineno or 0, entry.colno or 0, entry.end_colno or 0)
        found.append((entry.filename, *code, frame.f_globals.get("__name__", "") or "", False))
    if isinstance(error, SyntaxError) and error.filename:
        found.append((error.filename, error.lineno or 0, error.lineno or 0, 0, 0, "", False))
    return [(*f[:6], i == len(found) - 1) for i, f in enumerate(found)]
