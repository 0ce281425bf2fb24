"""A call that fails under the target in; every way to say it that is to be tried, the likeliest first, out.

What one change does not mend, two may: another function of the same name takes its arguments by position. The pairs are
tried last, and only so many of them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from migrate_lens.model.value import OBJECT, Encoded
from migrate_lens.remedies.fix import strategies
from migrate_lens.remedies.fix.recipes import by_recipe
from migrate_lens.remedies.fix.slots import Form, Site
from migrate_lens.remedies.fix.strategies import Candidate, Kind, Strategy, Troubled

# In the order in which they are tried: what the rules know for the very API first, then from the plainest on.
STRATEGIES: tuple[Strategy, ...] = (
    by_recipe,
    strategies.without_in_place,
    strategies.positional,
    strategies.renamed,
    strategies.without_defaults,
    strategies.with_defaults,
    strategies.into_buffer,
    strategies.through_import,
    strategies.as_operator,
    strategies.the_other_form,
    strategies.result_cast,
    strategies.operand_cast,
    strategies.scalar_operand,
    strategies.unpacked,
    strategies.gated,
    strategies.in_place_by_copy,
)
_FIRST: tuple[Strategy, ...] = (
    strategies.the_other_form,
    strategies.positional,
    strategies.through_import,
    strategies.with_defaults,
    strategies.without_defaults,
    strategies.operand_cast,
)
_SECOND: tuple[Strategy, ...] = (
    by_recipe,
    strategies.positional,
    strategies.renamed,
    strategies.without_defaults,
    strategies.result_cast,
    strategies.operand_cast,
)
_PAIRS = 40
_MARK = "slot_"
_OPAQUE: Encoded = (OBJECT, "")


def candidates(call: Troubled) -> Iterator[Candidate]:
    """All candidates of all strategies, then pairs of them; none twice."""
    seen: set[str] = set()
    for candidate in (*_singles(call), *islice(_pairs(call), _PAIRS)):
        if candidate.template not in seen:
            seen.add(candidate.template)
            yield candidate


def _singles(call: Troubled) -> Iterator[Candidate]:
    for strategy in STRATEGIES:
        yield from strategy(call)


def _pairs(call: Troubled) -> Iterator[Candidate]:
    """Two changes at once: a candidate is read as a call again, and changed once more."""
    for first in (one for strategy in _FIRST for one in strategy(call)):
        changed = _reread(call, first)
        if changed is None:
            continue
        for second in (one for strategy in _SECOND for one in strategy(changed)):
            template = _in_old_slots(second.template, changed.site)
            why = first.why if first.why == second.why else f"{first.why}; {second.why}"
            kind = first.kind if first.kind is not Kind.ARGUMENT else second.kind
            yield Candidate(kind, template, why, first.prelude or second.prelude)


def _reread(call: Troubled, candidate: Candidate) -> Troubled | None:
    """The call that a candidate makes; None where it makes none that can be told apart."""
    node = _plain_call(re.sub(r"\{(\d+)\}", rf"{_MARK}\1", candidate.template))
    if node is None:
        return None
    given = [("", argument) for argument in node.args] + [(k.arg or "", k.value) for k in node.keywords]
    callee = ast.unparse(node.func)
    form, api = Form.FUNCTION, callee if callee.startswith("torch.") else call.api
    if isinstance(node.func, ast.Attribute) and _root(node.func).startswith(_MARK):
        given.insert(0, ("", node.func.value))
        form, callee, api = Form.METHOD, node.func.attr, f"torch.Tensor.{node.func.attr}"
    site = Site(form, callee, tuple(k for k, _ in given), tuple(n for _, n in given), node)
    values = tuple(_value(part, call) for part in site.nodes)
    return replace(call, api=api, site=site, values=values, missing=None)


def _plain_call(text: str) -> ast.Call | None:
    """The call that an expression is; None where it is another, or gives arguments by a star."""
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(node, ast.Call) or any(keyword.arg is None for keyword in node.keywords):
        return None
    return None if any(isinstance(argument, ast.Starred) for argument in node.args) else node


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _value(part: ast.expr, call: Troubled) -> Encoded:
    """What was recorded for a part that is a slot by itself."""
    if isinstance(part, ast.Name) and part.id.startswith(_MARK):
        return call.values[int(part.id.removeprefix(_MARK))]
    return _OPAQUE


def _in_old_slots(template: str, site: Site) -> str:
    """A replacement for the changed call, in the slots of the call as it stands."""
    texts = [re.sub(rf"\b{_MARK}(\d+)\b", r"{\1}", ast.unparse(node)) for node in site.nodes]
    return re.sub(r"\{(\d+)\}", lambda slot: texts[int(slot[1])], template)
