"""A folder of rules in; one page of Markdown for each kind of rule, and an index of them, out.

``python -m migrate_lens.rulebook.pages docs/rules`` writes them. They are rendered, never written by hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import assert_never

from migrate_lens.model.report import Fact
from migrate_lens.rulebook import audit, bridges, classify, recipes
from migrate_lens.rulebook.bridges import AddName, Bridge, CallSite, Change, ShimHeaders
from migrate_lens.rulebook.matching import Condition, Matcher
from migrate_lens.rulebook.recipes import Recipe, Recipes, Shim
from migrate_lens.shipped import folder

# Examples stand as the rules have them: a formatter that reads Markdown leaves them alone.
_RENDERED = (
    "<!-- rendered from rules/ by python -m migrate_lens.rulebook.pages docs/rules; edit the rules instead -->\n"
    "<!-- fmt: off -->"
)
# Inside of a word an underscore is one anyway.
_MARKUP = re.compile(r"[\\<*`]|(?<!\w)_|_(?!\w)")
_FENCES = {".py": "python", ".toml": "toml", ".txt": "cmake", ".cmake": "cmake"}


def render(rules: Path) -> dict[str, str]:
    """The pages of a folder of rules, by the name of their file.

    Raises:
        RuleError: a file is not a valid rule.
    """
    classifying = classify.read_rules(rules / "classify")
    auditing = audit.read_rules(rules / "audit")
    bridging = bridges.read(rules / "bridges")
    replacing = recipes.read(rules / "recipes")
    return {
        "README.md": _index(classifying, auditing, bridging, replacing),
        "classify.md": _classify_page(classifying),
        "audit.md": _audit_page(auditing),
        "bridges.md": _bridges_page(bridging),
        "recipes.md": _recipes_page(replacing),
    }


def write(rules: Path, target: Path) -> None:
    """Write the pages of a folder of rules.

    Raises:
        RuleError: a file is not a valid rule.
        OSError: a page cannot be written.
    """
    target.mkdir(parents=True, exist_ok=True)
    for name, page in render(rules).items():
        (target / name).write_text(page, encoding="utf-8")


def _index(
    classifying: Sequence[classify.Rule],
    auditing: Sequence[audit.Rule],
    bridging: Sequence[Bridge],
    replacing: Recipes,
) -> str:
    replacements = f"- [{len(replacing.recipes)} recipes and {len(replacing.shims)} stand-ins](recipes.md)"
    return _page(
        "Rules",
        "What migrate-lens knows about torch's compat layer is data: one TOML file a rule, with its own examples.",
        "Of the rules that match a case, the one with the most conditions that narrow speaks, then the one with the "
        "higher priority. `migrate-lens explain RULE` and `migrate-lens audit --explain RULE` show one in a terminal.",
        "## [Classification](classify.md): which layer and category a difference has",
        _links("classify.md", classifying),
        "## [Audit](audit.md): what a source is going to meet",
        _links("audit.md", auditing),
        "## [Bridges](bridges.md): edits of native sources",
        _links("bridges.md", bridging),
        "## [Recipes](recipes.md): calls in another spelling",
        replacements,
    )


def _links(page: str, rules: Iterable[Matcher]) -> str:
    return "\n".join(f"- [`{rule.id}`]({page}#{rule.id}): {_prose(rule.title)}" for rule in rules)


# -- one page a kind ---------------------------------------------------------------------------------------------------


def _classify_page(rules: Iterable[classify.Rule]) -> str:
    return _page(
        "Classification rules",
        "`rules/classify/*.toml`: what layer and category a difference between the two runtimes has, why, and what to "
        "do about it. A rule may ask for these facts:",
        _meanings(classify.FACTS),
        *(_classify_rule(rule) for rule in rules),
    )


def _classify_rule(rule: classify.Rule) -> str:
    says = {"layer": rule.layer, "category": rule.category, "decision": rule.decision}
    return _section(
        rule,
        ", ".join(f"{aspect} `{word}`" for aspect, word in says.items() if word is not None),
        f"**Why.** {_prose(rule.why)}",
        f"**Instead.** {_prose(rule.instead)}" if rule.instead else "",
        _when(rule),
        _cases("For example", rule.examples),
        _cases("But not", rule.counterexamples),
        _references(rule.references),
    )


def _audit_page(rules: Iterable[audit.Rule]) -> str:
    return _page(
        "Audit rules",
        "`rules/audit/*.toml`: what a source does with torch that a look-up of names cannot judge. Nothing is run. A "
        "rule may ask for these facts:",
        _meanings(audit.FACTS),
        *(_audit_rule(rule) for rule in rules),
    )


def _audit_rule(rule: audit.Rule) -> str:
    kind = f"{rule.symptom}, layer `{rule.layer}`, category `{rule.category}`, decision `{rule.decision}`"
    return _section(
        rule,
        kind + (f", reported as `{rule.under}`" if rule.under else ""),
        f"**Why.** {_prose(rule.why)}",
        f"**Instead.** {_prose(rule.instead)}",
        _when(rule),
        *(_source("For example", case) for case in rule.examples),
        *(_source("But not", case) for case in rule.counterexamples),
        _references(rule.references),
    )


def _bridges_page(rules: Iterable[Bridge]) -> str:
    return _page(
        "Bridges",
        "`rules/bridges/*.toml`: the smallest edit of a native source that gives it a C++ name which Paddle's compat "
        "headers lack. Each is compiled before it is offered, and goes away once Paddle has the name.",
        *(_bridge(rule) for rule in rules),
    )


def _bridge(rule: Bridge) -> str:
    return _section(
        rule,
        f"For {_codes(rule.apis)}, until {_prose(rule.until)}.",
        _change(rule.change),
        f"**What it lets compile.**\n\n{_fenced('cpp', rule.check)}",
    )


def _change(change: Change) -> str:
    match change:
        case AddName(header):
            return f"**Below the last include.**\n\n{_fenced('cpp', header)}"
        case ShimHeaders(headers):
            shims = (f"**Instead of `{shim.path}`.**\n\n{_fenced('cpp', shim.text)}" for shim in headers)
            return "\n\n".join(shims)
        case CallSite(rewrites):
            rows = [(_code(rewrite.pattern), _code(rewrite.replacement)) for rewrite in rewrites]
            return _table(("at the call", "becomes"), rows)
    assert_never(change)


def _recipes_page(known: Recipes) -> str:
    return _page(
        "Recipes and stand-ins",
        "`rules/recipes/*.toml`: a call in torch's own spelling that gives the same under both frameworks. A recipe is "
        "offered only after it gave torch's result on both sides with the recorded inputs.",
        _table(("call", "becomes", "why"), [_recipe(recipe) for recipe in known.recipes]),
        "## Stand-ins",
        "Small private helpers of torch that libraries import. Each is used only where the import fails.",
        *(_shim(shim) for shim in known.shims.values()),
    )


def _recipe(recipe: Recipe) -> tuple[str, str, str]:
    signature = ", ".join(
        name if default is None else f"{name}={default}" for name, default in recipe.parameters.items()
    )
    calls = "<br>".join(_code(f"{api}({signature})") for api in recipe.apis)
    conditions = [f"{', '.join(recipe.given)} must be given"] if recipe.given else []
    if recipe.symptoms:
        conditions.append(f"for {', '.join(recipe.symptoms)}")
    why = f"{recipe.why} ({'; '.join(conditions)})" if conditions else recipe.why
    return calls, _code(recipe.replace), _prose(why)


def _shim(shim: Shim) -> str:
    return f"### `{shim.name}`\n\n{_prose(shim.why)}.\n\n{_fenced('python', shim.code)}"


# -- parts of a page ---------------------------------------------------------------------------------------------------


def _page(title: str, *parts: str) -> str:
    return "\n\n".join((f"# {title}", _RENDERED, *(part for part in parts if part))) + "\n"


def _section(rule: Matcher, *parts: str) -> str:
    return "\n\n".join((f"## {rule.id}", f"**{_prose(rule.title)}**", *(part for part in parts if part)))


def _meanings(facts: Mapping[str, str]) -> str:
    return _table(("fact", "what it says"), [(f"`{fact}`", _prose(meaning)) for fact, meaning in facts.items()])


def _when(rule: Matcher) -> str:
    lines = [f"- `{fact}` is {_condition(wanted)}" for fact, wanted in rule.when.wanted.items()]
    if rule.priority:
        lines.append(f"- priority {rule.priority} among rules with as many conditions")
    return "**When.**\n\n" + "\n".join(lines)


def _condition(wanted: Condition) -> str:
    match wanted:
        case True:
            return "true"
        case False:
            return "false or absent"
        case _:
            return " or ".join(_code(glob) for glob in wanted.globs)


def _cases(heading: str, cases: Iterable[Mapping[str, Fact]]) -> str:
    lines = [f"- {', '.join(_fact(name, value) for name, value in case.items())}" for case in cases]
    return f"**{heading}.**\n\n" + "\n".join(lines) if lines else ""


def _fact(name: str, value: Fact) -> str:
    return f"{name} {_code(str(value).lower() if isinstance(value, bool) else str(value))}"


def _source(heading: str, case: audit.Case) -> str:
    language = _FENCES.get(Path(case.path).suffix, "cpp")
    return f"**{heading}**, in `{case.path}`:\n\n{_fenced(language, case.source)}"


def _references(references: Iterable[str]) -> str:
    lines = [f"- <{reference}>" for reference in references]
    return "**References.**\n\n" + "\n".join(lines) if lines else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [_row(head), _row(["---"] * len(head)), *(_row(row) for row in rows)]
    return "\n".join(lines)


def _row(cells: Iterable[str]) -> str:
    """A row of a table; a bar inside of a cell does not end it."""
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def _prose(text: str) -> str:
    """Text of a rule as Markdown shows it: what looks like a tag, code or emphasis is text all the same."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.split()))


def _code(text: str) -> str:
    """Text between backticks; one more of them where it has one itself."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _codes(texts: Iterable[str]) -> str:
    return ", ".join(_code(text) for text in texts)


def _fenced(language: str, text: str) -> str:
    body = text.strip("\n")
    return f"```{language}\n{body}\n```"


if __name__ == "__main__":
    write(folder("rules"), Path(sys.argv[1]))
