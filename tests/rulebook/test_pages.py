"""Rules, in; pages that are as fresh as they are, out; and what one more rule costs: one file."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from migrate_lens.classify import classify
from migrate_lens.commands import explain
from migrate_lens.model.errors import RuleError
from migrate_lens.model.report import Decision, Finding, Key, Layer, Stage, Symptom
from migrate_lens.rulebook import audit, bridges, pages
from migrate_lens.rulebook import classify as classifying
from migrate_lens.shipped import folder

DOCS = Path(__file__).resolve().parents[2] / "docs/rules"
RULES = folder("rules")


def test_the_pages_in_the_docs_are_those_of_the_rules() -> None:
    """If this fails: python -m migrate_lens.rulebook.pages docs/rules."""
    committed = {path.name: path.read_text(encoding="utf-8") for path in DOCS.iterdir()}
    assert committed == pages.render(RULES)


def test_every_rule_has_a_kind() -> None:
    """A file beside the folders of the kinds would be read by nobody."""
    assert not list(RULES.glob("*.toml"))
    assert {path.name for path in RULES.iterdir()} == {"audit", "bridges", "classify", "recipes"}


def test_every_rule_stands_on_its_page_and_in_the_index() -> None:
    rendered = pages.render(RULES)
    kinds = {
        "classify.md": classifying.load_rules(),
        "audit.md": audit.load_rules().rules,
        "bridges.md": bridges.load(),
    }
    for page, rules in kinds.items():
        assert re.findall(r"(?m)^## (\w+)$", rendered[page]) == [rule.id for rule in rules]
        for rule in rules:
            assert f"({page}#{rule.id})" in rendered["README.md"]


def test_links_of_the_index_lead_to_a_heading() -> None:
    rendered = pages.render(RULES)
    links = re.findall(r"\]\((\w+\.md)(?:#(\w+))?\)", rendered["README.md"])
    assert links
    for page, rule in links:
        assert page in rendered
        assert not rule or f"\n## {rule}\n" in rendered[page]


def test_a_page_shows_what_markdown_would_hide() -> None:
    assert pages._prose("at::f<T> of __version__ and *args, cpp_extension\nhere") == (
        r"at::f\<T> of \__version_\_ and \*args, cpp_extension here"
    )
    assert pages._table(("a", "b"), [("x | y", "z")]).splitlines()[-1] == r"| x \| y | z |"
    assert pages._code("a `b`") == "`` a `b` ``"


def test_pages_are_written_where_the_user_says(tmp_path: Path) -> None:
    pages.write(RULES, tmp_path / "docs/rules")
    assert {path.name for path in (tmp_path / "docs/rules").iterdir()} == set(pages.render(RULES))


# -- what a rule costs -------------------------------------------------------------------------------------------------

MINE = """
title = "A sparse layout"
why = "Paddle has other sparse layouts, and no strided view of them."
instead = "Convert to a dense tensor at this one place."
layer = "python_interface"
category = "none"
decision = "note"

[when]
symptom = "layout"
api = "torch.sparse.*"

[[example]]
symptom = "layout"
api = "torch.sparse.mm"

[[counterexample]]
symptom = "layout"
api = "torch.mm"
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """The shipped rules, and one more file."""
    copy = tmp_path / "rules"
    shutil.copytree(RULES, copy)
    (copy / "classify" / "sparse_layout.toml").write_text(MINE)
    return copy


def test_a_rule_costs_one_file(rules: Path) -> None:
    """It classifies, is explained and has its place on the pages, and no line of Python knows of it."""
    known = classifying.read_rules(rules / "classify")
    key = Key(Symptom.LAYOUT, "torch.sparse.mm")
    (gap,) = classify([Finding(key, Stage.RUN, (), "strided", "coo")], known)
    assert (gap.rule, gap.layer, gap.decision) == ("sparse_layout", Layer.PYTHON_INTERFACE, Decision.NOTE)

    assert "sparse_layout: A sparse layout\n" in explain.listed(known)
    shown = explain.explained(explain.chosen("torch.sparse.mm:layout", known, {gap.id: gap.rule}), 100)
    assert shown == (
        "sparse_layout: A sparse layout\nlayer python_interface, category none\n\n"
        "Why\n  Paddle has other sparse layouts, and no strided view of them.\n\n"
        "Instead\n  Convert to a dense tensor at this one place.\n"
    )

    rendered = pages.render(rules)
    assert "- [`sparse_layout`](classify.md#sparse_layout): A sparse layout\n" in rendered["README.md"]
    assert "\n## sparse_layout\n" in rendered["classify.md"]
    others = pages.render(RULES)
    assert {name for name, page in rendered.items() if page != others[name]} == {"README.md", "classify.md"}


@pytest.mark.parametrize("kind", ["classify", "audit", "bridges", "recipes"])
def test_no_page_is_made_of_a_rule_that_is_not_valid(rules: Path, kind: str) -> None:
    (rules / kind / "mine.toml").write_text('titel = "t"\n')
    with pytest.raises(RuleError, match=r"mine\.toml"):
        pages.render(rules)
