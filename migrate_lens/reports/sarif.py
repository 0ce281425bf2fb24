"""Gaps, in; SARIF 2.1.0, out, as every document that has gaps writes it: one result a site."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote

from migrate_lens import __version__, media
from migrate_lens.model.report import Gap, Site, Skipped

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
UNCLASSIFIED = "unclassified"

Json = dict[str, object]


class Loudness(StrEnum):
    """What SARIF calls a level."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Result:
    """One site of a gap."""

    gap: Gap
    loudness: Loudness
    site: Site

    @property
    def rule(self) -> str:
        """The rule that says most about the gap."""
        return self.gap.rule or UNCLASSIFIED


def text(runs: Sequence[Json]) -> str:
    """The whole document."""
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": runs}, indent=1) + "\n"


def run(results: Sequence[Result], skipped: Iterable[Skipped], root: str) -> Json:
    """One run: its rules, its results, and what could not be read.

    Args:
        root: the library's URI, empty where there is none.
    """
    rules: dict[str, Json] = {}
    for result in results:
        rules.setdefault(result.rule, _rule(result))
    names = list(rules)
    base = {"originalUriBaseIds": {"SRCROOT": {"uri": root.rstrip("/") + "/"}}} if root else {}
    return {
        "tool": {"driver": {"name": "migrate-lens", "version": __version__, "rules": list(rules.values())}},
        "columnKind": "utf16CodeUnits",
        **base,
        "results": [_result(result, names.index(result.rule)) for result in results],
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [_notification(item) for item in skipped],
            }
        ],
    }


def _rule(result: Result) -> Json:
    gap = result.gap
    return {
        "id": result.rule,
        "shortDescription": {"text": media.line(result.rule.replace("_", " "))},
        "properties": {"tags": [str(gap.layer), f"category-{gap.category}"]},
    }


def _result(result: Result, rule_index: int) -> Json:
    gap, site = result.gap, result.site
    mark = hashlib.blake2b(f"{gap.id}\0{site.path}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return {
        "ruleId": result.rule,
        "ruleIndex": rule_index,
        "level": result.loudness,
        "message": {"text": media.message(f"{gap.id}: {gap.expected}; {gap.actual}")},
        "locations": [_location(site)],
        "partialFingerprints": {"gapInFile/v1": mark},
        "properties": {"layer": str(gap.layer), "category": str(gap.category), "decision": str(gap.decision)},
    }


def _notification(skipped: Skipped) -> Json:
    return {
        "level": Loudness.NOTE,
        "message": {"text": media.message(skipped.reason)},
        "locations": [_location(Site(skipped.path, 1))],
    }


def _location(site: Site) -> Json:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(site.path, errors="surrogateescape"), "uriBaseId": "SRCROOT"},
            "region": {"startLine": max(site.line, 1)},
        }
    }
