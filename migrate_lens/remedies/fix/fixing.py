"""A gap, its recorded calls and the sources in; a replacement that gave torch's result on both sides out."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from migrate_lens.model.report import Gap, Symptom
from migrate_lens.model.trace import Place
from migrate_lens.model.value import OBJECT, Encoded
from migrate_lens.programs.literals import Unwritable
from migrate_lens.programs.sources import Module, module, node_at, unchanged
from migrate_lens.programs.synthesis import ProbeRecord, arguments
from migrate_lens.remedies.fix import importing
from migrate_lens.remedies.fix.candidates import candidates
from migrate_lens.remedies.fix.defaults import defaults_of
from migrate_lens.remedies.fix.recipes import answering, filled
from migrate_lens.remedies.fix.slots import Edit, Site, edit, site_of, span
from migrate_lens.remedies.fix.strategies import Candidate, Kind, Missing, Troubled
from migrate_lens.remedies.fix.trials import Held, OfCall, OfProgram, Replacement, Tried, Verdict, bases, by_itself
from migrate_lens.remedies.fix.uses import use_of
from migrate_lens.remedies.fix.ways import Layout, Ways, layout, repeats_a_guard
from migrate_lens.remedies.lab import Lab
from migrate_lens.remedies.reproduce.reproduce import Occurrence, occurrences, stands_at

_TRIED = 90
_SITES = 12
_OPAQUE: Encoded = (OBJECT, "")


@dataclass(frozen=True, slots=True)
class NoReplacement:
    """Why there is none.

    Attributes:
        reason: in a line.
        in_vain: whether candidates were tried, and none gave torch's result on both sides.
        needless: whether the program makes of the call what it makes of torch's, without a replacement.
        alone: whether the call alone shows the gap, so that what was refused there is not to be tried elsewhere.
    """

    reason: str
    in_vain: bool = False
    needless: bool = False
    alone: bool = False


def find(
    gap: Gap, records: Sequence[ProbeRecord], lab: Lab, before: Sequence[Replacement] = ()
) -> tuple[Replacement, ...] | NoReplacement:
    """A replacement for every recorded site of a gap; one that works at one site is tried first at the next.

    Args:
        gap: what is to be replaced.
        records: what torch did in each probe.
        lab: where candidates are tried.
        before: replacements of earlier gaps, which a whole program is tried with.
    """
    places = _at_sites(gap, records)
    if gap.symptom in (Symptom.MISSING_API, Symptom.MISSING_ARGUMENT):
        made = [place for place in places if place.event.flags.made_layer]
        places = made or places  # it is the class that is missing, not its calls
    if not places:
        return NoReplacement("no recorded call stands at a site of it")
    search = _Search(gap, lab, tuple(before), missing_part(gap, lab), defaults_of(gap.api, lab))
    needless: list[NoReplacement] = []
    for place in places:
        replacement = search.at(place)
        if isinstance(replacement, Replacement):
            search.keep(replacement)
        elif replacement.needless:
            needless.append(replacement)
        else:
            return replacement
    return tuple(search.made) or needless[0]


def proposals(gap: Gap, records: Sequence[ProbeRecord]) -> Iterator[tuple[Replacement, ...]]:
    """What the recipes suggest at every recorded site of a gap, untried: for what only the whole library can show."""
    calls = [place.event for place in _at_sites(gap, records) if place.event.what == "call"]
    sites = [(event.place, site) for event in calls if (site := site_of(event, node_at(event.place))) is not None]
    if not sites or len(sites) != len(calls):
        return
    for recipe in answering(gap.api, gap.symptom):
        templates = [filled(recipe, site) for _, site in sites]
        replacements = tuple(
            _replacement(place, site, Candidate(Kind.EQUAL_API, template, recipe.why))
            for (place, site), template in zip(sites, templates, strict=True)
            if template is not None
        )
        if len(replacements) == len(sites) and all(_sound(one.path.read_bytes(), one.edit) for one in replacements):
            yield replacements


def _replacement(place: Place, site: Site, candidate: Candidate) -> Replacement:
    path = Path(place.path)
    return Replacement(path, edit(path.read_bytes(), site, candidate.template), candidate, place.line)


def _at_sites(gap: Gap, records: Sequence[ProbeRecord]) -> list[Occurrence]:
    """Recorded events of a gap's name at its sites."""
    named = (one for one in occurrences(gap, records) if one.event.api == gap.api)
    return list(islice((one for one in named if stands_at(one.event, gap)), _SITES))


def missing_part(gap: Gap, lab: Lab) -> Missing | None:
    """For a name that is not there, the part of it that is; None where the name is there, or nothing of it is."""
    if gap.symptom is not Symptom.MISSING_API or not gap.api.startswith("torch."):
        return None
    parts = gap.api.split(".")
    program = (
        f"import torch\nresult, at, parts = -1, torch, {parts[1:]}\nfor n, part in enumerate(parts):\n"
        "    if not hasattr(at, part):\n        result = n\n        break\n    at = getattr(at, part)\n"
    )
    paddle = lab.both(program).paddle
    index = paddle.ending.value if paddle.finished else -1
    if not isinstance(index, int) or index < 0:
        return None
    return Missing(".".join(parts[: index + 1]), parts[index + 1])


@dataclass(slots=True)
class _Search:
    """The search for replacements of one gap, from site to site.

    Attributes:
        gap: what is to be replaced.
        lab: where candidates are tried.
        before: replacements of earlier gaps.
        missing: what of its name is not there.
        defaults: the defaults of torch's own parameters, as they are written.
        made: replacements at the sites so far.
        known: candidates that worked at one of them, by how its call is laid out.
    """

    gap: Gap
    lab: Lab
    before: tuple[Replacement, ...]
    missing: Missing | None
    defaults: Mapping[str, str]
    made: list[Replacement] = field(default_factory=list)
    known: dict[Layout, list[Candidate]] = field(default_factory=dict)

    def keep(self, replacement: Replacement) -> None:
        """Take a replacement that works."""
        self.made.append(replacement)

    def at(self, occurrence: Occurrence) -> Replacement | NoReplacement:
        """A replacement at one site."""
        event = occurrence.event
        place = event.place
        parsed = module(place.path)
        if parsed is None or not unchanged(place, Path(place.path).read_bytes()):
            return NoReplacement(f"line {place.line}: the file has changed since; run migrate-lens diagnose again")
        if place.kind == "f":
            return _import(occurrence, self.lab)
        gate = None if self.missing is None else _assignment(place, parsed.tree, self.missing)
        if gate is not None:
            return gate
        site = site_of(event, node_at(place))
        if site is None or event.what != "call":
            return NoReplacement(f"line {place.line}: no call with plain arguments stands there")
        return self._of_call(occurrence, site, parsed)

    def _of_call(self, occurrence: Occurrence, site: Site, parsed: Module) -> Replacement | NoReplacement:
        """The first candidate that gives torch's result, on the call alone or in the whole program."""
        event = occurrence.event
        call = Troubled(
            self.gap.api,
            self.gap.symptom,
            site,
            _values(occurrence, site),
            event.value,
            self.missing,
            self.defaults,
        )
        data = Path(event.place.path).read_bytes()
        ways = Ways(parsed, site, event.value)
        known = self.known.setdefault(layout(site), [])
        others: set[Candidate] = set()
        use = use_of(parsed, site.node)
        alone = False
        for trial in self._trials(occurrence, data):
            alone = alone or isinstance(trial, OfCall)
            if isinstance(trial, OfCall) and trial.is_lost(use, self.lab):
                reason = (
                    f"line {event.place.line}: what the program makes of the result is torch's without a workaround"
                )
                return NoReplacement(reason, needless=True, alone=True)
            for candidate in self._first(candidates(call), known):
                if candidate in others:
                    continue
                for tried in self._edits(event.place, data, candidate, ways):
                    verdict = trial.judge(tried, self.lab)
                    if verdict is Verdict.HOLDS:
                        known += [candidate] if candidate not in known else []
                        return replace(tried.made, held=trial.held)
                    if verdict is Verdict.OTHER:
                        others.add(candidate)
        reason = f"line {event.place.line}: nothing that was tried does all that torch does, on both sides"
        return NoReplacement(reason, in_vain=True, alone=alone)

    @staticmethod
    def _edits(place: Place, data: bytes, candidate: Candidate, ways: Ways) -> Iterator[Tried]:
        """How a candidate is put in a file: as it is, and where a field of the result is read, as an item."""
        plain = _in_file(place, data, ways.site, candidate, ways.parsed)
        if plain is None or repeats_a_guard(candidate.template, ways):
            return
        yield Tried(plain, ways.site, ways.is_unpacked, use_of(ways.parsed, ways.site.node))
        as_item = ways.as_item(data, plain.edit)
        if as_item is not None:  # the field is read in another way then
            yield Tried(replace(plain, edit=as_item), ways.site, unnamed=True)

    @staticmethod
    def _first(others: Iterator[Candidate], known: Sequence[Candidate]) -> Iterator[Candidate]:
        """What worked at another site of this layout, then all else; as many as are tried at most."""
        fresh = (candidate for candidate in others if candidate not in known)
        return islice((candidate for group in (tuple(known), fresh) for candidate in group), _TRIED)

    def _trials(self, occurrence: Occurrence, data: bytes) -> Iterator[OfCall | OfProgram]:
        """How candidates are tried: on the call alone where that shows the gap, then in the whole program."""
        call = None
        with contextlib.suppress(Unwritable):
            base = next(bases(self.gap, occurrence, self.lab), None)
            call = base or by_itself(occurrence, self.lab)
            if base is not None:
                yield base
        ending = occurrence.record.trace.ending
        place = occurrence.event.place
        if place.module == "__main__" and ending.has_value:
            here = tuple(one for one in (*self.before, *self.made) if one.path == Path(place.path))
            yield OfProgram(data, ending.value, here, call)


def _in_file(place: Place, data: bytes, site: Site, candidate: Candidate, parsed: Module) -> Replacement | None:
    """A candidate in the names of a file; None where the file does not know torch, or would not parse."""
    if not _spelled(candidate, parsed):
        return None
    made = edit(data, site, _in_its_names(candidate.template, parsed))
    return Replacement(Path(place.path), made, candidate, place.line) if _sound(data, made) else None


def _assignment(place: Place, tree: ast.Module, missing: Missing) -> Replacement | None:
    """A setting below a name that is not there: set only where it is there."""
    if place.kind != "a":
        return None
    for node in ast.walk(tree):
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if isinstance(target, ast.Attribute) and _stands_at(target.value, place):
            return _gated_setting(place, target, missing)
    return None


def _gated_setting(place: Place, target: ast.Attribute, missing: Missing) -> Replacement:
    path = Path(place.path)
    data = path.read_bytes()
    start, end = span(data, target)
    gate = f'if hasattr({missing.owner}, "{missing.name}"): '
    why = "a setting of the runtime; the gate opens by itself when the name is there"
    made = Edit(start, end, gate + data[start:end].decode())
    return Replacement(path, made, Candidate(Kind.FEATURE_GATE, gate, why), place.line, Held.IMPORT)


def _stands_at(node: ast.expr, place: Place) -> bool:
    where = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
    return where == (place.line, place.column, place.end_line, place.end_column)


def _import(occurrence: Occurrence, lab: Lab) -> Replacement | NoReplacement:
    """Another import of the same name; the file must still give torch's result where that can be told."""
    event, ending = occurrence.event, occurrence.record.trace.ending
    path = Path(event.place.path)
    data = path.read_bytes()
    whole = OfProgram(data, ending.value) if event.place.module == "__main__" and ending.has_value else None
    for made, candidate in importing.edits(event, node_at(event.place), data, lab):
        held = Held.IMPORT if whole is None else whole.held
        replacement = Replacement(path, made, candidate, event.place.line, held)
        if _sound(data, made) and (whole is None or whole.runs(replacement, lab)):
            return replacement
    return NoReplacement(f"line {event.place.line}: no public module that both sides have holds this name")


def _values(occurrence: Occurrence, site: Site) -> tuple[Encoded, ...]:
    """What was recorded for each slot; opaque where it cannot be written out."""
    try:
        values = tuple(argument.value for argument in arguments(occurrence.event, occurrence.record))
    except Unwritable:
        return _opaque(site)
    return values if len(values) == len(site.nodes) else _opaque(site)


def _opaque(site: Site) -> tuple[Encoded, ...]:
    return (_OPAQUE,) * len(site.nodes)


# -- names -------------------------------------------------------------------------------------------------------------


def _spelled(candidate: Candidate, parsed: Module) -> bool:
    """Whether the file knows torch by a name, where the replacement needs it."""
    return not re.search(r"\btorch\.", candidate.template) or bool(parsed.framework)


def _in_its_names(template: str, parsed: Module) -> str:
    local = parsed.framework
    return re.sub(r"\btorch\.", f"{local}.", template) if local and local != "torch" else template


def _sound(data: bytes, made: Edit) -> bool:
    """Whether the file still parses."""
    text = made.text.encode("utf-8", errors="surrogateescape")
    try:
        ast.parse(data[: made.start] + text + data[made.end :])
    except (SyntaxError, ValueError):
        return False
    return True
