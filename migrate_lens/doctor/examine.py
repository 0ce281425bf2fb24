"""Interpreters in; what is installed in them, and what a tracer of each runtime was seen to be able to do, out."""

from __future__ import annotations

import platform
import shutil
import subprocess
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from migrate_lens.doctor.cells import CELLS, Tried, asking, run
from migrate_lens.model.errors import RuntimeUnavailable
from migrate_lens.model.progress import Progress
from migrate_lens.model.report import Environment, Runtime
from migrate_lens.runs.request import TraceRequest, workers
from migrate_lens.runs.tracer import UNPROVEN, Capability, Tracer

_SCOPE = ("program",)


class Mark(StrEnum):
    """What a runtime is given for a capability: what is claimed of it, unless a check of the claim failed."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    UNPROVEN = "unproven"
    FAILS = "fails"
    UNTRIED = "untried"


@dataclass(frozen=True, slots=True)
class Score:
    """One entry of the scorecard; ``code`` is that of the limit that a user sees of what is not supported."""

    mark: Mark
    code: str = ""


@dataclass(frozen=True, slots=True)
class Side:
    """One runtime: what answered, or why nothing did and what to do; and what came of each cell."""

    runtime: Runtime
    environment: Environment | None
    problem: str
    remedy: str
    tried: tuple[Tried, ...]

    def score(self, capability: Capability) -> Score:
        """What was seen of a capability in this runtime."""
        tried = [cell for cell in self.tried if cell.cell.capability is capability]
        if not tried:
            return Score(Mark.UNTRIED)
        claim = tried[0].claim
        if claim == UNPROVEN:
            return Score(Mark.UNPROVEN)
        if any(cell.failure for cell in tried):
            return Score(Mark.FAILS)
        return Score(Mark(claim.standing), claim.code)


@dataclass(frozen=True, slots=True)
class Health:
    """What is installed and what was seen to work.

    Attributes:
        sides: one a runtime.
        system: the platform.
        compiler: the first line of what the C++ compiler says of itself, or that there is none.
    """

    sides: tuple[Side, ...]
    system: str
    compiler: str

    @property
    def well(self) -> bool:
        """Whether every runtime is there and does what is claimed of it."""
        return all(side.environment and all(tried.honest for tried in side.tried) for side in self.sides)


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
    answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return next(iter(answer.stdout.splitlines()), Path(path).name)
