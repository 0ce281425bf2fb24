"""Audit rules in; which of them speaks about one use of torch in a source, out; a rule's examples are source text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import NamedTuple

from migrate_lens.model.errors import RuleError
from migrate_lens.model.report import Category, Decision, Layer, Symptom
from migrate_lens.model.uses import Use
from migrate_lens.rulebook import document, matching
from migrate_lens.rulebook.document import Field, Schema, Table
from migrate_lens.rulebook.matching import Matcher, Value, Vocabulary, holds, most_specific
from migrate_lens.shipped import folder

FACTS: Mapping[str, str] = {
    "event": "what the source does: import, read, call, method, attribute, base, isinstance, ...",
    "api": "the torch name, resolved through imports and flow",
    "sure": "certain, likely or guess",
    "guard": "what makes the site optional: import, hasattr, version, cuda, option, main, type_checking, or empty",
    "at": "import if it runs when the module is imported, else call",
    "inside": "autograd.forward, autograd.backward, forward, or empty",
    "argument": "a keyword of the call: any of them; empty where it has none",
    "positional": "number of positional arguments, the receiver of a method among them; -1 if it cannot be told",
    "then": "what is done with the result: an attribute's name, [], unpack, <<, (, test, argument, or empty",
    "value": "a literal, a dispatch key, or the receiver's class",
    "literal": "of the positional arguments: number, sequence (written out), dimension (called so), or empty",
    "role": "library, test, example, or build",
    "lang": "python, cpp, cmake or toml",
    "private": "a part of the torch name begins with one underscore",
}
# A call has no keyword, one, or several; of everything else each use has exactly one value.
VOCABULARY = Vocabulary(FACTS, always=frozenset(FACTS.keys() - {"argument"}))
PRIVATE = re.compile(r"\._(?!_)")


class Severity(StrEnum):
    """How much a gap of a rule counts in the grade of a library."""

    SILENT = "silent"  # it raises nothing: the program goes on with another value
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


WEIGHTS = {Severity.SILENT: 4.0, Severity.HIGH: 3.0, Severity.MEDIUM: 2.0, Severity.LOW: 1.0}


class Unrun(StrEnum):
    """Why a sentence of a rule was not tried here."""

    NO = ""
    GPU = "needs a GPU"
    PROCESSES = "needs several processes"
    NETWORK = "needs a network"
    COMPILER = "needs a build"
    COUNSEL = "a counsel, which states nothing"


@dataclass(frozen=True, slots=True)
class Claim:
    """Words of a rule, and a small program that shows whether they are so.

    Attributes:
        says: words of its ``why`` or ``instead``.
        program: what is run on both sides; empty where nothing is.
        torch: what it prints with torch, or ``raises ERROR``.
        target: the same with Paddle in torch's place.
        unrun: why it cannot be run.
    """

    says: str
    program: str
    torch: str
    target: str
    unrun: Unrun


class Case(NamedTuple):
    """A source that a rule brings along, and where it stands in a library."""

    path: str
    source: str


_PATH = Field("path", document.text, "lib/module.py")
_SOURCE = Field("source", document.text)
_ALSO: Field[tuple[str, ...]] = Field("also", document.texts, ())
_EXAMPLE = Schema((_PATH, _SOURCE, _ALSO), "every example has a source")
_COUNTEREXAMPLE = Schema((_PATH, _SOURCE), "every counterexample has a source")

_SAYS = Field("says", document.text)
_PROGRAM = Field("program", document.text, "")
_TORCH = Field("torch", document.text, "")
_TARGET = Field("paddle", document.text, "")
_UNRUN: Field[Unrun] = Field("unrun", document.choice(Unrun, "unrun"), Unrun.NO)
_CLAIM = Schema((_SAYS, _PROGRAM, _TORCH, _TARGET, _UNRUN), "every claim says words of its rule")

_TITLE = Field("title", document.text)
_WHY = Field("why", document.text)
_INSTEAD = Field("instead", document.text)
_SYMPTOM = Field("symptom", document.choice(Symptom, "symptom"))
_LAYER = Field("layer", document.choice(Layer, "layer"))
_CATEGORY = Field("category", document.choice(Category, "category"))
_DECISION = Field("decision", document.choice(Decision, "decision"))
_WEIGHT = Field("weight", document.choice(Severity, "weight"))
_OVER_VERDICT = Field("over_verdict", document.flag, False)
_UNDER = Field("under", document.text, "")
_PRIORITY = Field("priority", document.number, 0)
_WHEN = Field("when", matching.conditions(VOCABULARY))
_EXAMPLES = Field("example", document.tables(_EXAMPLE))
_COUNTEREXAMPLES = Field("counterexample", document.tables(_COUNTEREXAMPLE))
_CLAIMS: Field[tuple[Table, ...]] = Field("claim", document.tables(_CLAIM), ())
_REFERENCES: Field[tuple[str, ...]] = Field("references", document.texts, ())
SCHEMA = Schema(
    (
        _TITLE,
        _WHY,
        _INSTEAD,
        _SYMPTOM,
        _LAYER,
        _CATEGORY,
        _DECISION,
        _WEIGHT,
        _OVER_VERDICT,
        _UNDER,
        _PRIORITY,
        _WHEN,
        _EXAMPLES,
        _COUNTEREXAMPLES,
        _CLAIMS,
        _REFERENCES,
    ),
    "every audit rule says what it is, what to do instead, what kind of gap it is, when, and has cases for and against",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Matcher):
    """One rule.

    Attributes:
        weight: what a gap of it counts.
        over_verdict: it knows more than a look-up of the name in both frameworks, and goes before it.
        under: the name of the gap, if all sites are one.
        also: for each example, the other rules that speak about other lines of it.
        claims: what shows that ``why`` and ``instead`` are so.
    """

    why: str
    instead: str
    symptom: Symptom
    layer: Layer
    category: Category
    decision: Decision
    weight: float
    over_verdict: bool
    under: str
    examples: tuple[Case, ...]
    also: tuple[frozenset[str], ...]
    counterexamples: tuple[Case, ...]
    claims: tuple[Claim, ...]
    references: tuple[str, ...] = ()


def facts_of(use: Use, role: str, lang: str) -> dict[str, Value]:
    """Everything that a rule may ask about a use."""
    return {
        "event": use.event,
        "api": use.api,
        "sure": use.sure,
        "guard": use.guard,
        "at": use.at,
        "inside": use.inside,
        "argument": use.keywords or ("",),
        "positional": use.positional + (use.event == "method" and use.positional >= 0),
        "then": use.then,
        "value": use.value,
        "literal": use.literal,
        "role": role,
        "lang": lang,
        "private": bool(PRIVATE.search(use.api)) and not use.api.startswith("torch.ops."),
    }


class RuleSet:
    """All rules, by the event that they ask for."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules = rules
        self.by_event: dict[str, tuple[Rule, ...]] = {}

    def find(self, use: Use, role: str, lang: str) -> Rule | None:
        """The most specific rule that speaks about a use."""
        candidates = self._about(use.event)
        if not candidates:
            return None
        facts = facts_of(use, role, lang)
        return most_specific(rule for rule in candidates if rule.matches(facts))

    def _about(self, event: str) -> tuple[Rule, ...]:
        if event not in self.by_event:
            self.by_event[event] = tuple(rule for rule in self.rules if holds(rule.when.wanted["event"], event))
        return self.by_event[event]


@cache
def load_rules() -> RuleSet:
    """Every rule that is shipped.

    Raises:
        RuleError: a file is not a valid rule.
    """
    return RuleSet(read_rules(folder("rules/audit")))


def read_rules(place: Path) -> tuple[Rule, ...]:
    """All rules of a folder, by name.

    Raises:
        RuleError: a file is not a valid rule.
    """
    return tuple(read_rule(path) for path in document.files(place))


def read_rule(path: Path) -> Rule:
    """Read one rule.

    Raises:
        RuleError: it is not valid; the message names the file and the key.
    """
    table = document.load(path, SCHEMA)
    examples, counterexamples = table[_EXAMPLES], table[_COUNTEREXAMPLES]
    when = table[_WHEN]
    if "event" not in when.wanted or not examples or not counterexamples:
        raise RuleError(f"{path.name}: needs an event, an example and a counterexample", "see the other rules")
    return Rule(
        id=path.stem,
        title=table[_TITLE],
        why=table[_WHY],
        instead=table[_INSTEAD],
        symptom=table[_SYMPTOM],
        layer=table[_LAYER],
        category=table[_CATEGORY],
        decision=table[_DECISION],
        weight=WEIGHTS[table[_WEIGHT]],
        over_verdict=table[_OVER_VERDICT],
        under=table[_UNDER],
        priority=table[_PRIORITY],
        when=when,
        examples=tuple(_case(example) for example in examples),
        also=tuple(frozenset(example[_ALSO]) for example in examples),
        counterexamples=tuple(_case(example) for example in counterexamples),
        claims=tuple(_claim(claim) for claim in table[_CLAIMS]),
        references=table[_REFERENCES],
    )


def _claim(table: Table) -> Claim:
    return Claim(table[_SAYS], table[_PROGRAM], table[_TORCH], table[_TARGET], table[_UNRUN])


def _case(table: Table) -> Case:
    return Case(table[_PATH], table[_SOURCE])
