"""A torch name in; the defaults of its parameters as they are written, from its signature or its documentation, out."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from migrate_lens.remedies.lab import Lab

_ASK = """import inspect
import {module}
try:
    result = str(inspect.signature({api}))
except (TypeError, ValueError):
    result = str({api}.__doc__ or "").strip().partition("\\n")[0]
"""
_DOCUMENTED = re.compile(r"^\w*(\(.*\))")


def defaults_of(api: str, lab: Lab) -> Mapping[str, str]:
    """The defaults of a function's parameters that are literals; none where torch does not tell them."""
    module = "torch" if api.startswith("torch.Tensor.") else api.rpartition(".")[0]
    if not api.startswith("torch."):
        return {}
    side = lab.torch(_ASK.format(module=module, api=api))
    said = _DOCUMENTED.match(side.ending.value) if side.finished and isinstance(side.ending.value, str) else None
    return {} if said is None else _of_signature(said[1])


def _of_signature(text: str) -> Mapping[str, str]:
    try:
        (function,) = ast.parse(f"def f{text}: ...").body
    except SyntaxError:
        return {}
    assert isinstance(function, ast.FunctionDef)
    given = function.args
    by_position = [*given.posonlyargs, *given.args]
    pairs = [
        *zip(by_position[::-1], given.defaults[::-1], strict=False),
        *zip(given.kwonlyargs, given.kw_defaults, strict=True),
    ]
    found = {argument.arg: default for argument, default in pairs if default is not None}
    order = [argument.arg for argument in (*by_position, *given.kwonlyargs)]
    is_plain = ast.Constant | ast.UnaryOp
    return {n: ast.unparse(found[n]) for n in order if n[:1] != "_" and isinstance(found.get(n), is_plain)}
