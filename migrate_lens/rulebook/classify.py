"""Rules: TOML files in, matched by facts; a rule says what layer and category a finding has, and why.

A rule is data with its proof beside it. ``[when]`` names facts and what they must be: a glob, a list of globs (any of
them), or a bool; all must hold. Of the rules that match and that say something about an aspect, the one with the most
conditions speaks, then the one with the highest ``priority``, then the first by name.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from migrate_lens.model.errors import RuleError
from migrate_lens.model.report import Category, Decision, Fact, Finding, Layer
from migrate_lens.shipped import folder

Condition = str | bool | tuple[str, ...]

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
# Facts that every finding has.
ALWAYS = frozenset(("symptom", "api", "detail", "stage"))
_SAYS = ("layer", "category", "decision")
_KEYS = frozenset(
    ("title", "why", "instead", "when", "example", "counterexample", "priority", "references", "bridge", *_SAYS)
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, as its file has it; ``id`` is the file's stem."""

    id: str
    title: str
    why: str
    instead: str
    layer: str
    category: str
    decision: str
    priority: int
    when: Mapping[str, Condition]
    references: tuple[str, ...] = ()
    examples: tuple[Mapping[str, Fact], ...] = ()
    counterexamples: tuple[Mapping[str, Fact], ...] = ()
    bridge: Mapping[str, Any] = field(default_factory=dict)

    @property
    def weight(self) -> tuple[int, int]:
        """How specific the rule is."""
        return (sum(not _excludes_nothing(*condition) for condition in self.when.items()), self.priority)

    def matches(self, facts: Mapping[str, Fact]) -> bool:
        """Whether all conditions hold."""
        return all(_holds(wanted, facts.get(name)) for name, wanted in self.when.items())


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


def match(rules: Iterable[Rule], facts: Mapping[str, Fact], aspect: str) -> Rule | None:
    """The rule that speaks about an aspect (``layer``, ``category`` or ``decision``) of these facts."""
    found = [r for r in rules if getattr(r, aspect) and r.matches(facts)]
    return max(found, key=lambda r: r.weight) if found else None


def _excludes_nothing(name: str, wanted: Condition) -> bool:
    """Whether a condition is true of every finding: any value of a fact that each of them has."""
    globs = (wanted,) if isinstance(wanted, str) else wanted
    return name in ALWAYS and not isinstance(globs, bool) and "*" in globs


def _holds(wanted: Condition, fact: Fact | None) -> bool:
    if isinstance(wanted, bool):
        return bool(fact) is wanted
    globs = (wanted,) if isinstance(wanted, str) else wanted
    return fact is not None and any(fnmatchcase(str(fact), glob) for glob in globs)


@cache
def load_rules() -> tuple[Rule, ...]:
    """All shipped rules that classify, by name.

    Raises:
        RuleError: a file is not a valid rule.
    """
    return tuple(read_rule(path) for path in sorted(folder("rules").glob("*.toml")))


def read_rule(path: Path) -> Rule:
    """Read one rule.

    Raises:
        RuleError: it is not valid; the message names the file and the key.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RuleError(f"{path.name}: {error}", "repair the rule file") from error
    _check_keys(path, raw)
    when = {k: tuple(v) if isinstance(v, list) else v for k, v in raw["when"].items()}
    return Rule(
        id=path.stem, title=raw["title"], why=raw["why"], instead=raw.get("instead", ""), layer=raw.get("layer", ""),
        category=raw.get("category", ""), decision=raw.get("decision", ""), priority=raw.get("priority", 0), when=when,
        references=tuple(raw.get("references", ())), examples=tuple(raw.get("example", ())),
        counterexamples=tuple(raw.get("counterexample", ())), bridge=raw.get("bridge", {}),
    )  # fmt: skip


def _check_keys(path: Path, raw: dict[str, Any]) -> None:
    for needed in ("title", "why", "when"):
        if needed not in raw:
            raise RuleError(f"{path.name}: {needed!r} is missing", "every rule says its title, why, and when")
    for key in raw.keys() - _KEYS:
        raise RuleError(f"{path.name}: unknown key {key!r}", _nearest(key, _KEYS))
    for name in [n for table in (raw["when"], *raw.get("example", ()), *raw.get("counterexample", ())) for n in table]:
        if name not in FACTS:
            raise RuleError(f"{path.name}: there is no fact {name!r}", _nearest(name, FACTS))
    for key, kind in (("layer", Layer), ("category", Category), ("decision", Decision)):
        if key in raw and raw[key] not in list(kind):
            raise RuleError(f"{path.name}: {raw[key]!r} is no {key}", f"one of {', '.join(kind)}")


def _nearest(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word, list(known), 1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(sorted(known))}"
