"""A draft or a program and a test of it in, a smaller one that still passes the test out.

A pass yields smaller candidates; the first that passes the test is taken and the pass starts again. The test is
*the same failure*, never merely a failure. Nothing grows: each candidate has fewer or simpler parts.
"""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from migrate_lens.model.value import ARRAY, RAW, SIZE, TENSOR, Encoded, SizeValue, array, tag
from migrate_lens.programs.drafts import Draft, StepForm
from migrate_lens.programs.literals import Array
from migrate_lens.programs.values import ARRAYS, LISTS, array_of, items_of, tensor_of

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
    for place in reversed(list(draft.inputs())):
        step = draft.steps[place.step]
        last = place.position == len(step.arguments) - 1 or place.argument.keyword
        receiver = step.form is StepForm.METHOD and place.position == 0
        if step.form in (StepForm.CALL, StepForm.METHOD) and last and not receiver:
            yield draft.with_argument(place.step, place.position, None)


def fewer_results(draft: Draft) -> Iterator[Draft]:
    """Look at fewer results."""
    if len(draft.results) > 1:
        for index in range(len(draft.results)):
            yield replace(draft, results=(*draft.results[:index], *draft.results[index + 1 :]))


def fewer_steps(draft: Draft) -> Iterator[Draft]:
    """Leave a plain statement out."""
    for index, step in enumerate(draft.steps):
        if step.form is StepForm.STATEMENT and not step.target:
            yield replace(draft, steps=(*draft.steps[:index], *draft.steps[index + 1 :]))


def smaller_sizes(draft: Draft) -> Iterator[Draft]:
    """Make an extent smaller wherever it stands, then in one input alone."""
    extents = {extent for value in _arrays(draft) for extent in array_of(value).shape if extent > 1}
    for extent in sorted(extents, reverse=True):
        for new in (1, 2, extent // 2):
            if new < extent:
                yield _map(draft, partial(_resized, extent=extent, new=new))
    for place in draft.inputs():
        for cut in _cuts(place.argument.value):
            yield draft.with_value(place, cut)


def _cuts(value: Encoded) -> Iterator[Encoded]:
    """An array with one extent of one or of two."""
    if tag(value) not in ARRAYS:
        return
    for axis, extent in enumerate(array_of(value).shape):
        for new in (1, 2):
            if new < extent:
                yield _cut(value, axis, new)


def plainer_values(draft: Draft) -> Iterator[Draft]:
    """Replace the values of an input by ones, zeros or a range."""
    for place in draft.inputs():
        for value in _plainer(place.argument.value):
            yield draft.with_value(place, value)


def plainer_types(draft: Draft) -> Iterator[Draft]:
    """Give an input the default dtype, and no gradient."""
    for place in draft.inputs():
        value = place.argument.value
        if tag(value) == TENSOR:
            for plainer in _plainer_types(value):
                yield draft.with_value(place, plainer)


def _plainer_types(value: Encoded) -> Iterator[Encoded]:
    tensor = tensor_of(value)
    if tensor.requires_grad:
        yield tensor._replace(requires_grad=False)
    plain = "float32" if "float" in tensor.dtype else "int64"
    values = array(value)
    if tensor.dtype in (plain, "bool") or "complex" in tensor.dtype or values is None:
        return
    yield tensor._replace(dtype=plain, data=values.astype(plain).tobytes())


# A string that says more than a mode or a dtype does: a name, an address, a sentence.
_SAYS_MORE = re.compile(r"[A-Z\s@/\\:]")
_PLAIN_STRINGS = ("a", "b", "c", "d")


def plainer_strings(draft: Draft) -> Iterator[Draft]:
    """Say something plain where a string says more: it is the program's business, and mostly not the failure's."""
    for place in draft.inputs():
        value = place.argument.value
        if isinstance(value, str) and _SAYS_MORE.search(value):
            yield draft.with_value(place, _PLAIN_STRINGS[0])


DRAFT_PASSES: tuple[Pass[Draft], ...] = (
    fewer_imports,
    fewer_results,
    fewer_arguments,
    fewer_steps,
    smaller_sizes,
    plainer_values,
    plainer_types,
    plainer_strings,
)


def _arrays(draft: Draft) -> Iterator[Encoded]:
    for place in draft.inputs():
        yield from _arrays_in(place.argument.value)


def _arrays_in(value: Encoded) -> Iterator[Encoded]:
    if tag(value) in ARRAYS:
        yield value
    elif tag(value) in LISTS:
        for item in items_of(value):
            yield from _arrays_in(item)


def _map(draft: Draft, change: Callable[[Encoded], Encoded]) -> Draft:
    for place in list(draft.inputs()):
        draft = draft.with_value(place, change(place.argument.value))
    return draft


def _resized(value: Encoded, extent: int, new: int) -> Encoded:
    """A value with one extent replaced wherever it stands: in shapes, and as a number among the arguments."""
    kind = tag(value)
    if kind in ARRAYS:
        for axis, size in enumerate(array_of(value).shape):
            if size == extent:
                value = _cut(value, axis, new)
        return value
    if kind in LISTS:
        return (kind, [_resized(item, extent, new) for item in items_of(value)])
    if kind == SIZE:
        extents = SizeValue._make(value).extents
        return SizeValue(SIZE, tuple(new if size == extent else size for size in extents))
    return new if type(value) is int and value == extent else value


def _cut(value: Encoded, axis: int, size: int) -> Encoded:
    values = _values(value)
    if values is None:
        return value
    if np.array_equal(values.reshape(-1), np.arange(values.size)):
        old = array_of(value).shape
        shape = (*old[:axis], size, *old[axis + 1 :])
        cut = np.arange(int(np.prod(shape))).astype(values.dtype).reshape(shape)
    else:
        cut = np.take(values, range(size), axis=axis)
    return array_of(value)._replace(shape=cut.shape, data=cut.tobytes())


def _values(value: Encoded) -> Array | None:
    """The values of a tensor or an array; None where not all of them were kept."""
    kept = array_of(value)
    if not isinstance(kept.data, RAW):
        return None
    return np.frombuffer(kept.data, kept.dtype).reshape(kept.shape) if tag(value) == ARRAY else array(value)


def _plainer(value: Encoded) -> Iterator[Encoded]:
    values = _values(value) if tag(value) in ARRAYS else None
    if values is None or values.size == 0:
        return
    flat = values.reshape(-1)
    if any(bool((flat == constant).all()) for constant in (0, 1)):
        return
    size = values.size
    for plain in (np.ones(size), np.zeros(size), np.arange(size)):
        made = plain.astype(values.dtype)
        if not np.array_equal(made, flat) and not np.array_equal(flat, np.arange(size)):
            yield array_of(value)._replace(data=made.tobytes())


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
    blocks = []
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                blocks.append(block)
    return blocks


def _without(source: str, number: int, start: int, length: int) -> str | None:
    tree = ast.parse(source)
    block = _blocks(tree)[number]
    if any(isinstance(s, ast.Assign) and "result" in ast.unparse(s) for s in block[start : start + length]):
        return None
    del block[start : start + length]
    if not block and block is not tree.body:
        block.append(ast.Pass())
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def fewer_keywords(source: str) -> Iterator[str]:
    """Leave a keyword, a default or a last argument of a call out."""
    tree = ast.parse(source)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for number, call in enumerate(calls):
        for index in reversed(range(len(call.keywords))):
            yield _dropped(source, number, "keywords", index)
        if len(call.args) > 1:
            yield _dropped(source, number, "args", len(call.args) - 1)


def _dropped(source: str, number: int, field: str, index: int) -> str:
    tree = ast.parse(source)
    call = [node for node in ast.walk(tree) if isinstance(node, ast.Call)][number]
    del getattr(call, field)[index]
    return ast.unparse(tree) + "\n"


def plainer_constants(source: str) -> Iterator[str]:
    """Say something plain where a string of a program says more, at all places where it is said."""
    said = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    strings = [text for text in dict.fromkeys(said) if isinstance(text, str)]
    free = [plain for plain in _PLAIN_STRINGS if plain not in strings]
    for text in strings:
        if free and _SAYS_MORE.search(text):
            yield _said_otherwise(source, text, free[0])


def _said_otherwise(source: str, old: str, new: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value == old:
            node.value = new
    return ast.unparse(tree) + "\n"


PROGRAM_PASSES: tuple[Pass[str], ...] = (fewer_statements, fewer_keywords, plainer_constants)
