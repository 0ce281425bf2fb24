"""The import hook: modules that concern torch in, rewritten code out; all other modules load as ever."""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import re
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from migrate_lens.protocol.parts import number_of
from migrate_lens.worker.backends import FRAMEWORKS
from migrate_lens.worker.observe import nodes
from migrate_lens.worker.observe.constants import fill
from migrate_lens.worker.observe.frames import hide
from migrate_lens.worker.observe.recorder import Recorder

_IMPORTS = re.compile(rb"^[ \t]*(?:import|from)[ \t]+torch\b", re.MULTILINE)
# What asks the lists of installed packages, and of which one: torch is in them on one side only.
_LISTS = re.compile(rb"\b(?:importlib[._]metadata|from[ \t]+importlib[ \t]+import|pkg_resources)\b")
_NAMED = re.compile(rb"""["']torch["']""")
_NEVER = frozenset(("functorch", "torchgen", "numpy", "scipy", "sympy", "networkx", "migrate_lens", *FRAMEWORKS))


class Instrumenter:
    """Rewrites modules as they are imported.

    Args:
        recorder: what the rewritten code reports to.
        helpers: the functions that rewritten code calls, by name.
        own: top-level packages of the library, rewritten whether or not they import torch.

    Attributes:
        users: names of the rewritten modules that import torch.
        refused: modules that could not be rewritten, and why.
        counting: counts the calls of each module for themselves, where its body runs; None where that is not wanted.
    """

    def __init__(self, recorder: Recorder, helpers: dict[str, Any], own: frozenset[str]) -> None:
        self._recorder = recorder
        self._helpers = helpers
        self._own = own
        self.counting: Callable[[int], AbstractContextManager[None]] | None = None
        self.users: list[str] = []
        self.refused: list[tuple[str, str]] = []

    def install(self) -> None:
        """Put the hook in front of the path finders."""
        hook = importlib.machinery.FileFinder.path_hook(
            (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES),
            (_loader(self), importlib.machinery.SOURCE_SUFFIXES),
            (importlib.machinery.SourcelessFileLoader, importlib.machinery.BYTECODE_SUFFIXES),
        )
        sys.path_hooks.insert(0, hook)
        sys.path_importer_cache.clear()

    def find_users(self) -> None:
        """Find, where nothing was rewritten, the modules that import torch among those that are loaded."""
        for name, module in list(sys.modules.items()):
            path = getattr(module, "__file__", None)
            top = name.partition(".")[0]
            if not path or not path.endswith(".py") or top in _NEVER or top in sys.stdlib_module_names:
                continue
            with contextlib.suppress(OSError):  # a file that is gone says nothing
                if _IMPORTS.search(Path(path).read_bytes()):
                    self.users.append(name)

    def wanted(self, module: str, source: bytes) -> bool:
        """Whether a module is to be rewritten."""
        top = module.partition(".")[0]
        if top in _NEVER or top in sys.stdlib_module_names:
            return False
        if top in self._own or _IMPORTS.search(source):
            return True
        return _LISTS.search(source) is not None and _NAMED.search(source) is not None

    def compile(self, module: str, path: str, source: bytes) -> CodeType:
        """Rewrite and compile one module.

        Raises:
            SyntaxError: the source does not parse.
        """
        text = importlib.util.decode_source(source)
        rewritten = nodes.rewrite(text, path, len(self._recorder.nodes))
        self._recorder.register(module, path, rewritten.nodes)
        if rewritten.imports_framework:
            self.users.append(module)
        return fill(compile(rewritten.tree, path, "exec", dont_inherit=True), self._helpers)

    def code(self, module: str, path: str, fallback: Callable[[], CodeType]) -> CodeType:
        """The code of a module: rewritten where it is wanted and can be, as it stands elsewhere."""
        try:
            source = Path(path).read_bytes()
        except OSError:
            return fallback()
        if not self.wanted(module, source):
            return fallback()
        try:
            return self.compile(module, path, source)
        except (SyntaxError, RecursionError, UnicodeError) as error:
            self.refused.append((module, f"{type(error).__name__}: {error}"))
            return fallback()


def _loader(instrumenter: Instrumenter) -> type[importlib.machinery.SourceFileLoader]:
    class Loader(importlib.machinery.SourceFileLoader):
        def get_code(self, fullname: str) -> CodeType | None:
            return instrumenter.code(fullname, self.path, lambda: super(Loader, self).get_code(fullname))  # type: ignore[arg-type, return-value]

        def exec_module(self, module: ModuleType) -> None:
            if instrumenter.counting is None:
                return super().exec_module(module)
            with instrumenter.counting(number_of(module.__name__)):
                return super().exec_module(module)

    return Loader


hide(sys.modules[__name__])
