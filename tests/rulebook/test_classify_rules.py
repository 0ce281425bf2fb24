"""Shipped rules, in; each matches its examples and not its counterexamples, and typos are refused with a hint, out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from migrate_lens.classify import classify
from migrate_lens.model.errors import RuleError
from migrate_lens.model.report import Category, Decision, Fact, Finding, Key, Layer, Site, Stage, Symptom
from migrate_lens.rulebook.classify import FACTS, VOCABULARY, Rule, facts_of, load_rules, match, read_rule
from migrate_lens.rulebook.matching import Conditions, leaders
from migrate_lens.shipped import folder

RULES = load_rules()
GIVEN = ("symptom", "api", "detail", "stage")


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.id)
def test_a_rule_matches_its_examples_and_not_its_counterexamples(rule: Rule) -> None:
    assert rule.examples
    assert rule.counterexamples
    for example in rule.examples:
        assert rule.matches(example), example
    for example in rule.counterexamples:
        assert not rule.matches(example), example


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.id)
def test_a_rule_says_what_it_means(rule: Rule) -> None:
    assert rule.title
    assert not rule.title.endswith(".")
    assert len(rule.why) > 20
    assert rule.when
    assert rule.layer or rule.category or rule.decision
    if rule.layer:
        assert rule.layer != Layer.UNCLASSIFIED


def found_for(facts: Mapping[str, Fact]) -> Finding:
    symptom = Symptom(str(facts.get("symptom", "value")))
    key = Key(symptom, str(facts.get("api", "torch.f")), str(facts.get("detail", "")))
    rest = {name: fact for name, fact in facts.items() if name not in GIVEN}
    return Finding(key, Stage(str(facts.get("stage", "run"))), (Site("a.py", 1),), "", "", rest)


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.id)
def test_the_examples_of_a_rule_end_in_what_it_says(rule: Rule) -> None:
    """A rule that another one always overrules would be dead."""
    for example in rule.examples:
        (gap,) = classify([found_for(example)])
        if rule.layer:
            assert gap.layer == rule.layer
        if rule.category:
            assert gap.category == rule.category
        if rule.decision:
            assert gap.decision == rule.decision


def speakers(example: Mapping[str, Fact], rules: Iterable[Rule]) -> list[str]:
    """The rules that say most about a finding: one, unless two are equally specific."""
    return [rule.id for rule in leaders(rules, facts_of(found_for(example)))]


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.id)
def test_the_examples_of_a_rule_are_answered_by_it_and_by_no_other(rule: Rule) -> None:
    """A rule that is never named is never read."""
    for example in rule.examples:
        assert speakers(example, RULES) == [rule.id]
        (gap,) = classify([found_for(example)])
        assert gap.rule == rule.id


def test_a_rule_that_nothing_can_reach_is_noticed() -> None:
    """A planted rule that another one always overrules, and one that is as specific as another."""
    scope = next(rule for rule in RULES if rule.id == "scope")
    hidden = replace(scope, id="hidden", priority=scope.priority - 1)
    twin = replace(scope, id="twin")
    assert speakers(scope.examples[0], (*RULES, hidden)) == ["scope"]
    assert speakers(scope.examples[0], (*RULES, twin)) == ["scope", "twin"]


CASES: list[tuple[dict[str, Fact], str, str]] = [
    ({"symptom": "missing_api", "api": "torch.segment_reduce", "kind": "call"}, "python_interface", "A"),
    ({"symptom": "missing_api", "api": "torch.optim", "missing_module": True}, "python_proxy", "A"),
    ({"symptom": "missing_api", "api": "torch._dynamo", "missing_module": True, "private": True}, "python_proxy", "B"),
    ({"symptom": "exception", "api": "torch.device", "callee": "ProxyModule"}, "python_proxy", "A"),
    ({"symptom": "shape", "api": "torch.max", "proxied": True}, "python_proxy", "A"),
    ({"symptom": "exception", "api": "torch.ops"}, "op_registry", "A"),
    ({"symptom": "op_not_found", "api": "torch.ops.my.op"}, "op_registry", "A"),
    ({"symptom": "schema", "api": "TORCH_LIBRARY_FRAGMENT"}, "op_registry", "A"),
    ({"symptom": "compile_error", "api": "at::cumsum", "stage": "build"}, "cpp_api", "A"),
    ({"symptom": "missing_header", "api": "torch/script.h", "stage": "build"}, "cpp_api", "A"),
    ({"symptom": "link_error", "api": "at::tensor", "stage": "import"}, "cpp_api", "A"),
    ({"symptom": "exception", "api": "torch.utils.cpp_extension.CppExtension"}, "build", "A"),
    ({"symptom": "scope", "api": "paddle.enable_compat", "scoped_only": True}, "python_proxy", "A"),
    ({"symptom": "value", "api": "torch.version.cuda"}, "python_proxy", "A"),
    ({"symptom": "missing_api", "api": "torch.nn.modules.conv._ConvNd", "private": True}, "python_interface", "B"),
]


@pytest.mark.parametrize(("facts", "layer", "category"), CASES)
def test_layers_and_categories_as_the_design_draws_them(facts: dict[str, Fact], layer: str, category: str) -> None:
    (gap,) = classify([found_for(facts)])
    assert (str(gap.layer), str(gap.category)) == (layer, category)
    assert gap.rule


@pytest.mark.parametrize("symptom", list(Symptom))
def test_no_symptom_is_left_without_a_layer(symptom: Symptom) -> None:
    stage = "build" if symptom in (Symptom.COMPILE_ERROR, Symptom.LINK_ERROR, Symptom.MISSING_HEADER) else "run"
    api = "torch.ops.a.b" if symptom in (Symptom.OP_NOT_FOUND, Symptom.SCHEMA, Symptom.DISPATCH) else "torch.f"
    facts: dict[str, Fact] = {"symptom": str(symptom), "api": api, "stage": stage}
    if symptom is Symptom.IMPORT_ERROR:
        facts |= {"stage": "import", "construct_kind": "naming"}
    (gap,) = classify([found_for(facts)])
    assert gap.layer is not Layer.UNCLASSIFIED


def rule(name: str, weight: int, layer: str = "build", priority: int = 0, **when: str) -> Rule:
    wanted = {**when, **{f"fact{i}": "*" for i in range(weight - len(when))}}
    conditions = Conditions.of(wanted, VOCABULARY)
    return Rule(id=name, title=name, why="because", layer=Layer(layer), priority=priority, when=conditions)


def test_the_rule_with_more_conditions_speaks_then_the_higher_priority_then_the_first() -> None:
    facts: dict[str, Fact] = {"symptom": "value", "fact0": "x", "fact1": "x"}
    few, many = rule("few", 1, priority=9), rule("many", 2)
    assert match((few, many), facts, "layer") is many
    low, high = rule("low", 1), rule("high", 1, priority=1)
    assert match((low, high), facts, "layer") is high
    first, second = rule("a", 1), rule("b", 1)
    assert match((first, second), facts, "layer") is first
    assert match((first,), facts, "category") is None
    assert match((rule("other", 1, symptom="shape"),), facts, "layer") is None


def test_conditions_are_globs_lists_of_globs_and_bools() -> None:
    def holds(wanted: str | bool | tuple[str, ...], **facts: Fact) -> bool:
        when = Conditions.of({"api": wanted}, VOCABULARY)
        return Rule(id="r", title="t", why="w", layer=Layer.BUILD, when=when).matches(facts)

    assert holds("torch.*", api="torch.nn")
    assert not holds("torch.*", api="Torch.nn")
    assert holds(("a", "torch*"), api="torch")
    assert not holds(("a", "b"), api="torch")
    assert not holds("*")
    assert holds(True, api=True)
    assert holds(False)
    assert not holds(True)
    assert not holds(False, api="x")


GOOD = 'title = "t"\nwhy = "w"\nlayer = "build"\n[when]\napi = "x"\n'


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        (GOOD.replace("title", "titel"), "'title' is missing", "title"),
        (GOOD.replace('why = "w"\n', ""), "'why' is missing", "why"),
        (GOOD.replace("[when]", "[wen]"), "'when' is missing", "when"),
        ("colour = 1\n" + GOOD, "unknown key 'colour'", "known: "),
        ("laier = 'build'\n" + GOOD, "unknown key 'laier'", "did you mean 'layer'?"),
        (GOOD.replace("api", "apii"), "no fact 'apii'", "did you mean 'api'?"),
        (GOOD + '[[example]]\nsymtom = "x"\n', "no fact 'symtom'", "did you mean 'symptom'?"),
        (GOOD + '[[counterexample]]\nnothing_like_it = "x"\n', "no fact 'nothing_like_it'", "known: "),
        (GOOD.replace('"build"', '"bild"'), "'bild' is no layer", "build"),
        ('category = "C"\n' + GOOD, "'C' is no category", "one of A, B, none"),
        ('decision = "maybe"\n' + GOOD, "'maybe' is no decision", "workaround"),
        ("title = \n", "Invalid value", "repair the rule file"),
    ],
)
def test_a_rule_that_is_not_valid_is_refused_with_its_file_and_a_hint(
    text: str, message: str, remedy: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(RuleError) as caught:
        read_rule(path)
    assert caught.value.message.startswith("mine.toml: ")
    assert message in caught.value.message
    assert remedy in caught.value.remedy


def test_a_rule_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(RuleError, match=r"mine\.toml"):
        read_rule(path)


def test_a_good_rule_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD + 'symptom = ["a", "b"]\n[[example]]\napi = "x"\n')
    read = read_rule(path)
    assert (read.id, read.layer) == ("mine", Layer.BUILD)
    assert read.when == Conditions.of({"api": "x", "symptom": ("a", "b")}, VOCABULARY)
    assert read.examples == ({"api": "x"},)


def test_every_condition_names_a_fact_that_is_described() -> None:
    assert all(name in FACTS for r in RULES for name in r.when.wanted)
    assert all(description for description in FACTS.values())
    assert sorted(path.stem for path in folder("rules/classify").glob("*.toml")) == [r.id for r in RULES]


def test_values_of_the_report_are_closed_lists() -> None:
    assert {r.layer for r in RULES} - {None} <= set(Layer)
    assert {r.category for r in RULES} - {None} <= set(Category)
    assert {r.decision for r in RULES} - {None} <= set(Decision)
