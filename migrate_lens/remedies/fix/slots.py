"""A call in a source file in; its parts as slots that a replacement may name, and the file with the replacement, out.

A replacement is text with ``{0}``, ``{1}``, ... for the parts of the call: the receiver of a method first, then the
arguments in the order in which they stand. Every byte outside the call is kept.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from migrate_lens.model.trace import Event
from migrate_lens.programs.synthesis import BINARY

_BOM = b"\xef\xbb\xbf"
_SLOT = re.compile(r"\{(\d+)\}")
_ATOMS = (ast.Name, ast.Constant, ast.Call, ast.Attribute, ast.Subscript, ast.List, ast.Dict, ast.Set)


class Form(StrEnum):
    """How a call is written."""

    FUNCTION = "function"
    METHOD = "method"
    OPERATOR = "operator"
    INPLACE = "inplace"
    ATTRIBUTE = "attribute"
    ITEM = "item"


@dataclass(frozen=True, slots=True)
class Site:
    """A call as it stands in its file.

    Attributes:
        form: how it is written.
        name: what is called, as written: ``F.pad``, ``max``, ``+``.
        keywords: for each slot its keyword, or ``""``.
        nodes: for each slot its syntax.
        node: the whole.
    """

    form: Form
    name: str
    keywords: tuple[str, ...]
    nodes: tuple[ast.expr, ...]
    node: ast.expr | ast.stmt


def site_of(event: Event, node: ast.AST | None) -> Site | None:
    """The call of an event by its parts; None where they cannot be told apart (star arguments)."""
    if isinstance(node, ast.Call):
        return _call(event, node)
    if isinstance(node, ast.BinOp):
        return Site(Form.OPERATOR, BINARY[type(node.op)], ("", ""), (node.left, node.right), node)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in BINARY:
        return Site(Form.OPERATOR, BINARY[type(node.ops[0])], ("", ""), (node.left, node.comparators[0]), node)
    if isinstance(node, ast.AugAssign):
        target = node.target
        return Site(Form.INPLACE, BINARY[type(node.op)] + "=", ("", ""), (target, node.value), node)
    if isinstance(node, ast.Attribute):
        return Site(Form.ATTRIBUTE, node.attr, ("",), (node.value,), node)
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice):
        return Site(Form.ITEM, "[]", ("", ""), (node.value, node.slice), node)
    return None


def _call(event: Event, node: ast.Call) -> Site | None:
    starred = any(isinstance(argument, ast.Starred) for argument in node.args)
    if starred or any(keyword.arg is None for keyword in node.keywords):
        return None
    given = [("", argument) for argument in node.args]
    given += [(keyword.arg or "", keyword.value) for keyword in node.keywords]
    func = node.func
    if isinstance(func, ast.Attribute) and event.api.startswith("torch.Tensor."):
        given.insert(0, ("", func.value))
        form, name = Form.METHOD, func.attr
    else:
        form, name = Form.FUNCTION, ast.unparse(func)
    keywords = tuple(keyword for keyword, _ in given)
    nodes = tuple(part for _, part in given)
    return Site(form, name, keywords, nodes, node)


def fill(template: str, slots: Sequence[str]) -> str:
    """A replacement with texts for its slots."""
    return _SLOT.sub(lambda slot: slots[int(slot[1])], template)


def numbers(template: str) -> list[int]:
    """The slots that a replacement names, each as often as it does."""
    return [int(number) for number in _SLOT.findall(template)]


@dataclass(frozen=True, slots=True)
class Edit:
    """A span of a file, in bytes, and what it becomes."""

    start: int
    end: int
    text: str


def edit(data: bytes, site: Site, template: str) -> Edit:
    """The edit that puts a replacement in the place of a call."""
    texts = [source_of(data, node) for node in site.nodes]
    start, end = span(data, site.node)
    statement = isinstance(site.node, ast.stmt) or _is_statement(template)
    again = [] if statement else _evaluated_again(site, template)
    # What is named twice is evaluated once, as before.
    names = {number: f"v{number}" for number in again}
    shown = [
        names.get(number) or _wrapped(text, site.nodes[number], template, number) for number, text in enumerate(texts)
    ]
    text = fill(template, shown)
    if again:
        given = ", ".join(texts[number] for number in again)
        text = f"(lambda {', '.join(names.values())}: {text})({given})"
    return Edit(start, end, text)


def _evaluated_again(site: Site, template: str) -> list[int]:
    """The parts of a call that a replacement would evaluate more than once."""
    used = numbers(template)
    return [number for number in dict.fromkeys(used) if used.count(number) > 1 and not _plain(site.nodes[number])]


def _is_statement(template: str) -> bool:
    return bool(re.match(r"\{\d+\} (?:\S)?= ", template))


def _plain(node: ast.expr) -> bool:
    """Whether naming a part twice evaluates nothing twice."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.operand, ast.Constant)
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name | ast.Constant)


def _wrapped(text: str, node: ast.expr, template: str, number: int) -> str:
    """A part in brackets where it would bind otherwise than before."""
    number_first = isinstance(node, ast.Constant) and isinstance(node.value, int | float)
    if isinstance(node, _ATOMS) and not (number_first and re.search(rf"\{{{number}\}}\.", template)):
        return text
    if isinstance(node, ast.Tuple | ast.GeneratorExp) and text.startswith("("):
        return text
    enclosed = rf"(?:\(|, |=|\[)\{{{number}\}}(?=\)|,|\])"
    return text if re.search(enclosed, template) else f"({text})"


def source_of(data: bytes, node: ast.expr) -> str:
    """The text of a node."""
    start, end = span(data, node)
    return data[start:end].decode("utf-8", errors="surrogateescape")


def span(data: bytes, node: ast.expr | ast.stmt) -> tuple[int, int]:
    """Where a node stands in its file, in bytes."""
    starts = line_starts(data)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset


def line_starts(data: bytes) -> list[int]:
    """Where each line begins; as Python's own reader counts lines."""
    first = len(_BOM) if data.startswith(_BOM) else 0
    return [first, *(newline.end() for newline in re.finditer(rb"\r\n|\r|\n", data))]


def first_line(statement: ast.stmt) -> int:
    """The line on which a statement begins: that of its first decorator, where it has one."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def apply(data: bytes, edits: Sequence[Edit]) -> bytes:
    """A file with all edits made; an edit inside another is made in the other's text."""
    made: list[Edit] = []
    for one in sorted(edits, key=lambda e: (e.start, -e.end)):
        if not made or one.start >= made[-1].end:
            made.append(one)
        else:
            made[-1] = _within(data, made[-1], one)
    for one in reversed(made):
        data = data[: one.start] + one.text.encode("utf-8", errors="surrogateescape") + data[one.end :]
    return data


def _within(data: bytes, outer: Edit, inner: Edit) -> Edit:
    """An edit with another one made in its text."""
    if inner.start == inner.end == outer.start:
        return replace(outer, text=inner.text + outer.text)
    text = data[inner.start : inner.end].decode("utf-8", errors="surrogateescape")
    if (inner.start, inner.end) == (outer.start, outer.end):
        both = _both(text, _indent(data, inner.start), outer.text, inner.text)
        if both:
            return replace(outer, text=both)
    return replace(outer, text=outer.text.replace(text, inner.text, 1))


def _indent(data: bytes, start: int) -> str:
    """The white space before a place, where nothing else stands before it on its line."""
    line = data[max(data.rfind(b"\n", 0, start), data.rfind(b"\r", 0, start)) + 1 : start]
    return line.decode("utf-8", errors="surrogateescape") if not line.strip() else ""


def _both(statement: str, indent: str, one: str, other: str) -> str:
    """Two rewritings of one import statement that each took a name out of it: both are taken out; empty for others."""
    head = re.match(r"from [\w.]+ import ", statement)
    if head is None:
        return ""
    # What each of them left of the statement stands at its own depth; a guarded import of the name stands deeper.
    kept = re.compile(rf"(?m)(?:\A|^{re.escape(indent)}){re.escape(head[0])}([\w, ]+?)(?:; |(?=\r?$))")
    left, right = kept.search(one), kept.search(other)
    left_names = left[1].split(", ") if left else []
    right_names = right[1].split(", ") if right else []
    names = [name for name in left_names if name in right_names]
    parts = [head[0] + ", ".join(names)] if names else []
    for text, rest in ((one, left), (other, right)):
        without = text[: rest.start()] + text[rest.end() :] if rest else text
        parts.append(without.strip("\r\n").removeprefix(indent))
    newline = "\r\n" if "\r\n" in one + other else "\n"
    return (newline + indent).join(part for part in parts if part.strip())
