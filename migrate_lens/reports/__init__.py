"""A report, in; the text of one format, out. A new format is one module here and one line in ``FORMATS``."""

from __future__ import annotations

from collections.abc import Callable

from migrate_lens.model.report import Report
from migrate_lens.reports import json, markdown, sarif, text

FORMATS: dict[str, Callable[[Report], str]] = {
    "text": text.render,
    "json": json.render,
    "markdown": markdown.render,
    "sarif": sarif.render,
}
