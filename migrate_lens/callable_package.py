"""A package that can be called: ``migrate_lens.trace(...)`` is a function where ``migrate_lens.trace`` is a package."""

from __future__ import annotations

import importlib
import types
from typing import Any


class CallablePackage(types.ModuleType):
    """Calls are answered by the function of the same name in ``migrate_lens.api``, imported when it is called."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return getattr(importlib.import_module("migrate_lens.api"), self.__name__.rpartition(".")[2])(*args, **kwargs)
