"""Functions that ask which frame called them: one in; one that calls it as the program's own frame would, out."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from migrate_lens.worker.observe.nodes import METHOD

_CALL = "__ml_result__ = __ml_call__()"


def as_caller(func: Callable[..., Any]) -> Callable[..., Any]:
    """Have a function called from a frame with the file, name and variables of the program's frame that is running."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and METHOD not in frame.f_globals:
        frame = frame.f_back
    return func if frame is None else functools.partial(_call_from, frame, func)


def _call_from(frame: FrameType, func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    code = compile(_CALL, frame.f_code.co_filename, "exec").replace(co_name=frame.f_code.co_name)
    variables = {**frame.f_locals, "__ml_call__": functools.partial(func, *args, **kwargs)}
    exec(code, frame.f_globals, variables)
    return variables["__ml_result__"]
