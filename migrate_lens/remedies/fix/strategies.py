"""A call that fails under Paddle in; other ways to say the same thing in torch's own spelling, to be tried, out.

Nothing here is known to work: every candidate is run on both sides with the recorded inputs, and only one that gives
torch's result on both is offered.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from migrate_lens.model.value import Encoded, tag
from migrate_lens.programs.literals import scalar
from migrate_lens.remedies.fix.slots import ATTRIBUTE, FUNCTION, INPLACE, ITEM, METHOD, OPERATOR, Site

_OPERATORS = {
    "add": "+", "sub": "-", "subtract": "-", "mul": "*", "multiply": "*", "div": "/", "divide": "/", "true_divide": "/",
    "floor_divide": "//", "remainder": "%", "pow": "**", "matmul": "@", "mm": "@", "bmm": "@", "eq": "==", "ne": "!=",
    "not_equal": "!=", "lt": "<", "less": "<", "le": "<=", "less_equal": "<=", "gt": ">", "greater": ">", "ge": ">=",
    "greater_equal": ">=", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "logical_and": "&",
    "logical_or": "|", "__and__": "&", "__or__": "|", "__xor__": "^",
}  # fmt: skip
_METHODS = {sign: name for name, sign in reversed(_OPERATORS.items())}


@dataclass(frozen=True, slots=True)
class Troubled:
    """A call that fails: how it stands, with what it was called, and what torch gave.

    Attributes:
        api: the torch name as documented.
        symptom: how it shows.
        site: its parts.
        values: for each slot, what was recorded.
        want: torch's result.
        missing: for what is not there, the longest part of its name that is there, and the name behind it.
    """

    api: str
    symptom: str
    site: Site
    values: tuple[Encoded, ...]
    want: Encoded
    missing: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A replacement: its kind, its text with slots, why it is one, and an import that must stand above it."""

    kind: str
    template: str
    why: str
    prelude: str = ""


Strategy = Callable[[Troubled], Iterator[Candidate]]
STRATEGIES: list[Strategy] = []


def strategy(function: Strategy) -> Strategy:
    """Register a strategy; they are tried in the order in which they stand."""
    STRATEGIES.append(function)
    return function


def candidates(call: Troubled) -> Iterator[Candidate]:
    """All candidates of all strategies, the plainest first, none twice."""
    seen: set[str] = set()
    for one in STRATEGIES:
        for candidate in one(call):
            if candidate.template not in seen:
                seen.add(candidate.template)
                yield candidate


def again(
    site: Site, *, keywords: Sequence[str] | None = None, slots: Sequence[str] | None = None, name: str = ""
) -> str:
    """The call as it stands, with some of its parts changed."""
    texts = list(slots) if slots is not None else [f"{{{n}}}" for n in range(len(site.nodes))]
    names = site.keywords if keywords is None else keywords
    given = [f"{k}={t}" if k else t for k, t in zip(names, texts, strict=True)]
    name = name or site.name
    if site.form == METHOD:
        return f"{given[0]}.{name}({', '.join(given[1:])})"
    if site.form == OPERATOR:
        return f"{given[0]} {name} {given[1]}"
    if site.form == ATTRIBUTE:
        return f"{given[0]}.{name}"
    if site.form == ITEM:
        return f"{given[0]}[{given[1]}]"
    return f"{name}({', '.join(given)})"


@strategy
def without_in_place(call: Troubled) -> Iterator[Candidate]:
    """A layer or a function of the neural network library without its request to save memory."""
    site = call.site
    if site.form == FUNCTION and "inplace" in site.keywords and call.api.startswith("torch.nn."):
        number = site.keywords.index("inplace")
        yield Candidate("argument", _without(site, number), "in place saves memory, the result is the same")


@strategy
def positional(call: Troubled) -> Iterator[Candidate]:
    """Keywords that are known under another name are given by position."""
    site = call.site
    if site.form not in (FUNCTION, METHOD) or not any(site.keywords) or "inplace" in site.keywords:
        return  # a flag by position may land on another parameter, and nothing would show it
    first = next(i for i, k in enumerate(site.keywords) if k)
    for stop in range(first + 1, len(site.keywords) + 1):
        names = ("",) * stop + site.keywords[stop:]
        yield Candidate(
            "argument", again(site, keywords=names), "the keyword has another name there, its position is the same"
        )


@strategy
def renamed(call: Troubled) -> Iterator[Candidate]:
    """Keywords for which torch itself takes a second name."""
    site = call.site
    if site.form in (FUNCTION, METHOD) and ({"dim", "keepdim", "input"} & set(site.keywords)):
        other = {"dim": "axis", "keepdim": "keepdims", "input": "x"}
        names = tuple(other.get(k, k) for k in site.keywords)
        yield Candidate("argument", again(site, keywords=names), "torch takes this keyword too")


def _without(site: Site, number: int) -> str:
    """The call without one of its arguments."""
    given = [f"{k}={{{n}}}" if k else f"{{{n}}}" for n, k in enumerate(site.keywords) if n != number]
    if site.form == METHOD:
        return f"{given[0]}.{site.name}({', '.join(given[1:])})"
    return f"{site.name}({', '.join(given)})"


@strategy
def into_buffer(call: Troubled) -> Iterator[Candidate]:
    """A result that is written to a buffer is copied there."""
    site = call.site
    if site.form in (FUNCTION, METHOD) and "out" in site.keywords:
        number = site.keywords.index("out")
        yield Candidate(
            "argument", f"{{{number}}}.copy_({_without(site, number)})", "copy_ writes the result to the buffer"
        )


@strategy
def through_import(call: Troubled) -> Iterator[Candidate]:
    """A function of a module that the file never imports by itself: the proxy has another one before that import."""
    owner, _, name = call.api.rpartition(".")
    site = call.site
    if site.form != FUNCTION or owner.count(".") < 1 or not site.name.endswith(f".{name}"):
        return
    local = owner.replace(".", "_")
    slots = [f"{k}={{{n}}}" if k else f"{{{n}}}" for n, k in enumerate(site.keywords)]
    why = "the module is imported by its own name, so that the proxy hands out its compat functions"
    yield Candidate("import", f"{local}.{name}({', '.join(slots)})", why, f"import {owner} as {local}")


@strategy
def as_operator(call: Troubled) -> Iterator[Candidate]:
    """A function or method as the operator that it stands for, and back."""
    site, last = call.site, call.api.rpartition(".")[2]
    why = "the operator takes what the function refuses"
    if site.form in (FUNCTION, METHOD) and len(site.nodes) == 2 and last in _OPERATORS:
        yield Candidate("operator", f"({{0}} {_OPERATORS[last]} {{1}})", why)
    if site.form == METHOD and len(site.nodes) == 2 and last.rstrip("_") in _OPERATORS and last.endswith("_"):
        yield Candidate(
            "operator", f"{{0}}.copy_({{0}} {_OPERATORS[last.rstrip('_')]} {{1}})", why + "; copy_ keeps it in place"
        )
    if site.form == OPERATOR and site.name in _METHODS:
        yield Candidate(
            "operator", f"torch.{_METHODS[site.name]}({{0}}, {{1}})", "the function behaves as torch's operator"
        )
    if site.form == INPLACE and site.name[:-1] in _METHODS:
        name = _METHODS[site.name[:-1]]
        yield Candidate(
            "operator", f"{{0}}.{name}_({{1}})", "the method writes in place, the operator makes a new tensor"
        )
        yield Candidate("operator", f"{{0}}.copy_({{0}} {site.name[:-1]} {{1}})", "copy_ writes in place")


@strategy
def the_other_form(call: Troubled) -> Iterator[Candidate]:
    """A method as the function of the same name, and a function as the method."""
    site, last = call.site, call.api.rpartition(".")[2]
    slots = [f"{k}={{{n}}}" if k else f"{{{n}}}" for n, k in enumerate(site.keywords)]
    if site.form == METHOD:
        for space in ("torch", "torch.linalg", "torch.nn.functional", "torch.special"):
            yield Candidate("equal_api", f"{space}.{last}({', '.join(slots)})", "the function of this name is there")
    if (
        site.form == FUNCTION
        and site.nodes
        and tag(call.values[0] if call.values else None) == "T"
        and not site.keywords[0]
    ):
        yield Candidate("equal_api", f"{{0}}.{last}({', '.join(slots[1:])})", "the method of this name is there")
        for space in ("torch", "torch.nn.functional", "torch.linalg", "torch.special"):
            if f"{space}.{last}" != call.api:
                yield Candidate("equal_api", f"{space}.{last}({', '.join(slots)})", "an equal function is there")


@strategy
def result_cast(call: Troubled) -> Iterator[Candidate]:
    """The result in torch's type where only the type differs."""
    if call.site.form == INPLACE or call.symptom not in ("dtype", "value", "exception", "shape"):
        return
    plain, want = again(call.site), call.want
    if call.site.form in (OPERATOR,):
        plain = f"({plain})"
    if tag(want) == "T":
        yield Candidate("cast", f"{plain}.to(torch.{want[1]})", "only the dtype of the result differs")
        if len(want[2]) and call.symptom == "shape":
            yield Candidate(
                "cast", f"{plain}.reshape({', '.join(map(str, want[2]))})", "only the shape of the result differs"
            )
    elif type(want) in (bool, int, float, str):
        yield Candidate("cast", f"{type(want).__name__}({plain})", f"torch gives a Python {type(want).__name__}")
    elif tag(want) == "Z" or tag(want) == "t":
        yield Candidate("cast", f"tuple({plain})", "torch gives a tuple")
    elif tag(want) == "L":
        yield Candidate("cast", f"list({plain})", "torch gives a list")
    elif want is None or tag(want) == "D":
        return


@strategy
def operand_cast(call: Troubled) -> Iterator[Candidate]:
    """Operands in the dtype to which torch promotes them."""
    if call.symptom not in ("exception", "dtype", "value"):
        return
    tensors = [n for n, v in enumerate(call.values) if tag(v) == "T"]
    types = {call.values[n][1] for n in tensors}
    wanted = [call.want[1]] if tag(call.want) == "T" else []
    wanted += sorted({*types, "float32", "int64"} - set(wanted))
    why = "torch promotes the operands itself"
    for dtype in wanted:
        for group in (*([n] for n in tensors), tensors):
            changed = [n for n in group if call.values[n][1] != dtype]
            if changed == group and changed:
                slots = [
                    f"{{{n}}}.to(torch.{dtype})" if n in group else f"{{{n}}}" for n in range(len(call.site.nodes))
                ]
                if call.site.form == INPLACE:
                    yield Candidate("cast", f"{slots[0]} {call.site.name} {slots[1]}", why)
                else:
                    yield Candidate("cast", again(call.site, slots=slots), why)
    yield from _of_lists(call, why)


def _of_lists(call: Troubled, why: str) -> Iterator[Candidate]:
    """Lists of tensors of several dtypes."""
    if tag(call.want) != "T":
        return
    for number, value in enumerate(call.values):
        if tag(value) in ("L", "t") and value[1] and tag(value[1][0]) == "T":
            slots = [f"{{{n}}}" for n in range(len(call.site.nodes))]
            slots[number] = f"[t.to(torch.{call.want[1]}) for t in {{{number}}}]"
            yield Candidate("cast", again(call.site, slots=slots), why)


@strategy
def scalar_operand(call: Troubled) -> Iterator[Candidate]:
    """A Python number as a tensor like its neighbour."""
    tensors = [n for n, v in enumerate(call.values) if tag(v) == "T"]
    numbers = [n for n, v in enumerate(call.values) if type(v) in (int, float, bool)]
    if not tensors or call.symptom != "exception" or call.site.form == INPLACE:
        return
    for number in numbers[:2]:
        slots = [f"{{{n}}}" for n in range(len(call.site.nodes))]
        for form in (f"torch.full_like({{{tensors[0]}}}, {{{number}}})", f"torch.tensor({{{number}}})"):
            slots[number] = form
            yield Candidate("cast", again(call.site, slots=slots), "it takes tensors only")


@strategy
def unpacked(call: Troubled) -> Iterator[Candidate]:
    """Operands that torch takes as a list, given one by one, and the other way round."""
    site = call.site
    if site.form not in (FUNCTION, METHOD) or call.symptom not in ("exception", "missing_argument"):
        return
    for number, value in enumerate(call.values):
        if tag(value) in ("L", "t", "Z") and number:
            slots = [f"{{{n}}}" for n in range(len(site.nodes))]
            slots[number] = f"*{{{number}}}"
            keywords = tuple("" if n == number else k for n, k in enumerate(site.keywords))
            yield Candidate("argument", again(site, slots=slots, keywords=keywords), "it takes them one by one")


@strategy
def gated(call: Troubled) -> Iterator[Candidate]:
    """A capability query or a setting that is not there: the answer that a runtime without it gives."""
    owner, name = call.missing
    known = call.site.form == ATTRIBUTE or all(tag(v) in ("", "V", "D") for v in call.values)
    if not owner or not known or not _constant(call):
        return
    if call.site.form not in (FUNCTION, ATTRIBUTE):
        return
    text = again(call.site)
    yield Candidate(
        "feature_gate", f'({text} if hasattr({owner}, "{name}") else {scalar(call.want)})',
        "a query or a setting of the runtime; the gate opens by itself when the name is there",
    )  # fmt: skip


def _constant(call: Troubled) -> bool:
    """Whether the answer depends on nothing but the runtime: none, yes or no for literals, or a constant of a literal.

    A number or a text that a call returns may change while the program runs, so it is no constant.
    """
    if call.want is None:
        return True
    if call.site.form == FUNCTION and not isinstance(call.want, bool):
        return False
    return not tag(call.want) and all(_fixed(node) for node in call.site.nodes)


def _fixed(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id == "torch")


@strategy
def in_place_by_copy(call: Troubled) -> Iterator[Candidate]:
    """A method that writes in place as its plain form, copied to the receiver."""
    site = call.site
    if site.form == METHOD and site.name.endswith("_") and not site.name.endswith("__"):
        slots = [f"{k}={{{n}}}" if k else f"{{{n}}}" for n, k in enumerate(site.keywords)]
        plain = f"{slots[0]}.{site.name[:-1]}({', '.join(slots[1:])})"
        why = "copy_ writes in place and keeps the dtype"
        yield Candidate("operator", f"{{0}}.copy_({plain})", why)
        yield Candidate("operator", f"{{0}}.copy_({plain}.to({{0}}.dtype))", why)
