"""Hiding real torch from a target's process, as in the clean environment that a program is to move to."""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

_HIDDEN = frozenset(("torch", "functorch", "torchgen"))


class _WithoutTorch:
    """The path finder, for which torch is not installed."""

    @staticmethod
    def find_spec(fullname: str, path: Any = None, target: ModuleType | None = None) -> Any:
        if fullname.partition(".")[0] in _HIDDEN:
            return None
        return importlib.machinery.PathFinder.find_spec(fullname, path, target)

    @staticmethod
    def find_distributions(context: Any = None) -> Iterable[importlib.metadata.Distribution]:
        context = context or importlib.metadata.DistributionFinder.Context()
        for found in importlib.machinery.PathFinder.find_distributions(context):
            if (found.metadata["Name"] or "").lower() not in _HIDDEN:
                yield found

    @staticmethod
    def invalidate_caches() -> None:
        importlib.machinery.PathFinder.invalidate_caches()


def hide_torch() -> None:
    """Make finders and ``importlib.metadata`` answer as if torch were not installed."""
    finders: list[Any] = sys.meta_path
    finders[:] = [_WithoutTorch if f is importlib.machinery.PathFinder else f for f in finders]
