"""Every rule, held to its own cases: it speaks about each example and about no counterexample."""

from __future__ import annotations

from pathlib import Path

import pytest
from audit_samples import DOCUMENT

from migrate_lens.audit import report, surface, tree
from migrate_lens.audit.surface import Surface
from migrate_lens.model.errors import RuleError
from migrate_lens.model.uses import Use
from migrate_lens.rulebook.audit import Rule, RuleSet, load_rules, read_rule

RULES = load_rules().rules
HITS = [(rule, case) for rule in RULES for case in rule.examples]
MISSES = [(rule, case) for rule in RULES for case in rule.counterexamples]


def rules_that_speak(case: tuple[str, str], folder: Path) -> set[str]:
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


@pytest.mark.parametrize(("rule", "case"), HITS, ids=[rule.id for rule, _ in HITS])
def test_a_rule_speaks_about_its_examples(rule: Rule, case: tuple[str, str], tmp_path: Path) -> None:
    assert rule.id in rules_that_speak(case, tmp_path)


@pytest.mark.parametrize(("rule", "case"), MISSES, ids=[rule.id for rule, _ in MISSES])
def test_a_rule_is_silent_about_its_counterexamples(rule: Rule, case: tuple[str, str], tmp_path: Path) -> None:
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
