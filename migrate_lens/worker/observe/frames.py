"""Whose frames are whose: code in; whether it is the program's out, and ours taken out of the program's sight.

What the program sees of a call are its own frame and the callee's. Where one of ours must stand between, it is called
like a part of Python's import system, which ``warnings`` and ``logging`` pass over when they ask who called, and it is
taken out of the tracebacks of exceptions that go through it.
"""

from __future__ import annotations

from types import CodeType, FrameType, FunctionType, ModuleType

UNSEEN = "<frozen importlib._bootstrap of migrate-lens>"

_modules: set[str] = set()


def adopt(module: str) -> None:
    """Know the code of a module as the program's own from now on."""
    _modules.add(module)


def is_program(frame: FrameType) -> bool:
    """Whether a frame runs the program's own code."""
    return frame.f_globals.get("__name__") in _modules


def is_interruption(error: BaseException) -> bool:
    """Whether an exception that came up in our own work is the program's: a signal's handler of its own raised it."""
    trace = error.__traceback__
    while trace is not None:
        if is_program(trace.tb_frame):
            return True
        trace = trace.tb_next
    return False


def leave(error: BaseException) -> None:
    """Take our frames off the head of a traceback; a bare ``raise`` behind this adds none."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == UNSEEN:
        trace = trace.tb_next
    error.__traceback__ = trace


def hide(module: ModuleType) -> None:
    """Have the functions and methods of a module of ours passed over by what asks who called."""
    for value in vars(module).values():
        if isinstance(value, FunctionType) and value.__module__ == module.__name__:
            value.__code__ = _unseen(value.__code__)
        elif isinstance(value, type) and value.__module__ == module.__name__:
            for member in vars(value).values():
                if isinstance(member, FunctionType):
                    member.__code__ = _unseen(member.__code__)


def _unseen(code: CodeType) -> CodeType:
    consts = tuple(_unseen(const) if isinstance(const, CodeType) else const for const in code.co_consts)
    return code.replace(co_filename=UNSEEN, co_consts=consts)
