"""Classification rules in; which of them says what layer and category a finding has, why, and what to do, out.

A rule is data with its proof beside it: examples that it answers, and counterexamples that it does not match.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, assert_never

from migrate_lens.model.errors import RuleError
from migrate_lens.model.report import Category, Decision, Fact, Finding, Layer, Stage, Symptom
from migrate_lens.rulebook import document, matching
from migrate_lens.rulebook.document import Field, Schema
from migrate_lens.rulebook.matching import Matcher, Vocabulary, most_specific
from migrate_lens.shipped import folder

FACTS: Mapping[str, str] = {
    "symptom": "how it shows",
    "api": "the torch name as documented",
    "stage": "the rung of the ladder",
    "detail": "exception type, keyword or aspect",
    "exception": "class of the exception",
    "raised_in": "file and function of the raising frame",
    "argument": "the keyword that is not taken",
    "guarded": "the program catches it itself",
    "kind": "what the place is: call, method, attribute, operator, import, from-import, ...",
    "callee": "type of what was called",
    "proxied": "the proxy hands out another object than paddle.compat has under this name",
    "on_object": "the missing name was looked up on an object, not on a module",
    "private": "a part of the name begins with one underscore",
    "missing_module": "the part of the name that is missing is a module in torch",
    "module": "the torch module that the name is in",
    "value": "kind of torch's value: tensor, size, dtype, device, class, function, module, layer, scalar, object",
    "header": "the C++ header",
    "construct_kind": "function, method, macro, header, type, operator or registry",
    "kernel": "how an operator's C++ function goes apart: construct, not entered, other arguments, own code or same",
    "operator": "the library's operator whose kernel holds the construct",
    "uncast": "the framework's C++ type that pybind11 has no caster for",
    "other_builds": "other builds of Paddle have it, for GPUs above all",
    "build_step": "setup_py, preprocess, compile, link or cmake",
    "library": "the shared library that cannot be found",
    "torch_library": "the shared library that cannot be found is one of torch's",
    "presence": "how Paddle lacks a C++ construct: missing, elsewhere, signature or undefined",
    "known_to_torch": "the same unit compiles against torch's headers",
    "scoped_only": "the global runtime behaves and the scoped one does not",
    "include_chain": "the headers between the unit and the error",
    "outside": "the call stands in a package that is not the library's own",
    "reaches_result": "the program ends well under Paddle, and this difference alone gives it another result",
    "counterpart": "the name under which Paddle has what is missing: a public one if there is one, else a private one",
    "message_kind": "what kind of diagnostic the compiler gave",
}
VOCABULARY = Vocabulary(
    FACTS,
    always=frozenset(("symptom", "api", "detail", "stage")),
    closed={"symptom": frozenset(map(str, Symptom)), "stage": frozenset(map(str, Stage))},
)

Cases = tuple[Mapping[str, Fact], ...]

_TITLE = Field("title", document.text)
_WHY = Field("why", document.text)
_WHEN = Field("when", matching.conditions(VOCABULARY))
_INSTEAD = Field("instead", document.text, "")
_LAYER: Field[Layer | None] = Field("layer", document.choice(Layer, "layer"), None)
_CATEGORY: Field[Category | None] = Field("category", document.choice(Category, "category"), None)
_DECISION: Field[Decision | None] = Field("decision", document.choice(Decision, "decision"), None)
_PRIORITY = Field("priority", document.number, 0)
_REFERENCES: Field[tuple[str, ...]] = Field("references", document.texts, ())
_EXAMPLES: Field[Cases] = Field("example", matching.many(matching.facts(VOCABULARY)), ())
_COUNTEREXAMPLES: Field[Cases] = Field("counterexample", matching.many(matching.facts(VOCABULARY)), ())
SCHEMA = Schema(
    (
        _TITLE,
        _WHY,
        _WHEN,
        _INSTEAD,
        _LAYER,
        _CATEGORY,
        _DECISION,
        _PRIORITY,
        _REFERENCES,
        _EXAMPLES,
        _COUNTEREXAMPLES,
    ),
    "every rule says its title, why, and when",
)

Aspect = Literal["layer", "category", "decision"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Matcher):
    """One rule, as its file has it; it is silent about a layer, category or decision that is None."""

    why: str
    instead: str = ""
    layer: Layer | None = None
    category: Category | None = None
    decision: Decision | None = None
    references: tuple[str, ...] = ()
    examples: Cases = ()
    counterexamples: Cases = ()

    def says(self, aspect: Aspect) -> Layer | Category | Decision | None:
        """What the rule says about one aspect of a gap."""
        match aspect:
            case "layer":
                return self.layer
            case "category":
                return self.category
            case "decision":
                return self.decision
        assert_never(aspect)


def facts_of(finding: Finding) -> dict[str, Fact]:
    """All facts that a rule may ask about a finding."""
    key = finding.key
    own: dict[str, Fact] = {
        "symptom": str(key.symptom),
        "api": key.api,
        "detail": key.detail,
        "stage": str(finding.stage),
    }
    return {**finding.facts, **own}


def match(rules: Iterable[Rule], facts: Mapping[str, Fact], aspect: Aspect) -> Rule | None:
    """The rule that speaks about one aspect of these facts."""
    return most_specific(rule for rule in rules if rule.says(aspect) is not None and rule.matches(facts))


def answer(rules: Iterable[Rule], facts: Mapping[str, Fact]) -> Rule | None:
    """The rule that these facts are said to be answered by: the most specific of all that match."""
    return most_specific(rule for rule in rules if rule.matches(facts))


@cache
def load_rules() -> tuple[Rule, ...]:
    """All shipped rules that classify, by name.

    Raises:
        RuleError: a file is not a valid rule.
    """
    return read_rules(folder("rules/classify"))


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
    rule = Rule(
        id=path.stem,
        title=table[_TITLE],
        why=table[_WHY],
        instead=table[_INSTEAD],
        layer=table[_LAYER],
        category=table[_CATEGORY],
        decision=table[_DECISION],
        priority=table[_PRIORITY],
        when=table[_WHEN],
        references=table[_REFERENCES],
        examples=table[_EXAMPLES],
        counterexamples=table[_COUNTEREXAMPLES],
    )
    if rule.layer is None and rule.category is None and rule.decision is None:
        raise RuleError(f"{path.name}: it says nothing", "give it a layer, a category or a decision")
    return rule
