"""Pattern rules: TOML files in, a matcher over the facts of one use out; a rule's examples are source text.

``[when]`` names facts and what they must be: a glob, a list of globs (any of them), or a bool; all must hold. Of the
rules that match, the one with the most conditions speaks.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import translate
from functools import cache
from pathlib import Path
from typing import Any

from migrate_lens.model.errors import RuleError
from migrate_lens.model.report import Category, Decision, Layer, Symptom
from migrate_lens.model.uses import Use, words
from migrate_lens.shipped import folder

FACTS: Mapping[str, str] = {
    "event": "what the source does: import, read, call, method, attribute, base, isinstance, ...",
    "api": "the torch name, resolved through imports and flow",
    "sure": "certain, likely or guess",
    "guard": "what makes the site optional: import, hasattr, version, cuda, option, main, type_checking, or empty",
    "at": "import if it runs when the module is imported, else call",
    "inside": "autograd.forward, autograd.backward, forward, or empty",
    "argument": "a keyword of the call: any of them",
    "positional": "number of positional arguments",
    "then": "what is done with the result: an attribute's name, [], unpack, <<, (, or empty",
    "value": "a literal, a dispatch key, or the receiver's class",
    "literal": "number if a positional argument of the call is one, or empty",
    "role": "library, test, example, or build",
    "lang": "python, cpp, cmake or toml",
    "private": "a part of the torch name begins with one underscore",
}
KEYS = words(
    "title why instead symptom layer category decision weight over_verdict under when example counterexample references"
)
WEIGHTS = {"high": 3.0, "medium": 2.0, "low": 1.0}
PRIVATE = re.compile(r"\._(?!_)")

Condition = re.Pattern[str] | bool


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; ``id`` is the file's stem, ``under`` the name of the gap, if all sites are one."""

    id: str
    title: str
    why: str
    instead: str
    symptom: Symptom
    layer: Layer
    category: Category
    decision: Decision
    weight: float
    over_verdict: bool
    under: str
    when: tuple[tuple[str, Condition], ...]
    examples: tuple[tuple[str, str], ...]
    counterexamples: tuple[tuple[str, str], ...]

    def matches(self, facts: Mapping[str, Any]) -> bool:
        """Whether all conditions hold."""
        return all(holds(wanted, facts[name]) for name, wanted in self.when)


def holds(wanted: Condition, fact: Any) -> bool:
    """One condition; a fact with several values holds if any of them does."""
    if isinstance(wanted, bool):
        return bool(fact) is wanted
    if isinstance(fact, tuple):
        return any(wanted.match(item) for item in fact)
    return wanted.match(str(fact)) is not None


def facts_of(use: Use, role: str, lang: str) -> dict[str, Any]:
    """Everything that a rule may ask about a use."""
    return {
        "event": use.event,
        "api": use.api,
        "sure": use.sure,
        "guard": use.guard,
        "at": use.at,
        "inside": use.inside,
        "argument": use.keywords,
        "positional": use.positional,
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
        self.by_event: dict[str, list[Rule]] = {}

    def find(self, use: Use, role: str, lang: str) -> Rule | None:
        """The most specific rule that speaks about a use."""
        if use.event not in self.by_event:
            self.by_event[use.event] = [rule for rule in self.rules if holds(dict(rule.when)["event"], use.event)]
        candidates = self.by_event[use.event]
        if not candidates:
            return None
        facts = facts_of(use, role, lang)
        found = [rule for rule in candidates if rule.matches(facts)]
        return max(found, key=lambda rule: (len(rule.when), rule.weight, rule.id), default=None)


@cache
def load_rules() -> RuleSet:
    """Every rule that is shipped."""
    return RuleSet(tuple(read_rule(path) for path in sorted(folder("rules/audit").glob("*.toml"))))


def read_rule(path: Path) -> Rule:
    """One rule file, checked."""
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
        check(path, raw)
        return Rule(
            id=path.stem,
            title=raw["title"],
            why=raw["why"],
            instead=raw["instead"],
            symptom=Symptom(raw["symptom"]),
            layer=Layer(raw["layer"]),
            category=Category(raw["category"]),
            decision=Decision(raw["decision"]),
            weight=WEIGHTS[raw["weight"]],
            over_verdict=raw.get("over_verdict", False),
            under=raw.get("under", ""),
            when=tuple((name, condition(wanted)) for name, wanted in raw["when"].items()),
            examples=cases(raw, "example"),
            counterexamples=cases(raw, "counterexample"),
        )
    except (tomllib.TOMLDecodeError, KeyError, ValueError, TypeError) as error:
        raise RuleError(f"{path.name}: {error}", "see rules/audit for valid ones") from error


def check(path: Path, raw: dict[str, Any]) -> None:
    """Keys and facts must exist, and a rule must ask for an event and prove itself both ways."""
    for word, known in (*((key, KEYS) for key in raw), *((fact, FACTS) for fact in raw["when"])):
        if word not in known:
            near = get_close_matches(word, list(known), n=1)
            raise RuleError(f"{path.name}: no key or fact {word!r}", f"did you mean {near[0]!r}?" if near else "")
    if "event" not in raw["when"] or not raw.get("example") or not raw.get("counterexample"):
        raise RuleError(f"{path.name}: needs an event, an example and a counterexample", "see the other rules")


def condition(wanted: object) -> Condition:
    """Globs become one pattern."""
    if isinstance(wanted, bool):
        return wanted
    globs = [wanted] if isinstance(wanted, str) else wanted
    if not isinstance(globs, list) or not all(isinstance(glob, str) for glob in globs):
        raise TypeError(f"a condition is a glob, a list of globs or a bool, not {wanted!r}")
    return re.compile("|".join(translate(glob) for glob in globs))


def cases(raw: dict[str, Any], key: str) -> tuple[tuple[str, str], ...]:
    """(path, source) of the cases that a rule brings along."""
    return tuple((case.get("path", "lib/module.py"), case["source"]) for case in raw[key])
