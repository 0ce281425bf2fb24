"""A gap, its recorded calls and the sources in; a replacement that gave torch's result on both sides out."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from migrate_lens.model.trace import Event, Place
from migrate_lens.model.value import Encoded, difference, tag
from migrate_lens.programs.drafts import TEMPLATE, Draft, Step, write
from migrate_lens.programs.large import plain_large
from migrate_lens.programs.literals import Unwritable
from migrate_lens.programs.sources import module, node_at, unchanged
from migrate_lens.programs.synthesis import Recording, arguments, differentiated, drafts, shared
from migrate_lens.remedies.fix import importing
from migrate_lens.remedies.fix.recipes import by_recipe
from migrate_lens.remedies.fix.slots import Edit, Site, apply, edit, fill, site_of, span
from migrate_lens.remedies.fix.strategies import Candidate, Troubled, candidates
from migrate_lens.remedies.lab import Lab
from migrate_lens.remedies.reproduce.outcomes import shows, sign
from migrate_lens.remedies.reproduce.reproduce import Case, events_of

TRIED_IN_VAIN = "nothing that was tried gives torch's result on both sides"
_TRIED = 40
_SITES = 12


@dataclass(frozen=True, slots=True)
class Replacement:
    """A replacement at one site: the file, the edit, what it is, and where it stands."""

    path: Path
    edit: Edit
    candidate: Candidate
    line: int


@dataclass(frozen=True, slots=True)
class NoReplacement:
    """Why there is none."""

    reason: str


def find(
    case: Case, heard: Sequence[Recording], lab: Lab, before: Sequence[Replacement] = ()
) -> tuple[Replacement, ...] | NoReplacement:
    """A replacement for every recorded site of a gap; one that works at one site is tried first at the next.

    Args:
        case: the gap.
        heard: torch's traces.
        lab: where candidates are tried.
        before: replacements of earlier gaps, which a whole program is tried with.
    """
    found: list[Replacement] = []
    known: list[Candidate] = []
    places = _at_sites(case, heard)
    if case.symptom in ("missing_api", "missing_argument") and any(e.flags.made_layer for e, _ in places):
        places = [(e, r) for e, r in places if e.flags.made_layer]  # it is the class that is missing, not its calls
    missing = missing_part(case, lab) if places else ("", "")
    for event, recorded in places:
        one = _at(case, event, recorded, lab, known, missing, [*before, *found])
        if isinstance(one, NoReplacement):
            return one
        found.append(one)
        if one.candidate not in known:
            known.append(one.candidate)
    return tuple(found) if found else NoReplacement("no recorded call stands at a site of it")


def proposals(case: Case, heard: Sequence[Recording]) -> Iterator[tuple[Replacement, ...]]:
    """What the recipes suggest at every recorded site of a gap, untried: for what only the whole library can show."""
    calls = [(e.place, site_of(e, node_at(e.place))) for e, _ in _at_sites(case, heard) if e.what == "call"]
    sites = [(place, site) for place, site in calls if site is not None]
    if not sites or len(sites) != len(calls):
        return
    first = Troubled(case.api, case.symptom, sites[0][1], (("O", ""),) * len(sites[0][1].nodes), None, ("", ""))
    for candidate in by_recipe(first):
        made = [_replacement(place, site, candidate) for place, site in sites]
        if all(_sound(one.path.read_bytes(), one.edit) for one in made):
            yield tuple(made)


def _replacement(place: Place, site: Site, candidate: Candidate) -> Replacement:
    path = Path(place.path)
    return Replacement(path, edit(path.read_bytes(), site, candidate.template), candidate, place.line)


def _at_sites(case: Case, heard: Sequence[Recording]) -> list[tuple[Event, Recording]]:
    """Recorded events of a gap's name at its sites."""
    named = ((e, r) for e, r in events_of(case, heard) if e.api == case.api)
    return [(e, r) for e, r in named if _at_a_site(e, case)][:_SITES]


def _at_a_site(event: Event, case: Case) -> bool:
    return any(event.place.path.endswith(s.path) and event.place.line == s.line for s in case.sites)


def missing_part(case: Case, lab: Lab) -> tuple[str, str]:
    """For a name that is not there: the longest part that is, and the name behind it."""
    if case.symptom != "missing_api" or not case.api.startswith("torch."):
        return "", ""
    parts = case.api.split(".")
    program = (
        f"import torch\nresult, at, parts = -1, torch, {parts[1:]}\nfor n, part in enumerate(parts):\n"
        "    if not hasattr(at, part):\n        result = n\n        break\n    at = getattr(at, part)\n"
    )
    paddle = lab.both(program).paddle
    index = paddle.ending.value if paddle.finished else -1
    return (".".join(parts[: index + 1]), parts[index + 1]) if isinstance(index, int) and index >= 0 else ("", "")


def _at(case: Case, event: Event, recorded: Recording, lab: Lab, known: list[Candidate],
        missing: tuple[str, str], before: Sequence[Replacement]) -> Replacement | NoReplacement:  # fmt: skip
    node = node_at(event.place)
    parsed = module(event.place.path)
    if parsed is None or not unchanged(event.place, Path(event.place.path).read_bytes()):
        return NoReplacement(f"line {event.place.line}: the file has changed since; run migrate-lens diagnose again")
    if event.place.kind == "f":
        return _import(event, recorded, lab)
    gate = _assignment(event, parsed.tree, missing)
    if gate is not None:
        return gate
    site = site_of(event, node)
    if site is None or parsed is None or event.what != "call":
        return NoReplacement(f"line {event.place.line}: no call with plain arguments stands there")
    call = Troubled(case.api, case.symptom, site, _values(event, recorded, site), event.value, missing)
    data = Path(event.place.path).read_bytes()
    for base in _tests(case, event, recorded, lab, data, before):
        for candidate in _first(known, candidates(call)):
            template = _in_its_names(candidate.template, parsed.names)
            if not _spelled(candidate, parsed.names):
                continue
            made = edit(data, site, template)
            one = Replacement(Path(event.place.path), made, candidate, event.place.line)
            if _sound(data, made) and base.holds(one, site, lab):
                return one
    return NoReplacement(f"line {event.place.line}: {TRIED_IN_VAIN}")


def _assignment(event: Event, tree: ast.Module, missing: tuple[str, str]) -> Replacement | None:
    """A setting below a name that is not there: set only where it is there."""
    owner, name = missing
    place = event.place
    if not owner or place.kind != "a":
        return None
    for node in ast.walk(tree):
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if isinstance(target, ast.Attribute) and _stands_at(target.value, place):
            path = Path(place.path)
            data = path.read_bytes()
            start, end = span(data, target)
            gate = f'if hasattr({owner}, "{name}"): '
            why = "a setting of the runtime; the gate opens by itself when the name is there"
            return Replacement(
                path,
                Edit(start, end, gate + data[start:end].decode()),
                Candidate("feature_gate", gate, why),
                place.line,
            )
    return None


def _stands_at(node: ast.expr, place: Place) -> bool:
    where = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
    return where == (place.line, place.column, place.end_line, place.end_column)


def _import(event: Event, recorded: Recording, lab: Lab) -> Replacement | NoReplacement:
    """Another import of the same name; the file must still give torch's result where that can be told."""
    path = Path(event.place.path)
    data = path.read_bytes()
    whole = event.place.module == "__main__" and recorded.trace.ending.has_value
    for made, candidate in importing.edits(event, node_at(event.place), data, lab):
        one = Replacement(path, made, candidate, event.place.line)
        if _sound(data, made) and (not whole or _Whole(data, recorded.trace.ending.value).runs(one, lab)):
            return one
    return NoReplacement(f"line {event.place.line}: no public module that both sides have holds this name")


def _values(event: Event, recorded: Recording, site: Site) -> tuple[Encoded, ...]:
    """What was recorded for each slot; opaque where it cannot be written out."""
    try:
        values = tuple(a.value for a in arguments(event, recorded))
    except Unwritable:
        values = ()
    return values if len(values) == len(site.nodes) else (("O", ""),) * len(site.nodes)


def _tests(
    case: Case, event: Event, recorded: Recording, lab: Lab, data: bytes, before: Sequence[Replacement]
) -> Iterator[_Base | _Whole]:
    """How candidates are tried: on the call alone where that shows the gap, then in the whole program."""
    with contextlib.suppress(Unwritable):
        base = next(_bases(case, event, recorded, lab), None)
        if base is not None:
            yield base
    if event.place.module == "__main__" and recorded.trace.ending.has_value:
        here = tuple(one for one in before if one.path == Path(event.place.path))
        yield _Whole(data, recorded.trace.ending.value, here)


@dataclass(frozen=True, slots=True)
class _Whole:
    """A program that is one file, and torch's result."""

    data: bytes
    want: Encoded
    before: tuple[Replacement, ...] = ()

    def holds(self, one: Replacement, site: Site, lab: Lab) -> bool:
        """Whether the program gives torch's result on both sides."""
        return self.runs(one, lab)

    def runs(self, one: Replacement, lab: Lab) -> bool:
        """Whether the program with a replacement gives torch's result on both sides."""
        text = with_prelude(apply(self.data, [*(b.edit for b in self.before), one.edit]), self.data, one).decode(
            "utf-8", errors="replace"
        )
        trial = lab.both(text)
        return all(side.finished and agrees(self.want, side.ending.value) for side in (trial.torch, trial.paddle))


def with_prelude(changed: bytes, data: bytes, one: Replacement) -> bytes:
    """A changed file with the import that a replacement needs, at its top for a trial."""
    if not one.candidate.prelude:
        return changed
    return one.candidate.prelude.encode() + b"\n" + changed


def _first(known: Sequence[Candidate], others: Iterator[Candidate]) -> Iterator[Candidate]:
    for number, candidate in enumerate((*known, *(c for c in others if c not in known))):
        if number == _TRIED:
            return
        yield candidate


@dataclass(frozen=True, slots=True)
class _Base:
    """A draft that shows the gap, the number of its call, and torch's results."""

    draft: Draft
    number: int
    want: Encoded

    def holds(self, one: Replacement, site: Site, lab: Lab) -> bool:
        """Whether a candidate gives torch's results on both sides."""
        candidate = one.candidate
        step = self.draft.steps[self.number]
        if len(step.arguments) != len(site.nodes) and step.arguments:
            return False
        if step.arguments:
            new = replace(step, form=TEMPLATE, text=candidate.template)
        else:
            texts = [ast.unparse(n) for n in site.nodes]
            new = Step("statement", fill(candidate.template, texts), step.target)
        steps = (*self.draft.steps[: self.number], new, *self.draft.steps[self.number + 1 :])
        try:
            imports = (*self.draft.imports, *((candidate.prelude,) if candidate.prelude else ()))
            text = write(replace(self.draft, imports=imports, steps=steps)).measured
            ast.parse(text)
        except (Unwritable, SyntaxError, IndexError):
            return False
        trial = lab.both(text)
        return all(side.finished and agrees(self.want, side.ending.value) for side in (trial.torch, trial.paddle))


def _bases(case: Case, event: Event, recorded: Recording, lab: Lab) -> Iterator[_Base]:
    for draft in drafts(event, recorded):
        for sized in plain_large(draft):
            for variant in _showing(case, sized):
                try:
                    trial = lab.both(write(variant).measured)
                except Unwritable:
                    continue
                found = sign(trial)
                if found is not None and shows(found, case.symptom) and trial.torch.finished:
                    yield _Base(variant, _number(variant, sized.steps[-1]), trial.torch.ending.value)


def _showing(case: Case, draft: Draft) -> Iterator[Draft]:
    if case.symptom == "alias":
        yield from shared(draft)
    elif case.symptom == "gradient":
        yield from differentiated(draft)
    yield draft


def _number(draft: Draft, call: Step) -> int:
    """Where the call stands among the steps of a draft."""
    same = (i for i, s in enumerate(draft.steps) if (s.form, s.text, s.target) == (call.form, call.text, call.target))
    return next(same, len(draft.steps) - 1)


def agrees(want: Encoded, got: Encoded) -> bool:
    """Whether a result is torch's, for a program that may ask for its Python type too.

    A tuple does for a named tuple: whether the program asks for a field is seen when the stage runs again.
    """
    found = difference(want, got)
    if found is not None and found.aspect != "type":
        return False
    if tag(want) == "n" and tag(got) in ("n", "t"):
        return len(want[-1]) == len(got[-1]) and all(map(agrees, want[-1], got[-1]))
    if tag(want) in ("L", "t") and tag(want) == tag(got):
        return len(want[1]) == len(got[1]) and all(agrees(w, g) for w, g in zip(want[1], got[1], strict=True))
    return bool(tag(want)) or type(want) is type(got)


def _local(names: dict[str, tuple[str, str]]) -> str:
    """The name under which a file knows torch; empty where it does not."""
    return next((local for local, (_, dotted) in names.items() if dotted == "torch"), "")


def _spelled(candidate: Candidate, names: dict[str, tuple[str, str]]) -> bool:
    """Whether the file knows torch by a name, where the replacement needs it."""
    return not re.search(r"\btorch\.", candidate.template) or bool(_local(names))


def _in_its_names(template: str, names: dict[str, tuple[str, str]]) -> str:
    local = _local(names)
    return re.sub(r"\btorch\.", f"{local}.", template) if local and local != "torch" else template


def _sound(data: bytes, made: Edit) -> bool:
    """Whether the file still parses."""
    text = made.text.encode("utf-8", errors="surrogateescape")
    try:
        ast.parse(data[: made.start] + text + data[made.end :])
    except (SyntaxError, ValueError):
        return False
    return True
