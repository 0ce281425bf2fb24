"""The seam between a framework and everything that is said of it: a program in; its outcome, its trace, and whether the
trace can be believed, out.

A tracer answers four questions. ``reference_output``: how does the program end when nobody looks? ``capture``: what
calls did it make? ``validate``: is that trace true and complete? ``describe``: what can this tracer do at all? The
conformance suite asks these questions and no others, so it runs alike on real tracers and on made-up ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from migrate_lens.compare.comparison import outcome_difference
from migrate_lens.discovery.discover import discover
from migrate_lens.model.report import Level, Library, Probe, Runtime
from migrate_lens.model.trace import Ending, PlaceKind, Stopped, Trace
from migrate_lens.runs.bench import Bench, Heal, Healing, Run, RunRequest, Setting, Steering
from migrate_lens.runs.replay import Became, Remade, Replayer, alone, disagrees, replayable

_REASONS = 3


class Capability(StrEnum):
    """What a tracer may be able to do."""

    FORWARD = "forward"
    BACKWARD = "backward"
    IN_PLACE = "in-place"
    ALIASING = "aliasing"
    RANDOMNESS = "randomness"
    CONSTANTS = "constants"
    LAYERS = "layers as one call"
    CONTROL_FLOW = "value-dependent control flow"
    EXCEPTIONS = "exceptions"
    HOOKS = "hooks"
    DATA_LOADER = "data loaders"
    THREADS = "threads"
    INTERVENTION = "intervention"
    STREAMING = "streaming"
    STRUCTURE = "structure only"
    LOW_LEVEL = "low-level operators"
    REPLAY = "replay of calls"
    SPARSE = "values of sparse tensors"


class Claim(StrEnum):
    """What a tracer says of something that it may be able to do."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    UNPROVEN = "unproven"


@dataclass(frozen=True, slots=True)
class Support:
    """Whether a tracer can do something.

    Attributes:
        standing: what it says.
        code: of what is unsupported, the code of the limit that a user sees.
    """

    standing: Claim
    code: str = ""


SUPPORTED, UNPROVEN = Support(Claim.SUPPORTED), Support(Claim.UNPROVEN)


class Standing(StrEnum):
    """What a check says of a trace; the worst of its checks is what a trace is."""

    VERIFIED = "verified"
    UNVERIFIED = "unverified"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Check:
    """One way in which a trace was tried.

    Attributes:
        name: ``outcome``, ``replay`` or ``completeness``.
        standing: what came of it.
        said: for a person.
    """

    name: str
    standing: Standing
    said: str


@dataclass(frozen=True, slots=True)
class Validation:
    """All checks of a trace."""

    checks: tuple[Check, ...]

    @property
    def standing(self) -> Standing:
        """The worst of the checks; without any, a trace is unverified."""
        standings = {check.standing for check in self.checks}
        if Standing.WRONG in standings:
            return Standing.WRONG
        if Standing.UNVERIFIED in standings or not standings:
            return Standing.UNVERIFIED
        return Standing.VERIFIED


class Seam(Protocol):
    """What a tracer answers."""

    def reference_output(self, program: Path) -> Ending:
        """How a script ends when nothing is recorded."""

    def capture(self, program: Path, steering: Steering) -> Trace:
        """What calls a script makes."""

    def validate(self, program: Path, trace: Trace) -> Validation:
        """Whether a trace of a script is true and complete."""

    def describe(self) -> Mapping[Capability, Support]:
        """What this tracer can do."""


class Tracer:
    """Traces programs in one runtime.

    Args:
        bench: the workers.
        runtime: which.
        scope: where the target answers.
        timeout: seconds that a run may take.
        backward: differentiate each program's result at its end.
    """

    def __init__(
        self,
        bench: Bench,
        runtime: Runtime,
        scope: tuple[str, ...] = (),
        timeout: float = 600.0,
        *,
        backward: bool = False,
    ) -> None:
        self._bench = bench
        self._runtime = runtime
        self._scope = scope
        self._timeout = timeout
        self._backward = backward

    # -- the four questions --------------------------------------------------------------------------------------

    def reference_output(self, program: Path) -> Ending:
        """How a script ends when nothing is recorded."""
        return self._plain(*_script(program)).trace.ending

    def capture(self, program: Path, steering: Steering) -> Trace:
        """What calls a script makes."""
        return self.run(*_script(program), steering).trace

    def validate(self, program: Path, trace: Trace) -> Validation:
        """Whether a trace of a script is true and complete."""
        return self.checked(*_script(program), trace)

    def describe(self) -> Mapping[Capability, Support]:
        """What a tracer of this runtime can do; each claim has a passing cell in the conformance suite."""
        able = dict.fromkeys(Capability, SUPPORTED)
        able[Capability.SPARSE] = Support(Claim.UNSUPPORTED, "values-not-kept")
        if self._runtime is not Runtime.TORCH:
            # The target's compat layer has no torch.utils.data and no torch.sparse_coo_tensor to try these on.
            able[Capability.DATA_LOADER] = able[Capability.SPARSE] = UNPROVEN
        return able

    # -- the same of any probe -----------------------------------------------------------------------------------

    def run(self, library: Library, probe: Probe, steering: Steering, like: Path | None = None) -> Run:
        """One recorded run; with ``like``, random draws and parameters get the values of that trace."""
        healing = None if like is None else Healing(like, Heal.DRAWS)
        setting = self._setting(library)
        return self._bench.run(RunRequest(setting, self._runtime, probe, healing=healing, steering=steering))

    def checked(self, library: Library, probe: Probe, trace: Trace) -> Validation:
        """All checks of a trace of a probe.

        The untraced run is an oracle of its own; each call is made again from its recorded inputs; and the operators
        that the framework itself dispatched or counted must all have run below recorded calls.
        """
        outcome = self._outcome(library, probe, trace)
        return Validation((outcome, self._replay(library, probe, trace), self._completeness(library, probe, trace)))

    def _setting(self, library: Library) -> Setting:
        return Setting(library, dict.fromkeys(Runtime, ()), self._scope, self._timeout, backward=self._backward)

    def _plain(self, library: Library, probe: Probe) -> Run:
        return self._bench.run(RunRequest(self._setting(library), self._runtime, probe, observe=False))

    def _outcome(self, library: Library, probe: Probe, trace: Trace) -> Check:
        if isinstance(trace.ending, Stopped):
            return Check("outcome", Standing.UNVERIFIED, "the program was stopped on its way")
        plain = self._plain(library, probe).trace.ending
        differs = outcome_difference(plain, trace.ending)
        if differs is None:
            return Check("outcome", Standing.VERIFIED, "the same as when nothing is recorded")
        if outcome_difference(plain, self._plain(library, probe).trace.ending) is not None:
            return Check("outcome", Standing.UNVERIFIED, "the program ends otherwise each time that it runs")
        return Check("outcome", Standing.WRONG, f"untraced: {differs.expected}; traced: {differs.actual}")

    def _replay(self, library: Library, probe: Probe, trace: Trace) -> Check:
        if trace.about.level is not Level.VALUES:
            again = self.run(library, probe, Steering(Level.VALUES)).trace
            if not _same_calls(trace, again):
                return Check("replay", Standing.UNVERIFIED, "the program makes other calls each time that it runs")
            trace = again
        events = enumerate(trace.events, 1)
        wanted = [number for number, event in events if event.place.kind is not PlaceKind.ATTRIBUTE]
        able, unable = replayable(trace, wanted)
        runtime = Runtime.TORCH if self._runtime is Runtime.TORCH else Runtime.TARGET_GLOBAL
        became = Replayer(self._bench, alone(library)).make(able, runtime)
        return _replay_check(trace, len(wanted), became, unable)

    def _completeness(self, library: Library, probe: Probe, trace: Trace) -> Check:
        whole = self.run(library, probe, Steering(Level.STRUCTURE, zoom="all")).trace
        if not _same_calls(trace, whole):
            return Check("completeness", Standing.UNVERIFIED, "the program makes other calls when looked below")
        if whole.apart:
            said = "the program does things in other threads or processes, which cannot be looked below"
            return Check("completeness", Standing.UNVERIFIED, said)
        names = Counter(op.name for op in whole.loose) or Counter(whole.counted.total) - Counter(whole.counted.below)
        if not names:
            known = sum(len(event.ops) for event in whole.events)
            return Check("completeness", Standing.VERIFIED, f"all {known} low-level operators ran below recorded calls")
        said = ", ".join(name for name, _ in names.most_common(_REASONS))
        return Check("completeness", Standing.UNVERIFIED, f"{names.total()} low-level operators ran below none: {said}")


def _script(program: Path) -> tuple[Library, Probe]:
    library = discover(program)
    return library, library.probes[0]


def _same_calls(one: Trace, other: Trace) -> bool:
    return [(e.key, e.what) for e in one.events] == [(e.key, e.what) for e in other.events]


def _replay_check(trace: Trace, wanted: int, became: Mapping[int, Became], unable: dict[int, str]) -> Check:
    not_made = (Remade.CANNOT, Remade.UNPREPARED)
    unable = unable | {number: call.reason for number, call in became.items() if call.how in not_made}
    for number, call in sorted(became.items()):
        differs = None if number in unable else disagrees(trace.events[number - 1], call)
        if differs is not None:
            said = f"call {number} gives {differs.actual} when made again, recorded was {differs.expected}"
            return Check("replay", Standing.WRONG, said)
    if not unable:
        return Check("replay", Standing.VERIFIED, f"{wanted} calls made again alone, each with the recorded result")
    reasons = Counter(unable.values()).most_common(_REASONS)
    said = "; ".join(f"{reason} ({times})" for reason, times in reasons)
    made = f"{wanted - len(unable)} of {wanted} calls made again, all right"
    return Check("replay", Standing.UNVERIFIED, f"{made}; {said}")


__all__ = [
    "SUPPORTED",
    "UNPROVEN",
    "Capability",
    "Check",
    "Claim",
    "Seam",
    "Standing",
    "Support",
    "Tracer",
    "Validation",
]
