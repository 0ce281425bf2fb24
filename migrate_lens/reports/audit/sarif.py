"""An audit, in; SARIF for code hosts and editors, out: how loud a gap is says how soon it bites."""

from __future__ import annotations

from migrate_lens.model.audit import AuditGap, AuditReport, LibraryAudit
from migrate_lens.reports import PLAIN, View, sarif
from migrate_lens.reports.sarif import Loudness, Result

QUIET = 2.0  # a score below this is a note


def render(report: AuditReport, view: View = PLAIN) -> str:
    """One run a library; one result a site."""
    return sarif.text([_run(library) for library in report.libraries])


def _run(library: LibraryAudit) -> sarif.Json:
    results = [Result(audited.gap, loudness(audited), site) for audited in library.gaps for site in audited.gap.sites]
    return sarif.run(results, library.skipped, "")


def loudness(audited: AuditGap) -> Loudness:
    """How loud a gap is."""
    if audited.guarded or audited.score < QUIET:
        return Loudness.NOTE
    return Loudness.ERROR if audited.reach == "import" else Loudness.WARNING
