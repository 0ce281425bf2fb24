"""A diagnosis, in; Markdown for an issue, a pull request or a wiki page, out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from migrate_lens.model.report import Gap, Report
from migrate_lens.model.target import TARGET
from migrate_lens.reports import PLAIN, View, wording


def render(report: Report, view: View = PLAIN) -> str:
    """The report with the same parts, in the same order, as the text form."""
    blocks = [
        f"# migrate-lens: {_text(report.library.name)}",
        f"**{_text(wording.verdict(report))}**",
        _facts(report),
        _stages(report),
        _first(report),
        *_gaps(report),
        _rest(report),
        _next(report, view),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _text(value: str) -> str:
    """Text that Markdown and HTML take literally."""
    escaped = wording.clean(value).replace("&", "&amp;").replace("<", "&lt;")
    for char in "\\`*_[]|#":
        escaped = escaped.replace(char, f"\\{char}")
    return escaped


def _code(value: str) -> str:
    """A code span; the fence is longer than any run of backticks inside, and a table's ``|`` is escaped."""
    plain = wording.clean(value).replace("|", "\\|")
    if not plain:
        return ""
    fence = "`"
    while fence in plain:
        fence += "`"
    return f"{fence} {plain} {fence}" if "`" in plain else f"`{plain}`"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _facts(report: Report) -> str:
    library = report.library
    lines = [
        f"- library: {_code(str(library.script or library.root))}",
        f"- probes: {_text(wording.probes(report))}",
        f"- torch: {_text(wording.environment(report.torch))}",
        f"- {TARGET.name}: {_text(wording.environment(report.target))}",
    ]
    return "\n".join(lines)


def _stages(report: Report) -> str:
    rows = [[_text(cell) for cell in (*row.cells, row.detail)] for row in wording.stage_rows(report.stages)]
    if not rows:
        return ""
    said = wording.global_runtime(report)
    return "## Stages\n\n" + _table((*wording.STAGE_HEADER, "detail"), rows) + (f"\n\n{_text(said)}" if said else "")


def _first(report: Report) -> str:
    first = report.first
    if first is None:
        return ""
    row = [_code(first.torch_path), _code(first.target_path), _text(first.observed), _text(first.conclusion)]
    return "## First divergence\n\n" + _table(wording.FIRST_HEADER, [row])


def _gaps(report: Report) -> Iterator[str]:
    for title, gaps in wording.by_layer(report.gaps):
        yield f"## {_text(title)}"
        yield from (_gap(gap) for gap in gaps)


def _gap(gap: Gap) -> str:
    rule = f", rule {_code(gap.rule)}" if gap.rule else ""
    lines = [
        f"### {_code(gap.id)}",
        "",
        f"- symptom: {_text(gap.symptom)}, category {gap.category}, stage {gap.stage}",
        f"- at: {_text(wording.sites(gap.sites))}",
        f"- expected: {_code(gap.expected)}",
        f"- actual: {_code(gap.actual)}",
        f"- decision: **{gap.decision}**{rule}",
        *(f"  - {_text(line)}" for line in wording.evidence(gap)),
        *(f"- {label}: {_text(line)}" for label, line in wording.remedies(gap)),
    ]
    return "\n".join(lines)


def _rest(report: Report) -> str:
    lines = [f"- trace {_text(line)}" for line in wording.traces(report)]
    lines += [f"- skipped {_text(line)}" for line in wording.skipped(report)]
    lines += [f"- {_text(note)}" for note in report.notes]
    if scope := wording.scope_line(report):
        lines.append(f"- scope: {_code(scope)}")
    return _section("Notes", lines)


def _next(report: Report, view: View) -> str:
    lines = [f"- {_text(reason)}: {_code(command)}" for reason, command in wording.next_steps(report, view.state)]
    return _section("What to do next", lines)


def _section(title: str, lines: Sequence[str]) -> str:
    """A heading and a list; nothing where there is nothing to list."""
    return f"## {title}\n\n" + "\n".join(lines) if lines else ""
