"""Scans and a judge, in; ranked gaps, out: the same key at many sites is one gap with its spread."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from migrate_lens.audit import reach
from migrate_lens.audit.python import NATIVE_MODULE
from migrate_lens.audit.tree import Language, Role, role_of
from migrate_lens.audit.verdicts import OTHER_KIND, SHADOWED, Finding, Judge
from migrate_lens.model.audit import AskedName, AuditGap, Basis, Reach, Spot, Verdict
from migrate_lens.model.report import Category, Decision, Gap, Key, Layer, Site, Stage
from migrate_lens.model.uses import Certainty, Scan, Use, When

SURE = {Certainty.CERTAIN: 1.0, Certainty.LIKELY: 0.7, Certainty.GUESS: 0.3}
REACH = {
    Reach.IMPORT: 1.5,
    Reach.API: 1.2,
    Reach.BUILD: 1.1,
    Reach.MODULE: 0.8,
    Reach.EXAMPLE: 0.25,
    Reach.TEST: 0.2,
}
OUTSIDE = {Role.TEST: Reach.TEST, Role.EXAMPLE: Reach.EXAMPLE, Role.BUILD: Reach.BUILD}
GUARDED = 0.4
LANGUAGES = {
    ".py": Language.PYTHON,
    ".pyi": Language.PYTHON,
    ".toml": Language.TOML,
    ".txt": Language.CMAKE,
    ".cmake": Language.CMAKE,
}
MOST_EVIDENCE = 4
COMPILED = frozenset(("_C", "_ext", "_cuda", "_kernels"))
EXTENSIONS = "torch.utils.cpp_extension"


class Sighting(NamedTuple):
    """A finding at one site, and the use that shows it."""

    finding: Finding
    spot: Spot
    use: Use

    def score(self) -> float:
        """How likely the site is to bite."""
        return spot_score(self.finding, self.spot)


def language(path: str) -> Language:
    """What a file is written in, for the rules."""
    return LANGUAGES.get(path[path.rfind(".") :], Language.CPP)


class Nearness:
    """How near each file is to a user of the library."""

    def __init__(self, scans: Mapping[str, Scan]) -> None:
        python = [path for path in scans if language(path) is Language.PYTHON]
        self.modules = reach.Modules(python)
        self.roots = reach.roots(self.modules)
        self._starts: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, (path, line) in enumerate(reach.stretches(self.modules, scans, self.roots)):
            self._starts[path].append((line, number))
        self.lone = not self.roots
        self.entries = reach.entries(self.modules, scans, self.roots)
        self.natives = Natives(scans)

    def reaches(self, path: str, role: Role) -> dict[When, Reach]:
        """The reach of the sites in a file, by when they run."""
        if role is not Role.LIBRARY:
            reach = OUTSIDE[role]
        elif language(path) is not Language.PYTHON:
            reach = Reach.BUILD
        elif path in self._starts or self.lone:
            return {"import": Reach.IMPORT, "call": Reach.API}
        else:
            reach = Reach.MODULE
        return {"import": reach, "call": reach}

    def order(self, site: Site) -> int:
        """The how-many-th stretch of an import a line is in; lines of a stretch run in their order."""
        return max((number for line, number in self._starts.get(site.path, ()) if line <= site.line), default=0)


def ignored(scan: Scan, rule: str, key: Key, line: int) -> bool:
    """Whether a comment on the line says so."""
    for comment in scan.ignores:
        if comment.line != line:
            continue
        if not comment.rules or rule in comment.rules or str(key.symptom) in comment.rules:
            return True
    return False


class Natives:
    """Whether a module that is called as compiled ones are can be one: a name alone says too little.

    A library with compiled sources, or whose build makes extensions, has such modules; one without has them only under
    the names that nothing else bears, and not where a Python module of the library has that name.
    """

    def __init__(self, scans: Mapping[str, Scan]) -> None:
        self.built = any(language(path) is Language.CPP for path in scans) or any(
            use.api.startswith(EXTENSIONS) for scan in scans.values() for use in scan.uses
        )
        self.python = frozenset(path.rpartition("/")[2].removesuffix(".py") for path in scans)

    def doubts(self, use: Use) -> bool:
        """Whether a use is said to be of a compiled module, and nothing but the module's name says so."""
        if self.built or not (use.event == "native_call" or (use.event == "load" and NATIVE_MODULE.fullmatch(use.api))):
            return False
        named = use.api.partition(".")[0] if use.event == "native_call" else use.api.rpartition(".")[2]
        return named not in COMPILED or named in self.python


class Collected(NamedTuple):
    """All sightings by what they show, and how many a comment suppressed."""

    sightings: Mapping[Key, list[Sighting]]
    suppressed: int


def collect(scans: Mapping[str, Scan], judge: Judge, near: Nearness) -> Collected:
    """Judge every use."""
    sightings: dict[Key, list[Sighting]] = defaultdict(list)
    suppressed = 0
    for path, scan in scans.items():
        role, lang = role_of(path), language(path)
        reaches = near.reaches(path, role)
        for use in scan.uses:
            if near.natives.doubts(use):
                continue
            for finding in judge.judge(use, role, lang):
                line = use.line if finding.keyword is None else use.lines[finding.keyword]
                if scan.ignores and ignored(scan, finding.rule, finding.key, line):
                    suppressed += 1
                    continue
                spot = Spot(Site(path, line), use.sure, use.guard, reaches[use.at])
                sightings[finding.key].append(Sighting(finding, spot, use))
    return Collected(sightings, suppressed)


def entry_uses(scans: Mapping[str, Scan], near: Nearness) -> dict[str, Scan]:
    """Scans with one more use where a package that leads to torch is entered."""
    added = dict(scans)
    for path in near.entries:
        scan = scans[path]
        lines = sorted({scan.span.first, scan.span.last} - {0})
        entry = [Use("entry", near.modules.name_of[path], line, at="import") for line in lines]
        added[path] = scan._replace(uses=(*entry, *scan.uses))
    return added


def spot_score(finding: Finding, spot: Spot) -> float:
    """How likely one site is to bite."""
    score = finding.weight * SURE[spot.sure] * REACH[spot.reach]
    if finding.basis is Basis.ASKED and spot.sure is Certainty.CERTAIN:
        score += 1.0
    return score * (GUARDED if spot.guard else 1.0)


def decide(finding: Finding, files: int, reaches: set[Reach]) -> Decision:
    """The policy: the same pattern in several files is an issue; one place is worth a workaround too."""
    if finding.decision is not None:
        if finding.decision is Decision.WORKAROUND and finding.category is Category.A and files > 1:
            return Decision.BOTH
        return finding.decision
    if reaches <= {Reach.TEST, Reach.EXAMPLE}:
        return Decision.NOTE
    return Decision.ISSUE if files > 3 else Decision.BOTH


def stage_of(reaches: set[Reach], layer: Layer) -> Stage:
    """The first rung of the ladder where the gap would show."""
    if Reach.BUILD in reaches or layer is Layer.BUILD:
        return Stage.BUILD
    if Reach.IMPORT in reaches:
        return Stage.IMPORT
    return Stage.TEST if reaches == {Reach.TEST} else Stage.RUN


def gap_of(key: Key, sightings: list[Sighting]) -> AuditGap:
    """One gap of all the sites that share a key."""
    sightings.sort(key=lambda sighting: (-sighting.score(), sighting.spot.site))
    finding = sightings[0].finding
    spots = tuple(dict.fromkeys(sighting.spot for sighting in sightings))
    files = {spot.site.path for spot in spots}
    reaches = {spot.reach for spot in spots}
    spread = 0.25 * math.log2(len(files) + 1) + 0.05 * math.log2(len(spots) + 1)
    # The detail of a wrong kind of thing, or of a shadowed one, is in the finding's own words already.
    detail = f":{key.detail}" if key.detail and key.detail not in (OTHER_KIND, SHADOWED) else ""
    gap = Gap(
        id=f"{key.api}:{key.symptom}{detail}",
        api=key.api,
        symptom=key.symptom,
        layer=finding.layer,
        category=finding.category,
        decision=decide(finding, len(files), reaches),
        rule=finding.rule,
        stage=stage_of(reaches, finding.layer),
        sites=tuple(dict.fromkeys(spot.site for spot in spots)),
        expected=finding.expected,
        actual=finding.actual,
        observed=evidence(sightings),
    )
    return AuditGap(gap, round(spot_score(finding, spots[0]) + spread, 3), finding.basis, spots)


def evidence(sightings: list[Sighting]) -> tuple[str, ...]:
    """What was seen, in a few lines: which names, in how many places, under which guards."""
    names = Counter(use.api or use.value for _, _, use in sightings)
    guards = Counter(spot.guard for _, spot, _ in sightings if spot.guard)
    lines = [f"{name}: {count}x" for name, count in names.most_common(MOST_EVIDENCE)]
    if len(names) > MOST_EVIDENCE:
        lines.append(f"and {len(names) - MOST_EVIDENCE} more names")
    if guards:
        lines.append("guarded: " + ", ".join(f"{guard} {count}x" for guard, count in guards.most_common()))
    return tuple(lines)


def rank(gaps: Iterable[AuditGap]) -> tuple[AuditGap, ...]:
    """What bites first, first."""
    return tuple(sorted(gaps, key=lambda audited: (-audited.score, audited.gap.id)))


def inventory(scans: Mapping[str, Scan], judge: Judge) -> tuple[AskedName, ...]:
    """Every name that was looked up, with its verdict and its uses."""
    counts: Counter[str] = Counter()
    verdicts: dict[str, Verdict] = {}
    unknown = Verdict.UNKNOWN
    for scan in scans.values():
        for use in scan.uses:
            api = judge.named(use)
            if not api:
                continue
            counts[api] += 1
            if api not in verdicts or verdicts[api] is unknown:
                verdicts[api] = judge.verdict(use)
    return tuple(AskedName(api, verdicts[api], count) for api, count in counts.most_common())
