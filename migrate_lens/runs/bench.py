"""The bench: a pair of workers and a library in; runs of its probes, with their traces, out."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from migrate_lens.model.report import Environment, Level, Library, Probe, Runtime
from migrate_lens.model.trace import Trace
from migrate_lens.model.value import Encoded
from migrate_lens.protocol.journal import Journal
from migrate_lens.runs.store import load
from migrate_lens.runs.worker import Fate, Worker

_TAIL = 4000
SEED = 0
# Paddle gets what torch needed twenty times over, and half a minute: a hang is seen long before the user's own limit.
_FACTOR, _GRACE = 20, 30.0
MAX_BYTES, DIGEST_BYTES = 1 << 22, 1 << 14


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
    def died(self) -> bool:
        """Whether the process left no outcome."""
        return self.trace.ending.how == "died"

    @property
    def in_flight_api(self) -> str:
        """The source of the call that was running when the process ended, ``""`` where none was."""
        place = self.trace.in_flight
        return place.text if place is not None and (self.died or self.fate.timed_out) else ""


@dataclass(frozen=True, slots=True)
class Setting:
    """What all runs of one diagnosis share.

    Attributes:
        library: what is diagnosed.
        paths: folders to put on ``sys.path``, by runtime.
        scope: the compat scope; empty until it is found.
        timeout: seconds that one run may take.
        unbuilt: extension modules that were built for torch and not for Paddle.
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
        return {Level.STRUCTURE: -1, Level.DIGESTS: DIGEST_BYTES}.get(self.level, self.max_bytes)


class Bench:
    """Runs probes in two workers and reads their traces.

    Args:
        torch: the torch worker; None where only Paddle is asked.
        paddle: the Paddle worker; None where only torch is asked.
        folder: a private folder for traces and output.
    """

    def __init__(self, torch: Worker | None, paddle: Worker | None, folder: Path) -> None:
        self._workers = {Runtime.TORCH: torch, Runtime.TARGET: paddle, Runtime.TARGET_GLOBAL: paddle}
        self._folder = folder
        self._numbers = count()

    def run(self, setting: Setting, runtime: Runtime, probe: Probe, *, reference: Run | None = None, heal: str = "none",
            spare: Sequence[str] = (), skip: Sequence[str] = (), copy: Sequence[str] = (), observe: bool = True,
            hashable: bool = False, gradients: bool = False, values: bool = False, kernel_log: Path | None = None,
            steering: Steering | None = None, like: Path | None = None) -> Run:  # fmt: skip
        """Run a probe.

        Args:
            setting: what all runs share.
            runtime: where.
            probe: what.
            reference: torch's run, whose values are handed over.
            heal: ``none``, ``draws`` or ``all`` (see ``worker.job``).
            spare: nodes that are left as Paddle has them.
            skip: nodes that are not called.
            copy: nodes whose results are copied, so that they share no memory.
            observe: False runs the program untouched.
            hashable: hand over sizes that can be keys, as torch's can.
            gradients: record the gradient that reaches each result.
            values: keep the values of large results whole; a healed run always does.
            kernel_log: where marked C++ calls write to.
            steering: what a user wants of a run that nothing is handed over in.
            like: a trace file that stands in for ``reference``.

        Raises:
            RuntimeUnavailable: the worker is gone.
        """
        stem = self._folder / f"{next(self._numbers)}-{runtime}"
        job = self._job(setting, runtime, probe, stem)
        job |= {
            "observe": observe,
            "heal": heal,
            "spare": list(spare),
            "skip": list(skip),
            "copy": list(copy),
            "hashable": hashable,
        }
        job["gradients"] = gradients
        job["values"] = values or heal == "all"
        job["kernel_log"] = str(kernel_log or "")
        job["reference"] = str(reference.file if reference else like or "")
        job["unbuilt"] = list(setting.unbuilt) if heal == "all" else []
        if steering is not None:
            job["steer"] = self._steer(steering, stem)
            job["gradients"] = steering.gradients
            job["about"] |= {"level": str(steering.level), "max_bytes": steering.max_bytes}
        if reference is not None:
            job["timeout"] = min(setting.timeout, reference.fate.seconds * _FACTOR + _GRACE)
        fate = self._worker(runtime).run(job)
        file = Path(job["trace"])
        return Run(runtime, load(file), file, fate, _tail(Path(job["stderr"])))

    def replay(self, setting: Setting, runtime: Runtime, calls: Sequence[tuple[Any, ...]], *, zoom: bool) -> Run:
        """Make recorded calls again, each alone (see ``worker.replay``); what became of them is in the run's file."""
        stem = self._folder / f"{next(self._numbers)}-replay-{runtime}"
        job = self._job(setting, runtime, None, stem) | {"probe": "replay", "path": _written(f"{stem}.calls", calls)}
        whole = Steering(Level.VALUES, sys.maxsize, "all" if zoom else "")
        job["steer"] = self._steer(whole, stem)
        fate = self._worker(runtime).run(job)
        file = Path(job["trace"])
        return Run(runtime, load(file), file, fate, _tail(Path(job["stderr"])))

    def ask(self, setting: Setting, runtime: Runtime, names: Sequence[str]) -> dict[str, str]:
        """What each dotted name is in a runtime: ``module``, ``class``, ``function``, ``other``, or ``""``: absent."""
        if not names:
            return {}
        stem = self._folder / f"{next(self._numbers)}-ask-{runtime}"
        job = self._job(setting, runtime, None, stem) | {"modules": list(names)}
        self._worker(runtime).run(job)
        ending = load(Path(job["trace"])).ending
        return dict(ending.value) if ending.how == "parts" else {}

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

    def _steer(self, steering: Steering, stem: Path) -> dict[str, Any]:
        frames = [("substitute", selector, value) for selector, value in steering.substitute]
        given = _written(f"{stem}.given", frames) if frames else ""
        return {
            "whole": steering.whole, "states": steering.level is Level.VALUES, "zoom": steering.zoom,
            "stop_at": steering.stop_at, "substitute": given,
        }  # fmt: skip

    def _about(self, runtime: Runtime, probe: Probe | None) -> dict[str, Any]:
        """What stands at the head of a trace."""
        side = self._worker(runtime).environment()
        ran = {"probe": str(probe.kind), "spec": probe.spec} if probe else {}
        return {
            "runtime": str(runtime), "framework": side.framework, "version": side.version, "commit": side.commit,
            "python": side.python, "device": side.device, "level": str(Level.DIGESTS), **ran,
        }  # fmt: skip

    def _job(self, setting: Setting, runtime: Runtime, probe: Probe | None, stem: Path) -> dict[str, Any]:
        library = setting.library
        paths = [str(p) for p in (*setting.paths[runtime], library.import_root)]
        script = probe.path if probe else None
        if script is not None and str(script.parent) not in paths:
            paths.append(str(script.parent))
        return {
            "runtime": str(runtime), "probe": str(probe.kind) if probe else "ask", "spec": probe.spec if probe else "",
            "path": str(script) if script else "", "modules": list(probe.modules) if probe else [],
            "sys_path": paths, "cwd": os.getcwd(), "own": list(library.packages),
            "scope": list(setting.scope) or ["migrate_lens_nothing"], "seed": SEED, "observe": probe is not None,
            "trace": f"{stem}.trace", "reference": "", "heal": "none", "spare": [], "skip": [], "copy": [],
            "hashable": False, "unbuilt": [], "gradients": False, "values": False, "kernel_log": "", "steer": None,
            "about": self._about(runtime, probe), "environ": dict(setting.environ.get(runtime, {})),
            "backward": setting.backward,
            "timeout": setting.timeout, "stdout": f"{stem}.out", "stderr": f"{stem}.err",
        }  # fmt: skip


def _written(path: str, frames: Sequence[tuple[Any, ...]]) -> str:
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
