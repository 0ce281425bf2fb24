"""A name that is missing, and the library's own choice around it, in; the gate that takes its other branch, out."""

from __future__ import annotations

import ast
import builtins
from pathlib import Path

import pytest

from migrate_lens.remedies.fix.branches import gates
from migrate_lens.remedies.fix.slots import apply
from migrate_lens.remedies.fix.strategies import Missing

_MISSING = Missing("torch", "foo")


def _gated(folder: Path, source: str) -> list[str]:
    path = folder / "m.py"
    path.write_text(source)
    line = next(n for n, text in enumerate(source.splitlines(), 1) if "foo(" in text)
    return [apply(source.encode(), [one.edit]).decode() for one in gates(path, line, _MISSING)]


@pytest.mark.parametrize(("before", "after"), [
    ("if fast:\n    y = t.foo(x)\nelse:\n    y = x\n", 'if fast and hasattr(t, "foo"):'),
    ("if a or b:\n    y = t.foo(x)\nelse:\n    y = x\n", 'if (a or b) and hasattr(t, "foo"):'),
    ("if a and b:\n    y = t.foo(x)\nelse:\n    y = x\n", 'if a and b and hasattr(t, "foo"):'),
    ("if slow:\n    y = x\nelse:\n    y = t.foo(x)\n", 'if slow or not hasattr(t, "foo"):'),
    ("if a and b:\n    y = x\nelse:\n    y = t.foo(x)\n", 'if (a and b) or not hasattr(t, "foo"):'),
    ("if not slow:\n    y = t.foo(x)\nelse:\n    y = x\n", 'if (not slow) and hasattr(t, "foo"):'),
    ("if a:\n    y = x\nelif b:\n    y = t.foo(x)\nelse:\n    y = -x\n", 'elif b and hasattr(t, "foo"):'),
    ("def f(x):\n    if fast:\n        return t.foo(x)\n    return x\n", 'if fast and hasattr(t, "foo"):'),
    ("y = t.foo(x) if fast else x\n", 'y = t.foo(x) if fast and hasattr(t, "foo") else x'),
])  # fmt: skip
def test_the_branch_that_is_there_is_taken(tmp_path: Path, before: str, after: str) -> None:
    source = "import torch as t  # kept\r\n" + before
    (text, *_) = _gated(tmp_path, source)
    assert after in text
    changed = [line for line in text.splitlines(keepends=True) if line not in source.splitlines(keepends=True)]
    assert len(changed) == 1
    assert _names(text) <= _names(source) | {"hasattr"} | set(dir(builtins))
    assert _gated(tmp_path, text) == []


@pytest.mark.parametrize("source", [
    "import torch\ny = torch.foo(x)\n",
    "import torch\nif fast:\n    y = torch.foo(x)\n",
    "import torch\ndef f(x):\n    if fast:\n        return torch.foo(x)\n",
    "import torch\nif a:\n    y = x\nelif torch.foo(x):\n    y = -x\n",
    "from torch import foo\nif fast:\n    y = foo(x)\nelse:\n    y = x\n",
])  # fmt: skip
def test_without_another_branch_there_is_no_gate(tmp_path: Path, source: str) -> None:
    assert _gated(tmp_path, source) == []


def test_the_innermost_choice_comes_first(tmp_path: Path) -> None:
    source = "import torch\nif a:\n    y = torch.foo(x) if b else x\nelse:\n    y = -x\n"
    inner, outer = _gated(tmp_path, source)
    assert 'if b and hasattr(torch, "foo") else' in inner
    assert 'if a and hasattr(torch, "foo"):' in outer


def _names(text: str) -> set[str]:
    return {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}
