"""An audit, in; Markdown for a pull request or a plan document, out."""

from __future__ import annotations

from collections.abc import Sequence

from migrate_lens.model.audit import AuditGap, AuditReport, LibraryAudit
from migrate_lens.reports import audit_lines as lines
from migrate_lens.reports.wording import clean, count


def render(report: AuditReport) -> str:
    """One section a library; a table and the maintainers' list where there are several."""
    parts = ["# Audit", "", lines.headline(report), ""]
    if len(report.libraries) > 1:
        parts += [*_table(lines.SUMMARY, lines.summary(report)), ""]
        rows = [(api, str(len(names)), ", ".join(names)) for api, names in report.holding[:40]]
        parts += ["## Missing in several libraries", "", *_table(("API", "libraries", "names"), rows), ""]
    for library in report.libraries:
        parts += _library(library)
    return "\n".join(parts).rstrip() + "\n"


def _library(library: LibraryAudit) -> list[str]:
    out = [f"## {_cell(library.name)}", "", lines.size(library), ""]
    out += [f"- {name}: {text}" for name, text in lines.tallies(library) if text]
    out += ["", "### Plan", ""]
    out += [f"- **{name}**: {_cell(text)}" for name, text in lines.plan(library)]
    out += ["", "```sh", *library.plan.validation, "```", ""]
    if library.gaps:
        header = ("#", "gap", "layer", "category", "decision", "sites", "first")
        out += ["### Gaps", "", *_table(header, [_row(rank, one) for rank, one in enumerate(library.gaps, 1)]), ""]
    if library.skipped:
        out += [f"### Skipped ({count(len(library.skipped), 'file')})", ""]
        out += [f"- {_cell(one.path)}: {_cell(one.reason)}" for one in library.skipped] + [""]
    return out


def _row(rank: int, one: AuditGap) -> tuple[str, ...]:
    gap = one.gap
    first = f"{gap.sites[0].path}:{gap.sites[0].line}"
    return (str(rank), f"`{gap.id}`", gap.layer, gap.category, gap.decision, str(len(gap.sites)), f"`{first}`")


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    body = [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    return [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}", *body]


def _cell(text: str) -> str:
    return clean(text).replace("|", "\\|")
