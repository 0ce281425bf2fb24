"""Replacements for the gaps of a library in; its files with them, each below a comment that says why, out."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, assert_never

from migrate_lens.model.report import Gap, Symptom
from migrate_lens.model.ruling import Decision
from migrate_lens.remedies.fix.entries import ENTRIES, SCOPE
from migrate_lens.remedies.fix.patches import Comment, diff, patched, relative
from migrate_lens.remedies.fix.strategies import Kind
from migrate_lens.remedies.fix.trials import Held, Replacement

_ACTUAL = 120  # characters of what the target did that a comment has room for
_WITHOUT_SWITCH = "without it import torch finds nothing where Paddle is installed and torch is not"

Made = Mapping[str, tuple[Replacement, ...]]


class Changed(NamedTuple):
    """Files by their path relative to the library: as they are, and as they become."""

    old: Mapping[str, bytes]
    new: Mapping[str, bytes]

    @property
    def patch(self) -> str:
        """The difference, as a unified diff."""
        return diff(self.old, self.new)


class Workarounds:
    """The workarounds that were made so far, by gap.

    Args:
        root: the library.
        owner: who, or which issue, the comments name.
    """

    def __init__(self, root: Path, owner: str) -> None:
        self._root = root
        self._owner = owner
        self.made: dict[str, tuple[Replacement, ...]] = {}

    def changed(self, gaps: Sequence[Gap], made: Made | None = None) -> Changed:
        """The files that the workarounds of some gaps change.

        Args:
            gaps: whose workarounds count, in the order in which they are made.
            made: workarounds to take instead of those that were kept.
        """
        made = self.made if made is None else made
        old: dict[str, bytes] = {}
        new: dict[str, bytes] = {}
        for path in dict.fromkeys(one.path for gap in gaps for one in made.get(gap.id, ())):
            name = relative(path, self._root)
            old[name] = path.read_bytes() if path.is_file() else b""
            new[name] = self._file(path, old[name], gaps, made)
        return Changed(old, new)

    def series(self, gaps: Sequence[Gap]) -> dict[str, str]:
        """A patch for each gap, upon those before it: the last one comes out first."""
        patches: dict[str, str] = {}
        whole = self.changed(gaps)
        before = whole.old
        for number, gap in enumerate(gaps, 1):
            after = {**whole.old, **self.changed(gaps[:number]).new}
            patches[gap.id] = diff(before, after)
            before = after
        return patches

    def _file(self, path: Path, data: bytes, gaps: Sequence[Gap], made: Made) -> bytes:
        """One file with the workarounds in it."""
        groups = []
        for gap in gaps:
            here = [one for one in made.get(gap.id, ()) if one.path == path]
            if here:
                groups.append((here, self._comment(gap, here[0])))
        return patched(data, groups)

    def _comment(self, gap: Gap, replacement: Replacement) -> Comment:
        actual = textwrap.shorten(gap.actual, _ACTUAL, placeholder=" ...")
        put_in = replacement.edit.start == replacement.edit.end
        back = "delete these lines" if put_in else "put the upstream expression back"
        return Comment(
            owner=self._owner,
            api=_waits_for(gap),
            solves=_WITHOUT_SWITCH if is_scope(gap) else f"under Paddle {gap.api} {_verb(gap)}{actual}",
            why=f"{replacement.candidate.why}; {proof(replacement)}",
            delete=f"{back}, run migrate-lens recheck, and delete this comment",
        )


def proof(one: Replacement) -> str:
    """What was seen of a workaround by itself, before the stage ran again."""
    match one.candidate.kind:
        case Kind.SCOPE_LINE | Kind.BUILD_SWITCH:
            return "with the line alone the program gets to torch on both sides, each in a clean process"
        case Kind.CPP_BRIDGE:
            return "it builds on both sides"
        case (
            Kind.ARGUMENT
            | Kind.IMPORT
            | Kind.OPERATOR
            | Kind.EQUAL_API
            | Kind.CAST
            | Kind.SHIM
            | Kind.FEATURE_GATE
            | Kind.SHIM_MODULE
        ):
            return _HELD[one.held]
        case _:
            assert_never(one.candidate.kind)


_HELD = {
    Held.CALL: "the call alone does all that torch's does, on both sides",
    Held.PROGRAM: "the program gives torch's result and gradients with it, on both sides",
    Held.LIBRARY: "past other gaps, the library does as under torch with it, on both sides",
    Held.IMPORT: "the import finds the name on both sides",
}
# Of these symptoms a gap says what the other side gave instead, and not what it did.
_GIVEN = frozenset((Symptom.SHAPE, Symptom.DTYPE, Symptom.DEVICE, Symptom.LAYOUT, Symptom.VALUE, Symptom.GRADIENT))
_DOES = ("raises", "returns", "dies", "finishes", "None, then")


def _verb(gap: Gap) -> str:
    is_value = gap.symptom in _GIVEN and not gap.actual.startswith(_DOES)
    return "gives " if is_value else ""


def is_scope(gap: Gap) -> bool:
    """Whether a gap is about who answers ``import torch``, which one line settles for the whole library."""
    return gap.symptom is Symptom.SCOPE or gap.decision is Decision.NARROW_SCOPE


def _waits_for(gap: Gap) -> str:
    """What Paddle must support before the workaround can go."""
    if is_scope(gap):
        return gap.api if gap in ENTRIES else SCOPE.api
    return gap.api if gap.symptom is Symptom.MISSING_API else f"{gap.api} as torch does ({gap.symptom})"
