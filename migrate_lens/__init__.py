"""migrate-lens: runs one program under torch and under Paddle's torch compat layer, and names every gap.

Importing this package imports nothing but the standard library; a framework is imported only in a worker process.

For use from Python there are ``migrate_lens.trace``, ``migrate_lens.compare`` and ``migrate_lens.record``
(see ``migrate_lens.api``), imported when they are first asked for.
"""

import importlib
from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in ("trace", "compare"):
        return importlib.import_module(f"migrate_lens.{name}")
    if name == "record":
        return importlib.import_module("migrate_lens.api").record
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
