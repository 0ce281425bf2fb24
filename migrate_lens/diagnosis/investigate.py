"""One probe under investigation: a bench and a probe in; stages, findings and how far the traces went, out.

Torch runs first. Paddle then runs as it is; if it behaves the same, that is all. Where it does not, it runs again and
is handed torch's result at every difference, so that one run finds what lies behind the first gap. A difference that
is no difference of tensors counts only where the outcome depends on it, and that is tried: the run is repeated with
that one difference left in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from migrate_lens.compare.align import counts
from migrate_lens.compare.blame import UNEXPLAINED, blame
from migrate_lens.compare.divergences import Divergence, divergences
from migrate_lens.compare.findings import api_of, collect, first_divergence, node_name, site_of
from migrate_lens.compare.layout import as_layout
from migrate_lens.compare.outcome import disagreement, ending_said
from migrate_lens.compare.scope import leaks
from migrate_lens.compare.steady import Luck, luck
from migrate_lens.diagnosis.causes import Trial, as_shown, is_unhashable, pin_backward, promote
from migrate_lens.diagnosis.effects import reaching
from migrate_lens.model.progress import Progress
from migrate_lens.model.report import (
    Fact,
    Finding,
    FirstDivergence,
    Key,
    Outcome,
    Probe,
    Runtime,
    Site,
    Stage,
    StageResult,
    Symptom,
    TraceSummary,
)  # fmt: skip
from migrate_lens.model.trace import Trace
from migrate_lens.model.value import Difference
from migrate_lens.runs.bench import Bench, Run, Setting

# How many deadly calls are stepped over in one diagnosis of a probe.
_DEATHS = 8
_PUBLIC = ("", ".Tensor", ".nn", ".nn.functional", ".linalg", ".special", ".fft", ".utils", ".autograd", ".incubate")
_PRIVATE = ("._C_ops", ".base.core", ".framework.core")


@dataclass(frozen=True, slots=True)
class Investigation:
    """What one probe showed.

    Attributes:
        stages: a result per runtime.
        findings: what differs, in the order in which it was met.
        summary: how far the traces went; None where Paddle did not run.
        first: the first divergence.
        base: torch's run.
        notes: what a person should know about how this was found.
        baseline_failed: whether the probe does not run under torch, which ends a diagnosis.
    """

    stages: tuple[StageResult, ...]
    findings: tuple[Finding, ...]
    summary: TraceSummary | None
    first: FirstDivergence | None
    base: Run
    notes: tuple[str, ...] = ()
    baseline_failed: bool = False


def baseline(bench: Bench, setting: Setting, stage: Stage, probe: Probe) -> tuple[Run, StageResult, bool]:
    """Run a probe under torch; whether what it did could be observed.

    Where the program fails only while it is observed, the untouched run counts and the outcome alone is compared.
    """
    run = bench.run(setting, Runtime.TORCH, probe)
    observed = not _failed(run)
    if not observed:
        plain = bench.run(setting, Runtime.TORCH, probe, observe=False)
        run = run if _failed(plain) else plain
    return run, _stage(run, stage, probe, None), observed


def investigate(bench: Bench, setting: Setting, stage: Stage, probe: Probe, base: Run, observed: bool,
                progress: Progress, *, stop_at_first: bool) -> Investigation:  # fmt: skip
    """Run a probe under Paddle and hold it against torch's run."""
    progress(f"{stage}: {probe.spec} under paddle")
    heal = "draws" if observed else "none"
    reference = base if observed else None
    natural = bench.run(setting, Runtime.TARGET, probe, reference=reference, heal=heal, observe=observed)
    differs = disagreement(base.trace.ending, natural.trace.ending)
    found = list(divergences(base.trace, natural.trace)) if observed else []
    done = _stage(natural, stage, probe, differs)
    strays = leaks(natural.trace, setting.scope, stage, setting.library)
    if differs is None and not any(d.hard for d in found):
        return Investigation((done,), strays, _summary(base, natural, probe, ""), None, base)
    notes: tuple[str, ...] = ()
    stages, scope = _global_too(bench, setting, stage, probe, base, natural, differs)
    if not observed or stop_at_first:
        findings = _only_first(base, natural, found, differs, stage, setting)
        summary = _summary(
            base, natural, probe, "" if observed else "not observed: the program fails while it is traced"
        )
    else:
        progress(f"{stage}: {probe.spec} under paddle, going on past each gap")
        first_run, base = base, bench.run(setting, Runtime.TORCH, probe, values=True)
        own = luck(first_run.trace, base.trace)
        notes = own.notes()
        if own.results is not None:
            differs = _steady(own, base, natural)
            done = _stage(natural, stage, probe, differs)
        findings, summary = _everything(bench, setting, stage, probe, base, natural, differs, own)
    findings = (*strays, *scope, *findings)
    first = first_divergence(base.trace, natural.trace, found, natural.in_flight_api) if findings else None
    return Investigation((done, *stages), findings, summary, first, base, notes)


def _steady(own: Luck, base: Run, other: Run) -> Difference | None:
    """How an outcome differs from torch's, but for that in which torch's own differ."""
    return disagreement(own.of_outcome(base.trace.ending), own.of_outcome(other.trace.ending))


def _failed(run: Run) -> bool:
    if run.fate.timed_out or run.died:
        return True
    ending = run.trace.ending
    return ending.how == "raised" or (ending.how == "exited" and bool(ending.value))


def _stage(run: Run, stage: Stage, probe: Probe, differs: Difference | None) -> StageResult:
    outcome, detail = _fate(run)
    if outcome is Outcome.PASSED and differs is not None:
        outcome, detail = Outcome.FAILED, f"the result differs: {differs.expected} | {differs.actual}"
    return StageResult(run.runtime, stage, probe.spec, outcome, run.fate.seconds, detail)


def _fate(run: Run) -> tuple[Outcome, str]:
    if run.fate.timed_out:
        where = f" in {run.in_flight_api}" if run.in_flight_api else ""
        return Outcome.TIMED_OUT, f"killed after {run.fate.seconds:.0f} s{where}"
    if run.died:
        how = run.fate.signal_name or f"exit status {run.fate.code} without a word"
        where = f" in {run.in_flight_api}" if run.in_flight_api else ""
        return Outcome.CRASHED, f"{how}{where}"
    if _failed(run):
        return Outcome.FAILED, ending_said(run.trace.ending) + _first_failure(run.trace)
    return Outcome.PASSED, ""


def _first_failure(trace: Trace) -> str:
    """What a test run that ended early met first: a file that cannot be collected, above all."""
    if trace.ending.how != "exited" or not trace.failures:
        return ""
    name, failure, _ = trace.failures[0]
    message = next((line.strip() for line in failure["message"].splitlines() if line.strip()), "")
    return f" ({name}: {failure['types'][0]}{': ' if message else ''}{message[:200]})"


def _summary(base: Run, other: Run, probe: Probe, note: str) -> TraceSummary:
    aligned, reached = counts(base.trace, other.trace)
    return TraceSummary(probe.spec, len(base.trace.events), len(other.trace.events), aligned, reached, note)


def _global_too(bench: Bench, setting: Setting, stage: Stage, probe: Probe, base: Run, natural: Run,
                differs: Difference | None) -> tuple[tuple[StageResult, ...], tuple[Finding, ...]]:  # fmt: skip
    """The global runtime, where the scoped one fails: if it behaves, the proxy's boundary is at fault."""
    in_part = natural.trace.ending.how == "parts" and differs is not None
    if not (_failed(natural) or in_part) or natural.fate.timed_out or natural.died:
        return (), ()
    run = bench.run(setting, Runtime.TARGET_GLOBAL, probe, reference=base, heal="draws")
    other = disagreement(base.trace.ending, run.trace.ending)
    result = _stage(run, stage, probe, other)
    if other is not None:
        return (result,), ()
    key = Key(Symptom.SCOPE, "paddle.enable_compat", "")
    sites = _sites_of(natural.trace, setting)
    actual = ending_said(natural.trace.ending)
    finding = Finding(key, stage, sites, "the same behaviour as with global compat", actual, {"scoped_only": True})
    return (result,), (finding,)


def _sites_of(trace: Trace, setting: Setting) -> tuple[Site, ...]:
    ends = [trace.ending.frames, *(frames for _, _, frames in trace.failures)]
    last = [frames[-1] for frames in ends if frames]
    return tuple(dict.fromkeys(site_of(f.path, f.module, f.line, setting.library) for f in last))


def _only_first(base: Run, natural: Run, found: Sequence[Divergence], differs: Difference | None, stage: Stage,
                setting: Setting) -> tuple[Finding, ...]:  # fmt: skip
    hard = [d for d in found if d.hard][:1]
    if hard:
        return collect(hard, stage, setting.library)
    soft = [d for d in found if not d.hard]
    if soft and differs is not None:
        return collect(soft[-1:], stage, setting.library)
    return blame(base.trace, natural.trace, differs or UNEXPLAINED, stage, setting.library)


# -- everything behind the first gap --------------------------------------------------------------------------------


def _everything(bench: Bench, setting: Setting, stage: Stage, probe: Probe, base: Run, natural: Run,
                differs: Difference | None, own: Luck) -> tuple[tuple[Finding, ...], TraceSummary]:  # fmt: skip
    healed, deaths, deadly = _keep_going(bench, setting, stage, probe, base)
    hashable, early = is_unhashable(healed.trace.ending), tuple[Finding, ...]()
    if hashable:
        early = blame(base.trace, healed.trace, _steady(own, base, healed) or UNEXPLAINED, stage, setting.library)
        healed, deaths, deadly = _keep_going(bench, setting, stage, probe, base, hashable=True)
    found = list(divergences(base.trace, healed.trace, own.events))
    hard = [d for d in found if d.hard]
    after = _steady(own, base, healed)
    soft = as_layout((d for d in found if not d.hard), base.trace, healed.trace)
    trial = Trial(bench, setting, probe, base, deadly, healed.fate.seconds, own, hashable)
    promoted = promote(trial, soft, healed, alone=not hard and not deaths, after=after, differs=differs)
    kept = pin_backward(trial, as_shown(trial, [*hard, *promoted], promoted, natural, healed))
    findings = [*early, *deaths, *collect(kept, stage, setting.library)]
    lucky = differs is None and after is None and bool(own.notes())
    # An exception past which nothing could be handed over is of its own, unless memory that is not shared leads to it.
    stopped = healed.trace.ending.how == "raised" and not any(d.symptom is Symptom.ALIAS for d in promoted)
    unexplained = after is not None and (stopped or not promoted) and not (healed.died or healed.fate.timed_out)
    if (not findings and not lucky) or unexplained:
        named = {f.key.api for f in findings}
        # A run that ends well only because it was handed what was missing shows nothing: the one as it is does.
        telling = natural if not findings and after is None and natural.trace.ending.how == "raised" else healed
        blamed = blame(base.trace, telling.trace, after or differs or UNEXPLAINED, stage, setting.library)
        missing = any(f.key.symptom is Symptom.MISSING_API for f in findings)
        # What a stand-in cannot do (a loader yields nothing) explains an outcome better than the nearest call does, and
        # than a difference that was left in without effect.
        shown = [f for f in blamed if not missing or f.key.symptom is Symptom.EXCEPTION]
        findings += [f for f in shown if f.key.api not in named]
    findings = _with_kinds(bench, setting, reaching(trial, natural, healed, kept, findings))
    return tuple(findings), _summary(base, healed, probe, _stopped(healed, after))


def _stopped(healed: Run, after: Difference | None) -> str:
    ending = healed.trace.ending
    if ending.how == "raised" or healed.died:
        return f"stopped: {ending_said(ending)}"
    return f"the outcome differs still: {after.expected} | {after.actual}" if after is not None else ""


def _keep_going(bench: Bench, setting: Setting, stage: Stage, probe: Probe, base: Run, *,
                hashable: bool = False) -> tuple[Run, list[Finding], tuple[str, ...]]:  # fmt: skip
    """The healed run; calls that kill the process are stepped over, each one a finding, and named."""
    skip: list[str] = []
    deaths: list[Finding] = []
    while True:
        run = bench.run(setting, Runtime.TARGET, probe, reference=base, heal="all", skip=skip, hashable=hashable)
        place = run.trace.in_flight
        if not (run.died or run.fate.timed_out) or place is None or len(deaths) == _DEATHS:
            return run, deaths, tuple(skip)
        name = node_name(place)
        if name in skip:
            return run, deaths, tuple(skip)
        skip.append(name)
        deaths.append(_death(base, run, stage, setting))


def _death(base: Run, run: Run, stage: Stage, setting: Setting) -> Finding:
    place = run.trace.in_flight
    assert place is not None
    api = api_of(base.trace, place)
    site = site_of(place.path, place.module, place.line, setting.library)
    if run.fate.timed_out:
        key, actual = Key(Symptom.TIMEOUT, api, "timeout"), f"does not return within {run.fate.seconds:.0f} s"
    else:
        how = run.fate.signal_name or f"exit status {run.fate.code}"
        key, actual = Key(Symptom.CRASH, api, how), f"kills the process: {how}"
    return Finding(key, stage, (site,), "returns", actual, {"detail": key.detail}, (f"in flight: {place.text}",))


def _with_kinds(bench: Bench, setting: Setting, findings: Sequence[Finding]) -> list[Finding]:
    """Add, to what is missing, whether the missing part is a module in torch, and what Paddle has for it."""
    absent = [f for f in findings if f.key.symptom is Symptom.MISSING_API and not f.facts.get("on_object")]
    absent = [f for f in absent if f.key.api.startswith("torch")]
    names = sorted({".".join(f.key.api.split(".")[:n]) for f in absent for n in range(2, f.key.api.count(".") + 2)})
    if not names:
        return list(findings)
    others = sorted({name for f in absent for name in _counterparts(f.key.api)})
    ours = bench.ask(setting, Runtime.TORCH, names)
    theirs = bench.ask(setting, Runtime.TARGET_GLOBAL, [*names, *others])
    return [_kinded(f, ours, theirs) if f in absent else f for f in findings]


def _counterparts(api: str) -> list[str]:
    """Where Paddle may have what torch has under a name: public places first, then its own."""
    last = api.rpartition(".")[2]
    return [f"paddle{place}.{last}" for place in _PUBLIC] + [f"paddle{place}.{last}" for place in _PRIVATE]


def _kinded(finding: Finding, ours: dict[str, str], theirs: dict[str, str]) -> Finding:
    parts = finding.key.api.split(".")
    has = next((name for name in _counterparts(finding.key.api) if theirs.get(name)), "")
    for length in range(2, len(parts) + 1):
        name = ".".join(parts[:length])
        if not theirs.get(name):
            missing = ours.get(name) == "module"
            facts: dict[str, Fact] = {"missing_module": missing, "module": name if missing else "", "counterpart": has}
            return replace(finding, facts={**finding.facts, **facts})
    return finding
