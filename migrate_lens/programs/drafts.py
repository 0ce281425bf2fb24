"""Drafts of a reproduction: imports, inputs and steps in, a program's text out; frozen, so that reducing is pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from migrate_lens.model.value import Encoded, tag
from migrate_lens.programs.literals import literal

_NAMES = ("x", "y", "z", "w", "v", "u", "s", "t", "r", "q")
CALL, METHOD, TEMPLATE, STATEMENT = "call", "method", "template", "statement"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a call: its keyword, or ``""``, and its value with tensors written out."""

    keyword: str
    value: Encoded


@dataclass(frozen=True, slots=True)
class Step:
    """One statement.

    Attributes:
        form: ``call`` (of ``text``), ``method`` (``text`` of the first argument), ``template`` (``text`` with ``{0}``
            for the first argument, and so on) or ``statement`` (``text`` as it is).
        text: see ``form``.
        target: the name that the result gets; ``""``: none.
        arguments: what is given.
    """

    form: str
    text: str
    target: str = ""
    arguments: tuple[Argument, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """A small program.

    Attributes:
        imports: its import statements.
        steps: its statements.
        results: what is held against torch's: an expression, or an input that the program writes to.
    """

    imports: tuple[str, ...]
    steps: tuple[Step, ...]
    results: tuple[str | Argument, ...] = ("out",)

    def inputs(self) -> Iterator[tuple[int, int, Argument]]:
        """All arguments, with the numbers of their step and position."""
        for number, step in enumerate(self.steps):
            for position, argument in enumerate(step.arguments):
                yield number, position, argument

    def with_argument(self, number: int, position: int, argument: Argument | None) -> Draft:
        """The draft with one argument replaced, or dropped; a result that is this input follows it."""
        step = self.steps[number]
        old = step.arguments[position]
        results = tuple(_followed(r, old, argument) for r in self.results)
        arguments = (*step.arguments[:position], *((argument,) if argument else ()), *step.arguments[position + 1 :])
        steps = (*self.steps[:number], replace(step, arguments=arguments), *self.steps[number + 1 :])
        return replace(self, steps=steps, results=results)


def _followed(result: str | Argument, old: Argument, new: Argument | None) -> str | Argument:
    """A result that is an input, or the gradient of one, after that input was replaced."""
    if new is None or isinstance(result, str):
        return result
    if tag(result.value) == "g" and result.value[1] == old.value:
        return Argument("", ("g", new.value))
    return new if result == old else result


@dataclass(frozen=True, slots=True)
class Text:
    """A draft as text.

    Attributes:
        lines: the program without its checks.
        results: the expressions that are held against torch's.
    """

    lines: tuple[str, ...]
    results: tuple[str, ...]

    @property
    def measured(self) -> str:
        """The program with all its results in ``result``, as a worker reads them."""
        results = ", ".join(self.results)
        return "\n".join((*self.lines, f"result = [{results}]" if self.results else "result = None")) + "\n"


def write(draft: Draft) -> Text:
    """The text of a draft: a variable for each tensor, everything else where it is used.

    Raises:
        Unwritable: an input has no short literal.
    """
    body: list[str] = []
    writer = _Writer(body, set(re.findall(r"\w+", " ".join(draft.imports))))
    for step in draft.steps:
        body.append(writer.statement(step))
    results = tuple(r if isinstance(r, str) else writer.argument(r.value) for r in draft.results)
    text = "\n".join((*body, *results))
    imports = [*draft.imports]
    if re.search(r"\btorch\.", text) and not _binds(imports, "torch"):
        imports.insert(0, "import torch")
    if re.search(r"\bnp\.", text):
        imports.append("import numpy as np")
    imports = list(dict.fromkeys(imports))
    return Text((*imports, *([""] if imports and body else []), *body), results)


def _binds(imports: list[str], name: str) -> bool:
    return any(re.fullmatch(rf"import {name}(\..*)?", i) and " as " not in i for i in imports)


class _Writer:
    def __init__(self, body: list[str], reserved: set[str]) -> None:
        self._body = body
        self._reserved = reserved
        self._known: dict[tuple[str, object], str] = {}

    def statement(self, step: Step) -> str:
        text = self._expression(step)
        return f"{step.target} = {text}" if step.target else text

    def _expression(self, step: Step) -> str:
        if step.form == STATEMENT:
            return step.text
        given = [(a.keyword, self.argument(a.value)) for a in step.arguments]
        if step.form == TEMPLATE:
            return re.sub(r"\{(\d+)\}", lambda found: given[int(found[1])][1], step.text)
        if step.form == METHOD:
            (_, receiver), *given = given
            callee = f"{receiver}.{step.text}"
        else:
            callee = step.text
        return f"{callee}({', '.join(f'{k}={v}' if k else v for k, v in given)})"

    def argument(self, value: Encoded) -> str:
        """An expression for an argument; tensors and arrays get a variable of their own."""
        kind = tag(value)
        if kind in ("T", "N"):
            return self._variable(literal(value), value[6] if len(value) > 6 else "", "a" if kind == "N" else "")
        if kind in ("L", "t") and any(tag(v) in ("T", "N") for v in value[1]):
            items = ", ".join(self.argument(v) for v in value[1])
            return f"[{items}]" if kind == "L" else f"({items}{',' if len(value[1]) == 1 else ''})"
        if kind == "$":
            return str(value[1])
        if kind == "g":
            return f"{self.argument(value[1])}.grad"
        return literal(value)

    def _variable(self, text: str, identity: object, prefer: str) -> str:
        name = self._known.get((text, identity))
        if name is None:
            taken = {*self._known.values(), *self._reserved}
            names = (prefer, *_NAMES) if prefer else _NAMES
            name = next((n for n in names if n not in taken), f"x{len(taken)}")
            self._known[text, identity] = name
            self._body.append(f"{name} = {text}")
        return name
