"""Gaps that show in a library's own operator go in; the C++ construct inside its kernel that is at fault comes out.

The units that hold the kernels are built once more on both sides with every call in them marked, the probe is run again
on both, and the first call that gives something else although it is given the same is named: the method of the Python
side, one level down. What cannot be pinned so stays with the operator, and says how far this came.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, assert_never

from migrate_lens.compare.divergences import divergences
from migrate_lens.compare.findings import key_of, node_name
from migrate_lens.cpp.naming import documented, is_private, is_registry, plain_type
from migrate_lens.diagnosis.kernels.call_log import Call, Record, read_log
from migrate_lens.diagnosis.kernels.call_marks import Mark, MarkKind
from migrate_lens.diagnosis.kernels.marked_build import Builds, MarkedBuilds, build_marked
from migrate_lens.diagnosis.kernels.parting import Blame, Parting, Told, WhereApart, find_parting
from migrate_lens.model.progress import Progress
from migrate_lens.model.report import Fact, Finding, Key, Probe, Runtime, Site, Symptom
from migrate_lens.model.target import TARGET
from migrate_lens.model.trace import Event, Place, Trace
from migrate_lens.native.casters import declared_for_others, lacks_caster
from migrate_lens.native.pairing import torch_roots
from migrate_lens.native.standins import native_files
from migrate_lens.native.torch_headers import TorchHeaders
from migrate_lens.runs.bench import Bench, Healing, Run, RunRequest, Setting

_BEHAVES = frozenset(
    (
        Symptom.SHAPE,
        Symptom.DTYPE,
        Symptom.DEVICE,
        Symptom.LAYOUT,
        Symptom.ALIAS,
        Symptom.VALUE,
        Symptom.EXCEPTION,
        Symptom.CRASH,
        Symptom.TIMEOUT,
    )
)
_OF_TENSORS = (Symptom.SHAPE, Symptom.DTYPE, Symptom.DEVICE)
_LOOSE = re.compile(r"empty|rand|normal|uniform|bernoulli|multinomial|dropout|resize|exponential|cauchy|geometric")
_DEATHS = 4
_MOST_SITES = 3


@dataclass(slots=True)
class KernelSearch:
    """Looks into the kernels of one diagnosis; units are built with marks at most once for each set of names.

    Attributes:
        builds: what was built on both sides.
        bench: runs probes.
        folder: a private one.
        timeout: seconds that building may take.
        progress: hears what is done.
        extensions: dotted names of the extension modules.
        notes: why no construct is named, where none could be.
    """

    builds: Builds
    bench: Bench
    folder: Path
    timeout: float
    progress: Progress
    extensions: frozenset[str]
    notes: list[str] = field(default_factory=list)
    _built: dict[frozenset[str], MarkedBuilds | str] = field(default_factory=dict)
    _runs: int = 0

    def with_constructs(self, setting: Setting, probe: Probe, findings: Sequence[Finding]) -> tuple[Finding, ...]:
        """The findings, each one that shows in an operator replaced by what is at fault inside of it."""
        findings = [self._with_caster(finding) if finding.facts.get("uncast") else finding for finding in findings]
        kernels = {finding.key: self._kernel(finding.key.api) for finding in findings if _behaves(finding)}
        concerned = {key: name for key, name in kernels.items() if name}
        if not concerned or not self.builds.passed:
            return tuple(findings)
        built = self._marked(frozenset(concerned.values()))
        if isinstance(built, str):
            self.notes.append(f"no construct inside a kernel is named: {built}")
            return tuple(findings)
        self.progress(f"run: {probe.spec} again, with the calls of {len(built.units)} unit(s) marked")
        pair = self._run(setting, probe, built)
        explained: list[Finding] = []
        for finding in findings:
            explained += pair.explained(finding) if finding.key in concerned else (finding,)
        return tuple(self._with_form(finding) for finding in explained)

    def _with_caster(self, finding: Finding) -> Finding:
        """A function that pybind11 cannot call, or whose result it cannot hand back, for want of a caster."""
        kind = plain_type(str(finding.facts["uncast"]))
        if not lacks_caster(self.builds.target, kind, self.folder / "caster"):
            return finding
        header = declared_for_others(self.builds.target, kind)
        facts = {
            **finding.facts,
            "construct_kind": "type",
            "kernel": WhereApart.CONSTRUCT,
            "operator": finding.key.api,
            "other_builds": bool(header),
        }
        title = TARGET.title
        evidence = [f"compiled and asked: among the headers of this {title} pybind11 has no caster for {kind}"]
        if header:
            evidence.append(f"{header} declares one under a condition that this build of {title} does not meet")
        key = replace(finding.key, api=f"pybind11 type_caster<{kind}>")
        return replace(finding, key=key, facts=facts, evidence=(*evidence, *finding.evidence))

    def _with_form(self, finding: Finding) -> Finding:
        """A method of a registered class that is never entered is a matter of the form that it is registered in."""
        api = finding.key.api
        source = self.builds.torch.source
        never = finding.facts.get("kernel") == WhereApart.NOT_ENTERED and api.startswith("torch.classes.")
        registered = registration(source, api.rpartition(".")[2]) if never and source else None
        if registered is None:
            return finding
        form, site = registered
        facts = {**finding.facts, "construct_kind": "registry"}
        evidence = (f"{api} is registered so", *finding.evidence)
        key = replace(finding.key, api=form)
        return replace(finding, key=key, sites=(site, *finding.sites), facts=facts, evidence=evidence)

    def _kernel(self, api: str) -> str:
        """The name of a kernel, as it is registered; empty for what is none."""
        parts = api.split(".")
        if api.startswith("torch.classes.") and len(parts) >= 5:
            return parts[4]
        if api.startswith("torch.ops.") and len(parts) >= 4:
            return parts[3]
        own = any(api.startswith(f"{name}.") for name in self.extensions)
        return parts[-1] if own else ""

    def _marked(self, names: frozenset[str]) -> MarkedBuilds | str:
        if names not in self._built:
            self.progress("run: building the kernels once more, with their calls marked")
            folder = self.folder / f"kernels-{len(self._built)}"
            headers = TorchHeaders(torch_roots(self.builds.torch))
            self._built[names] = build_marked(self.builds, names, folder, headers.qualified, self.timeout)
        return self._built[names]

    def _run(self, setting: Setting, probe: Probe, built: MarkedBuilds) -> _Pair:
        """Run a probe with marks on both sides; calls that kill the target's process are stepped over."""
        ours, theirs = (built.torch,), (built.target,)
        setting = replace(setting, paths={Runtime.TORCH: ours, Runtime.TARGET: theirs, Runtime.TARGET_GLOBAL: theirs})
        self._runs += 1
        stem = f"kernels-{self._runs}"
        log = self.folder / f"{stem}.torch.log"
        base = self.bench.run(RunRequest(setting, Runtime.TORCH, probe, values=True, kernel_log=log))
        pair = _Pair(built.marks, base.trace, _by_place(base.trace, read_log(log)))
        skip: list[str] = []
        for number in range(_DEATHS):
            log = self.folder / f"{stem}-{number}.target.log"
            healing = Healing(base, skip=tuple(skip))
            run = self.bench.run(RunRequest(setting, Runtime.TARGET, probe, healing=healing, kernel_log=log))
            pair.take(run, read_log(log))
            place = run.trace.in_flight
            if not run.cut_off or place is None or node_name(place) in skip:
                break
            skip.append(node_name(place))
        return pair


class Spot(NamedTuple):
    """One observed call of the program's, as both sides know it."""

    place: str
    visit: int
    part: str

    def stands_at(self, place: Place | None) -> bool:
        """Whether it is a call at a place."""
        return place is not None and self.place == node_name(place)


def _spot(event: Event) -> Spot:
    return Spot(node_name(event.place), event.visit, event.part)


def _by_place(trace: Trace, log: Mapping[Call, tuple[Record, ...]]) -> dict[Spot, tuple[Record, ...]]:
    """A log by what both sides call a place; nodes are numbered from 1 in the order of the places."""
    spots: dict[Spot, tuple[Record, ...]] = {}
    for (node, visit, part), records in log.items():
        if node <= len(trace.places):
            spots[Spot(node_name(trace.places[node - 1]), visit, part)] = records
    return spots


@dataclass(slots=True)
class _Pair:
    """Both sides' records of one probe."""

    marks: Mapping[int, Mark]
    base: Trace
    ours: Mapping[Spot, tuple[Record, ...]]
    theirs: dict[Spot, tuple[Record, ...]] = field(default_factory=dict)
    differing: dict[Key, dict[Spot, None]] = field(default_factory=dict)
    died: dict[Spot, None] = field(default_factory=dict)

    def take(self, run: Run, log: Mapping[Call, tuple[Record, ...]]) -> None:
        """A run of the target's; of the calls that several runs made the first counts."""
        for spot, records in _by_place(run.trace, log).items():
            self.theirs.setdefault(spot, records)
        for divergence in divergences(self.base, run.trace):
            self.differing.setdefault(key_of(divergence), {})[_spot(divergence.want)] = None
        if run.cut_off:
            there = (spot for spot in reversed(self.theirs) if spot.stands_at(run.trace.in_flight))
            last = next(there, None)
            if last is not None:
                self.died[last] = None

    def explained(self, finding: Finding) -> Iterator[Finding]:
        """A finding about an operator, or what is at fault inside of it."""
        told = {number: _told(mark) for number, mark in self.marks.items()}
        partings = [
            find_parting(self.ours.get(spot, ()), self.theirs.get(spot, ()), told) for spot in self._spots(finding)
        ]
        if not partings:
            yield finding
            return
        in_construct = (parting for parting in partings if parting.how is WhereApart.CONSTRUCT)
        chosen = next(in_construct, partings[0])
        if chosen.how is WhereApart.CONSTRUCT:
            yield from (self._construct(finding, blame) for blame in _at_fault(chosen.blames, finding))
        else:
            yield self._remark(finding, chosen)

    def _spots(self, finding: Finding) -> Iterable[Spot]:
        """The calls in which a finding showed."""
        ends_process = finding.key.symptom in (Symptom.CRASH, Symptom.TIMEOUT)
        shown = dict.fromkeys([*(self.died if ends_process else ()), *self.differing.get(finding.key, ())])
        mine = {_spot(event): None for event in self.base.events if event.api == finding.key.api}
        return [spot for spot in shown if spot in mine] or list(mine)

    def _construct(self, finding: Finding, blame: Blame) -> Finding:
        """The finding about a construct in the kernel, in place of the one about the operator."""
        mark = self.marks[blame.mark]
        api, kind = name_of(mark, blame.receiver)
        facts: dict[str, Fact] = {
            "construct_kind": kind,
            "private": is_private(api),
            "kernel": WhereApart.CONSTRUCT,
            "operator": finding.key.api,
        }
        where = ", ".join(f"{site.path}:{site.line}" for site in finding.sites[:_MOST_SITES])
        seen = f"torch: {finding.expected}; {TARGET.title}: {finding.actual}"
        given = "what it was given is the same" if mark.closed else "all that was seen before it is the same"
        evidence = (
            f"called in the kernel of {finding.key.api} ({where}), where {seen}",
            f"the kernel was run on both sides with its calls marked: this is the first that differs, {given}",
        )
        sites = (Site(mark.path, mark.line),)
        differs = blame.differs
        if differs is None:
            key = replace(finding.key, api=api)
            return Finding(key, finding.stage, sites, "returns", finding.actual, facts, evidence)
        key = Key(Symptom(differs.aspect), api, differs.aspect)
        return Finding(key, finding.stage, sites, differs.expected, differs.actual, facts, evidence)

    def _remark(self, finding: Finding, parting: Parting) -> Finding:
        """The finding as it was, with how far this came."""
        facts = {**finding.facts, "kernel": parting.how}
        refused = parting.how is WhereApart.NOT_ENTERED and finding.key.symptom is Symptom.EXCEPTION
        # The way into the function is what its schema describes: keywords, defaults, types.
        by_schema = refused or parting.how is WhereApart.ARGUMENTS
        key = replace(finding.key, symptom=Symptom.SCHEMA) if by_schema else finding.key
        said = self._said(parting)
        evidence = (*finding.evidence, said) if said else finding.evidence
        return replace(finding, key=key, facts=facts, evidence=evidence)

    def _said(self, parting: Parting) -> str:
        """Where the sides went apart, in prose; empty where there is nothing to say."""
        match parting.how:
            case WhereApart.NOT_ENTERED:
                return f"its C++ function is entered under torch and not under {TARGET.title}"
            case WhereApart.ARGUMENTS:
                return "its C++ function is entered with other arguments than under torch"
            case WhereApart.SAME:
                return (
                    "its C++ function does the same on both sides; what differs is how it is called or what is made of "
                    "its end"
                )
            case WhereApart.OWN:
                mark = self.marks.get(parting.at)
                if mark is None:
                    return ""
                at = f"{mark.path}:{mark.line}"
                return f"inside its C++ function the sides go apart at {at}, and no call of torch's did it"
            case WhereApart.CONSTRUCT:
                return ""
            case _:
                assert_never(parting.how)


def _told(mark: Mark) -> Told:
    return Told(mark.closed, loose=_LOOSE.search(mark.name) is not None, call=mark.kind.is_call)


def _behaves(finding: Finding) -> bool:
    """Whether a gap may come of what a kernel does, or of how it is registered."""
    made = finding.key.api.startswith("torch.classes.") and finding.key.symptom is Symptom.MISSING_API
    return made or finding.key.symptom in _BEHAVES


def registration(root: Path, name: str) -> tuple[str, Site] | None:
    """How a method of a registered class is handed to the registry: the form, and where."""
    for path in native_files(root):
        text = path.read_text(encoding="utf-8", errors="replace")
        handed = re.search(rf'\.\s*(def\w*)\s*\(\s*"{re.escape(name)}"\s*,\s*(.)', text)
        if handed:
            form = {"[": "lambda", "&": "pointer"}.get(handed[2], "function")
            line = text.count("\n", 0, handed.start(1)) + 1
            return f"torch::class_::{handed[1]}({form})", Site(path.relative_to(root).as_posix(), line)
    return None


def name_of(mark: Mark, receiver: str) -> tuple[str, str]:
    """The documented name of a marked call, and what sort of construct it is."""
    owner = plain_type(receiver)
    if mark.kind is MarkKind.CAST:
        return f"static_cast<{mark.name}>({owner})", "type"
    api = documented(f"{owner}::{mark.name}" if mark.kind is MarkKind.METHOD else mark.name)
    kind = "registry" if is_registry(api) else str(mark.kind)
    return api + ("<T>" if mark.generic else ""), kind


def _at_fault(blames: Sequence[Blame], finding: Finding) -> Sequence[Blame]:
    """All calls that made another tensor; where it is no matter of tensors, the first call."""
    hard = [blame for blame in blames if blame.differs is None or blame.differs.hard]
    of_tensors = finding.key.symptom in _OF_TENSORS or bool(finding.facts.get("of_tensors"))
    return hard if hard and (of_tensors or blames[0] in hard) else blames[:1]
