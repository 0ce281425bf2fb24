"""An audit, in; plain text for a terminal, out."""

from __future__ import annotations

from collections.abc import Iterator

from migrate_lens import media
from migrate_lens.model.audit import AuditReport, LibraryAudit
from migrate_lens.reports import PLAIN, View, audited
from migrate_lens.reports.tables import columns
from migrate_lens.reports.wording import count

SKIPPED_SHOWN = 5


def render(report: AuditReport, view: View = PLAIN) -> str:
    """Each library with its plan and its gaps, then what holds back several of them."""
    lines = [audited.headline(report)]
    for library in report.libraries:
        lines += ["", *_library(library)]
    if len(report.libraries) > 1:
        lines += ["", *columns((audited.SUMMARY, *audited.summary(report)))]
        lines += ["", "missing in several libraries", *_holding(report)]
    return "\n".join(lines) + "\n"


def _library(library: LibraryAudit) -> Iterator[str]:
    yield f"{media.line(library.name)}: {audited.size(library)}"
    yield from (f"  {media.line(line)}" for line in audited.grading(library))
    yield from (f"  {name:<9} {tally}" for name, tally in audited.tallies(library) if tally)
    yield ""
    yield from _plan(library)
    yield ""
    yield from _gaps(library)
    if library.suppressed:
        yield f"  {count(library.suppressed, 'finding')} known or ignored"
    yield from _skipped(library)


def _plan(library: LibraryAudit) -> Iterator[str]:
    yield "  plan"
    yield from (f"    {media.line(heading)}: {media.line(text)}" for heading, text in audited.plan(library))
    yield from (f"    {media.line(step)}" for step in library.plan.validation)


def _gaps(library: LibraryAudit) -> Iterator[str]:
    yield "  gaps, what bites first first" if library.gaps else "  no gaps"
    for rank, gap in enumerate(library.gaps[: audited.SHOWN], 1):
        yield f"  {rank:>3}. {audited.gap_head(gap)}"
        yield from (f"       {line}" for line in audited.gap_body(gap))
    left = len(library.gaps) - audited.SHOWN
    if left > 0:
        yield f"  +{count(left, 'more gap')} in --format json"


def _skipped(library: LibraryAudit) -> Iterator[str]:
    for skipped in library.skipped[:SKIPPED_SHOWN]:
        yield f"  skipped {media.line(skipped.path)}: {media.line(skipped.reason)}"
    left = len(library.skipped) - SKIPPED_SHOWN
    if left > 0:
        yield f"  +{left} more skipped in --format json"


def _holding(report: AuditReport) -> list[str]:
    shown = report.holding[: audited.HOLDING_SHOWN]
    return [f"  {len(names):>3}  {media.line(api)}: {', '.join(map(media.line, names))}" for api, names in shown] or [
        "  none"
    ]
