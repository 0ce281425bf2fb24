"""Interpreters in; what is installed in them, and what a tracer of each runtime was seen to be able to do, out."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from migrate_lens.doctor.cells import CELLS, Tried, asking, run
from migrate_lens.model.errors import RuntimeUnavailable
from migrate_lens.model.progress import Progress
from migrate_lens.model.report import Environment, Runtime
from migrate_lens.runs.request import TraceRequest, workers
from migrate_lens.runs.tracer import Capability, Tracer

_SCOPE = ("program",)


@dataclass(frozen=True, slots=True)
class Side:
    """One runtime: what answered, or why nothing did and what to do; and what came of each cell."""

    runtime: Runtime
    environment: Environment | None
    problem: str
    remedy: str
    tried: tuple[Tried, ...]

    def score(self, capability: Capability) -> str:
        """``supported``, ``unsupported (CODE)``, ``unproven``, or ``FAILS`` where a claim did not hold here."""
        mine = [t for t in self.tried if t.cell.capability is capability]
        if not mine:
            return ""
        claim = mine[0].claim
        if claim.standing == "unproven":
            return "unproven"
        if any(t.failure for t in mine):
            return "FAILS"
        return f"{claim.standing} ({claim.code})" if claim.code else claim.standing


@dataclass(frozen=True, slots=True)
class Health:
    """What ``doctor`` found."""

    sides: tuple[Side, ...]
    system: str
    compiler: str

    @property
    def well(self) -> bool:
        """Whether every runtime is there and does what is claimed of it."""
        return all(s.environment and all(t.honest for t in s.tried) for s in self.sides)


def examine(asked: TraceRequest, progress: Progress) -> Health:
    """Start each runtime and try every cell on it."""
    sides = tuple(_side(asked, runtime, progress) for runtime in Runtime)
    return Health(sides, platform.platform(), _compiler())


def _side(asked: TraceRequest, runtime: Runtime, progress: Progress) -> Side:
    progress(f"{len(CELLS)} checks under {runtime}")
    try:
        with workers(asked, (runtime,)) as bench:
            environment = bench.environment(runtime)
            tracer = Tracer(bench, runtime, _SCOPE, asked.timeout)
            with asking(tracer) as ask:
                return Side(runtime, environment, "", "", run(tracer, ask))
    except RuntimeUnavailable as error:
        return Side(runtime, None, error.message, error.remedy, ())


def _compiler() -> str:
    path = shutil.which("g++")
    if path is None:
        return "none: C++ extensions cannot be built"
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return next(iter(done.stdout.splitlines()), Path(path).name)


def rows(health: Health) -> Sequence[tuple[str, ...]]:
    """The scorecard: a row per capability, a column per runtime that is there."""
    there = [s for s in health.sides if s.environment]
    head = ("capability", *(str(s.runtime) for s in there))
    return [head, *((str(c), *(s.score(c) for s in there)) for c in Capability)]
