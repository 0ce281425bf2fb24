"""A diagnosis, in; schema 1 as one JSON document, out. ``docs/report.schema.json`` describes it for other programs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from migrate_lens import __version__
from migrate_lens.model.report import (
    BuildEntry,
    Environment,
    Gap,
    Library,
    Probe,
    Report,
)
from migrate_lens.model.target import TARGET
from migrate_lens.reports import PLAIN, View

SCHEMA = 1


def render(report: Report, view: View = PLAIN) -> str:
    """The document, with keys in a fixed order and lists in the report's own order."""
    return json.dumps(document(report), indent=2, allow_nan=False) + "\n"


def document(report: Report) -> dict[str, object]:
    """The document as plain values; new keys may be added in schema 1, none is ever renamed or taken away."""
    return {
        "schema": SCHEMA,
        "tool": {"name": "migrate-lens", "version": __version__},
        "library": _library(report.library),
        "environment": {
            "torch": _environment(report.torch),
            TARGET.name: _environment(report.target),
            "platform": report.platform,
        },
        "scope": list(report.scope),
        "stages": [asdict(stage) for stage in report.stages],
        "traces": [trace.to_json() for trace in report.traces],
        "first_divergence": report.first.to_json() if report.first else None,
        "gaps": [_gap(gap) for gap in report.gaps],
        "skipped": [asdict(skipped) for skipped in report.skipped],
        "notes": list(report.notes),
        "verdict": report.verdict,
    }


def _library(library: Library) -> dict[str, object]:
    root = library.root
    return {
        "name": library.name,
        "root": str(root),
        "script": _relative(library.script, root),
        "import_root": _relative(library.import_root, root),
        "packages": list(library.packages),
        "modules": list(library.modules),
        "build": _build(library.build, root),
        "native_sources": [_relative(path, root) for path in library.native_sources],
        "probes": [_probe(probe) for probe in library.probes],
        "probes_from": library.probes_from,
        "tests": [_relative(path, root) for path in library.tests],
    }


def _build(build: BuildEntry | None, root: Path) -> dict[str, object] | None:
    return {"kind": build.kind, "file": _relative(build.file, root), "native": build.native} if build else None


def _probe(probe: Probe) -> dict[str, object]:
    return {"kind": probe.kind, "spec": probe.spec, "modules": list(probe.modules)}


def _environment(environment: Environment | None) -> dict[str, object] | None:
    return asdict(environment) if environment else None


def _gap(gap: Gap) -> dict[str, object]:
    fields = asdict(gap)
    fields["sites"] = list(fields["sites"])
    fields["evidence"] = list(fields["evidence"])
    return fields


def _relative(path: Path | None, root: Path) -> str | None:
    """Relative to the library where it is in it (``.`` for the root itself), absolute where it is not."""
    if path is None:
        return None
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
