"""A replacement that gives by position what was given by name, in; whether it lands on the parameter meant, out.

A value that lands on another parameter often shows nowhere: a default is given, or nobody looks at what it sets. So the
other side is asked for the name of its parameter, and where that is another, the value is varied: both must follow it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from migrate_lens.model.value import DTYPE, RAW, TENSOR, Encoded, tag
from migrate_lens.programs.values import InputTensor, tensor_of
from migrate_lens.remedies.fix.slots import Site
from migrate_lens.remedies.lab import Lab

# Names under which one parameter is known on the two sides.
_SAME = (
    frozenset(("dim", "axis", "dims")),
    frozenset(("keepdim", "keepdims")),
    frozenset(("eps", "epsilon")),
    frozenset(("input", "x", "self", "A")),
    frozenset(("other", "y")),
    frozenset(("target", "label")),
    frozenset(("p", "ord")),
)
_MARK = "slot_"
_NUMBERS = ("float32", "float64", "int64", "int32")
_DTYPES = ("float64", "float32", "int64")


@dataclass(frozen=True, slots=True)
class Moved:
    """A part of a call that lost its keyword.

    Attributes:
        slot: its number.
        keyword: the keyword that it had.
        position: where it is given now.
        callee: what is called there.
    """

    slot: int
    keyword: str
    position: int
    callee: str


def moved(site: Site, template: str) -> list[Moved]:
    """The parts of a call that a replacement gives by position, and that had a keyword."""
    try:
        tree = ast.parse(re.sub(r"\{(\d+)\}", rf"{_MARK}\1", template), mode="eval")
    except SyntaxError:
        return []
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [one for call in calls for one in _moved_in(call, site)]


def _moved_in(call: ast.Call, site: Site) -> Iterator[Moved]:
    callee = ast.unparse(call.func)
    first = 0
    if isinstance(call.func, ast.Attribute) and not callee.startswith("torch."):
        callee, first = f"torch.Tensor.{call.func.attr}", 1
    if not callee.startswith("torch."):
        callee = site.name if callee == site.name else ""
    for position, argument in enumerate(call.args, first):
        slot = _slot(argument)
        keyword = site.keywords[slot] if slot is not None and slot < len(site.keywords) else ""
        if slot is not None and keyword and callee:
            yield Moved(slot, keyword, position, callee)


def _slot(node: ast.expr) -> int | None:
    if isinstance(node, ast.Name) and node.id.startswith(_MARK):
        return int(node.id.removeprefix(_MARK))
    return None


def is_named_so(one: Moved, imports: tuple[str, ...], lab: Lab) -> bool:
    """Whether the other side has the parameter at that position, under one of its names."""
    lines = ("import inspect", "import torch", *imports, "try:")
    program = "\n".join((
        *lines,
        f"    result = list(inspect.signature({one.callee}).parameters)",
        "except (TypeError, ValueError):",
        "    result = []",
    ))  # fmt: skip
    side = lab.both(program + "\n").paddle
    names = side.ending.value[1] if side.finished and isinstance(side.ending.value, tuple) else []
    if one.position >= len(names):
        return False
    name = names[one.position]
    return name == one.keyword or any({name, one.keyword} <= same for same in _SAME)


def other_values(value: Encoded) -> Iterator[Encoded]:
    """Values that may take the place of one: of its kind, and with an effect of their own."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value - 1, value + 1, 0, 2)
    elif isinstance(value, float):
        yield from (value + 0.5, value * 2 + 1)
    elif tag(value) == TENSOR:
        yield from _other_tensors(tensor_of(value))
    elif tag(value) == DTYPE:
        yield from ((DTYPE, name) for name in _DTYPES if name != value[1])


def _other_tensors(value: InputTensor) -> Iterator[Encoded]:
    """A tensor of other elements, and one of the same in another order; indices may not allow the first."""
    if value.dtype not in _NUMBERS or not isinstance(value.data, RAW):
        return
    elements = np.frombuffer(value.data, value.dtype)
    yield value._replace(data=(elements * 2 + 1).astype(value.dtype).tobytes())
    yield value._replace(data=elements[::-1].tobytes())
