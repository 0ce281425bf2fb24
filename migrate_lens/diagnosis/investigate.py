"""One probe under investigation: a bench and a probe in; stages, findings and how far the traces went, out.

Torch runs first. The target then runs as it is; if it behaves the same, that is all. Where it does not, it runs again
and is handed torch's result at every difference, so that one run finds what lies behind the first gap. A difference
that is no difference of tensors counts only where the outcome depends on it, and that is tried: the run is repeated
with that one difference left in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from migrate_lens.compare.align import counts
from migrate_lens.compare.blame import UNEXPLAINED, blame, not_run
from migrate_lens.compare.divergences import Divergence, divergences
from migrate_lens.compare.findings import api_of, collect, first_divergence, node_name, site_at, site_of
from migrate_lens.compare.layout import by_layout_maker
from migrate_lens.compare.outcome import disagreement, ending_said
from migrate_lens.compare.scope import leaks
from migrate_lens.compare.steady import Luck, luck
from migrate_lens.compare.unentered import unentered
from migrate_lens.diagnosis.backward import named_by_backward, without_consequences
from migrate_lens.diagnosis.causes import (
    NO_LUCK,
    Kind,
    Outcomes,
    Trial,
    is_unhashable,
    outcome_depends_on,
    shown_as_exceptions,
)
from migrate_lens.diagnosis.consequences import at_their_source
from migrate_lens.diagnosis.effects import with_effect_on_result
from migrate_lens.diagnosis.ends import never_ends
from migrate_lens.diagnosis.guards import with_own_answers, without_what_is_within
from migrate_lens.diagnosis.subject import Baseline, Subject
from migrate_lens.model.progress import Progress
from migrate_lens.model.report import (
    Fact,
    Finding,
    FirstDivergence,
    Key,
    Outcome,
    Runtime,
    Site,
    StageResult,
    Symptom,
    TraceSummary,
)
from migrate_lens.model.target import TARGET
from migrate_lens.model.trace import Died, Exited, Parts, Raised, Trace
from migrate_lens.model.value import Difference
from migrate_lens.runs.bench import Heal, Healing, NameKind, Run, RunRequest

# How many deadly calls are stepped over in one diagnosis of a probe.
_DEATHS = 8
_MESSAGE = 200


@dataclass(frozen=True, slots=True)
class Investigation:
    """What one probe showed.

    Attributes:
        stages: a result per runtime.
        findings: what differs, in the order in which it was met.
        summary: how far the traces went; None where the target did not run.
        first: the first divergence.
        base: torch's run.
        notes: what a person should know about how this came about.
        healed: the run that went on past each gap, where there was one.
    """

    stages: tuple[StageResult, ...]
    findings: tuple[Finding, ...]
    summary: TraceSummary | None
    first: FirstDivergence | None
    base: Run
    notes: tuple[str, ...] = ()
    healed: Run | None = None


def baseline(subject: Subject) -> Baseline:
    """Run a probe under torch.

    Where the program fails only while it is observed, the untouched run counts and the outcome alone is compared.
    """
    request = RunRequest(subject.setting, Runtime.TORCH, subject.probe)
    run = subject.bench.run(request)
    observed = not _failed(run)
    if not observed:
        plain = subject.bench.run(replace(request, observe=False))
        run = run if _failed(plain) else plain
    return Baseline(run, _stage(run, subject, None), observed)


def investigate(subject: Subject, base: Baseline, progress: Progress, *, stop_at_first: bool) -> Investigation:
    """Run a probe under the target and hold it against torch's run."""
    heading = f"{subject.stage}: {subject.probe.spec} under {TARGET.name}"
    progress(heading)
    sides = _beside(subject, base)
    met = list(divergences(sides.base.trace, sides.natural.trace)) if base.observed else []
    stage = _stage(sides.natural, subject, sides.differs)
    strays = leaks(sides.natural.trace, subject.setting.scope, subject.stage, subject.library)
    agrees = sides.differs is None and not sides.natural.ended_badly
    if agrees and not any(divergence.hard for divergence in met):
        return Investigation((stage,), strays, _summary(sides.base, sides.natural, subject), None, sides.base)
    more_stages, scope = _global_too(sides)
    notes: tuple[str, ...] = ()
    if not base.observed or stop_at_first:
        findings = _only_first(sides, met)
        note = "" if base.observed else "not observed: the program fails while it is traced"
        summary = _summary(sides.base, sides.natural, subject, note)
    else:
        progress(f"{heading}, going on past each gap")
        sides = _with_luck(sides)
        notes = sides.own.notes()
        stage = _stage(sides.natural, subject, sides.differs)
        findings, summary, _ = _everything(sides)
    findings = (*strays, *scope, *findings)
    first = first_divergence(sides.natural.trace, met, sides.natural.in_flight_api) if findings else None
    return Investigation((stage, *more_stages), findings, summary, first, sides.base, notes)


def investigate_tests(subject: Subject, base: Run, natural: Run, settled: dict[Kind, bool]) -> Investigation:
    """Hold tests under the target against torch's run of them.

    Args:
        subject: the tests.
        base: torch's run, with all values.
        natural: the target's run as it is, which nobody observed.
        settled: what other tests of the suite have shown to matter or not (see ``causes.Trial``); more is added.
    """
    differs = disagreement(base.trace.ending, natural.trace.ending)
    sides = _Sides(subject, base, natural, differs, settled=settled)
    strays = leaks(natural.trace, subject.setting.scope, subject.stage, subject.library)
    findings, summary, healed = _everything(sides)
    return Investigation((), (*strays, *findings), summary, None, base, (), healed)


# -- two runs side by side ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Sides:
    """Torch's run of a probe, and the target's as it is.

    Attributes:
        subject: the probe, and where it is run.
        base: torch's run.
        natural: the target's.
        differs: how the outcomes differ, but for what torch's own differ in.
        own: what torch's own runs differ in.
        settled: see ``causes.Trial``.
    """

    subject: Subject
    base: Run
    natural: Run
    differs: Difference | None
    own: Luck = NO_LUCK
    settled: dict[Kind, bool] = field(default_factory=dict)

    def outcome_of(self, other: Run) -> Difference | None:
        """How another run's outcome differs from torch's, but for that in which torch's own differ."""
        return disagreement(self.own.of_outcome(self.base.trace.ending), self.own.of_outcome(other.trace.ending))

    def blamed(self, run: Run, differs: Difference | None) -> tuple[Finding, ...]:
        """The nearest observed places for an outcome that no call explains."""
        subject, differs = self.subject, differs or UNEXPLAINED
        if run.fate.timed_out:
            differs = replace(differs, aspect="timeout", actual=f"does not end {run.fate.bound}")
        return blame(self.base.trace, run.trace, differs, subject.stage, subject.library)

    def request(self, runtime: Runtime, healing: Healing | None) -> RunRequest:
        """A run of the probe that is handed something of torch's."""
        return RunRequest(self.subject.setting, runtime, self.subject.probe, healing=healing)


def _beside(subject: Subject, base: Baseline) -> _Sides:
    """Run the probe under the target as it is."""
    healing = Healing(base.run, Heal.DRAWS) if base.observed else None
    request = RunRequest(subject.setting, Runtime.TARGET, subject.probe, base.observed, healing, finish=True)
    natural = subject.bench.run(request)
    if natural.ended_badly and _ends_badly_itself(subject):
        natural = replace(natural, fate=replace(natural.fate, code=0, timed_out=False))
    return _Sides(subject, base.run, natural, disagreement(base.run.trace.ending, natural.trace.ending))


def _ends_badly_itself(subject: Subject) -> bool:
    """Whether the program comes to no end of its own under torch either."""
    request = RunRequest(subject.setting, Runtime.TORCH, subject.probe, observe=False, finish=True)
    return subject.bench.run(request).ended_badly


def _with_luck(sides: _Sides) -> _Sides:
    """Run the probe under torch once more, and leave out what differs with itself."""
    again = replace(sides.request(Runtime.TORCH, None), values=True)
    base = sides.subject.bench.run(again)
    sides = replace(sides, base=base, own=luck(sides.base.trace, base.trace))
    return replace(sides, differs=sides.outcome_of(sides.natural)) if sides.own.in_outcome else sides


def _failed(run: Run) -> bool:
    ending = run.trace.ending
    if run.cut_off or isinstance(ending, Raised):
        return True
    return isinstance(ending, Exited) and bool(ending.code)


def _stage(run: Run, subject: Subject, differs: Difference | None) -> StageResult:
    outcome, detail = _fate(run)
    if outcome is Outcome.PASSED and differs is not None:
        outcome, detail = Outcome.FAILED, f"the result differs: {differs.expected} | {differs.actual}"
    return StageResult(run.runtime, subject.stage, subject.probe.spec, outcome, run.fate.seconds, detail)


def _fate(run: Run) -> tuple[Outcome, str]:
    where = f" in {run.in_flight_api}" if run.in_flight_api else ""
    if run.fate.timed_out:
        return Outcome.TIMED_OUT, f"killed after {run.fate.seconds:.0f} s{where}{_too_much(run)}"
    if run.died:
        how = run.fate.signal_name or f"exit status {run.fate.code} without a word"
        return Outcome.CRASHED, f"{how}{where}"
    if _failed(run):
        return Outcome.FAILED, ending_said(run.trace.ending) + _first_failure(run.trace)
    return Outcome.PASSED, ""


def _too_much(run: Run) -> str:
    """What it had too much of but time."""
    return f": it did not end {run.fate.bound}" if run.fate.excess else ""


def _first_failure(trace: Trace) -> str:
    """What a test run that ended early met first: a file that cannot be collected, above all."""
    if not isinstance(trace.ending, Exited) or not trace.failures:
        return ""
    first = trace.failures[0]
    message = first.failure.first_line
    said = f"{first.part}: {first.failure.type}"
    return f" ({said}: {message[:_MESSAGE]})" if message else f" ({said})"


def _summary(base: Run, other: Run, subject: Subject, note: str = "") -> TraceSummary:
    aligned, reached = counts(base.trace, other.trace)
    ours, theirs = len(base.trace.events), len(other.trace.events)
    came_to_end = not isinstance(other.trace.ending, Raised | Died)
    within = sum(len(code.calls) for code in unentered(base.trace, other.trace)) if came_to_end else 0
    return TraceSummary(subject.probe.spec, ours, theirs, aligned, reached, note, within)


def _global_too(sides: _Sides) -> tuple[tuple[StageResult, ...], tuple[Finding, ...]]:
    """The global runtime, where the scoped one fails: if it behaves, the proxy's boundary is at fault."""
    natural, subject = sides.natural, sides.subject
    in_part = isinstance(natural.trace.ending, Parts) and sides.differs is not None
    if natural.cut_off or not (_failed(natural) or in_part):
        return (), ()
    run = subject.bench.run(sides.request(Runtime.TARGET_GLOBAL, Healing(sides.base, Heal.DRAWS)))
    other = disagreement(sides.base.trace.ending, run.trace.ending)
    result = _stage(run, subject, other)
    if other is not None:
        return (result,), ()
    finding = Finding(
        Key(Symptom.SCOPE, f"{TARGET.package}.{TARGET.switch}", ""),
        subject.stage,
        _sites_of(natural.trace, subject),
        "the same behaviour as with global compat",
        ending_said(natural.trace.ending),
        {"scoped_only": True},
    )
    return (result,), (finding,)


def _sites_of(trace: Trace, subject: Subject) -> tuple[Site, ...]:
    """Where the exceptions of a run were raised, of the program and of its parts."""
    of_program = trace.ending.frames if isinstance(trace.ending, Raised) else ()
    ends = [of_program, *(part.frames for part in trace.failures)]
    last = [frames[-1] for frames in ends if frames]
    sites = (site_of(frame.path, frame.module, frame.line, subject.library) for frame in last)
    return tuple(dict.fromkeys(sites))


def _only_first(sides: _Sides, met: Sequence[Divergence]) -> tuple[Finding, ...]:
    stage, library = sides.subject.stage, sides.subject.library
    hard = [divergence for divergence in met if divergence.hard]
    if hard:
        return collect(hard[:1], stage, library)
    if met and sides.differs is not None:
        return collect(met[-1:], stage, library)
    return sides.blamed(sides.natural, sides.differs)


# -- everything behind the first gap -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Healed:
    """The run that goes on past each gap.

    Attributes:
        run: the run.
        deaths: a finding for each call that kills the process and was stepped over.
        deadly: those calls.
        hashable: whether sizes were handed over that can be keys.
        after: how the outcome differs still.
    """

    run: Run
    deaths: tuple[Finding, ...]
    deadly: tuple[str, ...]
    hashable: bool
    after: Difference | None

    @property
    def never_ends(self) -> bool:
        """Whether the process was cut off while no call was running."""
        return self.run.cut_off and self.run.trace.in_flight is None

    @property
    def raised(self) -> bool:
        """Whether it ended in an exception past which nothing could be handed over."""
        return isinstance(self.run.trace.ending, Raised)


def _everything(sides: _Sides) -> tuple[tuple[Finding, ...], TraceSummary, Run]:
    """All gaps, each judged on inputs equal to torch's; how far the run came in which they were met; and that run."""
    subject = sides.subject
    healed = _keep_going(sides)
    early: tuple[Finding, ...] = ()
    if is_unhashable(healed.run.trace.ending):
        early = sides.blamed(healed.run, healed.after)
        healed = _keep_going(sides, hashable=True)
    trial = Trial(
        subject,
        sides.base,
        healed.deadly,
        healed.run.fate.seconds,
        sides.own,
        healed.hashable,
        sides.settled,
    )
    kept, promoted = _that_count(trial, sides, healed)
    findings = [*early, *healed.deaths, *collect(kept, subject.stage, subject.library)]
    findings += _not_run(sides, healed)
    if sides.natural.ended_badly or healed.never_ends:
        findings.append(never_ends(trial, healed.run if healed.never_ends else sides.natural))
    # A test whose outcome differs still is named as what it is: unexplained.
    if not subject.probe.tests and _is_unexplained(sides, healed, findings, promoted):
        findings += _last_resort(sides, healed, findings)
    findings = with_effect_on_result(trial, sides.natural, healed.run, kept, findings)
    findings = _with_kinds(subject, findings)
    return tuple(findings), _summary(sides.base, healed.run, subject, _stopped(healed)), healed.run


def _not_run(sides: _Sides, healed: _Healed) -> list[Finding]:
    """Methods of the program's that only torch runs, where some call got other inputs than torch's, which they made."""
    if not any(event.flags.other_inputs and event.healed for event in healed.run.trace.events):
        return []
    found = not_run(sides.base.trace, healed.run.trace, sides.subject.stage, sides.subject.library)
    return list({finding.key: finding for finding in found}.values())


def _that_count(trial: Trial, sides: _Sides, healed: _Healed) -> tuple[list[Divergence], list[Divergence]]:
    """The differences that count, as they show; and those of them that count since the outcome depends on them."""
    met = list(divergences(sides.base.trace, healed.run.trace, sides.own.events))
    judged = with_own_answers(trial, healed.run, met)
    if judged is not healed.run:
        met = list(divergences(sides.base.trace, judged.trace, sides.own.events))
    met = without_what_is_within(without_consequences(sides.base.trace, met))
    met = at_their_source(sides.base.trace, met)
    hard = [divergence for divergence in met if divergence.hard]
    soft = by_layout_maker((d for d in met if not d.hard), sides.base.trace, judged.trace)
    explained = bool(hard or healed.deaths)
    outcomes = Outcomes(sides.differs, healed.after, healed.run.trace.ending, explained)
    promoted = outcome_depends_on(trial, soft, outcomes)
    shown = shown_as_exceptions(trial, [*hard, *promoted], promoted, sides.natural, healed.run)
    return named_by_backward(trial, shown), promoted


def _is_unexplained(
    sides: _Sides, healed: _Healed, findings: Sequence[Finding], promoted: Sequence[Divergence]
) -> bool:
    """Whether nothing that was met explains how the program ends."""
    by_luck = sides.differs is None and healed.after is None and bool(sides.own.notes())
    if not findings and not by_luck:
        return True
    if healed.after is None or healed.run.cut_off:
        return False
    # An exception past which nothing could be handed over is of its own, unless memory that is not shared leads to it.
    stopped = healed.raised and not any(d.symptom is Symptom.ALIAS for d in promoted)
    return stopped or not promoted


def _last_resort(sides: _Sides, healed: _Healed, findings: Sequence[Finding]) -> list[Finding]:
    """The nearest observed places for an outcome that nothing else explains."""
    # A run that ends well only because it was handed what was missing shows nothing: the one as it is does.
    handed = not findings and healed.after is None and isinstance(sides.natural.trace.ending, Raised)
    telling = sides.natural if handed else healed.run
    blamed = sides.blamed(telling, healed.after or sides.differs)
    named = {finding.key.api for finding in findings}
    missing = any(finding.key.symptom is Symptom.MISSING_API for finding in findings)
    # What a stand-in cannot do (a loader yields nothing) explains an outcome better than the nearest call does, and
    # than a difference that was left in without effect.
    shown = [finding for finding in blamed if not missing or finding.key.symptom is Symptom.EXCEPTION]
    return [finding for finding in shown if finding.key.api not in named]


def _stopped(healed: _Healed) -> str:
    """What kept the run from coming to torch's outcome; empty where it did."""
    if healed.raised or healed.run.died:
        return f"stopped: {ending_said(healed.run.trace.ending)}"
    after = healed.after
    return "" if after is None else f"the outcome differs still: {after.expected} | {after.actual}"


def _keep_going(sides: _Sides, *, hashable: bool = False) -> _Healed:
    """The healed run; calls that kill the process are stepped over, each one a finding, and named."""
    skip: list[str] = []
    deaths: list[Finding] = []
    while True:
        healing = Healing(sides.base, skip=tuple(skip), hashable=hashable)
        run = sides.subject.bench.run(sides.request(Runtime.TARGET, healing))
        place = run.trace.in_flight
        name = node_name(place) if place is not None else ""
        if not run.cut_off or place is None or name in skip or len(deaths) == _DEATHS:
            return _Healed(run, tuple(deaths), tuple(skip), hashable, sides.outcome_of(run))
        skip.append(name)
        deaths.append(_death(sides, run))


def _death(sides: _Sides, run: Run) -> Finding:
    """The finding that a call ends the process."""
    place = run.trace.in_flight
    assert place is not None
    api = api_of(sides.base.trace, place)
    if run.fate.timed_out:
        key = Key(Symptom.TIMEOUT, api, "timeout")
        actual = f"does not return {run.fate.bound}"
    else:
        how = run.fate.signal_name or f"exit status {run.fate.code}"
        key = Key(Symptom.CRASH, api, how)
        actual = f"kills the process: {how}"
    site = site_at(place, sides.subject.library)
    evidence = (f"in flight: {place.text}",)
    return Finding(key, sides.subject.stage, (site,), "returns", actual, {"detail": key.detail}, evidence)


# -- what is missing ---------------------------------------------------------------------------------------------------


def _with_kinds(subject: Subject, findings: Sequence[Finding]) -> list[Finding]:
    """Add, to what is missing, whether the missing part is a module in torch, and what the target has for it."""
    absent = [finding for finding in findings if _is_absent(finding)]
    names = sorted({name for finding in absent for name in _parents(finding.key.api)})
    if not names:
        return list(findings)
    others = sorted({name for finding in absent for name in _counterparts(finding.key.api)})
    ours = subject.bench.ask(subject.setting, Runtime.TORCH, names)
    theirs = subject.bench.ask(subject.setting, Runtime.TARGET_GLOBAL, [*names, *others])
    return [_kinded(finding, ours, theirs) if finding in absent else finding for finding in findings]


def _is_absent(finding: Finding) -> bool:
    """Whether a name of torch's is missing from a module."""
    missing = finding.key.symptom is Symptom.MISSING_API and not finding.facts.get("on_object")
    return missing and finding.key.api.startswith("torch")


def _parents(api: str) -> list[str]:
    """The dotted name and what it is in, outermost first, without the framework itself."""
    parts = api.split(".")
    return [".".join(parts[:length]) for length in range(2, len(parts) + 1)]


def _counterparts(api: str) -> list[str]:
    """Where the target may have what torch has under a name: public places first, then its own."""
    last = api.rpartition(".")[2]
    return [f"{place}.{last}" for place in (*TARGET.public, *TARGET.private)]


def _kinded(finding: Finding, ours: Mapping[str, NameKind], theirs: Mapping[str, NameKind]) -> Finding:
    counterpart = next((name for name in _counterparts(finding.key.api) if theirs.get(name)), "")
    lacking = next((name for name in _parents(finding.key.api) if not theirs.get(name)), None)
    if lacking is None:
        return finding
    is_module = ours.get(lacking) is NameKind.MODULE
    facts: dict[str, Fact] = {
        "missing_module": is_module,
        "module": lacking if is_module else "",
        "counterpart": counterpart,
    }
    return replace(finding, facts={**finding.facts, **facts})
