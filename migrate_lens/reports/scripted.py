"""A document as plain values, in; JSON for scripts, out (``docs/traces.md`` has the fields)."""

from __future__ import annotations

import json

SCHEMA = 1
Json = dict[str, object]


def written(document: Json) -> str:
    """The document with its schema first; what JSON has no form for is written as its text."""
    return json.dumps({"schema": SCHEMA, **document}, indent=1, default=str) + "\n"
