"""Gaps, in; SARIF 2.1.0 for code hosts and editors, out: a diagnosis or an audit, one result a site."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from urllib.parse import quote

from migrate_lens import __version__
from migrate_lens.model.audit import AuditGap, AuditReport
from migrate_lens.model.report import Gap, Report, Site, Skipped
from migrate_lens.reports.wording import clean

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVEL = 2.0  # a score below this is a note


def render(report: Report) -> str:
    """A diagnosis: every gap was observed."""
    rows = [(gap, "error", site) for gap in report.gaps for site in gap.sites]
    return text([run(rows, report.skipped, report.library.root.as_uri())])


def render_audit(report: AuditReport) -> str:
    """An audit: one run a library."""
    runs = []
    for library in report.libraries:
        rows = [(one.gap, level(one), site) for one in library.gaps for site in one.gap.sites]
        runs.append(run(rows, library.skipped, ""))
    return text(runs)


def level(one: AuditGap) -> str:
    """How loud a gap is."""
    if one.guarded or one.score < LEVEL:
        return "note"
    return "error" if one.reach == "import" else "warning"


def text(runs: list[dict[str, object]]) -> str:
    """The whole document."""
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": runs}, indent=1) + "\n"


def run(rows: list[tuple[Gap, str, Site]], skipped: Iterable[Skipped], root: str) -> dict[str, object]:
    """One run: its rules, its results, and what could not be read."""
    rules: dict[str, dict[str, object]] = {}
    for gap, _, _ in rows:
        rules.setdefault(gap.rule or "unclassified", rule(gap))
    names = list(rules)
    base = {"originalUriBaseIds": {"SRCROOT": {"uri": root.rstrip("/") + "/"}}} if root else {}
    return {
        "tool": {"driver": {"name": "migrate-lens", "version": __version__, "rules": list(rules.values())}},
        "columnKind": "utf16CodeUnits",
        **base,
        "results": [result(gap, loud, site, names) for gap, loud, site in rows],
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    {
                        "level": "note",
                        "message": {"text": clean(one.reason)},
                        "locations": [location(Site(one.path, 1))],
                    }
                    for one in skipped
                ],
            }
        ],
    }


def rule(gap: Gap) -> dict[str, object]:
    """A rule as SARIF has it."""
    return {
        "id": gap.rule or "unclassified",
        "shortDescription": {"text": clean(gap.rule.replace("_", " ") or "unclassified")},
        "properties": {"tags": [str(gap.layer), f"category-{gap.category}"]},
    }


def result(gap: Gap, loud: str, site: Site, names: list[str]) -> dict[str, object]:
    """One site."""
    name = gap.rule or "unclassified"
    mark = hashlib.blake2b(f"{gap.id}\0{site.path}".encode(), digest_size=16).hexdigest()
    return {
        "ruleId": name,
        "ruleIndex": names.index(name),
        "level": loud,
        "message": {"text": clean(f"{gap.id}: {gap.expected}; {gap.actual}")},
        "locations": [location(site)],
        "partialFingerprints": {"gapInFile/v1": mark},
        "properties": {"layer": str(gap.layer), "category": str(gap.category), "decision": str(gap.decision)},
    }


def location(site: Site) -> dict[str, object]:
    """A place in the library."""
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(site.path), "uriBaseId": "SRCROOT"},
            "region": {"startLine": max(site.line, 1)},
        }
    }
