"""The bench: a pair of workers and a library in; runs of its probes, with their traces, out.

A ``RunRequest`` is one run. It names its ``Setting``, which all runs of one diagnosis share, and says what is handed
over from torch's run (``Healing``) or what a user wants recorded and done (``Steering``).
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from migrate_lens.model.errors import LibraryError
from migrate_lens.model.report import Environment, Level, Library, Probe, ProbeKind, Runtime
from migrate_lens.model.trace import EMPTY, Died, Parts, Trace
from migrate_lens.model.value import Encoded
from migrate_lens.protocol.journal import Journal, give_back, ran_full
from migrate_lens.runs.store import load
from migrate_lens.runs.worker import MOST_OUTPUT, MOST_TRACE, Excess, Fate, Worker

if TYPE_CHECKING:
    from migrate_lens.worker.run.job import Job, Steer

_TAIL = 4000
_LEAST_ROOM = 1 << 20
SEED = 0
# The target gets what torch needed twenty times over, and half a minute: a hang is seen long before the user's limit.
_FACTOR, _GRACE = 20, 30.0
MAX_BYTES, DIGEST_BYTES = 1 << 22, 1 << 14
_NO_VALUES = -1
_NOTHING_IN_SCOPE = ["migrate_lens_nothing"]


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a probe in one runtime.

    Attributes:
        runtime: which.
        trace: what it did.
        file: the trace file.
        fate: how its process ended.
        stderr: the last that it wrote there, for a person.
    """

    runtime: Runtime
    trace: Trace
    file: Path
    fate: Fate
    stderr: str

    @property
    def printed(self) -> Path:
        """The file with what the program printed."""
        return self.file.with_suffix(".out")

    @property
    def died(self) -> bool:
        """Whether the process left no outcome."""
        return isinstance(self.trace.ending, Died)

    @property
    def cut_off(self) -> bool:
        """Whether the process did not come to an end of its own: it died, or took too long."""
        return self.died or self.fate.timed_out

    @property
    def ended_badly(self) -> bool:
        """Whether the process came to grief after the program's last statement."""
        return not self.died and (self.fate.timed_out or self.fate.code != 0)

    @property
    def in_flight_api(self) -> str:
        """The source of the call that was running when the process ended, ``""`` where none was."""
        place = self.trace.in_flight
        return place.text if place is not None and self.cut_off else ""


@dataclass(frozen=True, slots=True)
class Setting:
    """What all runs of one diagnosis share.

    Attributes:
        library: what is diagnosed.
        paths: folders to put on ``sys.path``, by runtime.
        scope: the compat scope; empty until it is found.
        timeout: seconds that one run may take.
        unbuilt: extension modules that were built for torch and not for the target.
        environ: variables for the runs, by runtime.
        backward: differentiate each program's result at its end, and take the gradients for a part of it.
    """

    library: Library
    paths: Mapping[Runtime, tuple[Path, ...]]
    scope: tuple[str, ...]
    timeout: float
    unbuilt: tuple[str, ...] = ()
    environ: Mapping[Runtime, Mapping[str, str]] = field(default_factory=dict)
    backward: bool = False


@dataclass(frozen=True, slots=True)
class Steering:
    """What a user wants recorded, and done at chosen calls; calls are named as in ``selector``.

    Attributes:
        level: how much of results is kept.
        max_bytes: with ``values``, the largest tensor that is kept whole; of a larger one a sample is kept.
        zoom: the call below which low-level operators are recorded; ``all`` for each.
        stop_at: the call after which the program is stopped.
        substitute: values that the program is handed in place of calls.
        gradients: record the gradient that reaches each result.
    """

    level: Level = Level.DIGESTS
    max_bytes: int = MAX_BYTES
    zoom: str = ""
    stop_at: str = ""
    substitute: tuple[tuple[str, Encoded], ...] = ()
    gradients: bool = False

    @property
    def whole(self) -> int:
        """Bytes up to which a tensor is kept whole, as the worker knows it; -1 for no values at all."""
        match self.level:
            case Level.STRUCTURE:
                return _NO_VALUES
            case Level.DIGESTS:
                return DIGEST_BYTES
            case Level.VALUES:
                return self.max_bytes
            case _:
                assert_never(self.level)


class Heal(StrEnum):
    """What is handed over from torch's run: random draws and new layers, or torch's result at every difference."""

    DRAWS = "draws"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Healing:
    """What a run is handed from torch's; places are named as in ``compare.findings.node_name``.

    Attributes:
        reference: torch's run, or a trace file that stands in for one.
        heal: what is handed over.
        spare: places that are left as the target has them.
        skip: places that are not even called.
        hashable: hand over sizes that can be keys, as torch's can.
    """

    reference: Run | Path
    heal: Heal = Heal.ALL
    spare: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    hashable: bool = False

    @property
    def file(self) -> Path:
        """The trace of torch's run."""
        return self.reference.file if isinstance(self.reference, Run) else self.reference


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One run of a probe.

    Attributes:
        setting: what all runs share.
        runtime: where.
        probe: what.
        observe: False runs the program untouched.
        healing: what is handed over from torch's run; None for nothing.
        steering: what a user wants of a run that nothing is handed over in.
        values: keep the values of large results whole; a run that is healed at every difference always does.
        gradients: record the gradient that reaches each result.
        copy: places whose results are copied, so that they share no memory.
        kernel_log: where marked C++ calls write to.
        finish: let the process end as a program does, and not as soon as its outcome is known.
        most_trace: bytes of trace after which it is ended.
        enough: bytes of trace after which no other test of a suite is begun; 0 for no end.
    """

    setting: Setting
    runtime: Runtime
    probe: Probe
    observe: bool = True
    healing: Healing | None = None
    steering: Steering | None = None
    values: bool = False
    gradients: bool = False
    copy: tuple[str, ...] = ()
    kernel_log: Path | None = None
    finish: bool = False
    most_trace: int = MOST_TRACE
    enough: int = 0

    @property
    def heals_all(self) -> bool:
        """Whether torch's result is handed over at every difference."""
        return self.healing is not None and self.healing.heal is Heal.ALL

    @property
    def timeout(self) -> float:
        """Seconds that it may take."""
        limit = self.setting.timeout
        if self.healing is None or isinstance(self.healing.reference, Path):
            return limit
        return min(limit, self.healing.reference.fate.seconds * _FACTOR + _GRACE)


class NameKind(StrEnum):
    """What a dotted name stands for in a runtime."""

    MODULE = "module"
    CLASS = "class"
    FUNCTION = "function"
    OTHER = "other"
    ABSENT = ""


class Bench:
    """Runs probes in two workers and reads their traces.

    Args:
        torch: the torch worker; None where only the target is asked.
        target: the target's worker; None where only torch is asked.
        folder: a private folder for traces and output.
    """

    def __init__(self, torch: Worker | None, target: Worker | None, folder: Path) -> None:
        self._workers = {Runtime.TORCH: torch, Runtime.TARGET: target, Runtime.TARGET_GLOBAL: target}
        self._folder = folder
        self._numbers = count()

    def run(self, request: RunRequest) -> Run:
        """Run a probe.

        Raises:
            RuntimeUnavailable: the worker is gone.
            LibraryError: torch's run writes without end.
            OSError: the disk is full.
        """
        stem = self._stem(str(request.runtime))
        job = self._job(request.setting, request.runtime, stem)
        _put_probe(job, request.probe, request.setting.library.root)
        job["observe"] = request.observe
        job["copy"] = list(request.copy)
        job["gradients"] = request.gradients
        job["values"] = request.values or request.heals_all
        job["kernel_log"] = str(request.kernel_log or "")
        job["timeout"] = request.timeout
        job["finish"] = request.finish
        job["most_trace"] = request.most_trace
        job["enough"] = request.enough
        if request.healing is not None:
            _put_healing(job, request.healing)
        if request.heals_all:
            job["unbuilt"] = list(request.setting.unbuilt)
        if request.steering is not None:
            _put_steering(job, request.steering, stem)
        return self._done(request.runtime, job, bounded=request.most_trace < MOST_TRACE)

    @contextmanager
    def forgetting(self) -> Iterator[None]:
        """Remove the files of all runs that are made within, at its end."""
        first = next(self._numbers)
        try:
            yield
        finally:
            last = next(self._numbers)
            for file in self._folder.iterdir():
                number = file.name.partition("-")[0]
                if number.isdecimal() and first < int(number) < last:
                    file.unlink()

    def replay(self, setting: Setting, runtime: Runtime, calls: Sequence[tuple[Encoded, ...]], *, zoom: bool) -> Run:
        """Make recorded calls again, each alone (see ``worker.replay``); what became of them is in the run's file."""
        stem = self._stem(f"replay-{runtime}")
        job = self._job(setting, runtime, stem)
        job["probe"] = "replay"
        job["path"] = _written(f"{stem}.calls", calls)
        job["steer"] = _steer(Steering(Level.VALUES, sys.maxsize, "all" if zoom else ""), stem)
        return self._done(runtime, job)

    def ask(self, setting: Setting, runtime: Runtime, names: Sequence[str]) -> dict[str, NameKind]:
        """What each dotted name is in a runtime."""
        if not names:
            return {}
        job = self._job(setting, runtime, self._stem(f"ask-{runtime}"))
        job["modules"] = list(names)
        ending = self._done(runtime, job).trace.ending
        if not isinstance(ending, Parts):
            return {}
        return {name: NameKind(kind) for name, kind in ending.fates.items()}

    def environment(self, runtime: Runtime) -> Environment:
        """What answers in a runtime.

        Raises:
            RuntimeUnavailable: nothing does.
        """
        return self._worker(runtime).environment()

    def _worker(self, runtime: Runtime) -> Worker:
        worker = self._workers[runtime]
        assert worker is not None
        return worker

    def _stem(self, name: str) -> Path:
        """What the names of the next run's files begin with."""
        return self._folder / f"{next(self._numbers)}-{name}"

    def _done(self, runtime: Runtime, job: Job, *, bounded: bool = False) -> Run:
        give_back()
        fate = self._worker(runtime).run(job)
        file = Path(job["trace"])
        self._check_room(file)
        if bounded and fate.excess is Excess.TRACE:
            return Run(runtime, EMPTY, file, fate, "")
        if fate.excess is Excess.TRACE or (fate.excess and runtime is Runtime.TORCH):
            raise LibraryError(
                f"{job['spec'] or 'the program'} does not end under {runtime} {fate.bound}: it was stopped",
                "let it do less: fewer steps, or less to print",
            )
        return Run(runtime, load(file), file, fate, _tail(Path(job["stderr"])))

    def _check_room(self, file: Path) -> None:
        """See that a run had room for what it wrote: one that had not is no run of the program.

        Raises:
            OSError: it had not.
        """
        disk = os.statvfs(self._folder)
        if disk.f_bavail * disk.f_frsize < _LEAST_ROOM or (file.exists() and ran_full(file)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._folder))

    def _job(self, setting: Setting, runtime: Runtime, stem: Path) -> Job:
        """A job that runs nothing and asks for no names."""
        library = setting.library
        side = self._worker(runtime).environment()
        return {
            "runtime": str(runtime),
            "probe": "ask",
            "spec": "",
            "path": "",
            "modules": [],
            "tests": [],
            "test_select": "",
            "enough": 0,
            "sys_path": [str(path) for path in (*setting.paths[runtime], library.import_root)],
            "cwd": os.getcwd(),
            "own": list(library.packages),
            "scope": list(setting.scope) or _NOTHING_IN_SCOPE,
            "seed": SEED,
            "observe": False,
            "trace": f"{stem}.trace",
            "reference": "",
            "heal": "none",
            "spare": [],
            "skip": [],
            "copy": [],
            "hashable": False,
            "unbuilt": [],
            "gradients": False,
            "values": False,
            "kernel_log": "",
            "about": {
                "runtime": str(runtime),
                "framework": side.framework,
                "version": side.version,
                "commit": side.commit,
                "python": side.python,
                "device": side.device,
                "level": str(Level.DIGESTS),
            },
            "steer": None,
            "environ": dict(setting.environ.get(runtime, {})),
            "backward": setting.backward,
            "finish": False,
            "timeout": setting.timeout,
            "most_output": MOST_OUTPUT,
            "most_trace": MOST_TRACE,
            "stdout": f"{stem}.out",
            "stderr": f"{stem}.err",
        }


def _put_probe(job: Job, probe: Probe, root: Path) -> None:
    job["probe"] = str(probe.kind)
    job["spec"] = probe.spec
    job["modules"] = list(probe.modules)
    job["about"] |= {"probe": str(probe.kind), "spec": probe.spec}
    if probe.kind is ProbeKind.PYTEST:
        _put_tests(job, probe, root)
    if probe.path is None:
        return
    job["path"] = str(probe.path)
    folder = str(probe.path.parent)
    if folder not in job["sys_path"]:
        job["sys_path"].append(folder)


def _put_tests(job: Job, probe: Probe, library: Path) -> None:
    """Tests are run from the library's folder, as its own people run them, and named from there."""
    inside = probe.path is None or probe.path.is_relative_to(library)
    root = library if inside else probe.path.parent  # type: ignore[union-attr]
    job["cwd"] = str(root)
    job["test_select"] = probe.select
    job["tests"] = list(probe.tests)
    if probe.path is not None and not probe.tests:
        _, colons, node = probe.spec.partition("::")
        job["tests"] = [probe.path.relative_to(root).as_posix() + colons + node]


def _put_healing(job: Job, healing: Healing) -> None:
    job["reference"] = str(healing.file)
    job["heal"] = str(healing.heal)
    job["spare"] = list(healing.spare)
    job["skip"] = list(healing.skip)
    job["hashable"] = healing.hashable


def _put_steering(job: Job, steering: Steering, stem: Path) -> None:
    job["steer"] = _steer(steering, stem)
    job["gradients"] = steering.gradients
    job["about"] |= {"level": str(steering.level), "max_bytes": steering.max_bytes}


def _steer(steering: Steering, stem: Path) -> Steer:
    frames = [("substitute", selector, value) for selector, value in steering.substitute]
    return {
        "whole": steering.whole,
        "states": steering.level is Level.VALUES,
        "zoom": steering.zoom,
        "stop_at": steering.stop_at,
        "substitute": _written(f"{stem}.given", frames) if frames else "",
    }


def _written(path: str, frames: Sequence[tuple[Encoded, ...]]) -> str:
    """Frames as a file for a worker; its path."""
    journal = Journal(path)
    for frame in frames:
        journal.write(frame)
    journal.close()
    return path


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
