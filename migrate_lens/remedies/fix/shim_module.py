"""A private helper of torch that several files import in; one module with a stand-in, which they import instead, out.

Nothing of torch's is patched: what the package gets from the module, nobody else sees. The stand-in is used only where
the helper is missing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from migrate_lens.remedies.fix.fixing import NoReplacement, Replacement
from migrate_lens.remedies.fix.importing import shims, without_name
from migrate_lens.remedies.fix.slots import Edit, span
from migrate_lens.remedies.fix.strategies import Candidate

KIND = "shim_module"
NAME = "_torch_shim"


def shim_module(gap: Mapping[str, Any], root: Path, packages: Sequence[str]) -> tuple[Replacement, ...] | NoReplacement:
    """The module, and each import of the helper from it.

    Args:
        gap: the gap; its sites are the imports.
        root: the folder from which the packages are imported.
        packages: the library's own.
    """
    shim = shims().get(gap["api"])
    if shim is None:
        return NoReplacement("there is no stand-in for it")
    sites = [(root / s["path"], s["line"]) for s in gap["sites"] if (root / s["path"]).is_file()]
    package = next((p for p in packages if all(path.is_relative_to(root / p) for path, _ in sites)), "")
    if not package or len({path for path, _ in sites}) < 2:
        return NoReplacement("it is not imported by several files of one package")
    why = f"{shim.why}; one module has the stand-in for {len(sites)} imports"
    imports = [one for path, line in sites for one in _imports(path, line, package, gap["api"], why)]
    if not imports:
        return NoReplacement("no from-import stands at its sites")
    file = root / package / f"{NAME}.py"
    at = len(file.read_bytes()) if file.is_file() else 0
    made = Edit(at, at, _text(gap["api"], shim.code))
    return (Replacement(file, made, Candidate(KIND, "", why), 1), *imports)


def _imports(path: Path, line: int, package: str, api: str, why: str) -> Iterator[Replacement]:
    data = path.read_bytes()
    module, _, name = api.rpartition(".")
    for node in ast.walk(ast.parse(data)):
        if isinstance(node, ast.ImportFrom) and node.module == module and node.lineno <= line <= (node.end_lineno or 0):
            text = without_name(node, name, f"{package}.{NAME}")
            if text:
                yield Replacement(path, Edit(*span(data, node), text), Candidate(KIND, "", why), node.lineno)


def _text(api: str, code: str) -> str:
    module, _, name = api.rpartition(".")
    body = "\n".join(f"    {line}" if line else "" for line in code.strip("\n").splitlines())
    needs = "import torch\n\n" if "torch." in code else ""
    return f"{needs}try:\n    from {module} import {name}\nexcept ImportError:\n\n{body}\n\n"
