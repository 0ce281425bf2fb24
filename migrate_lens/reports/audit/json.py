"""An audit, in; schema 1 as one JSON document, out: the gaps of a diagnosis, with reach and rank beside them."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator

from migrate_lens import __version__
from migrate_lens.model.audit import GRADES, AuditGap, AuditReport, LibraryAudit, Plan, Spot
from migrate_lens.model.report import Runtime
from migrate_lens.model.target import TARGET
from migrate_lens.reports import PLAIN, View

SCHEMA = 1


def render(report: AuditReport, view: View = PLAIN) -> str:
    """The document; gaps of all libraries in one list, each library's own in the report's order."""
    return json.dumps(document(report), indent=1) + "\n"


def document(report: AuditReport) -> dict[str, object]:
    """The document as plain values; ``library`` names the first library for programs that audit only one."""
    first = report.libraries[0]
    return {
        "schema": SCHEMA,
        "tool": {"name": "migrate-lens", "version": __version__},
        "library": _subject(first),
        "environment": {
            "torch": _identity(Runtime.TORCH, report.torch),
            TARGET.name: _identity(TARGET.name, report.target),
            "platform": platform.platform(),
        },
        "scope": list(first.packages),
        "libraries": [_library(library) for library in report.libraries],
        "holding_back": [{"api": api, "libraries": list(names)} for api, names in report.holding],
        "stages": [],
        "traces": [],
        "first_divergence": None,
        "notes": ["an audit: sources were read, nothing was run"],
        "gaps": [gap for library in report.libraries for gap in _gaps(library)],
        "skipped": [skipped for library in report.libraries for skipped in _skipped(library)],
        "verdict": "gaps" if any(library.gaps for library in report.libraries) else "no_gaps",
    }


def _identity(framework: str, pair: tuple[str, str]) -> dict[str, str]:
    """Which framework was asked; a saved surface does not know the interpreter."""
    version, commit = pair
    return {
        "python": "",
        "executable": "",
        "framework": framework,
        "version": version,
        "commit": commit,
        "device": "",
    }


def _subject(library: LibraryAudit) -> dict[str, object]:
    """The library in the words of a diagnosis; an audit finds no program to run."""
    return {
        "name": library.name,
        "root": library.root,
        "script": None,
        "import_root": ".",
        "packages": list(library.packages),
        "modules": list(library.modules),
        "build": None,
        "native_sources": list(library.native_sources),
        "probes": [],
        "probes_from": "found",
        "tests": list(library.tests),
    }


def _library(library: LibraryAudit) -> dict[str, object]:
    return {
        "name": library.name,
        "root": library.root,
        "grade": library.grade,
        "grading": library.grading._asdict() | {"allowed": {grade: most for most, grade in GRADES}},
        "files": library.files,
        "torch_files": library.torch_files,
        "uses": library.uses,
        "gaps": len(library.gaps),
        "suppressed": library.suppressed,
        "plan": _plan(library.plan),
        "apis": [name._asdict() for name in library.apis],
    }


def _plan(plan: Plan) -> dict[str, object]:
    return {
        "kind": plan.kind,
        "control_plane": plan.control_plane,
        "first_patch": plan.first_patch,
        "unchanged": list(plan.unchanged),
        "changed": {layer: list(files) for layer, files in plan.changed},
        "validation": list(plan.validation),
        "gpu_only": list(plan.gpu_only),
    }


def _skipped(library: LibraryAudit) -> Iterator[dict[str, object]]:
    for skipped in library.skipped:
        yield {"library": library.name, "path": skipped.path, "reason": skipped.reason}


def _gaps(library: LibraryAudit) -> Iterator[dict[str, object]]:
    """What bites first first."""
    for rank, audited in enumerate(library.gaps, 1):
        yield _gap(audited, library.name, rank)


def _gap(audited: AuditGap, library: str, rank: int) -> dict[str, object]:
    gap = audited.gap
    return {
        "id": gap.id,
        "api": gap.api,
        "symptom": gap.symptom,
        "layer": gap.layer,
        "category": gap.category,
        "decision": gap.decision,
        "rule": gap.rule,
        "stage": gap.stage,
        "sites": [_site(spot) for spot in audited.spots],
        "expected": gap.expected,
        "actual": gap.actual,
        "evidence": list(gap.evidence),
        "workaround": None,
        "mre": None,
        "library": library,
        "rank": rank,
        "score": audited.score,
        "basis": audited.basis,
        "reach": audited.reach,
        "guarded": audited.guarded,
        "files": len(audited.files),
    }


def _site(spot: Spot) -> dict[str, object]:
    return {
        "path": spot.site.path,
        "line": spot.site.line,
        "sure": spot.sure,
        "guard": spot.guard,
        "reach": spot.reach,
    }
