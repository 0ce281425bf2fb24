"""A diagnosis, in; SARIF for code hosts and editors, out. Every gap was observed, so each is an error."""

from __future__ import annotations

from migrate_lens.model.report import Report
from migrate_lens.reports import PLAIN, View, sarif
from migrate_lens.reports.sarif import Loudness, Result


def render(report: Report, view: View = PLAIN) -> str:
    """One run; one result a site."""
    results = [Result(gap, Loudness.ERROR, site) for gap in report.gaps for site in gap.sites]
    return sarif.text([sarif.run(results, report.skipped, report.library.root.as_uri())])
