"""Causes shown by trial: differences that may or may not matter in, those that the outcome depends on out.

A difference that is no difference of tensors (a Python type, a flag, memory that is shared) counts only if leaving it
in changes the program's outcome. That is tried, not guessed: the healed run is repeated with it left in.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from migrate_lens.compare.blame import near
from migrate_lens.compare.divergences import Divergence, divergences
from migrate_lens.compare.findings import node_name
from migrate_lens.compare.gradients import BACKWARD, behind, culprit
from migrate_lens.compare.outcome import disagreement, ending_said, own_frame, recorded
from migrate_lens.compare.steady import Luck
from migrate_lens.model.report import Probe, Runtime, Symptom
from migrate_lens.model.trace import Ending, Event, Key, Trace
from migrate_lens.model.value import SEQUENCES, Difference, references, tag, tensors
from migrate_lens.protocol.journal import BACKWARD_PASS
from migrate_lens.runs.bench import Bench, Run, Setting

# Trials in one diagnosis of a probe, and the seconds that they may take: this many healed runs' worth, within limits.
_TRIALS = 32
_RUNS, _LEAST, _MOST = 4.0, 5.0, 60.0

NO_LUCK = Luck({}, ())
Group = list[Divergence]


@dataclass(frozen=True, slots=True)
class Trial:
    """What a trial needs: where to run, what, torch's run to hold it against, and calls that kill the process.

    ``own`` is what torch's own runs differ in, which is no matter then; ``hashable`` whether sizes are handed over that
    can be keys, without which the program does not go on.
    """

    bench: Bench
    setting: Setting
    probe: Probe
    base: Run
    deadly: tuple[str, ...] = ()
    healed_seconds: float = 0.0
    own: Luck = NO_LUCK
    hashable: bool = False

    def budget(self) -> float:
        """When to stop trying, on the clock of ``time.monotonic``."""
        return time.monotonic() + min(_MOST, max(_LEAST, _RUNS * self.healed_seconds))

    def healed(self, *, spare: Sequence[str] = (), skip: Sequence[str] = (), gradients: bool = False) -> Run:
        """A healed run with some nodes left as Paddle has them, or not called."""
        return self.bench.run(
            self.setting,
            Runtime.TARGET,
            self.probe,
            reference=self.base,
            heal="all",
            spare=spare,
            skip=(*self.deadly, *skip),
            gradients=gradients,
            hashable=self.hashable,
        )

    def unshared(self, node: str) -> Run:
        """A run of torch's in which the results of one node are copies."""
        return self.bench.run(self.setting, Runtime.TORCH, self.probe, copy=(node,))

    def agrees(self, run: Run) -> bool:
        """Whether a run has torch's outcome."""
        return self.same(self.base.trace.ending, run.trace.ending)

    def same(self, want: Ending, got: Ending) -> bool:
        """Whether two endings agree."""
        return disagreement(self.own.of_outcome(want), self.own.of_outcome(got)) is None


def promote(trial: Trial, soft: Sequence[Divergence], healed: Run, *, alone: bool, after: Difference | None,
            differs: Difference | None) -> list[Divergence]:  # fmt: skip
    """The soft differences that the outcome depends on.

    Args:
        trial: how to try.
        soft: the candidates, in the order of the run.
        healed: the run in which each difference is healed.
        alone: whether nothing else explains the outcome.
        after: how the healed run's outcome differs. A copy where torch shares memory cannot be healed by its value, so
            where this is not None, shared memory that is written later is the suspect; what else the outcome depends on
            is seen against the outcome of the healed run.
        differs: how the natural run's outcome differs.
    """
    if differs is None:
        return []
    shared: list[Divergence] = []
    if after is not None:
        shared = [d for d in soft if d.detail == "view" and written_later(d, trial.base)]
        shared = _that_matter(trial, shared)
        soft = [d for d in soft if d not in shared]
    groups = list(_groups(soft).values())
    if alone and not shared and len(groups) == 1:
        return groups[0]
    return [*shared, *_depended_on(trial, soft, groups, healed.trace.ending)]


def _that_matter(trial: Trial, shared: list[Divergence]) -> list[Divergence]:
    """Those of the places where memory is shared without which torch itself comes to another outcome."""
    matters, end = dict[str, bool](), trial.budget()
    for d in shared:
        name = node_name(d.want.place)
        if name not in matters:
            matters[name] = time.monotonic() > end or not trial.agrees(trial.unshared(name))
    return [d for d in shared if matters[node_name(d.want.place)]]


def _depended_on(trial: Trial, soft: Sequence[Divergence], groups: list[Group], healed: Ending) -> list[Divergence]:
    if healed.how in ("died", "raised"):
        return []
    needed = [d for group in _needed(trial, groups, healed) for d in group]
    if any(d.symptom is Symptom.STATE for d in needed):
        # Whatever lists the state shows what making the layer did: the layer is the cause.
        made = [d for d in soft if d.symptom is Symptom.STATE and "k" in d.want.flags and d not in needed]
        return [*made, *needed]
    return needed


def _needed(trial: Trial, groups: list[Group], healed: Ending) -> list[Group]:
    """The fewest groups, earliest first, whose healing gives the healed outcome: the others are dropped by halves."""
    left, dropped, end = [_TRIALS], list[Group](), trial.budget()

    def drop(part: list[Group]) -> list[Group]:
        if not part or left[0] <= 0 or time.monotonic() > end:
            return []
        left[0] -= 1
        spare = sorted({node_name(d.got.place) for group in (*dropped, *part) for d in group})
        if trial.same(healed, trial.healed(spare=spare).trace.ending):
            dropped.extend(part)
            return []
        if len(part) == 1:
            return part
        half = len(part) // 2
        late = drop(part[half:])
        return drop(part[:half]) + late

    return drop(groups)


def _groups(soft: Iterable[Divergence]) -> dict[tuple[str, str, str], Group]:
    groups: dict[tuple[str, str, str], Group] = {}
    for d in soft:
        groups.setdefault((d.want.api, str(d.symptom), d.detail), []).append(d)
    return groups


def written_later(divergence: Divergence, base: Run) -> bool:
    """Whether torch's run wrote to the memory that is shared there, after it came to be shared."""
    want = divergence.want
    if divergence.detail == "in place" or any(tag(v) == "N" for v in (*want.inputs, want.value)):
        return True
    shared = {serial for serial, _ in want.serials} | _serials(want)
    events = base.trace.events
    later = events[events.index(want) + 1 :]
    return any(e.written and shared & _serials(e) for e in later)


def as_shown(trial: Trial, kept: Sequence[Divergence], promoted: Sequence[Divergence], natural: Run,
             healed: Run) -> list[Divergence]:  # fmt: skip
    """Differences of kind that end the program in an exception elsewhere are reported as what they show as.

    The natural run shows that of one of them; what the others lead to shows when they alone are left in. Where the
    healed run ends in the same exception, none of them is its cause.
    """
    if natural.trace.ending.how != "raised":
        return list(kept)
    stopped = healed.trace.ending
    kinds = [d for d in kept if d.got.what == "call" and (not d.hard or _other_kind(d))]
    other = _same_end(stopped, natural.trace.ending) or is_unhashable(natural.trace.ending)
    blamed = [] if other else _blamed(kinds, promoted, natural.trace)
    endings = {id(d): natural.trace.ending for d in blamed}
    end = trial.budget()
    for group in _groups(d for d in kinds if not any(d is b for b in blamed)).values():
        if time.monotonic() > end:
            break
        left_in = trial.healed(spare=sorted({node_name(d.got.place) for d in group})).trace
        ours = [] if _same_end(stopped, left_in.ending) else _blamed(group, promoted, left_in)
        shows = [d for d in group if d in ours]
        endings |= {id(d): left_in.ending for d in shows}
    return [_shown(d, endings[id(d)]) if id(d) in endings else d for d in kept]


def is_unhashable(ending: Ending) -> bool:
    """Whether a run ended because something that is a key under torch cannot be one."""
    return ending.how == "raised" and ending.value["message"].startswith("unhashable type")


def _same_end(one: Ending, other: Ending) -> bool:
    """Whether two runs end in the same exception, raised at the same place."""
    return one.how == other.how == "raised" and (one.value, one.frames) == (other.value, other.frames)


def _blamed(kinds: list[Divergence], promoted: Sequence[Divergence], run: Trace) -> list[Divergence]:
    """Those of the differences that a run's exception, raised outside any recorded call, comes of."""
    if run.ending.how != "raised" or recorded(run, run.ending.value) is not None:
        return []
    frame = own_frame(run.ending.frames, run)
    order = {event.key: number for number, event in enumerate(run.events)}
    met = sorted((d for d in kinds if d.got.key in order), key=lambda d: order[d.got.key])
    here = [d for d in met if frame is not None and near(d, frame)]
    # Where none stands in the failing statement, the last of them was on its way there.
    return here or [d for d in met if d in promoted or d.hard][-1:]


def _shown(divergence: Divergence, ending: Ending) -> Divergence:
    actual = f"{divergence.actual}, then {ending_said(ending)}"
    return replace(divergence, symptom=Symptom.EXCEPTION, detail=ending.value["types"][0], actual=actual)


def _other_kind(divergence: Divergence) -> bool:
    """Whether the two sides returned things of different kinds, at the top or one container deep."""
    want, got = divergence.want.value, divergence.got.value
    if tag(want) != tag(got):
        return True
    if not tag(want) or tag(want) not in SEQUENCES or len(want[-1]) != len(got[-1]):
        return False
    return any(tag(w) != tag(g) for w, g in zip(want[-1], got[-1], strict=True))


def pin_backward(trial: Trial, kept: list[Divergence]) -> list[Divergence]:
    """Gradients that differ, and backward passes that raise, by the call whose backward is at fault."""
    if any(d.got.what == "raise" and d.want.api.rpartition(".")[2] in BACKWARD for d in kept):
        # No gradient came out of a backward pass that raised: that each of them is missing is the same gap.
        kept = [d for d in kept if d.symptom is not Symptom.GRADIENT or d.got.value is not None]
    kept = _pin_gradients(trial, kept)
    raised = [d for d in kept if d.got.what == "raise" and d.want.api.rpartition(".")[2] in BACKWARD]
    follow_on = [d for d in raised if _through(trial.base.trace, d, {r.want.key for r in raised})]
    kept = [d for d in kept if d not in follow_on]
    for d in (d for d in raised if d not in follow_on):
        event = _raising(trial, d)
        if event is not None:
            kept = [_moved(d, event) if k is d else k for k in kept]
    return kept


def _through(trace: Trace, divergence: Divergence, failed: set[Key]) -> bool:
    """Whether a backward pass goes through the result of one that raised before: there is no graph behind that."""
    return any(event.key in failed for event in behind(trace, divergence.want.key))


def _pin_gradients(trial: Trial, kept: list[Divergence]) -> list[Divergence]:
    gradients = [d for d in kept if d.symptom is Symptom.GRADIENT and d.hard]
    if not gradients:
        return kept
    ours = trial.bench.run(trial.setting, Runtime.TORCH, trial.probe, gradients=True)
    theirs = trial.healed(gradients=True)
    faults = {id(d): culprit(ours.trace, theirs.trace, d.want.key) for d in gradients}
    pinned = [(d, faults.get(id(d))) for d in kept]
    return [_moved(d, event) if event else d for d, event in pinned]


def _moved(divergence: Divergence, event: Event) -> Divergence:
    """A divergence by the name of the call at fault; in a pass that the program does not make, at its place too."""
    want = replace(divergence.want, api=event.api)
    if divergence.got.place.module != BACKWARD_PASS:
        return replace(divergence, want=want)
    return replace(divergence, want=want, got=replace(divergence.got, place=event.place))


def _raising(trial: Trial, divergence: Divergence) -> Event | None:
    """The first call without which the backward pass does not raise this: torch's value cuts it out of the graph."""
    events = trial.base.trace.events
    position = next((i for i, e in enumerate(events) if e.key == divergence.want.key), 0)
    known = _differentiable(trial.base.trace)
    candidates, end = [e for e in events[:position] if _in_graph(e, known)][:_TRIALS], trial.budget()
    for event in candidates:
        if time.monotonic() > end:
            break
        run = trial.healed(skip=[node_name(event.place)])
        still = (d for d in divergences(trial.base.trace, run.trace) if d.want.key == divergence.want.key)
        if not any(d.got.value == divergence.got.value for d in still if d.got.what == "raise"):
            return event
    return None


def _serials(event: Event) -> set[int]:
    """Serials of the tensors that an event was given."""
    return {serial for serial, _ in references(event.inputs)}


def _in_graph(event: Event, differentiable: set[int]) -> bool:
    """Whether a call has a backward: it makes a tensor with a gradient from one that has one."""
    made = event.what == "call" and tag(event.value) == "T" and event.value[5] and "=" not in event.flags
    return bool(made and differentiable & _serials(event))


def _differentiable(trace: Trace) -> set[int]:
    """Serials of the tensors that take part in the graph."""
    found = {serial for (serial, _), value in trace.values.items() if tag(value) == "T" and value[5]}
    for event in trace.events:
        if event.what == "call":
            made = zip(event.serials, tensors(event.value), strict=False)
            found |= {serial for (serial, _), value in made if value[5]}
    return found
