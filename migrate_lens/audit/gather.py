"""Scans and a judge, in; ranked gaps, out: the same key at many sites is one gap with its spread."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from migrate_lens.audit import reach
from migrate_lens.audit.tree import role_of
from migrate_lens.audit.verdicts import Finding, Judge
from migrate_lens.model.audit import ASKED, AuditGap, Spot
from migrate_lens.model.report import Category, Decision, Gap, Key, Site, Stage
from migrate_lens.model.uses import Scan, Use

SURE = {"certain": 1.0, "likely": 0.7, "guess": 0.3}
REACH = {"import": 1.5, "api": 1.2, "build": 1.1, "module": 0.8, "example": 0.25, "test": 0.2}
GUARDED = 0.4
LANGUAGES = {".py": "python", ".pyi": "python", ".toml": "toml", ".txt": "cmake", ".cmake": "cmake"}
MOST_EVIDENCE = 4

Found = dict[Key, list[tuple[Finding, Spot, Use]]]


def language(path: str) -> str:
    """What a file is written in, for the rules."""
    return LANGUAGES.get(path[path.rfind(".") :], "cpp")


class Nearness:
    """How near each file is to a user of the library."""

    def __init__(self, scans: Mapping[str, Scan]) -> None:
        python = [path for path in scans if language(path) == "python"]
        self.modules = reach.Modules(python)
        self.roots = reach.roots(self.modules)
        self.loaded = reach.closure(self.modules, scans, self.roots)
        self.lone = not self.roots
        self.entries = {path for path, torch in reach.entries(self.modules, scans, self.roots).items() if torch}

    def of(self, path: str, role: str, at: str) -> str:
        """The reach of a site in a file."""
        if role in ("test", "example", "build"):
            return role
        if language(path) != "python":
            return "build"
        if path in self.loaded or self.lone:
            return "import" if at == "import" else "api"
        return "module"


def ignored(scan: Scan, rule: str, key: Key, line: int) -> bool:
    """Whether a comment on the line says so."""
    return any(
        number == line and (not names or rule in names or str(key.symptom) in names) for number, names in scan.ignores
    )


def collect(scans: Mapping[str, Scan], judge: Judge, near: Nearness) -> tuple[Found, int]:
    """All findings by key, and how many a comment suppressed."""
    found: Found = defaultdict(list)
    suppressed = 0
    for path, scan in scans.items():
        role, lang = role_of(path), language(path)
        for use in scan.uses:
            for finding in judge.judge(use, role, lang):
                line = use.line if finding.which < 0 else use.lines[finding.which]
                if scan.ignores and ignored(scan, finding.rule, finding.key, line):
                    suppressed += 1
                    continue
                spot = Spot(Site(path, line), use.sure, use.guard, near.of(path, role, use.at))
                found[finding.key].append((finding, spot, use))
    return found, suppressed


def entry_uses(scans: Mapping[str, Scan], near: Nearness) -> dict[str, Scan]:
    """Scans with one more use where a package that leads to torch is entered."""
    added = dict(scans)
    for path in near.entries:
        scan = scans[path]
        lines = sorted(set(scan.span) - {0})
        uses = (Use("entry", near.modules.name_of[path], line, at="import") for line in lines)
        added[path] = scan._replace(uses=(*uses, *scan.uses))
    return added


def spot_score(finding: Finding, spot: Spot) -> float:
    """How likely one site is to bite."""
    score = finding.weight * SURE[spot.sure] * REACH[spot.reach]
    if finding.basis == ASKED:
        score += 1.0 if spot.sure == "certain" else 0.0
    return score * (GUARDED if spot.guard else 1.0)


def decide(finding: Finding, files: int, reaches: set[str]) -> Decision:
    """The policy: the same pattern in several files is an issue; one place is worth a workaround too."""
    if finding.decision is not None:
        if finding.decision is Decision.WORKAROUND and finding.category is Category.A and files > 1:
            return Decision.BOTH
        return finding.decision
    if reaches <= {"test", "example"}:
        return Decision.NOTE
    return Decision.ISSUE if files > 3 else Decision.BOTH


def stage_of(spots: Iterable[Spot], layer: str) -> Stage:
    """The first rung of the ladder where the gap would show."""
    reaches = {spot.reach for spot in spots}
    if "build" in reaches or layer == "build":
        return Stage.BUILD
    if "import" in reaches:
        return Stage.IMPORT
    return Stage.TEST if reaches == {"test"} else Stage.RUN


def gap_of(key: Key, rows: list[tuple[Finding, Spot, Use]]) -> AuditGap:
    """One gap of all the sites that share a key."""
    rows.sort(key=lambda row: (-spot_score(row[0], row[1]), row[1].site))
    finding = rows[0][0]
    spots = tuple(dict.fromkeys(row[1] for row in rows))
    files = {spot.site.path for spot in spots}
    score = spot_score(finding, spots[0]) + 0.25 * math.log2(len(files) + 1) + 0.05 * math.log2(len(spots) + 1)
    detail = (
        f":{key.detail}"
        if key.detail and key.detail != finding.rule and key.detail not in ("other_kind", "shadowed")
        else ""
    )
    suffix = f":{finding.rule}" if key.detail == finding.rule else ""
    gap = Gap(
        id=f"{key.api}:{key.symptom}{detail}{suffix}",
        api=key.api,
        symptom=key.symptom,
        layer=finding.layer,
        category=finding.category,
        decision=decide(finding, len(files), {spot.reach for spot in spots}),
        rule=finding.rule,
        stage=stage_of(spots, finding.layer),
        sites=tuple(dict.fromkeys(spot.site for spot in spots)),
        expected=finding.expected,
        actual=finding.actual,
        observed=evidence(rows),
    )
    return AuditGap(gap, round(score, 3), finding.basis, spots)


def evidence(rows: list[tuple[Finding, Spot, Use]]) -> tuple[str, ...]:
    """What was seen, in a few lines: which names, in how many places, under which guards."""
    names = Counter(use.api or use.value for _, _, use in rows)
    guards = Counter(spot.guard for _, spot, _ in rows if spot.guard)
    lines = [f"{name}: {count}x" for name, count in names.most_common(MOST_EVIDENCE)]
    if len(names) > MOST_EVIDENCE:
        lines.append(f"and {len(names) - MOST_EVIDENCE} more names")
    if guards:
        lines.append("guarded: " + ", ".join(f"{guard} {count}x" for guard, count in guards.most_common()))
    return tuple(lines)


def rank(gaps: Iterable[AuditGap]) -> tuple[AuditGap, ...]:
    """What bites first, first."""
    return tuple(sorted(gaps, key=lambda one: (-one.score, one.gap.id)))


def inventory(scans: Mapping[str, Scan], judge: Judge) -> tuple[tuple[str, str, int], ...]:
    """Every name that was looked up, with its verdict and its uses."""
    counts: Counter[str] = Counter()
    verdicts: dict[str, str] = {}
    for scan in scans.values():
        for use in scan.uses:
            if use.api:
                counts[use.api] += 1
                if use.api not in verdicts or verdicts[use.api] == "unknown":
                    verdicts[use.api] = judge.verdict(use)
    return tuple((api, verdicts[api], count) for api, count in counts.most_common())
