"""A gap in; a workaround of the kind that fits it, or why there is none, out; each is tried with those before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from migrate_lens.model.report import Category, Gap
from migrate_lens.model.ruling import Decision, phrase
from migrate_lens.programs.synthesis import ProbeRecord
from migrate_lens.remedies import kept
from migrate_lens.remedies.bench_lab import BenchLab
from migrate_lens.remedies.fix import bridges
from migrate_lens.remedies.fix.branches import gates, when_closed
from migrate_lens.remedies.fix.entries import BUILD, Entry
from migrate_lens.remedies.fix.fixing import NoReplacement, find, missing_part, proposals
from migrate_lens.remedies.fix.shim_module import shim_module
from migrate_lens.remedies.fix.stage import Stage
from migrate_lens.remedies.fix.trials import Replacement
from migrate_lens.remedies.fix.workarounds import Workarounds, is_scope
from migrate_lens.remedies.reproduce.native_reproduce import NATIVE_LAYERS
from migrate_lens.rulebook.private import private_name

_PROPOSALS = 3


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a workaround must not be."""

    reason: str


Attempt = tuple[Replacement, ...] | NoReplacement | Refused


class Attempts:
    """Workarounds for the gaps of a diagnosis, one after the other.

    Args:
        diagnosis: the last diagnosis.
        lab: where candidates are tried.
        records: what torch did, one for each probe.
        stage: where the whole library is tried.
        workarounds: those that were made before; what is made here is put there.
    """

    def __init__(
        self,
        diagnosis: kept.Diagnosis,
        lab: BenchLab,
        records: Sequence[ProbeRecord],
        stage: Stage,
        workarounds: Workarounds,
    ) -> None:
        self._diagnosis = diagnosis
        self._lab = lab
        self._records = records
        self._stage = stage
        self._workarounds = workarounds
        self._entry = Entry(diagnosis, lab, records, stage)
        self._root = diagnosis.library.root

    def make(self, gap: Gap, gaps: Sequence[Gap]) -> Attempt:
        """Make the workaround of a gap.

        Args:
            gap: what is to be worked around.
            gaps: all gaps that are to be, in their order.
        """
        replacements = self._of_its_kind(gap, gaps)
        if isinstance(replacements, NoReplacement):
            return replacements
        private = next(filter(None, (private_name(one.edit.text) for one in replacements)), "")
        if private:
            return Refused(f"it would need {private}, which is private to Paddle")
        if any(not one.path.resolve().is_relative_to(self._root.resolve()) for one in replacements):
            return NoReplacement("the call stands outside the library")
        self._workarounds.made[gap.id] = replacements
        return replacements

    def _of_its_kind(self, gap: Gap, gaps: Sequence[Gap]) -> tuple[Replacement, ...] | NoReplacement:
        if is_scope(gap):
            return self._switch(gap, gaps)
        if gap.layer in NATIVE_LAYERS and self._diagnosis.native:
            return bridges.find(gap, self._root)
        shim = self._shim(gap, gaps)
        if not isinstance(shim, NoReplacement):
            return shim
        before = [one for replacements in self._workarounds.made.values() for one in replacements]
        replacements = find(gap, self._records, self._lab, before)
        if not isinstance(replacements, NoReplacement) or replacements.needless:
            return replacements
        gated = self._gate(gap, gaps)
        if gated is not None or replacements.alone:
            return gated or replacements
        return self._proposed(gap, gaps) or replacements

    def _switch(self, gap: Gap, gaps: Sequence[Gap]) -> tuple[Replacement, ...] | NoReplacement:
        """The line that switches compat on, in a library that has the other workarounds."""
        files = self._workarounds.changed([other for other in gaps if other.id in self._workarounds.made]).new
        line = self._entry.build_switch(files) if gap is BUILD else self._entry.scope_line(files)
        return line if isinstance(line, NoReplacement) else (line,)

    def _shim(self, gap: Gap, gaps: Sequence[Gap]) -> tuple[Replacement, ...] | NoReplacement:
        """One module for a private helper that several files import."""
        if gap.category is not Category.B:
            return NoReplacement("a public name")
        library = self._diagnosis.library
        replacements = shim_module(gap, library.import_root, library.packages)
        if isinstance(replacements, NoReplacement) or self._serves(gap, replacements, gaps):
            return replacements
        return NoReplacement("the stage fails with the stand-in")

    def _gate(self, gap: Gap, gaps: Sequence[Gap]) -> tuple[Replacement, ...] | None:
        """For each site, a branch that the library already has; the innermost ones that serve."""
        missing = missing_part(gap, self._lab)
        places = [(self._root / site.path, site.line) for site in gap.sites]
        if missing is None or not places or not all(_is_python(path) for path, _ in places):
            return None
        choices = [list(gates(path, line, missing)) for path, line in places]
        if not all(choices):
            return None
        for depth in range(max(map(len, choices))):
            at_depth = (ways[min(depth, len(ways) - 1)] for ways in choices)
            replacements = tuple(dict.fromkeys(at_depth))
            if self._serves(gap, replacements, gaps) and self._is_alike_when_closed(gap, replacements, gaps):
                return replacements
        return None

    def _proposed(self, gap: Gap, gaps: Sequence[Gap]) -> tuple[Replacement, ...] | None:
        """What a recipe suggests, where the call alone does not show the gap and the whole library does."""
        for replacements in islice(proposals(gap, self._records), _PROPOSALS):
            if self._serves(gap, replacements, gaps):
                return replacements
        return None

    def _is_alike_when_closed(self, gap: Gap, gates: tuple[Replacement, ...], gaps: Sequence[Gap]) -> bool:
        """Whether the library's other branch does under torch all that the one with the name does."""
        closed = tuple(replace(one, edit=when_closed(one)) for one in gates)
        made = {**self._workarounds.made, gap.id: closed}
        return self._stage.is_alike_on_torch(self._workarounds.changed(gaps, made).new)

    def _serves(self, gap: Gap, replacements: tuple[Replacement, ...], gaps: Sequence[Gap]) -> bool:
        """Whether a copy with some replacements, and with those of the gaps before, gets past a gap."""
        made = {**self._workarounds.made, gap.id: replacements}
        others = [other for other in gaps if other.id in self._workarounds.made and other.id != gap.id]
        files = self._workarounds.changed([other for other in gaps if other.id in made], made).new
        return self._stage.serves(files, self._workarounds.changed(others).new, gap.api)


def why_refused(gap: Gap) -> str:
    """Why the policy forbids a workaround: the conditions and signals that settled it; empty where it does not."""
    if gap.decision is not Decision.ISSUE:
        return ""
    settled = () if gap.ruling is None else (*gap.ruling.failed, *gap.ruling.signals)
    return "an issue instead: " + ("; ".join(map(phrase, settled)) or "the policy asks for one")


def _is_python(path: Path) -> bool:
    return path.suffix == ".py" and path.is_file()
