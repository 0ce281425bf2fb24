"""Python sources, in; the torch uses that a reader would point at, out, and none that it would not."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest

from migrate_lens.audit.python import scan_python
from migrate_lens.model.uses import Use


def uses(source: str) -> list[Use]:
    """All uses of a source."""
    return list(scan_python(source.encode(), "lib/module.py").uses)


def has(source: str, event: str, api: str, sure: str = "certain", guard: str = "") -> bool:
    """Whether there is a use of this kind."""
    return any((u.event, u.api, u.sure, u.guard) == (event, api, sure, guard) for u in uses(source))


SEEN = [
    ("import torch\ntorch.add(1, 2)", "call", "torch.add", "certain", ""),
    ("import torch as t\nt.add(1, 2)", "call", "torch.add", "certain", ""),
    ("import torch.nn.functional as F\nF.gelu(1)", "call", "torch.nn.functional.gelu", "certain", ""),
    ("from torch.nn import functional as G\nG.gelu(1)", "call", "torch.nn.functional.gelu", "certain", ""),
    ("from torch import frombuffer as fb\nfb(b'')", "call", "torch.frombuffer", "certain", ""),
    ("def f():\n    import torch\n    torch.add(1, 2)", "call", "torch.add", "certain", ""),
    ("import torch\nadd = torch.add\nadd(1, 2)", "call", "torch.add", "certain", ""),
    (
        "import importlib\nt = importlib.import_module('torch.nn')\nt.Linear(1, 1)",
        "call",
        "torch.nn.Linear",
        "certain",
        "",
    ),
    ("from lib import try_import\ntorch = try_import()\ntorch.add(1, 2)", "call", "torch.add", "certain", ""),
    ("import torch\ngetattr(torch, 'add')(1, 2)", "getattr", "torch.add", "certain", ""),
    ("import torch\ngetattr(torch, 'add', None)", "getattr", "torch.add", "certain", "hasattr"),
    ("import torch\nclass A(torch.nn.Module): pass", "base", "torch.nn.Module", "certain", ""),
    ("import torch\n@torch.no_grad()\ndef f(): pass", "decorator", "torch.no_grad", "certain", ""),
    ("import torch\nisinstance(1, (int, torch.device))", "isinstance", "torch.device", "certain", ""),
    ("import torch\ndef f(x: 'torch.Tensor'):\n    x.view(1)", "method", "torch.Tensor.view", "certain", ""),
    ("from torch import Tensor\ndef f(x: Tensor | None):\n    x.view(1)", "method", "torch.Tensor.view", "certain", ""),
    (
        "import torch\nfrom typing import Optional\ndef f(x: Optional[torch.Tensor]):\n    x.T",
        "attribute",
        "torch.Tensor.T",
        "certain",
        "",
    ),
    ("import torch\ny = torch.ones(3).view(1)", "method", "torch.Tensor.view", "likely", ""),
    ("import torch\ny = (torch.ones(3) * 2 + 1).view(1)", "method", "torch.Tensor.view", "likely", ""),
    (
        "from torch import nn\nclass A(nn.Module):\n    def forward(self, x):\n        return x.view(1)",
        "method",
        "torch.Tensor.view",
        "guess",
        "",
    ),
    (
        "from torch import nn\nclass A(nn.Module):\n    def f(self):\n        return self.weight.view(1)",
        "method",
        "torch.Tensor.view",
        "guess",
        "",
    ),
    ("from torch import nn\nm = nn.Linear(1, 1)\nm.to_empty(1)", "method", "torch.nn.Module.to_empty", "likely", ""),
    (
        "import torch\nh = torch.cuda.current_stream().cuda_stream",
        "attribute",
        "torch.cuda.Stream.cuda_stream",
        "likely",
        "",
    ),
    ("import torch\nk = torch.float32.itemsize", "attribute", "torch.dtype.itemsize", "certain", ""),
    ("import torch\nif torch.cuda.is_available():\n    torch.add(1, 2)", "call", "torch.add", "certain", "cuda"),
    ("try:\n    from torch import fx\nexcept ImportError:\n    fx = None", "import", "torch.fx", "certain", "import"),
    ("import torch\nif hasattr(torch, 'add'):\n    torch.add(1, 2)", "call", "torch.add", "certain", "hasattr"),
    (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from torch import Tensor",
        "import",
        "torch.Tensor",
        "certain",
        "type_checking",
    ),
    ("import torch\nif torch.__version__ >= '2':\n    torch.add(1, 2)", "call", "torch.add", "certain", "version"),
    ("import torch\ntorch.load = None", "patch", "torch.load", "certain", ""),
    (
        "import torch\nclass F(torch.autograd.Function):\n    @staticmethod\n    def backward(c, g): c.saved_tensors",
        "attribute",
        "torch.autograd.function.FunctionCtx.saved_tensors",
        "certain",
        "",
    ),
]


@pytest.mark.parametrize(("source", "event", "api", "sure", "guard"), SEEN)
def test_a_use_is_seen_with_how_sure_it_is(source: str, event: str, api: str, sure: str, guard: str) -> None:
    assert has(source, event, api, sure, guard), uses(source)


NOT_SEEN = [
    "import torchvision\ntorchvision.ops.nms(1)",
    "import numpy as torch_like\ntorch_like.add(1, 2)",
    "from lib import nn\nnn.Linear(1, 1)  # torch",
    "def f(torch):\n    return torch.add(1, 2)",
    "'''import torch\ntorch.add(1, 2)'''",
    "x = object()\nx.view(1)  # torch",
    "from .torch import add\nadd(1, 2)",
]


@pytest.mark.parametrize("source", NOT_SEEN)
def test_what_is_not_torch_is_not_seen(source: str) -> None:
    assert uses(source) == []


def test_a_parameter_hides_an_import() -> None:
    found = uses("from torch import nn\ndef f(nn):\n    return nn.Linear(1, 1)")
    assert [use.event for use in found] == ["import"]


def test_keywords_come_with_their_own_lines() -> None:
    call = next(use for use in uses("import torch\ntorch.ones(\n    2,\n    layout=None,\n)") if use.event == "call")
    assert (call.keywords, call.lines, call.positional) == (("layout",), (4,), 1)


def test_a_guard_that_raises_again_is_no_guard() -> None:
    assert has("try:\n    import torch.fx\nexcept ImportError:\n    raise", "import", "torch.fx")


def test_what_runs_at_import_is_told_from_what_runs_later() -> None:
    found = {use.api: use.at for use in uses("import torch\ntorch.add(1, 2)\ndef f():\n    torch.ones(1)")}
    assert (found["torch.add"], found["torch.ones"]) == ("import", "call")


def test_an_annotation_under_future_import_is_lazy() -> None:
    source = "from __future__ import annotations\nimport torch\ndef f(d: torch.device): ..."
    assert [use.value for use in uses(source) if use.event == "annotation"] == ["lazy"]


def torch_files() -> list[Path]:
    """Real sources that use torch in every way: torch's own layers, optimisers and distributions."""
    spec = find_spec("torch")
    assert spec is not None
    assert spec.origin
    root = Path(spec.origin).parent
    return [path for folder in ("nn/modules", "optim") for path in sorted((root / folder).glob("*.py"))]


def aliases(tree: ast.Module) -> set[tuple[str, str]]:
    """(other name, what it is bound to) of imports and assignments: a use may be written under either."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(one.asname, one.name) for one in node.names if one.asname}
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
                found.add((name, ast.unparse(node.value)))
    return found


def test_every_line_number_is_the_line_of_the_name() -> None:
    checked = 0
    for path in torch_files():
        source = path.read_bytes()
        rows = source.decode().splitlines()
        other = aliases(ast.parse(source))
        for use in scan_python(source, path.name).uses:
            last = use.api.rpartition(".")[2]
            if use.event in ("call", "method", "attribute", "import", "base", "annotation") and last != "__call__":
                names = {last, *(name for name, bound in other if name and last in bound)}
                assert any(name in rows[use.line - 1] for name in names), (path.name, use)
                checked += 1
    assert checked > 2000
