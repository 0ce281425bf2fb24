"""Every sentence that a rule of the audit says to a user, held against both frameworks by the claims beside it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from claims import outcomes

from migrate_lens.model.errors import RuleError
from migrate_lens.rulebook.audit import Claim, Rule, load_rules, read_rule

RULES = load_rules().rules
RUN = [(rule, claim) for rule in RULES for claim in rule.claims if not claim.unrun]


def unclaimed(rule: Rule) -> list[str]:
    """The texts of a rule that no claim speaks of."""
    return [text for text in (rule.why, rule.instead) if not any(claim.says in text for claim in rule.claims)]


def astray(rule: Rule) -> list[str]:
    """The claims of a rule on words that it does not say."""
    return [claim.says for claim in rule.claims if claim.says not in rule.why and claim.says not in rule.instead]


def false_claims(claims: list[Claim]) -> list[str]:
    """The claims that do not hold, each with what the two sides did."""
    programs = [claim.program for claim in claims]
    torch, target = outcomes(programs, compat=False), outcomes(programs, compat=True)
    return [
        f"{claim.says}: {saw!r} against {met!r}"
        for claim, saw, met in zip(claims, torch, target, strict=True)
        if (saw, met) != (claim.torch, claim.target)
    ]


@pytest.mark.parametrize("rule", RULES, ids=[rule.id for rule in RULES])
def test_what_a_rule_says_and_advises_has_a_claim(rule: Rule) -> None:
    assert not unclaimed(rule)
    assert not astray(rule)


@pytest.mark.real
def test_every_claim_holds_on_both_sides() -> None:
    assert len(RUN) > len(RULES)
    assert false_claims([claim for _, claim in RUN]) == []


@pytest.mark.real
def test_a_planted_false_claim_is_found() -> None:
    """An annotation that is said to work and raises, an advice that gives another value, one that raises itself."""
    good = RUN[0][1]
    lies = [
        ("import torch\ndef f(d: str | torch.device): ...\nprint('works')", "works"),
        ("import torch\nprint(torch.median(torch.tensor([1., 2.])).item())", "1.0"),
        ("import torch\nprint(torch.seed() > 0)", "True"),
    ]
    planted = [replace(good, program=program, torch=said, target=said) for program, said in lies]
    assert len(false_claims([good, *planted])) == len(planted)


def test_a_rule_without_a_claim_or_with_one_on_other_words_is_found() -> None:
    rule = next(rule for rule in RULES if rule.id == "equal_result")
    assert unclaimed(replace(rule, claims=())) == [rule.why, rule.instead]
    assert unclaimed(replace(rule, claims=tuple(claim for claim in rule.claims if claim.says in rule.why)))
    assert astray(replace(rule, why="It works."))


GOOD = next(Path(__file__).parents[2].glob("rules/audit/equal_result.toml")).read_text()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("says = ", "sayz = ", "says"),
        ("paddle = ", "padle = ", "padle"),
        ('torch = "', 'unrun = "perhaps"\ntorch = "', "perhaps"),
    ],
)
def test_a_broken_claim_says_what_is_wrong(old: str, new: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(re.sub(re.escape(old), lambda _: new, GOOD, count=1))
    with pytest.raises(RuleError, match=said):
        read_rule(file)
