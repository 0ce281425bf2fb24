"""Tiny programs, in; what a diagnosis with real torch and real Paddle makes of them, out."""

from __future__ import annotations

import itertools
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from migrate_lens.classify import classify
from migrate_lens.diagnosis.investigate import Investigation, baseline, investigate
from migrate_lens.diagnosis.subject import Subject
from migrate_lens.discovery.discover import discover
from migrate_lens.model.report import Gap, Library, Probe, ProbeKind, Runtime, Stage, StageResult
from migrate_lens.runs.bench import Bench, Heal, Healing, Run, RunRequest, Setting
from migrate_lens.runs.worker import Worker


@dataclass(frozen=True)
class Diagnosis:
    """What one program showed."""

    base: Run
    baseline: StageResult
    observed: bool
    done: Investigation | None
    gaps: tuple[Gap, ...]

    @property
    def keys(self) -> list[str]:
        """The ids of its gaps, in order of their names."""
        return sorted(gap.id for gap in self.gaps)

    def gap(self, name: str) -> Gap:
        """The gap with an id."""
        return next(g for g in self.gaps if g.id == name)

    @property
    def investigation(self) -> Investigation:
        """What was seen under Paddle."""
        assert self.done is not None
        return self.done


@dataclass
class Lab:
    """A warm pair of workers and a folder for programs."""

    bench: Bench
    folder: Path
    numbers: itertools.count[int]

    def library(self, source: str, **others: str) -> Library:
        """A lone script, with other modules beside it."""
        folder = self.folder / f"program{next(self.numbers)}"
        folder.mkdir()
        for name, text in others.items():
            (folder / f"{name}.py").write_text(textwrap.dedent(text))
        script = folder / "script.py"
        script.write_text(textwrap.dedent(source))
        return discover(script)

    def setting(self, library: Library, timeout: float = 60.0) -> Setting:
        """What all runs of a library share."""
        return Setting(library, dict.fromkeys(Runtime, ()), (), timeout)

    def run(self, source: str, runtime: Runtime = Runtime.TORCH, *, timeout: float = 60.0, **others: str) -> Run:
        """One run of a script, with nothing healed."""
        library = self.library(source, **others)
        return self.bench.run(RunRequest(self.setting(library, timeout), runtime, library.probes[0]))

    def again(self, source: str, base_source: str | None = None, *, heal: str = "all", spare: Sequence[str] = (),
              skip: Sequence[str] = ()) -> tuple[Run, Run]:  # fmt: skip
        """A torch run and a Paddle run that is handed torch's values."""
        library = self.library(source if base_source is None else base_source)
        setting = self.setting(library)
        base = self.bench.run(RunRequest(setting, Runtime.TORCH, library.probes[0]))
        assert library.script is not None
        library.script.write_text(textwrap.dedent(source))
        healing = Healing(base, Heal(heal), tuple(spare), tuple(skip))
        run = self.bench.run(RunRequest(setting, Runtime.TARGET, library.probes[0], healing=healing))
        return base, run

    def diagnose(self, source: str, *, timeout: float = 60.0, stop_at_first: bool = False, **others: str) -> Diagnosis:
        """Diagnose a script."""
        library = self.library(source, **others)
        return self.of(library, library.probes[0], timeout=timeout, stop_at_first=stop_at_first)

    def diagnose_call(self, source: str, *, stop_at_first: bool = False) -> Diagnosis:
        """Diagnose ``script:make`` of a script."""
        library = replace(self.library(source), packages=("script",))
        return self.of(library, Probe(ProbeKind.CALLABLE, "script:make"), stop_at_first=stop_at_first)

    def of(self, library: Library, probe: Probe, *, timeout: float = 60.0, stop_at_first: bool = False) -> Diagnosis:
        """Diagnose a probe."""
        setting = self.setting(library, timeout)
        base = baseline(Subject(self.bench, setting, Stage.RUN, probe))
        if base.result.outcome != "passed":
            return Diagnosis(base.run, base.result, base.observed, None, ())
        users = {module.partition(".")[0] for module in base.run.trace.users} - {"__main__", "__probe__"}
        setting = replace(setting, scope=tuple(sorted(users)))
        subject = Subject(self.bench, setting, Stage.RUN, probe)
        done = investigate(subject, base, lambda _: None, stop_at_first=stop_at_first)
        return Diagnosis(base.run, base.result, base.observed, done, classify(done.findings))


@pytest.fixture(scope="session", name="lab")
def opened_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Real torch and real Paddle; every job runs in a fork of its own."""
    python = Path(sys.executable)
    folder = tmp_path_factory.mktemp("lab")
    with Worker(python, "torch") as torch, Worker(python, "paddle") as paddle:
        yield Lab(Bench(torch, paddle, folder), folder, itertools.count())
