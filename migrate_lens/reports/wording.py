"""A report, in; the sentences and small tables that more than one format for people shows, out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from itertools import groupby

from migrate_lens.model.report import (
    Decision,
    Environment,
    Gap,
    Layer,
    Outcome,
    ProbeKind,
    Report,
    Site,
    StageResult,
)

MAX_SITES = 3
MAX_EVIDENCE = 3
MAX_STAGES = 10
MAX_TRACES = 5
MAX_SKIPPED = 5
FIRST_HEADER = ("torch path", "paddle path", "what was observed", "conclusion")
STAGE_HEADER = ("runtime", "stage", "probe", "outcome", "seconds")

LAYERS: Mapping[Layer, str] = {
    Layer.BUILD: "build: setup.py, CMake, torch.utils.cpp_extension, flags, packaging",
    Layer.CPP_API: "cpp_api: at::, torch::, c10:: in C++",
    Layer.OP_REGISTRY: "op_registry: TORCH_LIBRARY, torch.ops, torch.library",
    Layer.PYTHON_PROXY: "python_proxy: modules, scope, and who answers `import torch`",
    Layer.PYTHON_INTERFACE: "python_interface: functions, methods, keywords, results",
    Layer.UNCLASSIFIED: "UNCLASSIFIED: no rule claims these; please report them with their evidence",
}

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])")


def clean(text: str) -> str:
    """One line without control characters: what a program under diagnosis printed must not drive the terminal."""
    plain = _ANSI.sub("", text).replace("\u2028", " ").replace("\u2029", " ")
    return " ".join("".join(char if char.isprintable() else " " for char in plain).split())


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def probes(report: Report) -> str:
    """What was run, and who chose it."""
    library = report.library
    if library.probes_from == "imports":
        modules = sum(len(probe.modules) for probe in library.probes if probe.kind is ProbeKind.IMPORTS)
        return f"no program was found: {count(modules, 'public module')} imported instead"
    origin = {"option": "named by --probe", "config": "named by the configuration file"}.get(
        library.probes_from, "found"
    )
    return f"{', '.join(clean(probe.spec) for probe in library.probes)} ({origin})"


def environment(side: Environment | None) -> str:
    if side is None:
        return "not reached"
    commit = f" ({side.commit[:12]})" if side.commit else ""
    return f"{side.framework} {side.version}{commit}, Python {side.python}, {side.device}: {side.executable}"


def stage_rows(stages: Iterable[StageResult]) -> list[tuple[tuple[str, ...], str]]:
    """Rows with their details; where there are many, the passed ones of a runtime and stage share a row."""
    known = list(stages)
    folded = len(known) > MAX_STAGES
    rows: list[tuple[tuple[str, ...], str]] = []
    for _, group in groupby(known, key=lambda stage: (stage.runtime, stage.stage, stage.outcome)):
        same = list(group)
        if folded and len(same) > 1 and same[0].outcome is Outcome.PASSED:
            rows.append((_row(same[0], count(len(same), "probe"), sum(stage.seconds for stage in same)), ""))
        else:
            rows.extend((_row(stage, clean(stage.probe), stage.seconds), _detail(stage)) for stage in same)
    return rows


def _row(stage: StageResult, probe: str, seconds: float) -> tuple[str, ...]:
    return (stage.runtime.value, stage.stage.value, probe, stage.outcome.value, f"{seconds:.1f}")


def _detail(stage: StageResult) -> str:
    return "" if stage.outcome is Outcome.PASSED else clean(stage.detail)


def by_layer(gaps: Iterable[Gap]) -> list[tuple[str, list[Gap]]]:
    """Gaps under the title of their layer, in the order of ``LAYERS``; inside a layer, in the order found."""
    known = list(gaps)
    grouped = ((title, [gap for gap in known if gap.layer is layer]) for layer, title in LAYERS.items())
    return [(title, same) for title, same in grouped if same]


def sites(places: tuple[Site, ...]) -> str:
    shown = ", ".join(f"{clean(site.path)}:{site.line}" for site in places[:MAX_SITES])
    more = f", +{len(places) - MAX_SITES} more" if len(places) > MAX_SITES else ""
    return shown + more if places else "outside the library's own sources"


def evidence(gap: Gap) -> list[str]:
    """The first lines of evidence, and how many are left for the JSON report."""
    left = len(gap.evidence) - MAX_EVIDENCE
    more = [f"+{count(left, 'more line')} in the JSON report"] if left > 0 else []
    return [clean(line) for line in gap.evidence[:MAX_EVIDENCE]] + more


def remedies(gap: Gap) -> list[tuple[str, str]]:
    """The workaround and the reproduction, each with whether it was tried."""
    tried = [("patch", gap.workaround.kind, gap.workaround.verified)] if gap.workaround else []
    tried += [("repro", clean(gap.mre.path), gap.mre.verified)] if gap.mre else []
    return [(label, f"{what} ({'ran on both sides' if proved else 'not verified'})") for label, what, proved in tried]


def traces(report: Report) -> list[str]:
    """How far each pair of runs went; where there are many, the complete ones share a line."""
    folded = len(report.traces) > MAX_TRACES
    complete = [trace for trace in report.traces if folded and trace.reached == trace.torch_calls and not trace.note]
    lines = [
        f"{clean(trace.probe)}: {_reached(trace.reached, trace.torch_calls)}"
        + (f" ({clean(trace.note)})" if trace.note else "")
        for trace in report.traces
        if trace not in complete
    ]
    calls = sum(trace.torch_calls for trace in complete)
    return lines + ([f"{count(len(complete), 'probe')}: {_reached(calls, calls)}"] if complete else [])


def _reached(reached: int, calls: int) -> str:
    return f"reached {reached} of {count(calls, 'call')}"


def skipped(report: Report) -> list[str]:
    """What could not be read or run, and how many more of them the JSON report has."""
    left = len(report.skipped) - MAX_SKIPPED
    lines = [f"{clean(one.path)}: {clean(one.reason)}" for one in report.skipped[:MAX_SKIPPED]]
    return lines + ([f"+{left} more in the JSON report"] if left > 0 else [])


def scope_line(report: Report) -> str:
    """The line to put into one's own code, empty where nothing is in scope."""
    names = ", ".join(f'"{name}"' for name in report.scope)
    return f"paddle.enable_compat(scope={{{names}}})" if names else ""


def verdict(report: Report) -> str:
    """The last word, in one sentence or two."""
    if report.verdict == "baseline_failed":
        failed = [stage for stage in report.stages if stage.outcome not in (Outcome.PASSED, Outcome.SKIPPED)]
        where = f" It {failed[-1].outcome.replace('_', ' ')} in stage {failed[-1].stage}." if failed else ""
        return f"The torch baseline does not run, so nothing can be said about Paddle.{where}"
    if report.gaps:
        decided = (f"{number} {decision}" for decision, number in _decisions(report).items())
        return f"{count(len(report.gaps), 'gap')}: {', '.join(decided)}."
    if report.verdict == "gaps":
        return "Paddle does not do what torch does here, and no gap could be named: see the stages."
    probes_run = count(len(report.library.probes), "probe")
    return f"No gaps: {probes_run} did the same under torch and under Paddle's compat layer."


def _decisions(report: Report) -> dict[Decision, int]:
    counted = {decision: sum(gap.decision is decision for gap in report.gaps) for decision in Decision}
    return {decision: number for decision, number in counted.items() if number}


def next_steps(report: Report) -> list[tuple[str, str]]:
    """What to do now: a reason and a command that exists."""
    target = shlex.quote(str(report.library.script or report.library.root))
    if report.verdict == "baseline_failed":
        return [
            (
                "make it run under torch first, perhaps with another interpreter",
                _diagnose(target, "--torch-python PYTHON"),
            ),
            ("or name another program", _diagnose(target, "--probe PROGRAM")),
        ]
    steps = _with_gaps(report) if report.gaps else []
    if any(gap.decision is Decision.NARROW_SCOPE for gap in report.gaps):
        steps.insert(0, ("shrink or extend the scope before anything else", _diagnose(target, "--scope PACKAGE")))
    if report.library.probes_from == "imports":
        steps.append(("run more than imports", _diagnose(target, "--probe PROGRAM")))
    return steps


def _with_gaps(report: Report) -> list[tuple[str, str]]:
    """The commands that go on from the gaps of this diagnosis."""
    first = shlex.quote(report.gaps[0].id)
    steps = [("what a gap means and what to do about it", f"migrate-lens explain {first}")]
    if any(gap.decision in (Decision.ISSUE, Decision.BOTH) for gap in report.gaps):
        steps.append(("reproductions that were run on both sides, to file", "migrate-lens issue --emit --all"))
    if any(gap.decision in (Decision.WORKAROUND, Decision.BOTH, Decision.NOTE) for gap in report.gaps):
        steps.append(("workarounds that were tried on both sides, as patches", "migrate-lens fix"))
    return steps


def _diagnose(target: str, flags: str) -> str:
    return f"migrate-lens diagnose {target} {flags}"
