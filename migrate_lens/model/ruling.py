"""A decision and what settled it, as nouns; and the one place where they become prose."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from migrate_lens.model.reading import Fields
from migrate_lens.model.target import TARGET


class Decision(StrEnum):
    """What to do about a gap."""

    WORKAROUND = "workaround"
    ISSUE = "issue"
    BOTH = "workaround+issue"
    NOTE = "note"
    NARROW_SCOPE = "narrow_scope"


class Condition(StrEnum):
    """What a decision hangs on. The first four must all hold for a workaround; any other one calls for an issue."""

    ONE_POINT = "one_point"
    LOCAL_PATH = "local_path"
    SEMANTICS_STAY = "semantics_stay"
    COMMENTED = "commented"
    SEVERAL_KERNELS = "several_kernels"
    SEMANTICS_CHANGE = "semantics_change"
    PRIVATE_API = "private_api"
    SEVERAL_FILES = "several_files"
    BEHAVES_DIFFERENTLY = "behaves_differently"
    PUBLIC_BEHAVIOUR = "public_behaviour"

    @property
    def is_signal(self) -> bool:
        """Whether it calls for an issue; else it is a condition of a workaround."""
        return self not in _OF_A_WORKAROUND


_OF_A_WORKAROUND = frozenset(
    (
        Condition.ONE_POINT,
        Condition.LOCAL_PATH,
        Condition.SEMANTICS_STAY,
        Condition.COMMENTED,
    )
)


@dataclass(frozen=True, slots=True)
class Settled:
    """A condition of a workaround or a signal of an issue, whether it holds, and the fact that settled it."""

    condition: Condition
    holds: bool
    fact: str

    @classmethod
    def from_json(cls, fields: Fields) -> Settled:
        """What was settled, as a report has it."""
        return cls(fields.member("condition", Condition), fields.flag("holds"), fields.text("fact"))


class DecidedBy(StrEnum):
    """What a decision comes from: the conditions and signals of the policy, or one of the exceptions to them."""

    POLICY = "policy"
    SCOPE = "scope"
    RULE = "rule"
    CATEGORY = "category"


@dataclass(frozen=True, slots=True)
class Ruling:
    """A decision, what it comes from, and for the policy each condition and signal that was settled."""

    decision: Decision
    by: DecidedBy
    settled: tuple[Settled, ...] = ()

    @classmethod
    def from_json(cls, fields: Fields, decision: Decision) -> Ruling:
        """How a decision was made, as a report has it."""
        settled = tuple(Settled.from_json(one) for one in fields.parts("settled", ()))
        return cls(decision, fields.member("decided_by", DecidedBy), settled)

    @property
    def failed(self) -> tuple[Settled, ...]:
        """The conditions of a workaround that do not hold."""
        return tuple(one for one in self.settled if not one.condition.is_signal and not one.holds)

    @property
    def signals(self) -> tuple[Settled, ...]:
        """The signals of an issue that hold."""
        return tuple(one for one in self.settled if one.condition.is_signal and one.holds)


# -- prose -------------------------------------------------------------------------------------------------------------

_PHRASES = {
    Condition.ONE_POINT: "it wraps one incompatibility point",
    Condition.LOCAL_PATH: "it touches only this library's local path",
    Condition.SEMANTICS_STAY: "public API semantics stay",
    Condition.COMMENTED: "it carries a TODO with owner, purpose, reason and deletion condition",
    Condition.SEVERAL_KERNELS: "several core kernels would change for one gap",
    Condition.SEMANTICS_CHANGE: "the library's semantics would change",
    Condition.PRIVATE_API: f"a {TARGET.title} private API would be needed",
    Condition.SEVERAL_FILES: "the same pattern stands in several files",
    Condition.BEHAVES_DIFFERENTLY: "the same call site behaves differently in the two frameworks",
    Condition.PUBLIC_BEHAVIOUR: "the cause is public compat behaviour",
}


def phrase(one: Settled) -> str:
    """A condition or signal, and the fact that settled it."""
    return f"{_PHRASES[one.condition]} ({one.fact})"


def said(ruling: Ruling | None) -> tuple[str, ...]:
    """How a decision was made, as lines for a person; none where nothing was settled."""
    if ruling is None:
        return ()
    match ruling.by:
        case DecidedBy.POLICY:
            return tuple(_line(one) for one in ruling.settled)
        case DecidedBy.SCOPE | DecidedBy.RULE | DecidedBy.CATEGORY:
            return (exception(ruling),)
        case _:
            assert_never(ruling.by)


def exception(ruling: Ruling) -> str:
    """What decided outside the conditions and signals; empty where it was these."""
    match ruling.by:
        case DecidedBy.POLICY:
            return ""
        case DecidedBy.SCOPE:
            return "scoped and global compat differ: shrink or extend the scope first"
        case DecidedBy.RULE:
            return f"the rule prescribes {ruling.decision}"
        case DecidedBy.CATEGORY:
            return "category B: the library relies on private behaviour that a thin shim covers"
        case _:
            assert_never(ruling.by)


def _line(one: Settled) -> str:
    question = "issue if any" if one.condition.is_signal else "workaround if all"
    return f"{question} - {'yes' if one.holds else 'no'}: {phrase(one)}"
