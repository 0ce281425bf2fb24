"""Exceptions as facts: an exception and the call that raised it in; type, place, and the argument at fault out."""

from __future__ import annotations

import builtins
import inspect
import traceback
import types
from collections.abc import Mapping
from typing import Any, TypedDict

from migrate_lens.worker.observe.frames import UNSEEN, is_program

_MESSAGE = 2000


class Failure(TypedDict):
    """What is known about an exception without reading its prose.

    ``types`` are the class names, nearest first; ``where`` the file's tail and function of the raising frame;
    ``argument`` the keyword that the callable does not take (``""``: not that kind of failure); ``missing`` the name
    that an ImportError or AttributeError names itself; ``causes`` the types along ``__cause__``; ``callee`` the type of
    what was called; ``proxied`` whether the proxy handed out another object than the target's own package has;
    ``on_object`` whether a missing name was looked up on an object, not on a module; ``through`` whether it came out of
    the program's own code, which the call ran.
    """

    types: list[str]
    message: str
    where: str
    argument: str
    missing: str
    causes: list[str]
    callee: str
    proxied: bool
    through: bool
    on_object: bool


def failure_of(error: BaseException, func: Any = None, args: Any = (), kwargs: Any = None) -> Failure:
    """Describe an exception that a call raised."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != UNSEEN]
    last = frames[-1] if frames else None
    where = f"{'/'.join(last.filename.split('/')[-3:])}:{last.lineno} {last.name}" if last else ""
    return {
        "types": [t.__name__ for t in type(error).__mro__ if t not in (object, BaseException)],
        "message": said(error)[:_MESSAGE],
        "where": where,
        "argument": rejected_argument(error, func, args, kwargs or {}),
        "missing": str(getattr(error, "name", None) or ""),
        "causes": _causes(error),
        "callee": type(func).__name__ if func is not None else "",
        "proxied": False,
        "through": any(is_program(frame) for frame, _ in traceback.walk_tb(error.__traceback__)),
        "on_object": False,
    }


def said(error: BaseException) -> str:
    """The text of an exception, as a traceback has it where that cannot be had."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a program's own __str__ may raise anything
        return f"<exception {type(error).__name__} cannot be shown>"


def _causes(error: BaseException) -> list[str]:
    names: list[str] = []
    cause = error.__cause__ or error.__context__
    while cause is not None and len(names) < 8:
        names.append(type(cause).__name__)
        cause = cause.__cause__ or cause.__context__
    return names


def rejected_argument(error: BaseException, func: Any, args: Any, kwargs: dict[str, Any]) -> str:
    """The keyword that a callable does not take, by its signature; else by the keyword that the error quotes.

    A decorated function takes ``**kwargs`` and refuses later, so its signature says nothing: there the TypeError names
    the keyword in quotes, and only the call's own keywords are looked for.
    """
    if not isinstance(error, TypeError) or func is None or not kwargs:
        return ""
    accepted = keywords_of(func)
    if accepted is not None:
        refused = [k for k in kwargs if k not in accepted]
        if refused:
            return refused[0]
    return next((k for k in kwargs if f"'{k}'" in said(error)), "")


def keywords_of(func: Any) -> set[str] | None:
    """Names that a callable takes as keywords; None where it takes any, or where its signature cannot be had."""
    try:
        signature = inspect.signature(func)
    except (TypeError, ValueError):
        return None
    kinds = {p.kind for p in signature.parameters.values()}
    if inspect.Parameter.VAR_KEYWORD in kinds:
        return None
    usable = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {n for n, p in signature.parameters.items() if p.kind in usable}


def lacking(error: Exception, base: Any) -> Failure:
    """Facts about a name that is not there; ``base`` is what it was looked up on, None for an import."""
    on_object = base is not None and not isinstance(base, types.ModuleType)
    return {**failure_of(error), "on_object": on_object}


def torch_error(failure: Mapping[str, Any]) -> Exception:
    """The exception that torch raised, as the builtin class nearest to it."""
    for name in failure["types"]:
        kind = getattr(builtins, name, None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            return kind(failure["message"])
    return RuntimeError(failure["message"])
