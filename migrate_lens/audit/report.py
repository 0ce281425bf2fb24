"""Trees, a surface and rules, in; an ``AuditReport``, out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from migrate_lens.audit import gather, plan
from migrate_lens.audit.baseline import Known
from migrate_lens.audit.read import read_tree
from migrate_lens.audit.store import Store
from migrate_lens.audit.surface import Surface
from migrate_lens.audit.tree import Language, Role, Tree, role_of
from migrate_lens.audit.verdicts import Judge
from migrate_lens.model.audit import AuditGap, AuditReport, Basis, Holding, LibraryAudit
from migrate_lens.model.report import Site, Skipped
from migrate_lens.model.uses import Scan
from migrate_lens.rulebook.audit import load_rules


def audit_tree(
    tree: Tree, surface: Surface, cache: Path | None, known: Known | None = None, only: frozenset[str] | None = None
) -> LibraryAudit:
    """Everything about one library; ``only`` keeps the sites in some files, ``known`` drops what a baseline has."""
    scans = read_tree(tree, Store(cache, str(tree.root.resolve())))
    judge = Judge(surface, load_rules())
    near = gather.Nearness(scans)
    collected = gather.collect(gather.entry_uses(scans, near), judge, near)
    stop = plan.import_stop(scans, near, judge)
    first = Site(stop.path, stop.line) if stop else None
    gaps = gather.rank((gather.gap_of(key, sightings) for key, sightings in collected.sightings.items()), first)
    names = gather.inventory(scans, judge)
    kept = gaps if only is None else narrowed(gaps, only)
    fresh = kept if known is None else tuple(gap for gap in kept if not known.has(gap))
    return LibraryAudit(
        name=tree.name,
        root=str(tree.root.resolve()),
        grading=plan.grading(gaps, names),
        files=len(scans),
        torch_files=sum(scan.torch for scan in scans.values()),
        uses=sum(len(scan.uses) for scan in scans.values()),
        apis=names,
        gaps=fresh,
        skipped=skipped(tree, scans),
        plan=plan.make(tree.name, scans, gaps, near, judge),
        packages=tuple(sorted({near.modules.name_of[path] for path in near.roots})),
        modules=tuple(sorted(name for path, name in near.modules.name_of.items() if role_of(path) is Role.LIBRARY)),
        native_sources=tuple(path for path in scans if gather.language(path) is Language.CPP),
        tests=tuple(path for path in near.modules.name_of if role_of(path) is Role.TEST),
        suppressed=collected.suppressed + len(kept) - len(fresh),
    )


def skipped(tree: Tree, scans: Mapping[str, Scan]) -> tuple[Skipped, ...]:
    """What was left out, and what could not be read."""
    unread = (Skipped(path, scan.reason) for path, scan in scans.items() if scan.reason)
    return tuple(sorted((*tree.skipped, *unread), key=lambda skipped: skipped.path))


def narrowed(gaps: Iterable[AuditGap], only: frozenset[str]) -> tuple[AuditGap, ...]:
    """The gaps that stand in some files, with their sites in those alone."""
    kept = []
    for audited in gaps:
        spots = tuple(spot for spot in audited.spots if spot.site.path in only)
        if spots:
            sites = tuple(dict.fromkeys(spot.site for spot in spots))
            kept.append(replace(audited, spots=spots, gap=replace(audited.gap, sites=sites)))
    return tuple(kept)


def holding(libraries: Iterable[LibraryAudit]) -> tuple[Holding, ...]:
    """Which missing names hold back the most libraries."""
    held: dict[str, dict[str, None]] = defaultdict(dict)
    for library in libraries:
        for audited in plan.serious(library.gaps):
            if audited.basis is Basis.ASKED:
                held[audited.gap.api][library.name] = None
    several = [Holding(api, tuple(names)) for api, names in held.items() if len(names) > 1]
    return tuple(sorted(several, key=lambda name: (-len(name.libraries), name.api)))


def assemble(surface: Surface, libraries: tuple[LibraryAudit, ...]) -> AuditReport:
    """One report of all libraries."""
    return AuditReport(surface.torch, surface.paddle, libraries, holding(libraries))
