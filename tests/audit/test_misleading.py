"""Libraries whose own names look like torch's or like compiled modules, in; no gap that only a name suggests, out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from audit_samples import by_id, lines

from migrate_lens.audit import report, tree
from migrate_lens.audit.surface import Surface
from migrate_lens.model.audit import Verdict

Files = dict[str, str | bytes]

pytestmark = pytest.mark.real

BASE = "import torch\nfrom torch import nn\n"
OWN: dict[str, str] = {
    "a hook that subclasses fill in": (
        "class Root(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self._setup_bins(4)\n"
        "class Fill:\n    def _setup_bins(self, n):\n        self.bins = n\n"
        "class Both(Fill, Root):\n    def forward(self, x):\n        self._setup_bins(2)\n        return x\n"
    ),
    "a method of a child alone": (
        "class Root(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self._fill()\n"
        "class Child(Root):\n    def _fill(self):\n        self.w = torch.nn.Parameter(torch.ones(2))\n"
    ),
    "a private attribute of an optimizer": (
        "from torch.optim import SGD\nclass Mine(SGD):\n    pass\n"
        "def f(o: SGD):\n    o._scheduled = 1\n    return o._scheduled\n"
    ),
    "a private attribute of a tensor": "def f(x: torch.Tensor):\n    x._tag = 1\n    return x._tag\n",
    "a private member of a layer that is handed in": "def f(m: nn.Linear):\n    return m._my_cache\n",
    "a mark on a layer, asked for by name": "def f(m: nn.Module):\n    return getattr(m, '_is_ready', False)\n",
    "a mark on an optimizer, asked for by name": (
        "def f(o: torch.optim.Optimizer):\n    return getattr(o, '_is_ready', False)\n"
    ),
    "a mark on a scheduler, asked for by name": (
        "from torch.optim.lr_scheduler import LRScheduler as S\ndef f(o: S):\n    return getattr(o, '_is_ready', 0)\n"
    ),
}
TORCHS: dict[str, str] = {
    "torch.Tensor._indices": "def f(x: torch.Tensor):\n    return x._indices()\n",
    "torch._C._log_api_usage_once": "torch._C._log_api_usage_once('a')\n",
}


@pytest.mark.parametrize("source", OWN.values(), ids=OWN)
def test_a_librarys_own_private_names_are_no_gaps(write: Callable[[Files], Path], real: Surface, source: str) -> None:
    with tree.opened(str(write({"lib/__init__.py": BASE + source}))) as opened:
        gaps = by_id(report.audit_tree(opened, real, None))
    assert not [gap for gap in gaps if "._" in gap]


@pytest.mark.parametrize("name", TORCHS)
def test_torchs_own_private_names_are(write: Callable[[Files], Path], real: Surface, name: str) -> None:
    with tree.opened(str(write({"lib/__init__.py": BASE + TORCHS[name]}))) as opened:
        gaps = by_id(report.audit_tree(opened, real, None))
    assert [gap for gap in gaps if gap.startswith(name)]


NOT_TOLD: dict[str, str] = {
    "torch.distributed.fsdp.wrap.size_based_auto_wrap_policy.upper": (
        "from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy as by_size\n"
        "class Plan:\n    def __init__(self, policy):\n        self.policy = by_size\n"
        "    def name(self):\n        return self.policy.upper()\n"
    ),
    "torch.optim.lr_scheduler._LRScheduler._is_ready": (
        "from torch.optim.lr_scheduler import _LRScheduler\n"
        "def f(o: _LRScheduler):\n    return getattr(o, '_is_ready', False)\n"
    ),
    "torch.autograd.functional.vjp.calls": "f = torch.autograd.functional.vjp\nf.calls = 0\nprint(f.calls)\n",
}


@pytest.mark.parametrize("name", NOT_TOLD)
def test_what_lies_behind_a_missing_name_is_not_said_to_be_torchs(
    write: Callable[[Files], Path], real: Surface, name: str
) -> None:
    with tree.opened(str(write({"lib/__init__.py": BASE + NOT_TOLD[name]}))) as opened:
        verdicts = {one.api: one.verdict for one in report.audit_tree(opened, real, None).apis}
    assert verdicts.get(name, Verdict.UNKNOWN) is Verdict.UNKNOWN
    assert verdicts[name.rpartition(".")[0]] is Verdict.MISSING


PYTHON_MODULES: dict[str, str] = {
    "functions that are called with such a suffix": (
        "from other.names import path_plus_ext\nfrom other.kernels import norm_cuda\n"
        "def f(x):\n    return path_plus_ext('a'), norm_cuda(x)\n"
    ),
    "an extension of a file": "from other.files import strip_ext\nname = strip_ext('a.txt')\n",
    "a backend that Python writes": "from other import ops_cpp\ny = ops_cpp.add(1, 2)\n",
    "a device helper": "import other.to_cuda\nother.to_cuda.move(1)\n",
}


@pytest.mark.parametrize("source", PYTHON_MODULES.values(), ids=PYTHON_MODULES)
def test_a_suffix_makes_no_module_a_compiled_one(write: Callable[[Files], Path], real: Surface, source: str) -> None:
    with tree.opened(str(write({"lib/__init__.py": BASE + source}))) as opened:
        rules = {one.gap.rule for one in report.audit_tree(opened, real, None).gaps}
    assert not rules & {"native_load", "native_call"}


UNIONS: dict[str, str] = {
    "a parameter with three": "def move(x, place: str | torch.device | None = None):\n    return x.to(place)\n",
    "a result": "def f(x) -> torch.device | None:\n    return None\n",
    "a method's keyword": "class A:\n    def f(self, *, d: int | torch.device = 0): ...\n",
    "inside a generic": "def f(d: list[torch.device | None]): ...\n",
    "a field": "from dataclasses import dataclass\n@dataclass\nclass A:\n    d: torch.device | str = 'cpu'\n",
}


@pytest.mark.parametrize("source", UNIONS.values(), ids=UNIONS)
def test_a_union_that_raises_at_import_is_a_gap_on_its_line(
    write: Callable[[Files], Path], real: Surface, source: str
) -> None:
    with tree.opened(str(write({"lib/__init__.py": f"import torch\n{source}"}))) as opened:
        library = report.audit_tree(opened, real, None)
    number = next(count for count, line in enumerate(source.splitlines(), 2) if "torch.device" in line)
    assert lines(library, "torch.device:exception") == [("lib/__init__.py", number)]
    assert library.plan.first_patch.startswith(f"lib/__init__.py:{number} ")
