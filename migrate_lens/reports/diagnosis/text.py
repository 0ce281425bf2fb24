"""A diagnosis, in; plain text for a terminal of a given width, out. A healthy library takes one screen of 24 lines."""

from __future__ import annotations

from collections.abc import Iterator

from migrate_lens import media
from migrate_lens.model.report import Gap, Report, Runtime
from migrate_lens.model.target import TARGET
from migrate_lens.reports import PLAIN, View, wording
from migrate_lens.reports.tables import LABEL, labelled, table, wrap

INDENT = " " * 4


def render(report: Report, view: View = PLAIN) -> str:
    """The report in lines of at most the view's width; only a single long word goes past it."""
    width = view.width
    blocks = [
        _head(report, width),
        _stages(report, width),
        _tests(report, width),
        _first(report, width),
        *_gaps(report, width),
        _rest(report, width),
        _end(report, view),
    ]
    if view.kept:
        blocks.append([media.line(f"All sites and evidence: {view.kept}")])
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _head(report: Report, width: int) -> list[str]:
    library = report.library
    lines = labelled("library", media.line(f"{library.name} in {library.script or library.root}"), width)
    if library.build:
        sources = wording.count(len(library.native_sources), "native source")
        lines += labelled("build", media.line(f"{library.build.kind}, {library.build.file.name}, {sources}"), width)
    lines += labelled("probes", wording.probes(report), width)
    lines += labelled(Runtime.TORCH, wording.environment(report.torch), width)
    lines += labelled(TARGET.name, wording.environment(report.target), width)
    return lines


def _stages(report: Report, width: int) -> list[str]:
    rows = wording.stage_rows(report.stages)
    if not rows:
        return []
    lines = table([wording.STAGE_HEADER, *(row.cells for row in rows)], width, right=(4,))
    if said := wording.global_runtime(report):
        lines += wrap(said, width, "  ", "    ")
    for row in rows:
        if row.detail:
            lines += wrap(f"{row.runtime} {row.stage} {row.probe}: {row.detail}", width, "  ", "    ")
    return lines


def _tests(report: Report, width: int) -> list[str]:
    if report.tests is None:
        return []
    lines = labelled("tests", wording.suite(report.tests), width)
    held, more = wording.held_back(report.tests)
    if held:
        lines += ["", *table([wording.HELD_HEADER, *held], width, right=(0,))]
    if more:
        lines.append(more)
    stray = wording.unexplained(report.tests)
    if stray:
        lines += ["", "tests that no gap explains"]
    for line in stray:
        lines += wrap(line, width, "  ", "    ")
    return lines


def _first(report: Report, width: int) -> list[str]:
    first = report.first
    if first is None:
        return []
    cells = (first.torch_path, first.target_path, first.observed, first.conclusion)
    rows = [wording.FIRST_HEADER, tuple(media.line(cell) for cell in cells)]
    return ["First divergence", *table(rows, width, separator=" | ")]


def _gaps(report: Report, width: int) -> Iterator[list[str]]:
    for title, gaps in wording.by_layer(report.gaps):
        block = wrap(title, width)
        for gap in gaps:
            block += _gap(gap, width)
        yield block


def _gap(gap: Gap, width: int) -> list[str]:
    decision = f"{gap.decision} (rule {gap.rule})" if gap.rule else f"{gap.decision}"
    lines = wrap(media.line(gap.id), width, "  ", "    ")
    lines += labelled("symptom", f"{gap.symptom}, category {gap.category}, stage {gap.stage}", width, INDENT)
    lines += labelled("at", wording.sites(gap.sites), width, INDENT)
    lines += labelled("expected", media.line(gap.expected), width, INDENT)
    lines += labelled("actual", media.line(gap.actual), width, INDENT)
    lines += labelled("decision", decision, width, INDENT)
    under_values = INDENT + " " * LABEL
    for reason in wording.evidence(gap):
        lines += wrap(reason, width, f"{under_values}- ", f"{under_values}  ")
    for label, remedy in wording.remedies(gap):
        lines += labelled(label, remedy, width, INDENT)
    return lines


def _rest(report: Report, width: int) -> list[str]:
    lines: list[str] = []
    for trace in wording.traces(report):
        lines += labelled("trace", trace, width)
    for skipped in wording.skipped(report):
        lines += labelled("skipped", skipped, width)
    for note in report.notes:
        lines += labelled("note", media.line(note), width)
    if scope := wording.scope_line(report):
        lines += labelled("scope", media.line(scope), width)
    return lines


def _end(report: Report, view: View) -> list[str]:
    width = view.width
    lines = wrap(wording.verdict(report), width)
    steps = wording.next_steps(report, view.state)
    if steps:
        lines += ["", "What to do next"]
    for reason, command in steps:
        lines += [*wrap(f"{reason}:", width, "  ", "  "), f"    {media.line(command)}"]
    return lines
