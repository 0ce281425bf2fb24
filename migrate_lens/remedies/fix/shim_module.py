"""A private helper of torch that several files import in; one module with a stand-in, which they import instead, out.

Nothing of torch's is patched: what the package gets from the module, nobody else sees. The stand-in is used only where
the helper is missing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from migrate_lens.model.report import Gap
from migrate_lens.remedies.fix.fixing import NoReplacement
from migrate_lens.remedies.fix.importing import shims, without_name
from migrate_lens.remedies.fix.slots import Edit, span
from migrate_lens.remedies.fix.strategies import Candidate, Kind
from migrate_lens.remedies.fix.trials import Replacement

NAME = "_torch_shim"


def shim_module(gap: Gap, root: Path, packages: Sequence[str]) -> tuple[Replacement, ...] | NoReplacement:
    """The module, and each import of the helper from it.

    Args:
        gap: the gap; its sites are the imports.
        root: the folder from which the packages are imported.
        packages: the library's own.
    """
    shim = shims().get(gap.api)
    if shim is None:
        return NoReplacement("there is no stand-in for it")
    sites = [(root / site.path, site.line) for site in gap.sites if (root / site.path).is_file()]
    files = {path for path, _ in sites}
    package = next((name for name in packages if all(path.is_relative_to(root / name) for path in files)), "")
    if not package or len(files) < 2:
        return NoReplacement("it is not imported by several files of one package")
    why = f"{shim.why}; one module has the stand-in for {len(sites)} imports"
    candidate = Candidate(Kind.SHIM_MODULE, "", why)
    imports = [one for path, line in sites for one in _imports(path, line, f"{package}.{NAME}", gap.api, candidate)]
    if not imports:
        return NoReplacement("no from-import stands at its sites")
    file = root / package / f"{NAME}.py"
    at = len(file.read_bytes()) if file.is_file() else 0
    made = Edit(at, at, _text(gap.api, shim.code))
    return (Replacement(file, made, candidate, 1), *imports)


def _imports(path: Path, line: int, shim: str, api: str, candidate: Candidate) -> Iterator[Replacement]:
    """The from-imports of a name on a line, from the module with the stand-in."""
    data = path.read_bytes()
    module, _, name = api.rpartition(".")
    for node in ast.walk(ast.parse(data)):
        if not isinstance(node, ast.ImportFrom) or node.module != module:
            continue
        text = without_name(node, name, shim)
        if text and node.lineno <= line <= (node.end_lineno or 0):
            yield Replacement(path, Edit(*span(data, node), text), candidate, node.lineno)


def _text(api: str, code: str) -> str:
    module, _, name = api.rpartition(".")
    body = "\n".join(f"    {line}" if line else "" for line in code.strip("\n").splitlines())
    needs = "import torch\n\n" if "torch." in code else ""
    return f"{needs}try:\n    from {module} import {name}\nexcept ImportError:\n\n{body}\n\n"
