"""A diagnosis, in; the sentences and small tables that more than one format for people shows, out."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Final, assert_never

from migrate_lens import media
from migrate_lens.model.report import (
    Decision,
    Environment,
    Gap,
    Layer,
    Outcome,
    ProbeKind,
    Report,
    Runtime,
    Shortfall,
    Site,
    Stage,
    StageResult,
    SuiteTable,
    TraceSummary,
    Verdict,
)
from migrate_lens.model.target import TARGET

MAX_SITES = 3
MAX_EVIDENCE = 3
MAX_STAGES = 10
MAX_TRACES = 5
MAX_SKIPPED = 5
MAX_SHORTFALLS = 3
FIRST_HEADER = ("torch path", f"{TARGET.name} path", "what was observed", "conclusion")
STAGE_HEADER = ("runtime", "stage", "probe", "outcome", "seconds")

LAYERS: Mapping[Layer, str] = {
    Layer.BUILD: "build: setup.py, CMake, torch.utils.cpp_extension, flags, packaging",
    Layer.CPP_API: "cpp_api: at::, torch::, c10:: in C++",
    Layer.OP_REGISTRY: "op_registry: TORCH_LIBRARY, torch.ops, torch.library",
    Layer.PYTHON_PROXY: "python_proxy: modules, scope, and who answers `import torch`",
    Layer.PYTHON_INTERFACE: "python_interface: functions, methods, keywords, results",
    Layer.UNCLASSIFIED: "UNCLASSIFIED: no rule claims these; please report them with their evidence",
}


def count(number: int, noun: str) -> str:
    """``1 gap``, ``2 gaps``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def suite(table: SuiteTable) -> str:
    """What share of a suite passes, as it is and with all gaps closed."""
    passing = table.under_torch
    if not passing:
        return f"none of {count(len(table.rows), 'test')} passes under torch"
    said = (
        f"of {count(passing, 'test')} that pass under torch, {table.as_it_is} pass under {TARGET.title} as they are, "
        f"{table.with_gaps_closed} would with all gaps closed"
    )
    unexplained = len(table.unexplained)
    return f"{said}; {unexplained} unexplained" if unexplained else f"{said}; none is unexplained"


def held_back(table: SuiteTable) -> tuple[list[tuple[str, str]], str]:
    """The gaps that hold most tests back, and how many more there are."""
    counts = sorted(table.held_back.items(), key=lambda pair: -pair[1])
    more = len(counts) - _MOST_HELD
    shown = [(str(number), media.line(gap)) for gap, number in counts[:_MOST_HELD]]
    return shown, f"and {count(more, 'more gap')}" if more > 0 else ""


def unexplained(table: SuiteTable) -> list[str]:
    """Tests that no gap explains, the first of them."""
    rows = table.unexplained
    lines = [media.line(f"{row.node}: {row.reason or row.healed}") for row in rows[:_MOST_UNEXPLAINED]]
    more = len(rows) - _MOST_UNEXPLAINED
    return [*lines, f"and {more} more, in the JSON report"] if more > 0 else lines


HELD_HEADER: Final = ("tests held back", "by the gap")
_MOST_HELD, _MOST_UNEXPLAINED = 10, 10

ORIGINS: Final = {
    "option": "named by --probe",
    "config": "named by the configuration file",
    "found": "found",
}


def probes(report: Report) -> str:
    """What was run, and who chose it."""
    library = report.library
    if library.probes_from == "imports":
        modules = sum(len(probe.modules) for probe in library.probes if probe.kind is ProbeKind.IMPORTS)
        return f"no program was found: {count(modules, 'public module')} imported instead"
    names = ", ".join(media.line(probe.spec) for probe in library.probes)
    return f"{names} ({ORIGINS[library.probes_from]})"


def environment(side: Environment | None) -> str:
    """One side's framework and interpreter."""
    if side is None:
        return "not reached"
    commit = f" ({side.commit[:12]})" if side.commit else ""
    said = f"{side.framework} {side.version}{commit}, Python {side.python}, {side.device}: {side.executable}"
    return media.line(said)


@dataclass(frozen=True, slots=True)
class StageRow:
    """A row of the table of stages, each part as it is shown; ``detail`` stands outside the columns."""

    runtime: str
    stage: str
    probe: str
    outcome: str
    seconds: str
    detail: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """What stands in the columns of ``STAGE_HEADER``."""
        return (self.runtime, self.stage, self.probe, self.outcome, self.seconds)


def stage_rows(stages: Iterable[StageResult]) -> list[StageRow]:
    """The stages; where there are many, the passed ones of a runtime and stage share a row."""
    all_stages = list(stages)
    folded = len(all_stages) > MAX_STAGES
    rows: list[StageRow] = []
    scoped = {(s.stage, s.probe): s.detail for s in all_stages if s.runtime is Runtime.TARGET}
    for _, group in groupby(all_stages, key=lambda stage: (stage.runtime, stage.stage, stage.outcome)):
        alike = list(group)
        if folded and len(alike) > 1 and alike[0].outcome is Outcome.PASSED:
            rows.append(_shared_row(alike))
        else:
            rows.extend(_stage_row(stage, scoped) for stage in alike)
    return rows


def global_runtime(report: Report) -> str:
    """What the global runtime is; empty where it did not run."""
    ran = any(stage.runtime is Runtime.TARGET_GLOBAL for stage in report.stages)
    return f"{Runtime.TARGET_GLOBAL}: compat for the whole process, not for the packages in scope alone" if ran else ""


def _shared_row(alike: list[StageResult]) -> StageRow:
    """One row for several stages that passed."""
    first = alike[0]
    seconds = sum(stage.seconds for stage in alike)
    return StageRow(first.runtime, first.stage, count(len(alike), "probe"), first.outcome, f"{seconds:.1f}")


def _stage_row(stage: StageResult, scoped: Mapping[tuple[Stage, str], str]) -> StageRow:
    """One stage; what the global runtime says as the scoped one does is said once."""
    again = stage.runtime is Runtime.TARGET_GLOBAL and scoped.get((stage.stage, stage.probe)) == stage.detail
    detail = "" if stage.outcome is Outcome.PASSED or again else media.line(stage.detail)
    return StageRow(stage.runtime, stage.stage, media.line(stage.probe), stage.outcome, f"{stage.seconds:.1f}", detail)


def by_layer(gaps: Iterable[Gap]) -> Iterator[tuple[str, list[Gap]]]:
    """Gaps under the title of their layer, in the order of ``LAYERS``; inside a layer, in the report's order."""
    all_gaps = list(gaps)
    for layer, title in LAYERS.items():
        of_layer = [gap for gap in all_gaps if gap.layer is layer]
        if of_layer:
            yield title, of_layer


def sites(places: tuple[Site, ...]) -> str:
    """The first sites, and how many more there are."""
    if not places:
        return "outside the library's own sources"
    shown = ", ".join(f"{media.line(site.path)}:{site.line}" for site in places[:MAX_SITES])
    left = len(places) - MAX_SITES
    return f"{shown}, +{left} more" if left > 0 else shown


def evidence(gap: Gap) -> list[str]:
    """The first lines of evidence, and how many are left for the JSON report."""
    lines = [media.line(line) for line in gap.evidence[:MAX_EVIDENCE]]
    left = len(gap.evidence) - MAX_EVIDENCE
    if left > 0:
        lines.append(f"+{count(left, 'more line')} in the JSON report")
    return lines


def remedies(gap: Gap) -> list[tuple[str, str]]:
    """The workaround and the reproduction, each with whether it was tried."""
    labelled: list[tuple[str, str]] = []
    if gap.workaround:
        labelled.append(("patch", _tried(gap.workaround.kind, gap.workaround.verified)))
    if gap.mre:
        labelled.append(("repro", _tried(media.line(gap.mre.path), gap.mre.verified)))
    return labelled


def _tried(remedy: str, verified: bool) -> str:
    return f"{remedy} ({'ran on both sides' if verified else 'not verified'})"


def traces(report: Report) -> list[str]:
    """How far each pair of runs went; where there are many, the complete ones share a line."""
    folded = len(report.traces) > MAX_TRACES
    complete = [trace for trace in report.traces if folded and _is_complete(trace)]
    lines = [_trace(trace) for trace in report.traces if trace not in complete]
    if complete:
        calls = sum(trace.torch_calls for trace in complete)
        lines.append(f"{count(len(complete), 'probe')}: {_reached(calls, calls)}")
    return lines


def _is_complete(trace: TraceSummary) -> bool:
    return trace.reached == trace.torch_calls and not trace.note


def _trace(trace: TraceSummary) -> str:
    reached = f"{media.line(trace.probe)}: {_reached(trace.reached, trace.torch_calls - trace.within)}"
    if trace.within:
        reached += f", and {trace.within} more lie in code that only torch runs from within a call"
    return f"{reached} ({media.line(trace.note)})" if trace.note else reached


def _reached(reached: int, calls: int) -> str:
    return f"reached {reached} of {count(calls, 'call')}"


def skipped(report: Report) -> list[str]:
    """What could not be read or run, and how many more of them the JSON report has."""
    lines = [f"{media.line(item.path)}: {media.line(item.reason)}" for item in report.skipped[:MAX_SKIPPED]]
    left = len(report.skipped) - MAX_SKIPPED
    if left > 0:
        lines.append(f"+{left} more in the JSON report")
    return lines


def scope_line(report: Report) -> str:
    """The line to put into one's own code, empty where nothing is in scope."""
    return TARGET.scoped(report.scope) if report.scope else ""


def verdict(report: Report) -> str:
    """The last word, in one sentence or two, and what was not exercised."""
    return f"{_judged(report)}{_not_exercised(report)}"


def _judged(report: Report) -> str:
    gaps = f"{count(len(report.gaps), 'gap')}: {_decisions(report)}." if report.gaps else ""
    match report.verdict:
        case Verdict.BASELINE_FAILED:
            seen = f" Met before: {gaps}" if gaps else ""
            silent = f"The torch baseline does not run, so nothing can be said about {TARGET.title}."
            return f"{silent}{_where_it_failed(report)}{seen}"
        case Verdict.NOT_EXERCISED:
            return f"Nothing was exercised: no torch call was made on both sides, so nothing is said of {TARGET.title}."
        case Verdict.GAPS:
            nameless = f"{TARGET.title} does not do what torch does here, and no gap could be named: see the stages."
            return gaps or nameless
        case Verdict.NO_GAPS:
            return f"No gaps: {_probes_run(report)} did the same under torch and under {TARGET.compat}."
        case _:
            assert_never(report.verdict)


def _probes_run(report: Report) -> str:
    """How many programs ran; those that were put aside are not counted."""
    aside = {shortfall.path for shortfall in report.skipped}
    run = [probe for probe in report.library.probes if probe.spec not in aside]
    return count(len(run), "probe")


def _not_exercised(report: Report) -> str:
    """The first things that were not exercised, and how many more there are."""
    if not report.shortfalls:
        return ""
    shown = "; ".join(_short(one) for one in report.shortfalls[:MAX_SHORTFALLS])
    left = len(report.shortfalls) - MAX_SHORTFALLS
    more = f"; and {left} more" if left > 0 else ""
    return f" Not exercised, or not in whole: {shown}{more}."


def _short(one: Shortfall) -> str:
    flag = f" ({one.flag} may reach more)" if one.flag else ""
    return f"{media.line(one.probe)}: {media.line(one.reason)}{flag}"


def _where_it_failed(report: Report) -> str:
    """Which stage did not run under torch, as a sentence of its own."""
    failed = [stage for stage in report.stages if stage.outcome not in (Outcome.PASSED, Outcome.SKIPPED)]
    if not failed:
        return ""
    last = failed[-1]
    return f" It {last.outcome.replace('_', ' ')} in stage {last.stage}."


def _decisions(report: Report) -> str:
    """How many gaps are decided in which way; decisions that none has are left out."""
    counted = {decision: sum(gap.decision is decision for gap in report.gaps) for decision in Decision}
    return ", ".join(f"{number} {decision}" for decision, number in counted.items() if number)


def next_steps(report: Report, state: str = "") -> list[tuple[str, str]]:
    """What to do now: a reason and a command that exists.

    Args:
        report: the diagnosis.
        state: the folder of results that was named, which the commands name again.
    """
    kept = f" --state {shlex.quote(state)}" if state else ""
    return [(reason, f"{command}{kept}") for reason, command in _steps(report)]


def _steps(report: Report) -> list[tuple[str, str]]:
    path = shlex.quote(str(report.library.script or report.library.root))
    if report.verdict is Verdict.NOT_EXERCISED:
        return [("name a program that calls torch", _diagnose(path, "--probe PROGRAM"))]
    if report.verdict is Verdict.BASELINE_FAILED:
        other_python = _diagnose(path, f"{_probe_flags(report)}--torch-python PYTHON")
        return [
            ("make it run under torch first, perhaps with another interpreter", other_python),
            ("or name another program", _diagnose(path, "--probe PROGRAM")),
            *(_with_gaps(report) if report.gaps else ()),
        ]
    steps: list[tuple[str, str]] = []
    if any(gap.decision is Decision.NARROW_SCOPE for gap in report.gaps):
        again = _diagnose(path, f"{_probe_flags(report)}--scope PACKAGE")
        steps.append(("shrink or extend the scope before anything else", again))
    if report.gaps:
        steps += _with_gaps(report)
    if report.library.probes_from == "imports":
        steps.append(("run more than imports", _diagnose(path, "--probe PROGRAM")))
    return steps


def _probe_flags(report: Report) -> str:
    """The probes that were named, as they were typed, with a blank at the end."""
    named = report.library.probes if report.library.probes_from == "option" else ()
    return "".join(f"--probe {shlex.quote(probe.spec)} " for probe in named)


def _with_gaps(report: Report) -> list[tuple[str, str]]:
    """The commands that go on from the gaps of this diagnosis."""
    first = shlex.quote(report.gaps[0].id)
    steps = [("what a gap means and what to do about it", f"migrate-lens explain {first}")]
    if any(gap.decision in (Decision.ISSUE, Decision.BOTH) for gap in report.gaps):
        steps.append(("reproductions that were run on both sides, to file", "migrate-lens issue --emit --all"))
    if any(gap.decision in (Decision.WORKAROUND, Decision.BOTH, Decision.NOTE) for gap in report.gaps):
        steps.append(("workarounds that were tried on both sides, as patches", "migrate-lens fix"))
    return steps


def _diagnose(path: str, flags: str) -> str:
    return f"migrate-lens diagnose {path} {flags}"
