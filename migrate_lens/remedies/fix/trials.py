"""A recorded call, or a program that is one file, in; whether a replacement in it does all that torch's own does, out.

A replacement holds where the program without it shows the gap, and with it everything that can be seen afterwards is
torch's: on torch, where it must change nothing, and on the other side.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import ClassVar

from migrate_lens.model.report import Gap, Symptom
from migrate_lens.model.value import Encoded
from migrate_lens.programs.drafts import Draft, Input, Step, StepForm, write
from migrate_lens.programs.large import plain_large
from migrate_lens.programs.literals import Unwritable
from migrate_lens.programs.synthesis import differentiated, drafts, shared
from migrate_lens.remedies.fix import examination
from migrate_lens.remedies.fix.examination import Varied, agrees
from migrate_lens.remedies.fix.positions import Moved, is_named_so, moved, other_values
from migrate_lens.remedies.fix.slots import Edit, Site, apply, fill
from migrate_lens.remedies.fix.strategies import Candidate
from migrate_lens.remedies.lab import Lab
from migrate_lens.remedies.reproduce.outcomes import resembles, sign
from migrate_lens.remedies.reproduce.reproduce import Occurrence

_VARIED = (Varied.DTYPE, Varied.HALF, Varied.FLOAT16, Varied.SIZE, Varied.TIES, Varied.DEVICE)


class Held(StrEnum):
    """By what a replacement is known to do what torch does."""

    CALL = "call"
    PROGRAM = "program"
    LIBRARY = "library"
    IMPORT = "import"


class Verdict(StrEnum):
    """What a trial says of a replacement; ``other``: it gives torch's result, and does something else than torch."""

    HOLDS = "holds"
    FAILS = "fails"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Replacement:
    """A replacement at one site.

    Attributes:
        path: the file.
        edit: the edit.
        candidate: what it is.
        line: where it stands.
        held: by what it is known to do what torch does.
    """

    path: Path
    edit: Edit
    candidate: Candidate
    line: int
    held: Held = Held.LIBRARY


@dataclass(frozen=True, slots=True)
class Tried:
    """A replacement that is to be tried, and the call that it is for.

    Attributes:
        made: the replacement.
        site: the call.
        unnamed: whether a tuple does for a named tuple.
        use: what the program makes of the result, with ``{0}`` for it; empty where that needs something else too.
    """

    made: Replacement
    site: Site
    unnamed: bool = False
    use: str = ""


def with_prelude(changed: bytes, replacement: Replacement) -> bytes:
    """A changed file with the import that a replacement needs, at its top for a trial."""
    if not replacement.candidate.prelude:
        return changed
    return replacement.candidate.prelude.encode() + b"\n" + changed


def _both_agree(program: str, want: Encoded, lab: Lab, *, unnamed: bool = False) -> bool:
    """Whether a program gives torch's result on both sides."""
    trial = lab.both(program)
    return all(
        side.finished and agrees(want, side.ending.value, unnamed=unnamed) for side in (trial.torch, trial.paddle)
    )


# -- a whole program ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OfProgram:
    """A program that is one file.

    Attributes:
        data: its text.
        want: torch's result of it.
        before: replacements that it has already.
        call: the call by itself, which need not show the gap; None where it cannot be made by itself.
    """

    data: bytes
    want: Encoded
    before: tuple[Replacement, ...] = ()
    call: OfCall | None = None
    held: ClassVar[Held] = Held.PROGRAM

    def judge(self, tried: Tried, lab: Lab) -> Verdict:
        """Whether the program gives torch's result and gradients on both sides, and not without the replacement."""
        if self._same(self._with(), self.want, lab) or not self.runs(tried.made, lab):
            return Verdict.FAILS  # what is right without it proves nothing of it
        changes = self.call is not None and not self.call.changes_nothing(tried, lab)
        return Verdict.OTHER if changes else Verdict.HOLDS

    def runs(self, replacement: Replacement, lab: Lab) -> bool:
        """Whether the program with a replacement gives torch's result and gradients on both sides."""
        text = self._with(replacement)
        if not self._same(text, self.want, lab):
            return False
        trained = lab.torch(examination.of_program(_text(self.data)))
        return not trained.finished or self._same(examination.of_program(text), trained.ending.value, lab)

    def _with(self, *more: Replacement) -> str:
        changed = apply(self.data, [one.edit for one in (*self.before, *more)])
        for one in (*self.before, *more):
            changed = with_prelude(changed, one)
        return _text(changed)

    @staticmethod
    def _same(program: str, want: Encoded, lab: Lab) -> bool:
        return _both_agree(program, want, lab, unnamed=True)


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


# -- the call alone ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OfCall:
    """A draft that shows the gap, the number of its call, and torch's results."""

    draft: Draft
    number: int
    want: Encoded
    held: ClassVar[Held] = Held.CALL

    def judge(self, tried: Tried, lab: Lab) -> Verdict:
        """Whether a replacement does on both sides all that torch's call does."""
        changed = self._with(tried.made.candidate, tried.site)
        if changed is None or not _both_agree(_measured(changed), self.want, lab, unnamed=tried.unnamed):
            return Verdict.FAILS
        does = all(self._does_the_same(changed, lab, trained=trained) for trained in (False, True))
        does = does and self._stands(tried, changed, lab)
        does = does and self._serves(changed, tried.use, lab)
        does = does and all(self._is_general(changed, lab, varied) for varied in _VARIED)
        return Verdict.HOLDS if does else Verdict.OTHER

    def is_lost(self, use: str, lab: Lab) -> bool:
        """Whether what the program makes of the result is torch's without a replacement: none would change anything."""
        return bool(use) and all(self._gives(self.draft, use, lab, trained=trained) for trained in (False, True))

    def _serves(self, changed: Draft, use: str, lab: Lab) -> bool:
        """Whether what the program makes of the result is torch's as well, where no other gap fails in it."""
        return not use or self._gives(changed, use, lab, trained=False) is not False

    def _gives(self, draft: Draft, use: str, lab: Lab, *, trained: bool) -> bool | None:
        """Whether the other side makes of a call what torch makes of its own; None where one of them fails."""
        want = lab.torch(self._examined(self.draft, trained=trained, use=use))
        got = lab.both(self._examined(draft, trained=trained, use=use)).paddle
        if not want.finished or not got.finished:
            return None
        return examination.unlike(want.ending.value, got.ending.value, own=False) is None

    def changes_nothing(self, tried: Tried, lab: Lab) -> bool:
        """Whether a replacement does under torch what the call does, for these inputs and for others."""
        changed = self._with(tried.made.candidate, tried.site)
        return changed is None or all(self._is_general(changed, lab, varied) for varied in Varied)

    def _does_the_same(self, changed: Draft, lab: Lab, *, trained: bool) -> bool:
        """Whether all that can be seen after the call is torch's; as recorded, or with inputs that are trained."""
        examined = partial(self._examined, trained=trained)
        want = lab.torch(examined(self.draft))
        if not want.finished:
            return True  # torch itself cannot be asked
        trial = lab.both(examined(changed))
        if not trial.torch.finished or not trial.paddle.finished:
            return False
        seen = want.ending.value
        on_torch = examination.unlike(seen, trial.torch.ending.value, own=True)
        return on_torch is None and examination.unlike(seen, trial.paddle.ending.value, own=False) is None

    def _is_general(self, changed: Draft, lab: Lab, varied: Varied) -> bool:
        """Whether it changes nothing under torch for other inputs either: no dtype or size of one run is frozen."""
        want = lab.torch(self._examined(self.draft, trained=True, varied=varied))
        if not want.finished:
            return True
        got = lab.torch(self._examined(changed, trained=True, varied=varied))
        return got.finished and examination.unlike(want.ending.value, got.ending.value, own=True) is None

    def _examined(self, draft: Draft, *, trained: bool, varied: Varied = Varied.NOTHING, use: str = "") -> str:
        """The draft up to its call, with the examination."""
        steps = draft.steps[: self.number + 1]
        target = self.draft.steps[self.number].target
        text = write(replace(draft, steps=steps, results=()))
        return examination.of_call(text, target, trained=trained, varied=varied, use=use if target else "")

    def _stands(self, tried: Tried, changed: Draft, lab: Lab) -> bool:
        """Whether what lost its keyword lands on the parameter that torch means."""
        for one in moved(tried.site, tried.made.candidate.template):
            if not is_named_so(one, self.draft.imports, lab) and not self._is_followed(one, changed, lab):
                return False
        return True

    def _is_followed(self, one: Moved, changed: Draft, lab: Lab) -> bool:
        """Whether another value in its place changes torch's result, and the replacement's in the same way."""
        arguments = self.draft.steps[self.number].arguments
        if one.slot >= len(arguments):
            return False
        old = arguments[one.slot]
        for value in other_values(old.value):
            place = Input(self.number, one.slot, old)
            want = lab.torch(_measured(self.draft.with_value(place, value)))
            if not want.finished or agrees(self.want, want.ending.value, unnamed=True):
                continue
            trial = lab.both(_measured(changed.with_value(place, value)))
            if trial.paddle.finished:
                return agrees(want.ending.value, trial.paddle.ending.value, unnamed=True)
        return False

    def _with(self, candidate: Candidate, site: Site) -> Draft | None:
        """The draft with a replacement of its call; None where it cannot be written."""
        old = self.draft.steps[self.number]
        if old.arguments and len(old.arguments) != len(site.nodes):
            return None
        try:
            step = _step(old, candidate, site)
            steps = (*self.draft.steps[: self.number], step, *self.draft.steps[self.number + 1 :])
            prelude = (candidate.prelude,) if candidate.prelude else ()
            changed = replace(self.draft, imports=(*self.draft.imports, *prelude), steps=steps)
            ast.parse(_measured(changed))
        except (Unwritable, SyntaxError, IndexError):
            return None
        return changed


def _measured(draft: Draft) -> str:
    return write(draft).measured


def _step(old: Step, candidate: Candidate, site: Site) -> Step:
    if old.arguments:
        return replace(old, form=StepForm.TEMPLATE, text=candidate.template)
    texts = [ast.unparse(node) for node in site.nodes]
    return Step(StepForm.STATEMENT, fill(candidate.template, texts), old.target)


def bases(gap: Gap, occurrence: Occurrence, lab: Lab) -> Iterator[OfCall]:
    """Drafts of a recorded call that show its gap."""
    for draft in drafts(occurrence.event, occurrence.record):
        for sized in plain_large(draft):
            for variant in _showing(gap, sized):
                base = _base(gap, variant, sized.steps[-1], lab)
                if base is not None:
                    yield base


def by_itself(occurrence: Occurrence, lab: Lab) -> OfCall | None:
    """The first draft of a recorded call that runs under torch, whether it shows a gap or not."""
    for draft in drafts(occurrence.event, occurrence.record):
        try:
            side = lab.torch(_measured(draft))
        except Unwritable:
            continue
        if side.finished:
            return OfCall(draft, len(draft.steps) - 1, side.ending.value)
    return None


def _base(gap: Gap, draft: Draft, call: Step, lab: Lab) -> OfCall | None:
    """A draft to try candidates in; None where it does not show the gap, or fails under torch too."""
    try:
        trial = lab.both(write(draft).measured)
    except Unwritable:
        return None
    failure = sign(trial)
    if failure is None or not resembles(failure, gap.symptom) or not trial.torch.finished:
        return None
    return OfCall(draft, _number(draft, call), trial.torch.ending.value)


def _showing(gap: Gap, draft: Draft) -> Iterator[Draft]:
    if gap.symptom is Symptom.ALIAS:
        yield from shared(draft)
    elif gap.symptom is Symptom.GRADIENT:
        yield from differentiated(draft)
    yield draft


def _number(draft: Draft, call: Step) -> int:
    """Where the call stands among the steps of a draft."""
    wanted = (call.form, call.text, call.target)
    same = (at for at, step in enumerate(draft.steps) if (step.form, step.text, step.target) == wanted)
    return next(same, len(draft.steps) - 1)
