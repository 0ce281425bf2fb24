"""The frameworks that a program can run in, chosen by name: a name in, all that is the framework's own out.

Everything outside this package asks ``load``, and the interfaces beside it; a framework is one folder and one entry.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from migrate_lens.worker.backends.framework import Framework

# The entries: each is a package of this name beside this file, and what the framework is imported as.
FRAMEWORKS = ("torch", "paddle")


def load(name: str) -> Framework:
    """A framework by its name; nothing of it is imported yet.

    Raises:
        ValueError: there is none of that name.
    """
    if name not in FRAMEWORKS:
        raise ValueError(f"{name!r} is none of {', '.join(FRAMEWORKS)}")
    package: Any = importlib.import_module(f"{__name__}.{name}")
    framework: Framework = package.FRAMEWORK
    return framework
