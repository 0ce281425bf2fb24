"""An audit, in; Markdown for a pull request or a plan document, out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from migrate_lens.media import Markdown, code, fenced, line, markdown
from migrate_lens.model.audit import AuditGap, AuditReport, LibraryAudit
from migrate_lens.reports import PLAIN, View, audited
from migrate_lens.reports.wording import count


def render(report: AuditReport, view: View = PLAIN) -> str:
    """One section a library; a table and the maintainers' list where there are several."""
    lines = ["# Audit", "", markdown(audited.headline(report)), ""]
    if len(report.libraries) > 1:
        lines += [*_table(audited.SUMMARY, audited.summary(report)), ""]
        lines += ["## Missing in several libraries", "", *_holding(report), ""]
    for library in report.libraries:
        lines += _library(library)
    return "\n".join(lines).rstrip() + "\n"


def _holding(report: AuditReport) -> Iterator[str]:
    shown = report.holding[: audited.HOLDING_SHOWN]
    rows = [(api, str(len(libraries)), ", ".join(libraries)) for api, libraries in shown]
    return _table(("API", "libraries", "names"), rows)


def _library(library: LibraryAudit) -> Iterator[str]:
    yield from (f"## {markdown(library.name)}", "", markdown(audited.size(library)), "")
    yield from (f"- {markdown(text)}" for text in audited.grading(library))
    yield from (f"- {name}: {markdown(tally)}" for name, tally in audited.tallies(library) if tally)
    yield from ("", "### Plan", "")
    yield from (f"- **{markdown(heading)}**: {markdown(text)}" for heading, text in audited.plan(library))
    yield from ("", fenced("\n".join(map(line, library.plan.validation)), "sh"), "")
    if library.gaps:
        yield from ("### Gaps", "", *_gaps(library), "")
    if library.skipped:
        yield from (f"### Skipped ({count(len(library.skipped), 'file')})", "")
        yield from (f"- {markdown(skipped.path)}: {markdown(skipped.reason)}" for skipped in library.skipped)
        yield ""


def _gaps(library: LibraryAudit) -> Iterator[str]:
    header = ("#", "gap", "layer", "category", "decision", "sites", "first")
    return _table(header, [_row(rank, gap) for rank, gap in enumerate(library.gaps, 1)])


def _row(rank: int, audited_gap: AuditGap) -> tuple[str, ...]:
    gap = audited_gap.gap
    first = f"{gap.sites[0].path}:{gap.sites[0].line}"
    return (str(rank), code(gap.id), gap.layer, gap.category, gap.decision, str(len(gap.sites)), code(first))


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"


def _cell(text: str) -> Markdown:
    return text if isinstance(text, Markdown) else markdown(text)
