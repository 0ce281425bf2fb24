"""Causes shown by trial: differences that may or may not matter in, those that the outcome depends on out.

A difference that is no difference of tensors (a Python type, a flag, memory that is shared) counts only if leaving it
in changes the program's outcome. That is tried, not guessed: the healed run is repeated with it left in.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from migrate_lens.compare.blame import near
from migrate_lens.compare.divergences import IN_PLACE, VIEW, Divergence, divergences
from migrate_lens.compare.findings import key_of, node_name
from migrate_lens.compare.outcome import disagreement, ending_said, own_frame, recorded
from migrate_lens.compare.steady import Luck
from migrate_lens.diagnosis.subject import Subject
from migrate_lens.model.report import Runtime, Symptom
from migrate_lens.model.trace import Died, Ending, Event, Parts, Raised, Trace
from migrate_lens.model.value import (
    ARRAY,
    SEQUENCES,
    Difference,
    references,
    tag,
)
from migrate_lens.protocol.parts import part_of
from migrate_lens.runs.bench import Healing, Run, RunRequest

# Trials in one diagnosis of a probe, and the seconds that they may take: this many healed runs' worth, within limits.
_TRIALS = 32
_RUNS, _LEAST, _MOST = 4.0, 5.0, 60.0
_TESTS = 3  # of a suite, in which a difference is left in

NO_LUCK = Luck({}, ())
Group = list[Divergence]
Kind = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Trial:
    """What a trial needs.

    Attributes:
        subject: what is run, and where.
        base: torch's run, to hold others against.
        deadly: calls that kill the process.
        healed_seconds: wall time of a healed run.
        own: what torch's own runs differ in, which is no matter then.
        hashable: whether sizes are handed over that can be keys, without which the program does not go on.
        settled: kinds of differences of which other tests of the suite have shown whether an outcome depends on them.
    """

    subject: Subject
    base: Run
    deadly: tuple[str, ...] = ()
    healed_seconds: float = 0.0
    own: Luck = NO_LUCK
    hashable: bool = False
    settled: dict[Kind, bool] = field(default_factory=dict)

    def budget(self) -> float:
        """When to stop trying, on the clock of ``time.monotonic``."""
        return time.monotonic() + min(_MOST, max(_LEAST, _RUNS * self.healed_seconds))

    def healed(
        self, *, spare: Iterable[str] = (), skip: Sequence[str] = (), gradients: bool = False, finish: bool = False
    ) -> Run:
        """A healed run with some nodes left as the target has them, or not called."""
        skipped = (*self.deadly, *skip)
        healing = Healing(self.base, spare=tuple(spare), skip=skipped, hashable=self.hashable)
        request = self._request(Runtime.TARGET, healing=healing, gradients=gradients)
        return self._run(replace(request, finish=finish))

    def leaving_in(self, group: Iterable[Divergence], seen_in: Iterable[Divergence] | None = None) -> Run:
        """A healed run in which some differences are left as the target has them.

        Args:
            group: those differences.
            seen_in: of a suite, a few tests in which each of these was met are enough to see by; default: all tests.
        """
        there = self if seen_in is None else self.of_tests(seen_in, _TESTS)
        return there.healed(spare=sorted({node_name(divergence.got.place) for divergence in group}))

    def of_tests(self, met: Iterable[Divergence], most: int = sys.maxsize) -> Trial:
        """The same in those tests of a suite in which differences were met, in the quickest for each kind of them.

        Args:
            met: the differences; one that was met outside of tests needs them all.
            most: tests for each kind.
        """
        probe = self.subject.probe
        runs = {run.number: run for run in self.base.trace.tests}
        wanted: set[str] = set()
        for group in _groups(met).values():
            parts = {part_of(divergence.got.visit) for divergence in group}
            if not probe.tests or not parts & runs.keys():
                return self
            quickest = sorted((runs[part] for part in parts if part in runs), key=lambda run: run.seconds)
            wanted |= {run.node for run in quickest[:most]}
        tests = tuple(name for name in probe.tests if name in wanted)
        return replace(self, subject=replace(self.subject, probe=replace(probe, tests=tests)))

    def unshared(self, node: str) -> Run:
        """A run of torch's in which the results of one node are copies."""
        return self._run(self._request(Runtime.TORCH, copy=(node,)))

    def with_gradients(self) -> Run:
        """A run of torch's in which the gradient that reaches each result is recorded."""
        return self._run(self._request(Runtime.TORCH, gradients=True))

    def agrees(self, run: Run) -> bool:
        """Whether a run has torch's outcome."""
        return self.same(self.base.trace.ending, run.trace)

    def same(self, want: Ending, trace: Trace) -> bool:
        """Whether a run ends as another did; of a suite, in the tests that were to be run."""
        got = trace.ending
        if isinstance(want, Parts) and trace.collected:
            want = Parts({name: fate for name, fate in want.fates.items() if name in trace.collected})
        return disagreement(self.own.of_outcome(want), self.own.of_outcome(got)) is None

    def _request(
        self,
        runtime: Runtime,
        *,
        healing: Healing | None = None,
        gradients: bool = False,
        copy: tuple[str, ...] = (),
    ) -> RunRequest:
        subject = self.subject
        return RunRequest(subject.setting, runtime, subject.probe, healing=healing, gradients=gradients, copy=copy)

    def _run(self, request: RunRequest) -> Run:
        return self.subject.bench.run(request)


# -- what the outcome depends on ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What is known of how the program ends.

    Attributes:
        natural: how the natural run's outcome differs from torch's.
        healed: how the healed run's does, in which each difference is healed.
        ending: how the healed run ended.
        explained: whether differences that count by themselves explain the natural one.
    """

    natural: Difference | None
    healed: Difference | None
    ending: Ending
    explained: bool


def outcome_depends_on(trial: Trial, soft: Sequence[Divergence], outcomes: Outcomes) -> list[Divergence]:
    """Those of the soft differences that the outcome depends on.

    A copy where torch shares memory cannot be healed by its value, so where the healed run's outcome differs still,
    shared memory that is written later is the suspect; what else the outcome depends on is seen against the outcome of
    the healed run.

    Args:
        trial: how to try.
        soft: the candidates, in the order of the run.
        outcomes: how the program ends.
    """
    if outcomes.natural is None:
        return []
    known = [d for d in soft if trial.settled.get(_kind(d))]
    soft = [d for d in soft if _kind(d) not in trial.settled]
    found = _outcome_depends_on(trial, soft, outcomes)
    if trial.subject.probe.tests:
        needed = {_kind(d) for d in found}
        trial.settled.update((kind, kind in needed) for kind in map(_kind, soft))
    return [*known, *found]


def _outcome_depends_on(trial: Trial, soft: Sequence[Divergence], outcomes: Outcomes) -> list[Divergence]:
    shared: list[Divergence] = []
    if outcomes.healed is not None:
        suspects = [d for d in soft if d.detail == VIEW and written_later(d, trial.base)]
        shared = _that_matter(trial, suspects)
        soft = [d for d in soft if d not in shared]
    groups = list(_groups(soft).values())
    if len(groups) == 1 and not outcomes.explained and not shared:
        stopped = isinstance(outcomes.ending, Died | Raised)
        return groups[0] if stopped or _matters(trial, groups[0], outcomes.ending) else []
    return [*shared, *_depended_on(trial, soft, groups, outcomes.ending)]


def _matters(trial: Trial, group: Group, healed: Ending) -> bool:
    """Whether the program ends otherwise, or a call goes otherwise, where differences of one kind are left in."""
    trace = trial.leaving_in(group, group).trace
    if not trial.same(healed, trace):
        return True
    return any(divergence.hard for divergence in divergences(trial.base.trace, trace, trial.own.events))


def _that_matter(trial: Trial, shared: list[Divergence]) -> list[Divergence]:
    """Those of the places where memory is shared without which torch itself comes to another outcome."""
    end = trial.budget()
    matters: dict[str, bool] = {}
    for divergence in shared:
        name = node_name(divergence.want.place)
        if name not in matters:
            there = trial.of_tests([divergence], _TESTS)
            matters[name] = time.monotonic() > end or not there.agrees(there.unshared(name))
    return [d for d in shared if matters[node_name(d.want.place)]]


def _depended_on(trial: Trial, soft: Sequence[Divergence], groups: list[Group], healed: Ending) -> list[Divergence]:
    if isinstance(healed, Died | Raised):
        return []
    needed = [d for group in Halving(trial, healed).needed(groups) for d in group]
    if any(d.symptom is Symptom.STATE for d in needed):
        # Whatever lists the state shows what making the layer did: the layer is the cause.
        made = [d for d in soft if d.symptom is Symptom.STATE and d.want.flags.made_layer and d not in needed]
        return [*made, *needed]
    return needed


@dataclass(slots=True)
class Halving:
    """Looks for the fewest groups whose healing gives the healed outcome: the others are dropped by halves."""

    trial: Trial
    wanted: Ending
    left: int = _TRIALS
    end: float = 0.0
    dropped: list[Group] = field(default_factory=list)

    def needed(self, groups: list[Group]) -> list[Group]:
        """The groups that cannot be dropped, earliest first."""
        self.end = self.trial.budget()
        return self._kept(groups)

    def _kept(self, part: list[Group]) -> list[Group]:
        """What cannot be dropped of a part of the groups."""
        if not part or self.left <= 0 or time.monotonic() > self.end:
            return []
        self.left -= 1
        touched = [divergence for group in part for divergence in group]
        spared = [*(divergence for group in self.dropped for divergence in group), *touched]
        if self.trial.same(self.wanted, self.trial.leaving_in(spared, touched).trace):
            self.dropped.extend(part)
            return []
        if len(part) == 1:
            return part
        half = len(part) // 2
        late = self._kept(part[half:])
        return self._kept(part[:half]) + late


def _kind(divergence: Divergence) -> Kind:
    """What a divergence has in common with others: their name, and in which way they show."""
    return (divergence.want.api, str(divergence.symptom), divergence.detail)


def _groups(soft: Iterable[Divergence]) -> dict[Kind, Group]:
    """Divergences of one kind."""
    groups: dict[Kind, Group] = {}
    for divergence in soft:
        groups.setdefault(_kind(divergence), []).append(divergence)
    return groups


def written_later(divergence: Divergence, base: Run) -> bool:
    """Whether torch's run wrote to the memory that is shared there, after it came to be shared."""
    want = divergence.want
    with_numpy = any(tag(value) == ARRAY for value in (*want.inputs, want.value))
    if divergence.detail == IN_PLACE or with_numpy:
        return True
    shared = {serial for serial, _ in want.serials} | serials_given(want)
    events = base.trace.events
    later = events[events.index(want) + 1 :]
    return any(event.written and shared & serials_given(event) for event in later)


# -- what a difference leads to ----------------------------------------------------------------------------------------


def shown_as_exceptions(
    trial: Trial, kept: Sequence[Divergence], promoted: Sequence[Divergence], natural: Run, healed: Run
) -> list[Divergence]:
    """Differences of kind that end the program in an exception elsewhere are reported as what they show as.

    The natural run shows that of one of them; what the others lead to shows when they alone are left in. Where the
    healed run ends in the same exception, none of them is its cause.

    Args:
        trial: how to try.
        kept: the differences that count.
        promoted: those of them that the outcome depends on.
        natural: the target's run as it is.
        healed: the target's run with torch's result at every difference.
    """
    ended = natural.trace.ending
    stopped = healed.trace.ending
    if not isinstance(ended, Raised):
        return list(kept)
    kinds = [d for d in kept if d.got.returned and (not d.hard or _other_kind(d))]
    of_its_own = _same_exception(stopped, ended) or is_unhashable(ended)
    blamed = [] if of_its_own else _blamed(kinds, promoted, natural.trace)
    raised = {id(d): ended for d in blamed}
    others = [d for d in kinds if id(d) not in raised]
    raised |= _raised_when_left_in(trial, others, promoted, stopped)
    return _in_one_way(kept, kinds, raised)


def _in_one_way(
    kept: Sequence[Divergence], kinds: Sequence[Divergence], raised: Mapping[int, Raised]
) -> list[Divergence]:
    """One cause is shown in one way: as an exception where each of its places leads to one, else as what it is."""
    endings = {(key_of(d), d.got.place): raised[id(d)] for d in kinds if id(d) in raised}
    quiet = {key_of(d) for d in kinds if (key_of(d), d.got.place) not in endings}
    shown = []
    for divergence in kept:
        key = key_of(divergence)
        ending = None if key in quiet else endings.get((key, divergence.got.place))
        shown.append(divergence if ending is None else _shown(divergence, ending))
    return shown


def _raised_when_left_in(
    trial: Trial, kinds: Sequence[Divergence], promoted: Sequence[Divergence], stopped: Ending
) -> dict[int, Raised]:
    """By the ``id`` of a difference, the exception that the program ends in when it is left in, and that it causes."""
    raised: dict[int, Raised] = {}
    end = trial.budget()
    for group in _groups(kinds).values():
        if time.monotonic() > end:
            break
        left_in = trial.leaving_in(group).trace
        ending = left_in.ending
        if not isinstance(ending, Raised) or _same_exception(stopped, ending):
            continue
        blamed = _blamed(group, promoted, left_in)
        raised |= {id(d): ending for d in group if d in blamed}
    return raised


def is_unhashable(ending: Ending) -> bool:
    """Whether a run ended because something that is a key under torch cannot be one, in Python's own words."""
    return isinstance(ending, Raised) and ending.failure.message.startswith("unhashable type")


def _same_exception(one: Ending, other: Ending) -> bool:
    """Whether two runs end in the same exception, raised at the same place."""
    return isinstance(one, Raised) and one == other


def _blamed(kinds: list[Divergence], promoted: Sequence[Divergence], run: Trace) -> list[Divergence]:
    """Those of the differences that a run's exception, raised outside any recorded call, comes of."""
    if not isinstance(run.ending, Raised) or recorded(run, run.ending.failure) is not None:
        return []
    frame = own_frame(run.ending.frames, run)
    order = {event.key: number for number, event in enumerate(run.events)}
    met = sorted((d for d in kinds if d.got.key in order), key=lambda d: order[d.got.key])
    here = [d for d in met if frame is not None and near(d, frame)]
    if here:
        return here
    # Where none stands in the failing statement, the last of them was on its way there.
    return [d for d in met if d in promoted or d.hard][-1:]


def _shown(divergence: Divergence, ending: Raised) -> Divergence:
    actual = f"{divergence.actual}, then {ending_said(ending)}"
    return replace(divergence, symptom=Symptom.EXCEPTION, detail=ending.failure.type, actual=actual)


def _other_kind(divergence: Divergence) -> bool:
    """Whether the two sides returned things of different kinds, at the top or one container deep."""
    want, got = divergence.want.value, divergence.got.value
    if tag(want) != tag(got):
        return True
    if tag(want) not in SEQUENCES or len(want[-1]) != len(got[-1]):
        return False
    return any(tag(ours) != tag(theirs) for ours, theirs in zip(want[-1], got[-1], strict=True))


def serials_given(event: Event) -> set[int]:
    """Serials of the tensors that an event was given."""
    return {serial for serial, _ in references(event.inputs)}
