"""Drafts of a reproduction: imports, inputs and steps in, a program's text out; frozen, so that reducing is pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple, assert_never

from migrate_lens.model.value import ARRAY, LIST, TENSOR, Encoded, tag
from migrate_lens.programs.literals import literal
from migrate_lens.programs.values import ARRAYS, GRADIENT, LISTS, SPELLED, GradientOf, Spelled, items_of, tensor_of

_NAMES = ("x", "y", "z", "w", "v", "u", "s", "t", "r", "q")


class StepForm(StrEnum):
    """How the text of a step is read.

    ``call``: the name of what is called. ``method``: the name of a method of the first argument. ``template``: text
    with ``{0}`` for the first argument, and so on. ``statement``: text as it is.
    """

    CALL = "call"
    METHOD = "method"
    TEMPLATE = "template"
    STATEMENT = "statement"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a call: its keyword, or ``""``, and its value with tensors written out."""

    keyword: str
    value: Encoded


@dataclass(frozen=True, slots=True)
class Step:
    """One statement.

    Attributes:
        form: how the text is read.
        text: see ``form``.
        target: the name that the result gets; ``""``: none.
        arguments: what is given.
    """

    form: StepForm
    text: str
    target: str = ""
    arguments: tuple[Argument, ...] = ()


class Input(NamedTuple):
    """An argument of a draft: the number of its step, its position there, and what it is."""

    step: int
    position: int
    argument: Argument


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

    def inputs(self) -> Iterator[Input]:
        """All arguments."""
        for number, step in enumerate(self.steps):
            for position, argument in enumerate(step.arguments):
                yield Input(number, position, argument)

    def with_argument(self, number: int, position: int, argument: Argument | None) -> Draft:
        """The draft with one argument replaced, or dropped; a result that is this input follows it."""
        step = self.steps[number]
        old = step.arguments[position]
        new = () if argument is None else (argument,)
        arguments = (*step.arguments[:position], *new, *step.arguments[position + 1 :])
        return replace(
            self,
            steps=(*self.steps[:number], replace(step, arguments=arguments), *self.steps[number + 1 :]),
            results=tuple(_followed(result, old, argument) for result in self.results),
        )

    def with_value(self, place: Input, value: Encoded) -> Draft:
        """The draft with another value for one argument."""
        return self.with_argument(place.step, place.position, Argument(place.argument.keyword, value))


def _followed(result: str | Argument, old: Argument, new: Argument | None) -> str | Argument:
    """A result that is an input, or the gradient of one, after that input was replaced."""
    if new is None or isinstance(result, str):
        return result
    if tag(result.value) == GRADIENT and GradientOf._make(result.value).value == old.value:
        return Argument("", GradientOf(GRADIENT, new.value))
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
    imports = _imports(draft, "\n".join((*body, *results)))
    blank = [""] if imports and body else []
    return Text((*imports, *blank, *body), results)


def _imports(draft: Draft, text: str) -> list[str]:
    """The imports of a draft, with those that its text needs."""
    imports = [*draft.imports]
    if re.search(r"\btorch\.", text) and not _binds(imports, "torch"):
        imports.insert(0, "import torch")
    if re.search(r"\bnp\.", text):
        imports.append("import numpy as np")
    return list(dict.fromkeys(imports))


def _binds(imports: list[str], name: str) -> bool:
    return any(re.fullmatch(rf"import {name}(\..*)?", i) and " as " not in i for i in imports)


class _Writer:
    def __init__(self, body: list[str], reserved: set[str]) -> None:
        self._body = body
        self._reserved = reserved
        self._known: dict[tuple[str, int | None], str] = {}

    def statement(self, step: Step) -> str:
        text = self._expression(step)
        return f"{step.target} = {text}" if step.target else text

    def _expression(self, step: Step) -> str:
        if step.form is StepForm.STATEMENT:
            return step.text
        values = [self.argument(argument.value) for argument in step.arguments]
        keywords = [argument.keyword for argument in step.arguments]
        given = [f"{keyword}={value}" if keyword else value for keyword, value in zip(keywords, values, strict=True)]
        match step.form:
            case StepForm.TEMPLATE:
                return re.sub(r"\{(\d+)\}", lambda slot: values[int(slot[1])], step.text)
            case StepForm.METHOD:
                return f"{values[0]}.{step.text}({', '.join(given[1:])})"
            case StepForm.CALL:
                return f"{step.text}({', '.join(given)})"
            case _:
                assert_never(step.form)

    def argument(self, value: Encoded) -> str:
        """An expression for an argument; tensors and arrays get a variable of their own."""
        kind = tag(value)
        if kind in ARRAYS:
            serial = tensor_of(value).serial if kind == TENSOR else None
            return self._variable(literal(value), serial, "a" if kind == ARRAY else "")
        if kind in LISTS and any(tag(item) in ARRAYS for item in items_of(value)):
            items = [self.argument(item) for item in items_of(value)]
            if kind == LIST:
                return f"[{', '.join(items)}]"
            comma = "," if len(items) == 1 else ""
            return f"({', '.join(items)}{comma})"
        if kind == SPELLED:
            return Spelled._make(value).text
        if kind == GRADIENT:
            return f"{self.argument(GradientOf._make(value).value)}.grad"
        return literal(value)

    def _variable(self, text: str, serial: int | None, prefer: str) -> str:
        name = self._known.get((text, serial))
        if name is None:
            taken = {*self._known.values(), *self._reserved}
            names = (prefer, *_NAMES) if prefer else _NAMES
            name = next((n for n in names if n not in taken), f"x{len(taken)}")
            self._known[text, serial] = name
            self._body.append(f"{name} = {text}")
        return name
