"""A draft or a program and a test of it in, a smaller one that still passes the test out.

A pass yields smaller candidates; the first that passes the test is taken and the pass starts again. The test is
*the same failure*, never merely a failure. Nothing grows: each candidate has fewer or simpler parts.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from migrate_lens.model.value import Encoded, array, tag
from migrate_lens.programs.drafts import STATEMENT, Argument, Draft

T = TypeVar("T")
Test = Callable[[T], bool]
Pass = Callable[[T], Iterable[T]]


class Budget:
    """How many trials and seconds a reduction may take."""

    def __init__(self, trials: int, seconds: float) -> None:
        self._trials = trials
        self._until = time.monotonic() + seconds
        self.used = 0

    def spend(self) -> bool:
        """Take one trial; False where none is left."""
        if self.used >= self._trials or time.monotonic() > self._until:
            return False
        self.used += 1
        return True


def reduce(value: T, passes: Iterable[Pass[T]], test: Test[T], budget: Budget) -> T:
    """Run passes over a value until none makes it smaller, or the budget is spent."""
    passes = tuple(passes)
    changed = True
    while changed:
        changed = False
        for one in passes:
            smaller = _settle(value, one, test, budget)
            changed = changed or smaller is not value
            value = smaller
    return value


def _settle(value: T, one: Pass[T], test: Test[T], budget: Budget) -> T:
    going = True
    while going:
        going = False
        for candidate in one(value):
            if not budget.spend():
                return value
            if test(candidate):
                value, going = candidate, True
                break
    return value


# -- drafts ------------------------------------------------------------------------------------------------------------


def fewer_imports(draft: Draft) -> Iterator[Draft]:
    """Leave an import out."""
    for index in range(len(draft.imports)):
        yield replace(draft, imports=(*draft.imports[:index], *draft.imports[index + 1 :]))


def fewer_arguments(draft: Draft) -> Iterator[Draft]:
    """Leave an argument out, last ones first; what a template names stays."""
    for number, position, argument in reversed(list(draft.inputs())):
        step = draft.steps[number]
        last = position == len(step.arguments) - 1 or argument.keyword
        if step.form in ("call", "method") and last and not (step.form == "method" and position == 0):
            yield draft.with_argument(number, position, None)


def fewer_results(draft: Draft) -> Iterator[Draft]:
    """Look at fewer results."""
    if len(draft.results) > 1:
        for index in range(len(draft.results)):
            yield replace(draft, results=(*draft.results[:index], *draft.results[index + 1 :]))


def fewer_steps(draft: Draft) -> Iterator[Draft]:
    """Leave a plain statement out."""
    for index, step in enumerate(draft.steps):
        if step.form == STATEMENT and not step.target:
            yield replace(draft, steps=(*draft.steps[:index], *draft.steps[index + 1 :]))


def smaller_sizes(draft: Draft) -> Iterator[Draft]:
    """Make an extent smaller wherever it stands, then in one input alone."""
    extents = sorted({n for t in _arrays(draft) for n in t[2] if n > 1}, reverse=True)
    for extent in extents:
        for new in (1, 2, extent // 2):
            if new < extent:
                yield _map(draft, partial(_resized, extent=extent, new=new))
    for number, position, argument in draft.inputs():
        if tag(argument.value) in ("T", "N"):
            for axis, extent in enumerate(argument.value[2]):
                for new in (1, 2):
                    if new < extent:
                        cut = _cut(argument.value, axis, new)
                        yield draft.with_argument(number, position, Argument(argument.keyword, cut))


def plainer_values(draft: Draft) -> Iterator[Draft]:
    """Replace the values of an input by ones, zeros or a range."""
    for number, position, argument in draft.inputs():
        for value in _plainer(argument.value):
            yield draft.with_argument(number, position, Argument(argument.keyword, value))


def plainer_types(draft: Draft) -> Iterator[Draft]:
    """Give an input the default dtype, and no gradient."""
    for number, position, argument in draft.inputs():
        value = argument.value
        if tag(value) != "T":
            continue
        if value[5]:
            yield draft.with_argument(number, position, Argument(argument.keyword, (*value[:5], False, *value[6:])))
        values, plain = array(value), "float32" if "float" in value[1] else "int64"
        if value[1] != plain and values is not None and value[1] != "bool" and "complex" not in value[1]:
            new = ("T", plain, value[2], values.astype(plain).tobytes(), *value[4:])
            yield draft.with_argument(number, position, Argument(argument.keyword, new))


DRAFT_PASSES: tuple[Pass[Draft], ...] = (
    fewer_imports, fewer_results, fewer_arguments, fewer_steps, smaller_sizes, plainer_values, plainer_types,
)  # fmt: skip


def _arrays(draft: Draft) -> Iterator[Encoded]:
    for _, _, argument in draft.inputs():
        yield from _arrays_in(argument.value)


def _arrays_in(value: Encoded) -> Iterator[Encoded]:
    if tag(value) in ("T", "N"):
        yield value
    elif tag(value) in ("L", "t"):
        for item in value[1]:
            yield from _arrays_in(item)


def _map(draft: Draft, change: Callable[[Encoded], Encoded]) -> Draft:
    for number, position, argument in list(draft.inputs()):
        draft = draft.with_argument(number, position, Argument(argument.keyword, change(argument.value)))
    return draft


def _resized(value: Encoded, extent: int, new: int) -> Encoded:
    """A value with one extent replaced wherever it stands: in shapes, and as a number among the arguments."""
    kind = tag(value)
    if kind in ("T", "N"):
        for axis, size in enumerate(value[2]):
            if size == extent:
                value = _cut(value, axis, new)
        return value
    if kind in ("L", "t"):
        return (kind, [_resized(v, extent, new) for v in value[1]])
    if kind == "Z":
        return ("Z", tuple(new if n == extent else n for n in value[1]))
    return new if type(value) is int and value == extent else value


def _cut(value: Encoded, axis: int, size: int) -> Encoded:
    values = _values(value)
    if values is None:
        return value
    if np.array_equal(values.reshape(-1), np.arange(values.size)):
        shape = (*value[2][:axis], size, *value[2][axis + 1 :])
        cut = np.arange(int(np.prod(shape))).astype(values.dtype).reshape(shape)
    else:
        cut = np.take(values, range(size), axis=axis)
    return (*value[:2], cut.shape, cut.tobytes(), *value[4:])


def _values(value: Encoded) -> NDArray[Any] | None:
    if tag(value) == "N":
        return np.frombuffer(value[3], value[1]).reshape(value[2]) if isinstance(value[3], bytes) else None
    return array(value) if isinstance(value[3], bytes) else None


def _plainer(value: Encoded) -> Iterator[Encoded]:
    values = _values(value) if tag(value) in ("T", "N") else None
    if values is None or values.size == 0:
        return
    flat = values.reshape(-1)
    if any(bool((flat == c).all()) for c in (0, 1)):
        return
    size = values.size
    for plain in (np.ones(size), np.zeros(size), np.arange(size)):
        made = plain.astype(values.dtype)
        if not np.array_equal(made, flat) and not np.array_equal(flat, np.arange(size)):
            yield (*value[:3], made.tobytes(), *value[4:])


# -- programs ----------------------------------------------------------------------------------------------------------


def fewer_statements(source: str) -> Iterator[str]:
    """Leave statements out, half of a block first, then one by one; blocks inside blocks too."""
    tree = ast.parse(source)
    for number, block in enumerate(_blocks(tree)):
        size = len(block)
        for length in sorted({max(1, size // 2), 1}, reverse=True):
            for start in range(size - length, -1, -1):
                text = _without(source, number, start, length)
                if text is not None and text != source:
                    yield text


def _blocks(tree: ast.AST) -> list[list[ast.stmt]]:
    found = []
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                found.append(block)
    return found


def _without(source: str, number: int, start: int, length: int) -> str | None:
    tree = ast.parse(source)
    block = _blocks(tree)[number]
    if any("result" in ast.unparse(s) and isinstance(s, ast.Assign) for s in block[start : start + length]):
        return None
    del block[start : start + length]
    if not block and block is not tree.body:
        block.append(ast.Pass())
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def fewer_keywords(source: str) -> Iterator[str]:
    """Leave a keyword, a default or a last argument of a call out."""
    tree = ast.parse(source)
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    for number, call in enumerate(calls):
        for index in reversed(range(len(call.keywords))):
            yield _dropped(source, number, "keywords", index)
        if len(call.args) > 1:
            yield _dropped(source, number, "args", len(call.args) - 1)


def _dropped(source: str, number: int, field: str, index: int) -> str:
    tree = ast.parse(source)
    call = [n for n in ast.walk(tree) if isinstance(n, ast.Call)][number]
    del getattr(call, field)[index]
    return ast.unparse(tree) + "\n"


PROGRAM_PASSES: tuple[Pass[str], ...] = (fewer_statements, fewer_keywords)
