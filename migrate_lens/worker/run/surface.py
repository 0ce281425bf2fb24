"""What an installed framework has: a program run in its interpreter; torch names in (a target), one JSON file out.

``python surface.py torch OUT`` writes every torch name with its kind and its parameters.
``python surface.py TARGET OUT NAMES`` reads that file back, asks the target for each name, and writes what it answered.
Only the standard library is imported beside the framework that is asked: what is the framework's own here is the file
``surface.py`` in its folder of ``worker/backends/``, loaded by path.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import types
import warnings
from pathlib import Path
from typing import Any

Row = list[Any]


def kind_of(value: object) -> str:
    """module, class, function, or value: the four things that a program can tell apart by using a name."""
    if isinstance(value, types.ModuleType):
        return "module"
    if isinstance(value, type):
        return "class"
    return "function" if callable(value) else "value"


def of_framework(name: str) -> Any:
    """What is a framework's own here: a module with ``names``, ``beside``, ``identity`` and ``include_dirs``."""
    path = Path(__file__).resolve().parents[1] / "backends" / name / "surface.py"
    spec = importlib.util.spec_from_file_location(f"surface_of_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(argv: list[str]) -> int:
    """Ask the framework named first and write the answer to the file named second."""
    warnings.simplefilter("ignore")
    framework, out = argv[0], Path(argv[1])
    asked = json.loads(Path(argv[2]).read_text("utf-8"))["names"] if len(argv) > 2 else {}
    side = of_framework(framework)
    names = side.names(asked)
    document = {"framework": framework, "identity": side.identity(), "names": names, "include": side.include_dirs()}
    document |= side.beside(asked, names)
    out.write_text(json.dumps(document, separators=(",", ":")), "utf-8")
    return 0


if __name__ == "__main__":
    del sys.path[0]  # this folder: its modules must not be taken for the framework's
    # The package need not be there: what the frameworks' files take from this one they find here.
    sys.modules["migrate_lens.worker.run.surface"] = sys.modules["__main__"]
    sys.exit(main(sys.argv[1:]))
