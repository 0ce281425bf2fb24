"""A diagnosis, in; schema 1 as one JSON document, out. ``docs/report.schema.json`` describes it for other programs."""

from __future__ import annotations

import json

from migrate_lens import __version__
from migrate_lens.model.reading import Json
from migrate_lens.model.report import Report
from migrate_lens.reports import PLAIN, View

SCHEMA = 1


def render(report: Report, view: View = PLAIN) -> str:
    """The document, with keys in a fixed order and lists in the report's own order."""
    return json.dumps(document(report), indent=2, allow_nan=False) + "\n"


def document(report: Report) -> Json:
    """The document as plain values; new keys may be added in schema 1, none is ever renamed or taken away."""
    return {"schema": SCHEMA, "tool": {"name": "migrate-lens", "version": __version__}, **report.to_json()}
