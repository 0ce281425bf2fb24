"""An audit, in; plain text for a terminal, out."""

from __future__ import annotations

from collections.abc import Sequence

from migrate_lens.model.audit import AuditReport, LibraryAudit
from migrate_lens.reports import audit_lines as lines
from migrate_lens.reports.wording import clean, count

SKIPPED_SHOWN = 5


def render(report: AuditReport) -> str:
    """Each library with its plan and its gaps, then what holds back several of them."""
    parts = [lines.headline(report)]
    for library in report.libraries:
        parts += ["", *_library(library)]
    if len(report.libraries) > 1:
        parts += ["", *_table((lines.SUMMARY, *lines.summary(report)))]
        parts += ["", "missing in several libraries", *_holding(report)]
    return "\n".join(parts) + "\n"


def _library(library: LibraryAudit) -> list[str]:
    out = [f"{clean(library.name)}: {lines.size(library)}"]
    out += [f"  {name:<9} {text}" for name, text in lines.tallies(library) if text]
    out += ["", "  plan"]
    out += [f"    {name}: {text}" for name, text in lines.plan(library)]
    out += [f"    {step}" for step in library.plan.validation]
    out += ["", "  gaps, what bites first first"] if library.gaps else ["", "  no gaps"]
    for rank, one in enumerate(library.gaps[: lines.SHOWN], 1):
        out.append(f"  {rank:>3}. {lines.gap_head(one)}")
        out += [f"       {line}" for line in lines.gap_body(one)]
    left = len(library.gaps) - lines.SHOWN
    out += [f"  +{count(left, 'more gap')} in --format json"] if left > 0 else []
    out += [f"  {count(library.suppressed, 'finding')} known or ignored"] if library.suppressed else []
    return out + _skipped(library)


def _skipped(library: LibraryAudit) -> list[str]:
    out = [f"  skipped {clean(one.path)}: {clean(one.reason)}" for one in library.skipped[:SKIPPED_SHOWN]]
    left = len(library.skipped) - SKIPPED_SHOWN
    return out + ([f"  +{left} more skipped in --format json"] if left > 0 else [])


def _holding(report: AuditReport) -> list[str]:
    rows = [f"  {len(names):>3}  {clean(api)}: {', '.join(map(clean, names))}" for api, names in report.holding[:40]]
    return rows or ["  none"]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
