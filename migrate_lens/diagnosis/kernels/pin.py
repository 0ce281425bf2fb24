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

from migrate_lens.compare.divergences import divergences
from migrate_lens.compare.findings import key_of, node_name
from migrate_lens.cpp.naming import documented, is_private, is_registry, plain_type
from migrate_lens.diagnosis.kernels.judge import (
    ARGUMENTS,
    CONSTRUCT,
    NOT_ENTERED,
    OWN,
    SAME,
    Blame,
    Call,
    Record,
    Told,
    Verdict,
    judge,
    read_log,
)
from migrate_lens.diagnosis.kernels.mark import Mark
from migrate_lens.diagnosis.kernels.rebuild import Marked, build_marked
from migrate_lens.model.progress import Progress
from migrate_lens.model.report import Fact, Finding, Key, Probe, Runtime, Site, Symptom
from migrate_lens.model.trace import Event, Place, Trace
from migrate_lens.native.build import BuildRun
from migrate_lens.native.casters import declared_for_others, lacks_caster
from migrate_lens.native.pairing import torch_roots
from migrate_lens.native.standins import native_files
from migrate_lens.native.torch_headers import TorchHeaders
from migrate_lens.runs.bench import Bench, Run, Setting

_BEHAVES = frozenset((
    Symptom.SHAPE, Symptom.DTYPE, Symptom.DEVICE, Symptom.LAYOUT, Symptom.ALIAS, Symptom.VALUE, Symptom.EXCEPTION,
    Symptom.CRASH, Symptom.TIMEOUT,
))  # fmt: skip
_LOOSE = re.compile(r"empty|rand|normal|uniform|bernoulli|multinomial|dropout|resize|exponential|cauchy|geometric")
_DEATHS = 4
_SAID = {
    NOT_ENTERED: "its C++ function is entered under torch and not under Paddle",
    ARGUMENTS: "its C++ function is entered with other arguments than under torch",
    SAME: "its C++ function does the same on both sides; what differs is how it is called or what is made of its end",
}


@dataclass(slots=True)
class Kernels:
    """The kernels of one diagnosis; units are built with marks at most once for each set of names.

    Attributes:
        torch: the torch build.
        paddle: the Paddle build.
        bench: runs probes.
        folder: a private one.
        timeout: seconds that building may take.
        progress: hears what is done.
        extensions: dotted names of the extension modules.
    """

    torch: BuildRun
    paddle: BuildRun
    bench: Bench
    folder: Path
    timeout: float
    progress: Progress
    extensions: frozenset[str]
    notes: list[str] = field(default_factory=list)
    _built: dict[frozenset[str], Marked | str] = field(default_factory=dict)
    _runs: int = 0

    def pinned(self, setting: Setting, probe: Probe, findings: Sequence[Finding]) -> tuple[Finding, ...]:
        """The findings, each one that shows in an operator replaced by what is at fault inside of it."""
        findings = [self._caster(f) if f.facts.get("uncast") else f for f in findings]
        concerned = {f.key: name for f in findings if _behaves(f) and (name := self._kernel(f.key.api))}
        if not concerned or not (self.torch.passed and self.paddle.passed):
            return tuple(findings)
        built = self._marked(frozenset(concerned.values()))
        if isinstance(built, str):
            self.notes.append(f"no construct inside a kernel is named: {built}")
            return tuple(findings)
        self.progress(f"run: {probe.spec} again, with the calls of {len(built.units)} unit(s) marked")
        pair = self._run(setting, probe, built)
        explained = (each for f in findings for each in (pair.explained(f) if f.key in concerned else (f,)))
        return tuple(map(self._form, explained))

    def _caster(self, finding: Finding) -> Finding:
        """A function that pybind11 cannot call, or whose result it cannot hand back, for want of a caster."""
        kind = plain_type(str(finding.facts["uncast"]))
        if not lacks_caster(self.paddle, kind, self.folder / "caster"):
            return finding
        header = declared_for_others(self.paddle, kind)
        facts = {
            **finding.facts, "construct_kind": "type", "kernel": CONSTRUCT, "operator": finding.key.api,
            "other_builds": bool(header),
        }  # fmt: skip
        evidence = [f"compiled and asked: among the headers of this Paddle pybind11 has no caster for {kind}"]
        if header:
            evidence.append(f"{header} declares one under a condition that this build of Paddle does not meet")
        key = replace(finding.key, api=f"pybind11 type_caster<{kind}>")
        return replace(finding, key=key, facts=facts, evidence=(*evidence, *finding.evidence))

    def _form(self, finding: Finding) -> Finding:
        """A method of a registered class that is never entered is a matter of the form that it is registered in."""
        api = finding.key.api
        never = finding.facts.get("kernel") == NOT_ENTERED and api.startswith("torch.classes.")
        found = registration(self.torch.source, api.rpartition(".")[2]) if never and self.torch.source else None
        if found is None:
            return finding
        facts = {**finding.facts, "construct_kind": "registry"}
        evidence = (f"{api} is registered so", *finding.evidence)
        key = replace(finding.key, api=found[0])
        return replace(finding, key=key, sites=(found[1], *finding.sites), facts=facts, evidence=evidence)

    def _kernel(self, api: str) -> str:
        """The name of a kernel, as it is registered; empty for what is none."""
        parts = api.split(".")
        if api.startswith("torch.classes.") and len(parts) >= 5:
            return parts[4]
        if api.startswith("torch.ops.") and len(parts) >= 4:
            return parts[3]
        return parts[-1] if any(api.startswith(f"{name}.") for name in self.extensions) else ""

    def _marked(self, names: frozenset[str]) -> Marked | str:
        if names not in self._built:
            self.progress("run: building the kernels once more, with their calls marked")
            folder = self.folder / f"kernels-{len(self._built)}"
            headers = TorchHeaders(torch_roots(self.torch))
            self._built[names] = build_marked(self.torch, self.paddle, names, folder, headers.qualified, self.timeout)
        return self._built[names]

    def _run(self, setting: Setting, probe: Probe, built: Marked) -> _Pair:
        ours, theirs = (built.torch,), (built.paddle,)
        paths = {Runtime.TORCH: ours, Runtime.TARGET: theirs, Runtime.TARGET_GLOBAL: theirs}
        setting = replace(setting, paths=paths)
        self._runs += 1
        log = self.folder / f"kernels-{self._runs}.torch.log"
        base = self.bench.run(setting, Runtime.TORCH, probe, values=True, kernel_log=log)
        pair = _Pair(built.marks, base.trace, _by_place(base.trace, read_log(log)))
        skip: list[str] = []
        for number in range(_DEATHS):
            log = self.folder / f"kernels-{self._runs}-{number}.paddle.log"
            run = self.bench.run(setting, Runtime.TARGET, probe, reference=base, heal="all", skip=skip, kernel_log=log)
            pair.take(run, read_log(log))
            place = run.trace.in_flight
            if not (run.died or run.fate.timed_out) or place is None or node_name(place) in skip:
                break
            skip.append(node_name(place))
        return pair


Spot = tuple[str, int, str]  # place, visit, part


def _by_place(trace: Trace, log: Mapping[Call, tuple[Record, ...]]) -> dict[Spot, tuple[Record, ...]]:
    """A log by what both sides call a place; nodes are numbered from 1 in the order of the places."""
    places = trace.places
    return {(node_name(places[n - 1]), visit, part): r for (n, visit, part), r in log.items() if n <= len(places)}


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
        """A run of Paddle's; of the calls that several runs made the first counts."""
        for spot, records in _by_place(run.trace, log).items():
            self.theirs.setdefault(spot, records)
        for divergence in divergences(self.base, run.trace):
            self.differing.setdefault(key_of(divergence), {})[_spot(divergence.want)] = None
        if run.died or run.fate.timed_out:
            last = next((s for s in reversed(self.theirs) if _is(s, run.trace.in_flight)), None)
            if last is not None:
                self.died[last] = None

    def explained(self, finding: Finding) -> Iterator[Finding]:
        """A finding about an operator, or what is at fault inside of it."""
        told = {n: Told(m.closed, _LOOSE.search(m.name) is not None, m.kind not in ("return", "entry"))
                for n, m in self.marks.items()}  # fmt: skip
        verdicts = [judge(self.ours.get(s, ()), self.theirs.get(s, ()), told) for s in self._spots(finding)]
        chosen = next((v for v in verdicts if v.how == CONSTRUCT), verdicts[0] if verdicts else None)
        if chosen is None:
            yield finding
        elif chosen.how == CONSTRUCT:
            yield from (self._construct(finding, blame) for blame in _at_fault(chosen.blames, finding))
        else:
            yield self._remark(finding, chosen)

    def _spots(self, finding: Finding) -> Iterable[Spot]:
        """The calls in which a finding showed."""
        dead = [s for s in self.died if finding.key.symptom in (Symptom.CRASH, Symptom.TIMEOUT)]
        shown = self.differing.get(finding.key) or {}
        found = dict.fromkeys([*dead, *shown])
        mine = {_spot(e): None for e in self.base.events if e.api == finding.key.api}
        return [s for s in found if s in mine] or list(mine)

    def _construct(self, finding: Finding, blame: Blame) -> Finding:
        mark = self.marks[blame.mark]
        api, kind = name_of(mark, blame.receiver)
        said = blame.differs
        symptom = Symptom(said.aspect) if said is not None else finding.key.symptom
        detail = said.aspect if said is not None else finding.key.detail
        facts: dict[str, Fact] = {
            "construct_kind": kind,
            "private": is_private(api),
            "kernel": CONSTRUCT,
            "operator": finding.key.api,
        }
        where = ", ".join(f"{site.path}:{site.line}" for site in finding.sites[:3])
        seen = f"torch: {finding.expected}; Paddle: {finding.actual}"
        given = "what it was given is the same" if mark.closed else "all that was seen before it is the same"
        evidence = (
            f"called in the kernel of {finding.key.api} ({where}), where {seen}",
            f"the kernel was run on both sides with its calls marked: this is the first that differs, {given}",
        )
        return Finding(
            Key(symptom, api, detail), finding.stage, (Site(mark.path, mark.line),),
            said.expected if said is not None else "returns", said.actual if said is not None else finding.actual,
            facts, evidence,
        )  # fmt: skip

    def _remark(self, finding: Finding, verdict: Verdict) -> Finding:
        mark = self.marks.get(verdict.at)
        said = _SAID.get(verdict.how, "")
        if verdict.how == OWN and mark is not None:
            said = (
                f"inside its C++ function the sides go apart at {mark.path}:{mark.line}, and no call of torch's did it"
            )
        facts = {**finding.facts, "kernel": verdict.how}
        refused = verdict.how == NOT_ENTERED and finding.key.symptom is Symptom.EXCEPTION
        # The way into the function is what its schema describes: keywords, defaults, types.
        key = replace(finding.key, symptom=Symptom.SCHEMA) if refused or verdict.how == ARGUMENTS else finding.key
        return replace(finding, key=key, facts=facts, evidence=(*finding.evidence, *filter(None, [said])))


def _behaves(finding: Finding) -> bool:
    """Whether a gap may come of what a kernel does, or of how it is registered."""
    made = finding.key.api.startswith("torch.classes.") and finding.key.symptom is Symptom.MISSING_API
    return made or finding.key.symptom in _BEHAVES


def registration(root: Path, name: str) -> tuple[str, Site] | None:
    """How a method of a registered class is handed to the registry: the form, and where."""
    for path in native_files(root):
        text = path.read_text(encoding="utf-8", errors="replace")
        found = re.search(rf'\.\s*(def\w*)\s*\(\s*"{re.escape(name)}"\s*,\s*(.)', text)
        if found:
            form = {"[": "lambda", "&": "pointer"}.get(found[2], "function")
            line = text.count("\n", 0, found.start(1)) + 1
            return f"torch::class_::{found[1]}({form})", Site(path.relative_to(root).as_posix(), line)
    return None


def name_of(mark: Mark, receiver: str) -> tuple[str, str]:
    """The documented name of a marked call, and what sort of construct it is."""
    owner = plain_type(receiver)
    if mark.kind == "cast":
        return f"static_cast<{mark.name}>({owner})", "type"
    api = documented(f"{owner}::{mark.name}" if mark.kind == "method" else mark.name)
    kind = "registry" if is_registry(api) else mark.kind
    return api + ("<T>" if mark.generic else ""), kind


def _at_fault(blames: Sequence[Blame], finding: Finding) -> Sequence[Blame]:
    """All calls that made another tensor; where it is no matter of tensors, the first call."""
    hard = [b for b in blames if b.differs is None or b.differs.hard]
    tensors = finding.key.symptom in (Symptom.SHAPE, Symptom.DTYPE, Symptom.DEVICE) or "tensor" in finding.expected
    return hard if hard and (tensors or blames[0] in hard) else blames[:1]


def _spot(event: Event) -> Spot:
    return node_name(event.place), event.visit, event.part


def _is(spot: Spot, place: Place | None) -> bool:
    return place is not None and spot[0] == node_name(place)
