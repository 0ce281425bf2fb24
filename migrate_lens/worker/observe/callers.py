"""Functions that ask which frame called them: one in; one that calls it as the program's own frame would, out."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from migrate_lens.worker.observe.constants import constant, fill
from migrate_lens.worker.observe.frames import hide, is_program

_CALLEE, _ARGS, _KWARGS = "callee", "args", "kwargs"


def as_caller(func: Callable[..., Any]) -> Callable[..., Any]:
    """Have a function called from a frame with the file, name and variables of the program's frame that is running."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_program(frame):
        frame = frame.f_back
    if frame is None:
        return func
    program = frame

    def call(*args: Any, **kwargs: Any) -> Any:
        code = fill(_code_at(program), {_CALLEE: func, _ARGS: args, _KWARGS: kwargs})
        return eval(code, program.f_globals, program.f_locals)

    return call


def _code_at(frame: FrameType) -> CodeType:
    """A call that stands in the file, the function and the line that a frame is at."""
    args, kwargs = ast.Starred(constant(_ARGS), ast.Load()), ast.keyword(None, constant(_KWARGS))
    tree = ast.Expression(ast.Call(constant(_CALLEE), [args], [kwargs]))
    for node in ast.walk(tree):
        node.lineno = node.end_lineno = frame.f_lineno or 1  # type: ignore[attr-defined]
        node.col_offset = node.end_col_offset = 0  # type: ignore[attr-defined]
    code = compile(tree, frame.f_code.co_filename, "eval", dont_inherit=True)
    return code.replace(co_name=frame.f_code.co_name)


hide(sys.modules[__name__])
