"""Conditions of rules and the facts of a case in; the rule that says most about the case, out.

A condition is a glob, a list of globs (any of them), or a bool; all conditions of a rule must hold. Of the rules that
match, the most specific one speaks: the one with the most conditions that narrow, then the one with the higher
``priority``, then the first. A condition that excludes nothing (``"*"`` for a fact that every case has, or all words of
a closed set) does not narrow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import translate
from typing import NamedTuple, TypeVar

from migrate_lens.model.report import Fact
from migrate_lens.rulebook.document import Reader, Spot, mapping, nearest

# A fact may have several values (the keywords of a call); a condition on it holds if it holds for any of them.
Value = Fact | tuple[str, ...]
Wanted = str | bool | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The facts that the rules of one kind may ask about.

    Attributes:
        meanings: each fact and what it says.
        always: the facts of which every case has exactly one value.
        closed: all values that a fact can have, where that is known.
    """

    meanings: Mapping[str, str]
    always: frozenset[str] = frozenset()
    closed: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Globs:
    """Patterns of which one must fit."""

    globs: tuple[str, ...]
    pattern: re.Pattern[str]

    def fit(self, value: Value | None) -> bool:
        """Whether a fact is there and has a value that one of the patterns fits."""
        if value is None:
            return False
        if isinstance(value, tuple):
            return any(self.pattern.match(item) for item in value)
        return self.pattern.match(str(value)) is not None


Condition = Globs | bool


def condition(wanted: Wanted) -> Condition:
    """A condition as it is tried."""
    if isinstance(wanted, bool):
        return wanted
    globs = (wanted,) if isinstance(wanted, str) else wanted
    return Globs(globs, re.compile("|".join(translate(glob) for glob in globs)))


def holds(wanted: Condition, value: Value | None) -> bool:
    """Whether one condition holds for a fact; an absent one is None, and false."""
    return bool(value) is wanted if isinstance(wanted, bool) else wanted.fit(value)


@dataclass(frozen=True, slots=True)
class Conditions:
    """The ``[when]`` of a rule: what each fact must be, and how many of these conditions narrow."""

    wanted: Mapping[str, Condition]
    narrowing: int

    @classmethod
    def of(cls, wanted: Mapping[str, Wanted], vocabulary: Vocabulary) -> Conditions:
        """Conditions as a file has them, made ready."""
        ready = {fact: condition(value) for fact, value in wanted.items()}
        return cls(ready, sum(_narrows(fact, value, vocabulary) for fact, value in ready.items()))

    def hold(self, facts: Mapping[str, Value]) -> bool:
        """Whether all of them do."""
        return all(holds(wanted, facts.get(fact)) for fact, wanted in self.wanted.items())

    def globs(self, fact: str) -> tuple[str, ...]:
        """The patterns for one fact; none where the rule does not ask for it."""
        wanted = self.wanted.get(fact)
        return wanted.globs if isinstance(wanted, Globs) else ()


def _narrows(fact: str, wanted: Condition, vocabulary: Vocabulary) -> bool:
    """Whether there can be a case for which a condition does not hold."""
    if isinstance(wanted, bool) or fact not in vocabulary.always:
        return True
    words = vocabulary.closed.get(fact)
    if words is None:
        return not any(glob.strip("*") == "" and glob for glob in wanted.globs)
    return not all(wanted.fit(word) for word in words)


def conditions(vocabulary: Vocabulary) -> Reader[Conditions]:
    """Read the ``[when]`` of a rule; each fact that it names must exist."""

    def read(value: object, spot: Spot) -> Conditions:
        wanted: dict[str, Wanted] = {}
        for fact, given in mapping(value, spot).items():
            _known(fact, vocabulary, spot)
            wanted[fact] = _wanted(given, spot.below(fact))
        return Conditions.of(wanted, vocabulary)

    return read


def _wanted(value: object, spot: Spot) -> Wanted:
    if isinstance(value, str | bool):
        return value
    if isinstance(value, list) and all(isinstance(glob, str) for glob in value):
        return tuple(value)
    raise spot.mistyped("a glob, a list of globs or a bool", value)


def facts(vocabulary: Vocabulary) -> Reader[Mapping[str, Fact]]:
    """Read the facts of a case; each of them must exist."""

    def read(value: object, spot: Spot) -> Mapping[str, Fact]:
        given: dict[str, Fact] = {}
        for fact, what in mapping(value, spot).items():
            _known(fact, vocabulary, spot)
            if not isinstance(what, str | int | bool):
                raise spot.below(fact).mistyped("a text, a number or a bool", what)
            given[fact] = what
        return given

    return read


def many(reader: Reader[Mapping[str, Fact]]) -> Reader[tuple[Mapping[str, Fact], ...]]:
    """Read a list of cases."""

    def read(value: object, spot: Spot) -> tuple[Mapping[str, Fact], ...]:
        if not isinstance(value, list):
            raise spot.mistyped("a list of tables", value)
        return tuple(reader(case, spot) for case in value)

    return read


def _known(fact: str, vocabulary: Vocabulary, spot: Spot) -> None:
    if fact not in vocabulary.meanings:
        raise spot.error(f"there is no fact {fact!r}", nearest(fact, vocabulary.meanings))


# -- rules -------------------------------------------------------------------------------------------------------------


class Specificity(NamedTuple):
    """How much a rule says about the cases that it matches."""

    narrowing: int
    priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Matcher:
    """What every rule has that is chosen by conditions; ``id`` is the stem of its file."""

    id: str
    title: str
    when: Conditions
    priority: int = 0

    @property
    def specificity(self) -> Specificity:
        """What decides between rules that match the same case."""
        return Specificity(self.when.narrowing, self.priority)

    def matches(self, facts: Mapping[str, Value]) -> bool:
        """Whether all conditions hold."""
        return self.when.hold(facts)


M = TypeVar("M", bound=Matcher)


def most_specific(rules: Iterable[M]) -> M | None:
    """The rule that speaks, of those that match one case."""
    return max(rules, key=lambda rule: rule.specificity, default=None)


def leaders(rules: Iterable[M], facts: Mapping[str, Value]) -> tuple[M, ...]:
    """The rules that say most about a case: one, unless several are equally specific and only their order decides."""
    matching = [rule for rule in rules if rule.matches(facts)]
    most = max((rule.specificity for rule in matching), default=None)
    return tuple(rule for rule in matching if rule.specificity == most)
