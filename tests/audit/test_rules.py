"""Every rule, held to its own cases: it speaks about each example and about no counterexample."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from audit_samples import DOCUMENT

from migrate_lens.audit import report, surface, tree
from migrate_lens.audit.surface import Surface
from migrate_lens.model.errors import RuleError
from migrate_lens.model.uses import Use
from migrate_lens.rulebook.audit import Case, Rule, RuleSet, facts_of, load_rules, read_rule
from migrate_lens.rulebook.matching import Value, leaders

RULES = load_rules().rules
HITS = [(rule, case, also) for rule in RULES for case, also in zip(rule.examples, rule.also, strict=True)]
MISSES = [(rule, case) for rule in RULES for case in rule.counterexamples]


class Heard(RuleSet):
    """All rules, and what they were asked about."""

    def __init__(self) -> None:
        super().__init__(RULES)
        self.facts: list[dict[str, Value]] = []

    def find(self, use: Use, role: str, lang: str) -> Rule | None:
        self.facts.append(facts_of(use, role, lang))
        return super().find(use, role, lang)


def rules_that_speak(case: Case, folder: Path) -> set[str]:
    """The rules that an audit of one case names."""
    path, source = case
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    if path.startswith("lib/"):
        (folder / "lib/core.py").write_text("import torch\n")
    file.write_text(source)
    known = {name: row for name, row in DOCUMENT["names"].items() if row[1] is not None}
    both = dict.fromkeys(("torch", "paddle"), DOCUMENT["native"]["paddle"])
    with tree.opened(str(folder)) as found:
        library = report.audit_tree(found, Surface(DOCUMENT | {"names": known, "native": both}), None)
    return {one.gap.rule for one in library.gaps}


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Heard:
    rules = Heard()
    monkeypatch.setattr(report, "load_rules", lambda: rules)
    return rules


@pytest.mark.parametrize(("rule", "case", "also"), HITS, ids=[rule.id for rule, _, _ in HITS])
def test_the_examples_of_a_rule_are_answered_by_it_and_by_no_other(
    rule: Rule, case: Case, also: frozenset[str], tmp_path: Path, heard: Heard
) -> None:
    """What an example cannot do without (an import, a decorator) and who speaks about that, it says itself."""
    assert rules_that_speak(case, tmp_path) == {rule.id, *also}
    answers = [leaders(RULES, facts) for facts in heard.facts]
    assert (rule,) in answers
    assert all(len(rules) <= 1 for rules in answers), "two rules say equally much, and the order of files decides"


def test_a_rule_that_nothing_can_reach_is_noticed(tmp_path: Path, heard: Heard) -> None:
    """A planted rule that another one always overrules, and one that is as specific as another."""
    raw = next(rule for rule in RULES if rule.id == "raw_stream")
    hidden, twin = replace(raw, id="hidden", priority=raw.priority - 1), replace(raw, id="twin")
    assert rules_that_speak(raw.examples[0], tmp_path) == {"raw_stream"}
    answers = [leaders((*RULES, hidden, twin), facts) for facts in heard.facts]
    assert (raw, twin) in answers
    assert not any(hidden in rules for rules in answers)


@pytest.mark.parametrize(("rule", "case"), MISSES, ids=[rule.id for rule, _ in MISSES])
def test_a_rule_is_silent_about_its_counterexamples(rule: Rule, case: Case, tmp_path: Path) -> None:
    assert rule.id not in rules_that_speak(case, tmp_path)


GOOD = """
title = "t"
why = "w"
instead = "i"
symptom = "value"
layer = "build"
category = "A"
decision = "note"
weight = "low"
[when]
event = "call"
[[example]]
source = "x"
[[counterexample]]
source = "y"
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('event = "call"', 'evnt = "call"', "evnt"),
        ('event = "call"', 'event = "call"\npositonal = "1"', "positonal"),
        ('title = "t"', 'tilte = "t"', "tilte"),
        ('symptom = "value"', 'symptom = "valu"', "valu"),
        ('weight = "low"', 'weight = "lowest"', "lowest"),
        ('[[counterexample]]\nsource = "y"', "", "counterexample"),
        ('event = "call"', "event = 3", "3"),
        ("[when]", "[when", "bad.toml"),
    ],
)
def test_a_broken_rule_says_what_is_wrong(old: str, new: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(GOOD.replace(old, new))
    with pytest.raises(RuleError, match=said):
        read_rule(file)


def test_the_most_specific_rule_speaks(tmp_path: Path) -> None:
    wide, narrow = tmp_path / "wide.toml", tmp_path / "narrow.toml"
    wide.write_text(GOOD)
    narrow.write_text(GOOD.replace('event = "call"', 'event = "call"\napi = "torch.add"'))
    rules = RuleSet((read_rule(narrow), read_rule(wide)))
    with_name = Use("call", "torch.add", 1)
    assert getattr(rules.find(with_name, "library", "python"), "id", "") == "narrow"
    assert getattr(rules.find(with_name._replace(api="torch.sub"), "library", "python"), "id", "") == "wide"


def test_the_schema_is_the_one_that_is_saved() -> None:
    assert DOCUMENT["schema"] == surface.SCHEMA
