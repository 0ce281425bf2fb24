"""An interpreter of a build starts; its ``import torch`` gets the runtime's answer, and its last exception is kept.

Written as ``sitecustomize.py`` into a private folder on PYTHONPATH, so it runs in every interpreter that a build
starts (pip, the build backend, a ``python -c`` of a CMake file) and must not cost or change anything until one of them
asks for torch. It imports nothing of this package. Two variables steer it: ``MIGRATE_LENS_RUNTIME`` (``torch``
leaves torch alone) and ``MIGRATE_LENS_ERRORS`` (folder for exceptions).
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import json
import os
import re
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from types import ModuleType, TracebackType

HIDDEN = ("torch", "torchgen", "functorch")


class TorchAsPaddle:
    """A finder in front of all: the first question about torch switches compat on; real torch is never found."""

    def __init__(self) -> None:
        self.busy = False
        self.on = False

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Paddle's answer for torch and its submodules; None, so that others may answer, for all else."""
        root = name.partition(".")[0]
        if root not in HIDDEN:
            return None
        if root == "torch" and not self.busy:
            self.switch_on()
            for finder in sys.meta_path:
                if type(finder).__module__.partition(".")[0] == "paddle":
                    spec = finder.find_spec(name, path, target)
                    if spec is not None:
                        return spec
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    def switch_on(self) -> None:
        """Imports Paddle once and enables its compat for everyone."""
        if self.on:
            return
        self.busy = True
        try:
            paddle = importlib.import_module("paddle")
            self.on = True
            paddle.disable_signal_handler()
            paddle.enable_compat()
        finally:
            self.busy = False


def hide_metadata() -> None:
    """Makes ``importlib.metadata`` answer as if torch was not installed."""
    import importlib.metadata as metadata

    search = metadata.MetadataPathFinder.find_distributions
    everything = metadata.DistributionFinder.Context()

    def find_distributions(
        context: metadata.DistributionFinder.Context = everything,
    ) -> Iterator[metadata.Distribution]:
        if (context.name or "").lower() in HIDDEN:
            return iter(())
        return (installed for installed in search(context) if str(installed.metadata["Name"]).lower() not in HIDDEN)

    setattr(metadata.MetadataPathFinder, "find_distributions", find_distributions)  # noqa: B010 - a method of a class


def keep_exceptions(folder: str) -> None:
    """Adds a record of the exception that ends this interpreter to what it prints anyway."""
    shown = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        try:
            record = describe(error)
            path = os.path.join(folder, f"{time.time_ns()}-{os.getpid()}.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(record, file)
        except (OSError, ValueError):
            pass  # the exception itself is what matters; a record that cannot be written must not replace it
        shown(kind, error, trace)

    sys.excepthook = hook


def file_of(name: str, names: dict[str, object]) -> str:
    """The file of a frame; setuptools executes setup.py from a string and leaves its path in ``__file__``."""
    if name.startswith("<") and names.get("__name__") == "__main__" and names.get("__file__"):
        name = str(names["__file__"])
    return os.path.abspath(name) if os.path.exists(name) else name


def describe(error: BaseException) -> dict[str, object]:
    """An exception as plain data: class, message, what it says of names, its frames, and what it came from."""
    frames = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        frames.append(
            {
                "file": file_of(code.co_filename, frame.f_globals),
                "line": line,
                "function": getattr(code, "co_qualname", code.co_name),
                "module": str(frame.f_globals.get("__name__", "")),
            }
        )
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return {
        "class": type(error).__name__,
        "message": str(error)[:4000],
        "name": str(getattr(error, "name", None) or ""),
        "owner": owner_of(error),
        "callee": refused_callee(error),
        "frames": frames[:50] + frames[50:][-50:],
        "argv": sys.argv[:4],
        "cause": describe(cause) if cause is not None else None,
    }


def owner_of(error: BaseException) -> str:
    """The module that lacks an attribute, or the framework's class that an object without it is built on."""
    owner = getattr(error, "obj", None)
    if owner is None:
        return ""
    kind = owner if isinstance(owner, type) else type(owner)
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] in ("paddle", "torch") and not isinstance(owner, ModuleType):
            return f"{base.__module__}.{base.__qualname__}"
    return str(getattr(owner, "__name__", "") or kind.__name__)


def refused_callee(error: BaseException) -> str:
    """Module and name of the function that did not take the arguments of a call, which has no frame of its own."""
    refused = re.match(r"([\w.]+)\(\) (?:got|missing|takes)", str(error)) if isinstance(error, TypeError) else None
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if refused is None or not frames:
        return ""
    names = dict(frames[-1].f_globals, **frames[-1].f_locals)
    holders = [names, *(vars(value) for value in names.values() if isinstance(value, ModuleType))]
    head, _, rest = refused[1].partition(".")
    for holder in holders:
        module = str(getattr(holder.get(head), "__module__", ""))
        if module.partition(".")[0] in ("paddle", "torch"):
            return ".".join(filter(None, [module, head, rest]))
    return ""


def chain() -> None:
    """Runs the ``sitecustomize`` that this one stands in front of."""
    mine = os.path.dirname(os.path.abspath(__file__))
    rest = [entry for entry in sys.path if os.path.abspath(entry) != mine]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def main() -> None:
    """Acts only where a build of ours asked for it."""
    errors = os.environ.get("MIGRATE_LENS_ERRORS")
    if errors:
        keep_exceptions(errors)
        if os.environ.get("MIGRATE_LENS_RUNTIME", "torch") != "torch":
            sys.meta_path.insert(0, TorchAsPaddle())
            hide_metadata()
    chain()


if __name__ == "sitecustomize":
    main()
