"""A gap in; a reproduction that may be published, and was run in clean processes as it is published, out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from migrate_lens.model.progress import Progress
from migrate_lens.model.report import Gap, ProbeKind, Runtime, Symptom
from migrate_lens.programs.synthesis import ProbeRecord
from migrate_lens.remedies import kept
from migrate_lens.remedies.bench_lab import NAME, BenchLab
from migrate_lens.remedies.publish.cleanroom import CleanRoom
from migrate_lens.remedies.publish.scrub import Scrubber, Unpublishable
from migrate_lens.remedies.publish.sources import without_comments
from migrate_lens.remedies.publish.verify import IN_SCOPE, UNDER_PADDLE, Verdict
from migrate_lens.remedies.reproduce import scoping
from migrate_lens.remedies.reproduce.native import MAIN, Project
from migrate_lens.remedies.reproduce.native_reproduce import NATIVE_LAYERS, narrower, projects, verified
from migrate_lens.remedies.reproduce.outcomes import How
from migrate_lens.remedies.reproduce.reproduce import LONGEST, NotReproduced, Reproduced, length, reproduce


@dataclass(frozen=True, slots=True)
class Verified:
    """A reproduction that was seen to hold.

    Attributes:
        files: its files, by name, with stand-ins for all that is private.
        main: the one to run.
        verdict: its clean runs.
        failure: exception type, signal or aspect under Paddle.
        how: what kind of failure that is.
        switch: how compat is switched on.
        needle: what the failure must name; empty: nothing.
    """

    files: Mapping[str, str]
    main: str
    verdict: Verdict
    failure: str
    how: How = How.RAISES
    switch: str = UNDER_PADDLE
    needle: str = ""


@dataclass(frozen=True, slots=True)
class Reproducer:
    """Makes reproductions of the gaps of a diagnosis.

    Attributes:
        diagnosis: the last one.
        room: where they are verified.
        progress: who is told.
    """

    diagnosis: kept.Diagnosis
    room: CleanRoom
    progress: Progress

    def of(
        self, gap: Gap, lab: BenchLab, records: Sequence[ProbeRecord], scrubber: Scrubber
    ) -> Verified | NotReproduced:
        """A reproduction of a gap; what is private in it is what the scrubber has put aside."""
        try:
            return self._of(gap, lab, records, scrubber)
        except Unpublishable as error:
            return NotReproduced(error.message)

    def _of(
        self, gap: Gap, lab: BenchLab, records: Sequence[ProbeRecord], scrubber: Scrubber
    ) -> Verified | NotReproduced:
        native = self.diagnosis.native
        if native and gap.layer in NATIVE_LAYERS:
            return self._built(gap, records, scrubber)
        if gap.symptom is Symptom.SCOPE:
            return self._scoped(gap, scrubber)
        called = self._called(gap, lab, records, scrubber)
        return self._built(gap, records, scrubber) if native and isinstance(called, NotReproduced) else called

    def _scoped(self, gap: Gap, scrubber: Scrubber) -> Verified | NotReproduced:
        """A module that compat's scope names, and the program that imports it."""
        programs = (without_comments(NAME, text) for text in kept.programs(self.diagnosis))
        texts = [text for text in programs if length(text) <= LONGEST]
        packages = scoping.packages(gap, self.diagnosis.library.root)
        for files in (*packages, *map(scrubber.files, scoping.programs(texts))):
            self.progress(f"{gap.id}: verifying a package in clean processes")
            verdict = self.room.verify(files, NAME, switch=IN_SCOPE)
            failure = verdict.paddle[0].failure
            if failure and verdict.holds(failure):
                return Verified(files, NAME, verdict, failure, switch=IN_SCOPE)
        return NotReproduced("no small package shows it")

    def _built(self, gap: Gap, records: Sequence[ProbeRecord], scrubber: Scrubber) -> Verified | NotReproduced:
        """A project that is compiled; the smallest that shows the failure."""
        scripts = (probe.path for probe in self.diagnosis.probes if probe.kind is ProbeKind.SCRIPT)
        ending = records[-1].trace.ending if records else None
        torch, paddle = self.diagnosis.python(Runtime.TORCH), self.diagnosis.python(Runtime.TARGET)
        for project in projects(gap, self.diagnosis.library.root, next(scripts, None), ending):
            self.progress(f"{gap.id}: compiling a reproduction on both sides")
            clean = _scrubbed(project, scrubber)
            if verified(clean, torch, paddle) is None:
                continue
            self.progress(f"{gap.id}: leaving out what it does not need")
            narrow = narrower(clean, torch, paddle)
            native = verified(narrow, torch, paddle)
            if native is not None:
                return Verified(narrow.files, MAIN, native.verdict, native.failure, needle=project.needle)
        return NotReproduced("no small project fails in the same way")

    def _called(
        self, gap: Gap, lab: BenchLab, records: Sequence[ProbeRecord], scrubber: Scrubber
    ) -> Verified | NotReproduced:
        """A program that makes the one call, or what is left of the program that showed the gap."""
        made = reproduce(gap, records, kept.programs(self.diagnosis), lab)
        return made if isinstance(made, NotReproduced) else self._clean(gap, made, scrubber)

    def _clean(self, gap: Gap, made: Reproduced, scrubber: Scrubber) -> Verified | NotReproduced:
        self.progress(f"{gap.id}: verifying in clean processes")
        files = {NAME: scrubber.source(NAME, made.source)}
        verdict = self.room.verify(files, NAME)
        if not verdict.holds(made.sign.what):
            return NotReproduced(f"in clean processes: {verdict.said}{_without(scrubber)}")
        return Verified(files, NAME, verdict, made.sign.what, made.sign.how)


def _scrubbed(project: Project, scrubber: Scrubber) -> Project:
    return replace(project, sources=scrubber.files(project.sources), program=scrubber.source(MAIN, project.program))


def _without(scrubber: Scrubber) -> str:
    """What may be why a program fails otherwise in a clean process: its own strings are not in it."""
    return ", without what is private in it" if scrubber.replaced else ""
