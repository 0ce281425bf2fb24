"""What to diagnose in; a report of every gap, and the traces that reproductions are made from, out."""

from __future__ import annotations

import json
import platform
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from migrate_lens.classify import classify, load_rules
from migrate_lens.config import Options
from migrate_lens.diagnosis.build_rung import Workshop
from migrate_lens.diagnosis.ladder import Ladder, Limits
from migrate_lens.diagnosis.met import Met
from migrate_lens.discovery.discover import discover
from migrate_lens.model.progress import Progress
from migrate_lens.model.report import Gap, Report, Runtime, SuiteTable
from migrate_lens.model.target import TARGET
from migrate_lens.native import Shelf
from migrate_lens.protocol.journal import is_trace, seal
from migrate_lens.runs.bench import Bench
from migrate_lens.runs.worker import Worker
from migrate_lens.state import INDEX, TRACES, cache_folder, waiting, write


def diagnose(options: Options, progress: Progress) -> Report:
    """Climb the ladder under torch, then under the target, and name every gap.

    Raises:
        LensError: the path, the configuration, an interpreter or a rule is wrong.
    """
    library = discover(options.path, options.probes, options.configured)
    load_rules()
    pythons = {Runtime.TORCH: options.torch_python, Runtime.TARGET: options.paddle_python}
    shelf = Shelf(cache_folder() / "builds", fresh=not options.cache)
    limits = Limits(
        scope=options.scope,
        timeout=options.timeout,
        tests=options.tests,
        stop_at_first=options.stop_at_first,
        backward=options.backward,
        keep_torch=options.keep_torch,
        test_select=options.test_select,
    )
    with _folder() as folder, _workers(pythons, options) as (torch, target):
        progress(f"starting {Runtime.TORCH} and {Runtime.TARGET}")
        environments = (torch.environment(), target.environment())
        workshop = Workshop(library, pythons, folder, options.timeout, shelf)
        ladder = Ladder(workshop, Bench(torch, target, folder), limits, progress)
        verdict = ladder.climb()
        _keep_traces(ladder.met, options)
    met = ladder.met
    gaps = classify(met.findings)
    table = _table(met, gaps)
    return Report(
        library=library,
        torch=environments[0],
        target=environments[1],
        platform=platform.platform(),
        scope=ladder.scope,
        stages=tuple(met.stages),
        traces=tuple(met.traces),
        first=met.first,
        gaps=gaps if table is None else tuple(sorted(gaps, key=lambda gap: -table.held_back.get(gap.id, 0))),
        skipped=tuple(dict.fromkeys((*library.skipped, *met.skipped))),
        verdict=verdict,
        notes=tuple(dict.fromkeys(met.notes)),
        shortfalls=tuple(dict.fromkeys(met.shortfalls)),
        tests=table,
    )


def _table(met: Met, gaps: Sequence[Gap]) -> SuiteTable | None:
    """The table of the suite, where there is one, with the gaps that each test meets."""
    if met.table is None:
        return None
    found = {gap.id: finding for gap, finding in zip(gaps, met.findings, strict=True)}
    return SuiteTable(tuple(met.table.rows(found)))


@contextmanager
def _folder() -> Iterator[Path]:
    """A private folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="migrate-lens-", ignore_cleanup_errors=True) as name:
        yield Path(name)


@contextmanager
def _workers(pythons: Mapping[Runtime, Path], options: Options) -> Iterator[tuple[Worker, Worker]]:
    """A worker for torch and one for the target."""
    with (
        Worker(pythons[Runtime.TORCH], Runtime.TORCH) as torch,
        Worker(pythons[Runtime.TARGET], TARGET.name, keep_torch=options.keep_torch) as target,
    ):
        yield torch, target


def _keep_traces(met: Met, options: Options) -> None:
    """Torch's traces stay in the state folder: reproductions are made from what they recorded.

    They wait beside their place until the report is stored with them.
    """
    kept = waiting(options.state / TRACES)
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir()
    for number, (_, file) in enumerate(met.bases):
        shutil.copyfile(file, kept / f"{number}.trace")
        if is_trace(file):
            seal(kept / f"{number}.trace")
    write(kept / INDEX, json.dumps(_index(met, options), indent=1))


def _index(met: Met, options: Options) -> dict[str, object]:
    """What the traces are of, and how the diagnosis was asked for."""
    probes = [
        {"trace": f"{number}.trace", "kind": str(probe.kind), "spec": probe.spec, "path": str(probe.path or "")}
        for number, (probe, _) in enumerate(met.bases)
    ]
    return {
        "path": str(options.path.resolve()),
        "torch_python": str(options.torch_python),
        "paddle_python": str(options.paddle_python),
        "keep_torch": options.keep_torch,
        "timeout": options.timeout,
        "probes": probes,
        "asked": [*options.probes],
    }
