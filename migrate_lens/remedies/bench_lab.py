"""The laboratory of the remedies: a pair of warm workers in; programs run on both sides, and their outcomes, out."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from migrate_lens.classify import classify
from migrate_lens.diagnosis.investigate import baseline, investigate
from migrate_lens.diagnosis.subject import Subject
from migrate_lens.model.report import Key, Library, Outcome, Probe, ProbeKind, Runtime, Stage
from migrate_lens.programs.synthesis import ProbeRecord, probe_record
from migrate_lens.remedies import kept
from migrate_lens.remedies.home import at_home
from migrate_lens.remedies.lab import Side, Trial
from migrate_lens.runs.bench import Bench, Healing, Run, RunRequest, Setting
from migrate_lens.runs.store import load as load_trace
from migrate_lens.runs.worker import Worker

TIMEOUT = 20.0
NAME = "mre.py"


class BenchLab:
    """Runs programs in forks of warm workers; a context manager.

    Args:
        bench: the workers.
        folder: a private folder; every program is the same file in it, so that its own name says nothing.
    """

    def __init__(self, bench: Bench, folder: Path) -> None:
        self._bench = bench
        self._file = folder / NAME
        library = Library(
            root=folder,
            name="mre",
            script=self._file,
            import_root=folder,
            packages=(),
            modules=(),
            build=None,
            native_sources=(),
            probes=(),
            probes_from="found",
        )
        paths: dict[Runtime, tuple[Path, ...]] = dict.fromkeys(Runtime, ())
        self._setting = Setting(library, paths, (), TIMEOUT)
        self._probe = Probe(ProbeKind.SCRIPT, NAME, self._file)
        self._threads = ThreadPoolExecutor(1)
        self._known: dict[str, Trial] = {}

    def __enter__(self) -> BenchLab:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._threads.shutdown()

    def torch(self, source: str) -> Side:
        """Run a program under torch."""
        self._file.write_text(source, encoding="utf-8")
        return self._side(Runtime.TORCH)

    def both(self, source: str) -> Trial:
        """Run a program on both sides at once; a program that was tried before is not run again."""
        known = self._known.get(source)
        if known is None:
            self._file.write_text(source, encoding="utf-8")
            paddle = self._threads.submit(self._side, Runtime.TARGET_GLOBAL)
            torch = self._side(Runtime.TORCH)
            known = Trial(torch, paddle.result())
            self._known[source] = known
        return known

    def _side(self, runtime: Runtime) -> Side:
        run = self._bench.run(RunRequest(self._setting, runtime, self._probe, observe=False))
        return Side(run.trace.ending, _fate(run), run.fate.seconds)

    def run(self, setting: Setting, runtime: Runtime, probe: Probe) -> Run:
        """Run a probe of a library, untouched."""
        return self._bench.run(RunRequest(setting, runtime, probe, observe=False))

    def watch(self, setting: Setting, runtime: Runtime, probe: Probe) -> Run:
        """Run a probe of a library, observed."""
        return self._bench.run(RunRequest(setting, runtime, probe))

    def heal(self, setting: Setting, probe: Probe, base: Run, spare: Sequence[str]) -> Run:
        """Run a probe under Paddle, handed torch's result at every difference but those at some nodes."""
        healing = Healing(base, spare=tuple(spare))
        return self._bench.run(RunRequest(setting, Runtime.TARGET, probe, healing=healing))

    def fresh(self) -> Path:
        """A new folder that is gone afterwards."""
        return Path(tempfile.mkdtemp(dir=self._file.parent))

    def gaps(self, source: str) -> frozenset[Key]:
        """Diagnose a program; the key of each gap."""
        self._file.write_text(source, encoding="utf-8")
        subject = Subject(self._bench, self._setting, Stage.RUN, self._probe)
        base = baseline(subject)
        if base.result.outcome is not Outcome.PASSED:
            return frozenset()
        scoped = replace(subject, setting=replace(self._setting, scope=("mre",)))
        investigation = investigate(scoped, base, lambda _: None, stop_at_first=False)
        return frozenset(gap.key for gap in classify(investigation.findings))


def _fate(run: Run) -> str:
    if run.fate.timed_out:
        return "timeout"
    if run.died:
        return run.fate.signal_name or f"exit status {run.fate.code}"
    return ""


@contextmanager
def laboratory(diagnosis: kept.Diagnosis) -> Iterator[tuple[BenchLab, tuple[ProbeRecord, ...]]]:
    """Warm workers with the interpreters of the last diagnosis, and its recordings."""
    with (
        tempfile.TemporaryDirectory(prefix="migrate-lens-", ignore_cleanup_errors=True) as name,
        Worker(diagnosis.python(Runtime.TORCH), "torch") as torch,
        Worker(diagnosis.python(Runtime.TARGET), "paddle", keep_torch=diagnosis.index.keep_torch) as paddle,
    ):
        torch.environment()
        paddle.environment()
        with BenchLab(Bench(torch, paddle, Path(name)), Path(name)) as lab:
            traces = (at_home(load_trace(path), diagnosis.library) for path in diagnosis.traces)
            yield lab, tuple(map(probe_record, traces))
