"""Trees, a surface and rules, in; an ``AuditReport``, out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from migrate_lens.audit import gather, plan
from migrate_lens.audit.baseline import Known
from migrate_lens.audit.read import read_tree
from migrate_lens.audit.store import Store
from migrate_lens.audit.surface import Surface
from migrate_lens.audit.tree import Tree, role_of
from migrate_lens.audit.verdicts import Judge
from migrate_lens.model.audit import ASKED, AuditGap, AuditReport, LibraryAudit
from migrate_lens.model.report import Skipped
from migrate_lens.rulebook.audit import load_rules


def audit_tree(
    tree: Tree, surface: Surface, cache: Path | None, known: Known | None = None, only: frozenset[str] | None = None
) -> LibraryAudit:
    """Everything about one library; ``only`` keeps the sites in some files, ``known`` drops what a baseline has."""
    scans = read_tree(tree, Store(cache, str(tree.root.resolve())))
    judge = Judge(surface, load_rules())
    near = gather.Nearness(scans)
    found, suppressed = gather.collect(gather.entry_uses(scans, near), judge, near)
    gaps = gather.rank(gather.gap_of(key, rows) for key, rows in found.items())
    kept = [one for gap in gaps if (one := narrowed(gap, only)) is not None]
    fresh = [one for one in kept if known is None or not known.has(one)]
    unread = [Skipped(path, scan.reason) for path, scan in scans.items() if scan.reason]
    return LibraryAudit(
        name=tree.name,
        root=str(tree.root.resolve()),
        grade=plan.grade_of(gaps),
        files=len(scans),
        torch_files=sum(scan.torch for scan in scans.values()),
        uses=sum(len(scan.uses) for scan in scans.values()),
        apis=gather.inventory(scans, judge),
        gaps=tuple(fresh),
        skipped=tuple(sorted((*tree.skipped, *unread), key=lambda one: one.path)),
        plan=plan.make(scans, gaps, near),
        packages=tuple(sorted({near.modules.name_of[path] for path in near.roots})),
        modules=tuple(sorted(name for path, name in near.modules.name_of.items() if role_of(path) == "library")),
        native_sources=tuple(path for path in scans if gather.language(path) == "cpp"),
        tests=tuple(path for path in scans if role_of(path) == "test" and gather.language(path) == "python"),
        suppressed=suppressed + len(kept) - len(fresh),
    )


def narrowed(gap: AuditGap, only: frozenset[str] | None) -> AuditGap | None:
    """A gap with its sites in some files alone."""
    if only is None:
        return gap
    spots = tuple(spot for spot in gap.spots if spot.site.path in only)
    sites = tuple(dict.fromkeys(spot.site for spot in spots))
    return replace(gap, spots=spots, gap=replace(gap.gap, sites=sites)) if spots else None


def holding(libraries: Iterable[LibraryAudit]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Which missing names hold back the most libraries."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for library in libraries:
        for one in plan.serious(library.gaps):
            if one.basis == ASKED:
                found[one.gap.api][library.name] = None
    rows = [(api, tuple(names)) for api, names in found.items() if len(names) > 1]
    return tuple(sorted(rows, key=lambda row: (-len(row[1]), row[0])))


def assemble(surface: Surface, libraries: tuple[LibraryAudit, ...]) -> AuditReport:
    """One report of all libraries."""
    return AuditReport(surface.torch, surface.paddle, libraries, holding(libraries))
