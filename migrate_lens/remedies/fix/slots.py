"""A call in a source file in; its parts as slots that a replacement may name, and the file with the replacement, out.

A replacement is text with ``{0}``, ``{1}``, ... for the parts of the call: the receiver of a method first, then the
arguments in the order in which they stand. Every byte outside the call is kept.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from migrate_lens.model.trace import Event
from migrate_lens.programs.synthesis import BINARY

_SLOT = re.compile(r"\{(\d+)\}")
_ATOMS = (ast.Name, ast.Constant, ast.Call, ast.Attribute, ast.Subscript, ast.List, ast.Dict, ast.Set)
FUNCTION, METHOD, OPERATOR, INPLACE, ATTRIBUTE, ITEM, SETITEM = (
    "function", "method", "operator", "inplace", "attribute", "item", "setitem",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Site:
    """A call as it stands in its file.

    Attributes:
        form: ``function``, ``method``, ``operator``, ``inplace``, ``attribute``, ``item`` or ``setitem``.
        name: what is called, as written: ``F.pad``, ``max``, ``+``.
        keywords: for each slot its keyword, or ``""``.
        nodes: for each slot its syntax.
        node: the whole.
    """

    form: str
    name: str
    keywords: tuple[str, ...]
    nodes: tuple[ast.expr, ...]
    node: ast.expr | ast.stmt


def site_of(event: Event, node: ast.AST | None) -> Site | None:
    """The call of an event by its parts; None where they cannot be told apart (star arguments)."""
    if isinstance(node, ast.Call):
        return _call(event, node)
    if isinstance(node, ast.BinOp):
        return Site(OPERATOR, BINARY[type(node.op)], ("", ""), (node.left, node.right), node)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in BINARY:
        return Site(OPERATOR, BINARY[type(node.ops[0])], ("", ""), (node.left, node.comparators[0]), node)
    if isinstance(node, ast.AugAssign):
        target = node.target
        return Site(INPLACE, BINARY[type(node.op)] + "=", ("", ""), (target, node.value), node)
    if isinstance(node, ast.Attribute):
        return Site(ATTRIBUTE, node.attr, ("",), (node.value,), node)
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice):
        return Site(ITEM, "[]", ("", ""), (node.value, node.slice), node)
    return None


def _call(event: Event, node: ast.Call) -> Site | None:
    if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
        return None
    arguments = [("", a) for a in node.args] + [(k.arg or "", k.value) for k in node.keywords]
    func = node.func
    if isinstance(func, ast.Attribute) and event.api.startswith("torch.Tensor."):
        arguments.insert(0, ("", func.value))
        form, name = METHOD, func.attr
    else:
        form, name = FUNCTION, ast.unparse(func)
    keywords, nodes = tuple(k for k, _ in arguments), tuple(n for _, n in arguments)
    return Site(form, name, keywords, nodes, node)


def fill(template: str, slots: Sequence[str]) -> str:
    """A replacement with texts for its slots."""
    return _SLOT.sub(lambda found: slots[int(found[1])], template)


def numbers(template: str) -> list[int]:
    """The slots that a replacement names, each as often as it does."""
    return [int(found) for found in _SLOT.findall(template)]


@dataclass(frozen=True, slots=True)
class Edit:
    """A span of a file, in bytes, and what it becomes."""

    start: int
    end: int
    text: str


def edit(data: bytes, site: Site, template: str) -> Edit:
    """The edit that puts a replacement in the place of a call."""
    texts = [source_of(data, node) for node in site.nodes]
    whole = span(data, site.node)
    used = numbers(template)
    again = [n for n in dict.fromkeys(used) if used.count(n) > 1 and not _plain(site.nodes[n])]
    statement = isinstance(site.node, ast.stmt) or _is_statement(template)
    if again and not statement:
        # What is named twice is evaluated once, as before.
        names = {n: f"v{n}" for n in again}
        inner = fill(template, [names.get(n, _wrapped(t, site.nodes[n], template, n)) for n, t in enumerate(texts)])
        given = ", ".join(texts[n] for n in again)
        return Edit(*whole, f"(lambda {', '.join(names.values())}: {inner})({given})")
    shown = [_wrapped(t, site.nodes[n], template, n) for n, t in enumerate(texts)]
    return Edit(*whole, fill(template, shown))


def _is_statement(template: str) -> bool:
    return bool(re.match(r"\{\d+\} (?:\S)?= ", template))


def _plain(node: ast.expr) -> bool:
    """Whether naming a part twice evaluates nothing twice."""
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
    starts = [3 if data.startswith(b"\xef\xbb\xbf") else 0]
    for found in re.finditer(rb"\r\n|\r|\n", data):
        starts.append(found.end())
    return starts


def apply(data: bytes, edits: Sequence[Edit]) -> bytes:
    """A file with all edits made; an edit inside another is made in the other's text."""
    done: list[Edit] = []
    for one in sorted(edits, key=lambda e: (e.start, -e.end)):
        if not done or one.start >= done[-1].end:
            done.append(one)
        elif one.start == one.end == done[-1].start:
            done[-1] = replace(done[-1], text=one.text + done[-1].text)
        else:
            inner = data[one.start : one.end].decode("utf-8", errors="surrogateescape")
            same = (one.start, one.end) == (done[-1].start, done[-1].end)
            both = _both(inner, _indent(data, one.start), done[-1].text, one.text) if same else ""
            done[-1] = replace(done[-1], text=both or done[-1].text.replace(inner, one.text, 1))
    for one in reversed(done):
        data = data[: one.start] + one.text.encode("utf-8", errors="surrogateescape") + data[one.end :]
    return data


def _indent(data: bytes, start: int) -> str:
    line = data[max(data.rfind(b"\n", 0, start), data.rfind(b"\r", 0, start)) + 1 : start]
    return line.decode("utf-8", errors="surrogateescape") if not line.strip() else ""


def _both(inner: str, indent: str, one: str, other: str) -> str:
    """Two rewritings of one import statement that each took a name out of it: both are taken out; empty for others."""
    head = re.match(r"from [\w.]+ import ", inner)
    if head is None:
        return ""
    # What each of them left of the statement stands at its own depth; a guarded import of the name stands deeper.
    kept = re.compile(rf"(?m)(?:\A|^{re.escape(indent)}){re.escape(head[0])}([\w, ]+?)(?:; |(?=\r?$))")
    left, right = kept.search(one), kept.search(other)
    names = [found[1].split(", ") if found else [] for found in (left, right)]
    rest = [name for name in names[0] if name in names[1]]
    break_ = "\r\n" if "\r\n" in one + other else "\n"
    parts = [head[0] + ", ".join(rest)] if rest else []
    for text, found in ((one, left), (other, right)):
        without = text[: found.start()] + text[found.end() :] if found else text
        parts.append(without.strip("\r\n").removeprefix(indent))
    return (break_ + indent).join(part for part in parts if part.strip())
