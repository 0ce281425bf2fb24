"""Gaps that are known: a file in; whether a gap is one of them out. A new site in a known gap is news again."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from migrate_lens.model.audit import AuditGap, LibraryAudit
from migrate_lens.model.errors import StateError, UsageError

SCHEMA = 1


class Known:
    """A baseline: for each gap, how many sites in which file."""

    def __init__(self, gaps: dict[str, dict[str, int]]) -> None:
        self.gaps = gaps

    def has(self, gap: AuditGap) -> bool:
        """Whether the gap stands nowhere that it did not stand before; lines may have moved."""
        known = self.gaps.get(gap.gap.id)
        return known is not None and all(count <= known.get(path, 0) for path, count in places(gap).items())


def places(gap: AuditGap) -> Counter[str]:
    """Sites in each file."""
    return Counter(site.path for site in gap.gap.sites)


def load(file: Path) -> Known:
    """A baseline that was written before."""
    try:
        document = json.loads(file.read_text("utf-8"))
        if document["schema"] != SCHEMA:
            raise ValueError(f"schema {document['schema']}")
        return Known({str(gap): dict(paths) for gap, paths in document["gaps"].items()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StateError(f"cannot read the baseline {file}: {error}", "write one with --write-baseline FILE") from error


def text(libraries: Iterable[LibraryAudit]) -> str:
    """A baseline of everything that was found."""
    gaps = {gap.gap.id: dict(sorted(places(gap).items())) for library in libraries for gap in library.gaps}
    return json.dumps({"schema": SCHEMA, "gaps": dict(sorted(gaps.items()))}, indent=1) + "\n"


def changed_since(root: Path, revision: str) -> frozenset[str]:
    """Files below a folder that differ from a revision, or are new, as paths relative to the folder."""
    changed: set[str] = set()
    for command in (
        ["diff", "--name-only", "--relative", "-z", revision, "--"],
        ["ls-files", "--others", "--exclude-standard", "-z"],
    ):
        try:
            git = subprocess.run(["git", "-C", str(root), *command], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            detail = getattr(error, "stderr", "") or str(error)
            raise UsageError(
                f"git cannot say what changed since {revision}: {detail}", "name a revision that exists"
            ) from error
        changed.update(filter(None, git.stdout.split("\0")))
    return frozenset(changed)
