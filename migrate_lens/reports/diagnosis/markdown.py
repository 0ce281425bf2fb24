"""A diagnosis, in; Markdown for an issue, a pull request or a wiki page, out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from migrate_lens.media import code, markdown
from migrate_lens.model.report import Gap, Report
from migrate_lens.model.target import TARGET
from migrate_lens.reports import PLAIN, View, wording


def render(report: Report, view: View = PLAIN) -> str:
    """The report with the same parts, in the same order, as the text form."""
    blocks = [
        f"# migrate-lens: {markdown(report.library.name)}",
        f"**{markdown(wording.verdict(report))}**",
        _facts(report),
        _stages(report),
        _tests(report),
        _first(report),
        *_gaps(report),
        _rest(report),
        _next(report, view),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _facts(report: Report) -> str:
    library = report.library
    lines = [
        f"- library: {code(str(library.script or library.root))}",
        f"- probes: {markdown(wording.probes(report))}",
        f"- torch: {markdown(wording.environment(report.torch))}",
        f"- {TARGET.name}: {markdown(wording.environment(report.target))}",
    ]
    return "\n".join(lines)


def _stages(report: Report) -> str:
    rows = [[markdown(cell) for cell in (*row.cells, row.detail)] for row in wording.stage_rows(report.stages)]
    if not rows:
        return ""
    said = wording.global_runtime(report)
    return "## Stages\n\n" + _table((*wording.STAGE_HEADER, "detail"), rows) + (f"\n\n{markdown(said)}" if said else "")


def _tests(report: Report) -> str:
    if report.tests is None:
        return ""
    blocks = ["## Tests", markdown(wording.suite(report.tests))]
    held, more = wording.held_back(report.tests)
    if held:
        blocks.append(_table(wording.HELD_HEADER, [(number, code(gap)) for number, gap in held]))
    if more:
        blocks.append(more)
    stray = wording.unexplained(report.tests)
    if stray:
        blocks += ["Tests that no gap explains:", "\n".join(f"- {markdown(line)}" for line in stray)]
    return "\n\n".join(blocks)


def _first(report: Report) -> str:
    first = report.first
    if first is None:
        return ""
    row = [code(first.torch_path), code(first.target_path), markdown(first.observed), markdown(first.conclusion)]
    return "## First divergence\n\n" + _table(wording.FIRST_HEADER, [row])


def _gaps(report: Report) -> Iterator[str]:
    for title, gaps in wording.by_layer(report.gaps):
        yield f"## {markdown(title)}"
        yield from (_gap(gap) for gap in gaps)


def _gap(gap: Gap) -> str:
    rule = f", rule {code(gap.rule)}" if gap.rule else ""
    lines = [
        f"### {code(gap.id)}",
        "",
        f"- symptom: {markdown(gap.symptom)}, category {gap.category}, stage {gap.stage}",
        f"- at: {markdown(wording.sites(gap.sites))}",
        f"- expected: {code(gap.expected)}",
        f"- actual: {code(gap.actual)}",
        f"- decision: **{gap.decision}**{rule}",
        *(f"  - {markdown(line)}" for line in wording.evidence(gap)),
        *(f"- {label}: {markdown(line)}" for label, line in wording.remedies(gap)),
    ]
    return "\n".join(lines)


def _rest(report: Report) -> str:
    lines = [f"- trace {markdown(line)}" for line in wording.traces(report)]
    lines += [f"- skipped {markdown(line)}" for line in wording.skipped(report)]
    lines += [f"- {markdown(note)}" for note in report.notes]
    if scope := wording.scope_line(report):
        lines.append(f"- scope: {code(scope)}")
    return _section("Notes", lines)


def _next(report: Report, view: View) -> str:
    lines = [f"- {markdown(reason)}: {code(command)}" for reason, command in wording.next_steps(report, view.state)]
    return _section("What to do next", lines)


def _section(title: str, lines: Sequence[str]) -> str:
    """A heading and a list; nothing where there is nothing to list."""
    return f"## {title}\n\n" + "\n".join(lines) if lines else ""
