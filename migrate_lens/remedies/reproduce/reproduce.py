"""A gap and its recorded calls in; a small program that passes under torch and fails under Paddle in the same way out.

First the one recorded call is made anew from literal inputs; where a gap is not one call (shared memory across
statements, classes, decorators, state), the program that showed it is cut down. What does not fail in the same way is
given up, and the reason is the result.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from migrate_lens.model.report import Gap, Key, Symptom
from migrate_lens.model.trace import Event, Raised
from migrate_lens.model.value import LIST, Encoded, describe, difference, tag
from migrate_lens.programs.drafts import Draft, Text, write
from migrate_lens.programs.large import plain_large
from migrate_lens.programs.literals import Unwritable
from migrate_lens.programs.synthesis import ProbeRecord, differentiated, drafts, shared, stated
from migrate_lens.programs.values import items_of
from migrate_lens.remedies.lab import Lab, Trial
from migrate_lens.remedies.publish.sources import without_comments
from migrate_lens.remedies.reproduce import functions
from migrate_lens.remedies.reproduce.expect import checks
from migrate_lens.remedies.reproduce.outcomes import Form, How, Sign, differs, forms, shows, sign
from migrate_lens.remedies.reproduce.reduce import DRAFT_PASSES, PROGRAM_PASSES, Budget, Pass, fewer_arguments, reduce

LONGEST = 25
_PATIENCE = 10
_EVENTS = 4
_CALL_BUDGET, _PROGRAM_BUDGET = (40, 5.0), (90, 10.0)  # trials, seconds
_RESEED = "import torch\ntorch.manual_seed(20241)\n"


@dataclass(frozen=True, slots=True)
class Reproduced:
    """A program that reproduces a gap: its text, how it fails, and what reducing it took."""

    source: str
    sign: Sign
    trials: int


@dataclass(frozen=True, slots=True)
class NotReproduced:
    """Why there is no reproduction."""

    reason: str


def reproduce(
    gap: Gap, records: Sequence[ProbeRecord], programs: Sequence[str], lab: Lab
) -> Reproduced | NotReproduced:
    """Synthesise, reduce and check a reproduction.

    Args:
        gap: what is to be reproduced.
        records: what torch did in each probe.
        programs: the programs that were diagnosed, where one file is all there is.
        lab: where programs are tried.
    """
    tried = 0
    own = functions.programs(gap.api, [one.event for one in occurrences(gap, records)])
    for attempt in (*_calls(gap, records), *_programs([*own, *programs]), *_by_name(gap)):
        tried += 1
        reproduced = attempt(gap, lab)
        if reproduced is not None and length(reproduced.source) <= LONGEST:
            return reproduced
    if not tried:
        return NotReproduced("nothing was recorded")
    return NotReproduced(f"none of {tried} programs fails under Paddle in the same way, in {LONGEST} lines or fewer")


def length(source: str) -> int:
    """Lines that are not blank."""
    return sum(1 for line in source.splitlines() if line.strip())


Attempt = Callable[[Gap, Lab], Reproduced | None]


# -- the one call ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A recorded event that a gap may be about, and the record that it stands in."""

    event: Event
    record: ProbeRecord


def occurrences(gap: Gap, records: Sequence[ProbeRecord]) -> Iterator[Occurrence]:
    """Recorded events that a gap may be about: by what they gave, by name and site, then by name, then by site.

    Of a loop's rounds those are taken that gave what the gap says that torch gives: only some of them may differ.
    """
    seen: set[tuple[object, ...]] = set()
    for matches in (_gave, _named_there, _named, stands_at):
        for record in records:
            for event in record.trace.events:
                place = event.key[:6]
                if event.what != "handed" and place not in seen and matches(event, gap):
                    seen.add(place)
                    yield Occurrence(event, record)


def _gave(event: Event, gap: Gap) -> bool:
    return _named(event, gap) and event.returned and describe(event.value) == gap.expected.removeprefix("returns ")


def _named(event: Event, gap: Gap) -> bool:
    return event.api == gap.api


def stands_at(event: Event, gap: Gap) -> bool:
    """Whether an event stands at a site of a gap."""
    return any(event.place.path.endswith(site.path) and event.place.line == site.line for site in gap.sites)


def _named_there(event: Event, gap: Gap) -> bool:
    return _named(event, gap) and stands_at(event, gap)


def _calls(gap: Gap, records: Sequence[ProbeRecord]) -> Iterator[Attempt]:
    for occurrence in islice(occurrences(gap, records), _EVENTS):
        yield partial(_from_event, occurrence=occurrence)


def _from_event(gap: Gap, lab: Lab, occurrence: Occurrence) -> Reproduced | None:
    try:
        made = [v for draft in drafts(occurrence.event, occurrence.record) for v in _variants(gap, draft)]
    except Unwritable:
        return None
    own = occurrence.event.api == gap.api
    for draft in made:
        reproduced = _from_draft(gap, lab, draft, own_call=own)
        if reproduced is not None:
            return reproduced
    return None


def _by_name(gap: Gap) -> Iterator[Attempt]:
    """What is missing may have been asked for in a way that cannot be written by itself: then its name alone is."""
    module, _, name = gap.api.rpartition(".")
    if gap.symptom is Symptom.MISSING_API and module.startswith("torch") and name.isidentifier():
        yield partial(_from_program, source=f"import torch\n{gap.api}\n")


def _variants(gap: Gap, draft: Draft) -> Iterator[Draft]:
    """A draft, and what its symptom needs beside the call; a value may be the call's own, or that of shared memory."""
    for sized in plain_large(draft):
        match gap.symptom:
            case Symptom.ALIAS:
                yield from shared(sized)
            case Symptom.STATE | Symptom.SHAPE:
                yield from stated(sized)
            case Symptom.GRADIENT:
                yield from differentiated(sized)
            case _:
                pass
        yield sized
        if gap.symptom is Symptom.VALUE:
            yield from shared(sized)


def _from_draft(gap: Gap, lab: Lab, draft: Draft, *, own_call: bool) -> Reproduced | None:
    text = _text(draft)
    same = None if text is None else _Same.of(gap, lab, text.measured)
    if same is None:
        return None
    budget = Budget(*_CALL_BUDGET)
    small = _text(reduce(draft, _passes(gap), same.draft, budget))
    assert small is not None
    return _End(gap, lab, small, same, by_call=True, own_call=own_call).reached(budget)


def _passes(gap: Gap) -> tuple[Pass[Draft], ...]:
    """How a call is made smaller; where its name is missing its arguments cannot tell, and it is called as it was."""
    if gap.symptom is Symptom.MISSING_API:
        return tuple(one for one in DRAFT_PASSES if one is not fewer_arguments)
    return DRAFT_PASSES


def _text(draft: Draft) -> Text | None:
    try:
        return write(draft)
    except Unwritable:
        return None


@dataclass(frozen=True, slots=True)
class _Same:
    """The test of a reduction: the same failure as the first program had.

    Attributes:
        lab: where programs are tried.
        sign: the failure.
        values: False where torch's own result depends on the random generator.
        forms: what kind of results torch gives: another overload gives others.
    """

    lab: Lab
    sign: Sign
    values: bool
    forms: frozenset[Form]

    @classmethod
    def of(cls, gap: Gap, lab: Lab, source: str) -> _Same | None:
        """The test that a first program sets; None where it does not fail as the gap does."""
        trial = lab.both(source)
        failure = sign(trial)
        result = trial.torch.ending.value if trial.torch.finished else None
        if failure is None or not shows(failure, gap, result):
            return None
        if failure.how is not How.DIFFERS or _stable(lab, source, trial):
            return cls(lab, failure, True, forms(result))
        steady = sign(trial, values=False)
        return None if steady is None or not shows(steady, gap, result) else cls(lab, steady, False, forms(result))

    def draft(self, draft: Draft) -> bool:
        """Whether a draft fails in the same way."""
        text = _text(draft)
        return text is not None and self.program(text.measured)

    def program(self, source: str) -> bool:
        """Whether a program fails in the same way."""
        trial = self.lab.both(source)
        if sign(trial, values=self.values) != self.sign:
            return False
        if trial.torch.finished and not forms(trial.torch.ending.value) <= self.forms:
            return False
        return self.sign.how is not How.DIFFERS or not self.values or _stable(self.lab, source, trial)


def _stable(lab: Lab, source: str, trial: Trial) -> bool:
    """Whether torch's result stays when the generator is seeded otherwise."""
    again = lab.torch(_RESEED + source)
    return again.finished and difference(trial.torch.ending.value, again.ending.value) is None


# -- the whole program -------------------------------------------------------------------------------------------------


def _programs(programs: Sequence[str]) -> Iterator[Attempt]:
    for source in programs:
        yield partial(_from_program, source=without_comments("mre.py", source))


def _from_program(gap: Gap, lab: Lab, source: str) -> Reproduced | None:
    same = _Same.of(gap, lab, source)
    if same is None:
        return None
    budget = Budget(*_PROGRAM_BUDGET)
    small = reduce(source, PROGRAM_PASSES, same.program, budget)
    for program in dict.fromkeys((small, source)):
        lines = tuple(program.rstrip("\n").splitlines())
        text = Text(lines, ("result",) if _assigns_result(program) else ())
        reproduced = _End(gap, lab, text, same, by_call=False, own_call=False).reached(budget)
        if reproduced is not None:
            return reproduced
    return None


def _assigns_result(source: str) -> bool:
    names = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name))
    return any(name.id == "result" and isinstance(name.ctx, ast.Store) for name in names)


# -- the end -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _End:
    """A reduced program that is to say what it expects.

    Attributes:
        gap: what it is to show.
        lab: where it is tried.
        text: the program, and what it is held against.
        same: the failure that it must have.
        by_call: whether it makes the one recorded call; else it is the whole program.
        own_call: whether that call is the gap's own; else it stands beside it.
    """

    gap: Gap
    lab: Lab
    text: Text
    same: _Same
    by_call: bool
    own_call: bool

    def reached(self, budget: Budget) -> Reproduced | None:
        """The program with what it expects, once it is seen to fail as it should."""
        for source in self._candidates():
            trial = self.lab.both(source)
            failure = sign(trial)
            if failure is None or not _as_expected(failure, self.same.sign):
                continue
            if not self.lab.torch(_RESEED + source).finished:
                continue  # a program that passes by luck of the seed alone does not pass
            if self._is_of_the_gap(source, trial):
                return Reproduced(source, failure, budget.used)
        return None

    def _is_of_the_gap(self, source: str, trial: Trial) -> bool:
        if self.own_call and (self.same.sign.how is not How.RAISES or _matches(trial, self.gap)):
            return True
        # An assertion may move the blame to the call that it looks at; the program without it is what was diagnosed.
        return any(same_gap(self.gap, self.lab.gaps(program)) for program in (source, self._base + "\n"))

    @property
    def _base(self) -> str:
        return "\n".join(self.text.lines)

    def _candidates(self) -> Iterator[str]:
        """The program with each way to say what is expected, plainest first."""
        match self.same.sign.how:
            case How.HANGS:
                yield _ended(self.text)
            case How.ACCEPTS:
                yield from _refusals(self.text, self.same.sign.what)
            case How.DIFFERS:
                yield from self._told_apart()
            case How.RAISES | How.DIES:
                yield from self._stated()

    def _told_apart(self) -> Iterator[str]:
        """With assertions that tell torch's results from Paddle's."""
        trial = self._measured()
        if not trial.torch.finished or not trial.paddle.finished:
            return
        want, got = self._results(trial.torch.ending.value), self._results(trial.paddle.ending.value)
        if len(got) != len(want):
            return
        for index, expression in enumerate(self.text.results):
            if differs(want[index], got[index], self.same.values) == self.same.sign.what:
                yield from self._asserting(checks(expression, want[index], got[index]))

    def _stated(self) -> Iterator[str]:
        """With assertions that state torch's results, and then as it is: it fails by itself."""
        trial = self._measured()
        if not trial.torch.finished:
            return
        want = self._results(trial.torch.ending.value)
        for index, expression in enumerate(self.text.results):
            if self.same.values and not _random(self.lab, self.text):
                yield from self._asserting(checks(expression, want[index]))
        yield self._base + "\n"

    def _measured(self) -> Trial:
        return self.lab.both(self.text.measured if self.by_call else self._base + "\n")

    def _results(self, value: Encoded) -> list[Encoded]:
        """The results by themselves: a call's are measured in a list."""
        if not self.by_call:
            return [value] * len(self.text.results)
        return items_of(value) if tag(value) == LIST else []

    def _asserting(self, groups: Iterator[tuple[str, ...]]) -> Iterator[str]:
        for lines in groups:
            yield "\n".join((self._base, *lines)) + "\n"


def _as_expected(failure: Sign, wanted: Sign) -> bool:
    """Whether a program fails as one that says what it expects must."""
    match wanted.how:
        case How.HANGS:
            return failure.how is How.DIES and failure.what == "SIGALRM"
        case How.DIFFERS | How.ACCEPTS:
            return failure.how is How.RAISES and failure.what == "AssertionError"
        case How.RAISES | How.DIES:
            return failure == wanted


def _matches(trial: Trial, gap: Gap) -> bool:
    """Whether Paddle raised what the diagnosis saw."""
    ending = trial.paddle.ending
    if not isinstance(ending, Raised) or ending.failure.type != gap.exception:
        return False
    line = ending.failure.first_line
    return line[:40] in gap.actual or _names(line) <= _names(gap.actual)


def _names(text: str) -> set[str]:
    return {word for word in text.replace("'", " ' ").split() if word.isidentifier()}


def same_gap(gap: Gap, keys: frozenset[Key]) -> bool:
    """Whether a diagnosis of the reproduction names the same gap, and no other: what is first to fail is the gap."""
    return any(key.symptom is gap.symptom for key in keys) and all(key.api == gap.api for key in keys)


def _ended(text: Text) -> str:
    """A program that never returns ends itself, so that whoever runs it need not wait."""
    imports = [number for number, line in enumerate(text.lines, 1) if line.startswith(("import ", "from "))]
    last = max(imports, default=0)
    alarm = f"signal.alarm({_PATIENCE})  # the call below does not return under Paddle"
    return "\n".join(("import signal", *text.lines[:last], alarm, *text.lines[last:])) + "\n"


def _random(lab: Lab, text: Text) -> bool:
    """Whether torch's results depend on the generator, so that they cannot be stated."""
    source = text.measured
    side = lab.torch(source)
    return not side.finished or not _stable(lab, source, Trial(side, side))


def _refusals(text: Text, error: str) -> Iterator[str]:
    """The last statement must raise."""
    *before, last = text.lines
    tail = (f"    {last}", f"except {error}:", "    pass", "else:", f"    raise AssertionError('torch raises {error}')")
    yield "\n".join((*before, "try:", *tail)) + "\n"
