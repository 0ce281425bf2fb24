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

from migrate_lens.model.report import Site
from migrate_lens.model.trace import Event, Raised
from migrate_lens.model.value import difference, tag
from migrate_lens.programs.drafts import Draft, Text, write
from migrate_lens.programs.large import plain_large
from migrate_lens.programs.literals import Unwritable
from migrate_lens.programs.synthesis import Recording, differentiated, drafts, shared, stated
from migrate_lens.remedies.lab import Lab, Trial
from migrate_lens.remedies.reproduce import functions
from migrate_lens.remedies.reproduce.expect import checks
from migrate_lens.remedies.reproduce.outcomes import ACCEPTS, DIES, DIFFERS, HANGS, RAISES, Sign, shows, sign
from migrate_lens.remedies.reproduce.reduce import DRAFT_PASSES, PROGRAM_PASSES, Budget, reduce

LONGEST = 25
_PATIENCE = 10
_EVENTS = 4
_CALL_BUDGET, _PROGRAM_BUDGET = (40, 5.0), (90, 10.0)
_RESEED = "import torch\ntorch.manual_seed(20241)\n"


@dataclass(frozen=True, slots=True)
class Case:
    """A gap as the last diagnosis reported it."""

    id: str
    api: str
    symptom: str
    sites: tuple[Site, ...]
    actual: str


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


def reproduce(case: Case, heard: Sequence[Recording], programs: Sequence[str], lab: Lab) -> Reproduced | NotReproduced:
    """Synthesise, reduce and check a reproduction.

    Args:
        case: the gap.
        heard: torch's traces.
        programs: the programs that were diagnosed, where one file is all there is.
        lab: where programs are tried.
    """
    tried = 0
    own = functions.programs(case.api, [event for event, _ in events_of(case, heard)])
    for attempt in (*_calls(case, heard), *_programs([*own, *programs])):
        tried += 1
        found = attempt(case, lab)
        if found is not None and length(found.source) <= LONGEST:
            return found
    if not tried:
        return NotReproduced("nothing was recorded")
    return NotReproduced(f"none of {tried} programs fails under Paddle in the same way, in {LONGEST} lines or fewer")


def length(source: str) -> int:
    """Lines that are not blank."""
    return sum(1 for line in source.splitlines() if line.strip())


Attempt = Callable[[Case, Lab], Reproduced | None]


# -- the one call ------------------------------------------------------------------------------------------------------


def events_of(case: Case, heard: Sequence[Recording]) -> Iterator[tuple[Event, Recording]]:
    """Recorded events that a gap may be about: by name and site, then by name, then by site."""
    seen: set[tuple[object, ...]] = set()
    for matches in (_named_there, _named, _there):
        for recorded in heard:
            for event in recorded.trace.events:
                if matches(event, case) and event.place.position not in seen and event.what != "handed":
                    seen.add(event.place.position)
                    yield event, recorded


def _named(event: Event, case: Case) -> bool:
    return event.api == case.api


def _there(event: Event, case: Case) -> bool:
    return any(event.place.path.endswith(s.path) and event.place.line == s.line for s in case.sites)


def _named_there(event: Event, case: Case) -> bool:
    return _named(event, case) and _there(event, case)


def _calls(case: Case, heard: Sequence[Recording]) -> Iterator[Attempt]:
    for index, (event, recorded) in enumerate(events_of(case, heard)):
        if index == _EVENTS:
            return
        yield partial(_from_event, event=event, recorded=recorded)


def _from_event(case: Case, lab: Lab, event: Event, recorded: Recording) -> Reproduced | None:
    try:
        candidates = [v for d in drafts(event, recorded) for v in _variants(case, d)]
    except Unwritable:
        return None
    for draft in candidates:
        found = _from_draft(case, lab, draft)
        if found is not None:
            return found
    return None


def _variants(case: Case, draft: Draft) -> Iterator[Draft]:
    for sized in plain_large(draft):
        if case.symptom in ("alias", "value"):
            yield from (shared(sized) if case.symptom == "alias" else ())
        if case.symptom in ("state", "shape"):
            yield from stated(sized)
        if case.symptom == "gradient":
            yield from differentiated(sized)
        yield sized
        if case.symptom == "value":
            yield from shared(sized)


def _from_draft(case: Case, lab: Lab, draft: Draft) -> Reproduced | None:
    text = _text(draft)
    if text is None:
        return None
    first = _Same.of(case, lab, text.measured)
    if first is None:
        return None
    budget = Budget(*_CALL_BUDGET)
    small = reduce(draft, DRAFT_PASSES, lambda d: first.draft(d), budget)
    text = _text(small)
    assert text is not None
    return _finished(case, lab, text, first, budget, by_call=True)


def _text(draft: Draft) -> Text | None:
    try:
        return write(draft)
    except Unwritable:
        return None


@dataclass(frozen=True, slots=True)
class _Same:
    """The test of a reduction: the same failure as the first program had."""

    lab: Lab
    sign: Sign
    values: bool

    @classmethod
    def of(cls, case: Case, lab: Lab, source: str) -> _Same | None:
        """The test that a first program sets; None where it does not fail as the gap does."""
        trial = lab.both(source)
        found = sign(trial)
        if found is None or not shows(found, case.symptom):
            return None
        if found.how == DIFFERS and not _stable(lab, source, trial):
            found = sign(trial, values=False)
            return cls(lab, found, values=False) if found else None
        return cls(lab, found, values=True)

    def draft(self, draft: Draft) -> bool:
        """Whether a draft fails in the same way."""
        text = _text(draft)
        return text is not None and self.program(text.measured)

    def program(self, source: str) -> bool:
        """Whether a program fails in the same way."""
        trial = self.lab.both(source)
        if sign(trial, values=self.values) != self.sign:
            return False
        return self.sign.how != DIFFERS or not self.values or _stable(self.lab, source, trial)


def _stable(lab: Lab, source: str, trial: Trial) -> bool:
    """Whether torch's result stays when the generator is seeded otherwise."""
    again = lab.torch(_RESEED + source)
    return again.finished and difference(trial.torch.ending.value, again.ending.value) is None


# -- the whole program -------------------------------------------------------------------------------------------------


def _programs(programs: Sequence[str]) -> Iterator[Attempt]:
    for source in programs:
        yield partial(_from_program, source=source)


def _from_program(case: Case, lab: Lab, source: str) -> Reproduced | None:
    first = _Same.of(case, lab, source)
    if first is None:
        return None
    budget = Budget(*_PROGRAM_BUDGET)
    small = reduce(source, PROGRAM_PASSES, first.program, budget)
    for text in dict.fromkeys((small, source)):
        body = tuple(text.rstrip("\n").splitlines())
        results = ("result",) if _assigns_result(text) else ()
        found = _finished(case, lab, Text(body, results), first, budget, by_call=False)
        if found is not None:
            return found
    return None


def _assigns_result(source: str) -> bool:
    names = (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Name))
    return any(n.id == "result" and isinstance(n.ctx, ast.Store) for n in names)


# -- the end -----------------------------------------------------------------------------------------------------------


def _finished(case: Case, lab: Lab, text: Text, same: _Same, budget: Budget, *, by_call: bool) -> Reproduced | None:
    """The program with what it expects, once it is seen to fail as it should."""
    for source in _candidates(lab, text, same, whole=not by_call):
        trial = lab.both(source)
        found = sign(trial)
        if found is None or not _as_expected(found, same.sign) or not lab.torch(_RESEED + source).finished:
            continue  # a program that passes by luck of the seed alone does not pass
        if by_call and (same.sign.how != RAISES or _matches(trial, case)):
            return Reproduced(source, found, budget.used)
        # An assertion may move the blame to the call that it looks at; the program without it is what was diagnosed.
        if same_gap(case, lab.gaps(source)) or same_gap(case, lab.gaps("\n".join(text.lines) + "\n")):
            return Reproduced(source, found, budget.used)
    return None


def _as_expected(found: Sign, wanted: Sign) -> bool:
    if wanted.how == HANGS:
        return found.how == DIES and found.what == "SIGALRM"
    if wanted.how in (DIFFERS, ACCEPTS):
        return found.how == RAISES and found.what == "AssertionError"
    return found == wanted


def _matches(trial: Trial, case: Case) -> bool:
    """Whether Paddle raised what the diagnosis saw."""
    ending = trial.paddle.ending
    if not isinstance(ending, Raised) or f"raises {ending.failure.type}" not in case.actual:
        return False
    line = ending.failure.first_line
    return line[:40] in case.actual or _names(line) <= _names(case.actual)


def _names(text: str) -> set[str]:
    return {word for word in text.replace("'", " ' ").split() if word.isidentifier()}


def same_gap(case: Case, found: frozenset[tuple[str, str]]) -> bool:
    """Whether a diagnosis of the reproduction names the same gap."""
    return (case.api, case.symptom) in found or any(api == case.api for api, _ in found)


def _candidates(lab: Lab, text: Text, same: _Same, *, whole: bool) -> Iterator[str]:
    """The program with each way to say what is expected, plainest first."""
    base = "\n".join(text.lines)
    if same.sign.how == HANGS:
        yield _ended(text)
        return
    if same.sign.how == ACCEPTS:
        yield from _refusals(text, same.sign.what)
        return
    trial = lab.both(base + "\n" if whole else text.measured)
    if not trial.torch.finished:
        return
    want = _listed(trial.torch.ending.value, whole, text)
    got = _listed(trial.paddle.ending.value, whole, text) if trial.paddle.finished else None
    for index, expression in enumerate(text.results):
        if same.sign.how != DIFFERS:
            if same.values and not _random(lab, text):
                yield from ("\n".join((base, *c)) + "\n" for c in checks(expression, want[index]))
        elif got is not None and len(got) == len(want):
            yield from ("\n".join((base, *c)) + "\n" for c in checks(expression, want[index], got[index]))
    if same.sign.how != DIFFERS:
        yield base + "\n"


def _ended(text: Text) -> str:
    """A program that never returns ends itself, so that whoever runs it need not wait."""
    last = max((n for n, line in enumerate(text.lines, 1) if line.startswith(("import ", "from "))), default=0)
    alarm = (f"signal.alarm({_PATIENCE})  # the call below does not return under Paddle",)
    return "\n".join(("import signal", *text.lines[:last], *alarm, *text.lines[last:])) + "\n"


def _random(lab: Lab, text: Text) -> bool:
    """Whether torch's results depend on the generator, so that they cannot be stated."""
    source = text.measured
    side = lab.torch(source)
    return not side.finished or not _stable(lab, source, Trial(side, side))


def _listed(value: object, whole: bool, text: Text) -> list[object]:
    if whole:
        return [value] * len(text.results)
    return list(value[1]) if tag(value) == "L" else []  # type: ignore[index]


def _refusals(text: Text, error: str) -> Iterator[str]:
    """The last statement must raise."""
    *before, last = text.lines
    tail = (f"    {last}", f"except {error}:", "    pass", "else:", f"    raise AssertionError('torch raises {error}')")
    yield "\n".join((*before, "try:", *tail)) + "\n"
