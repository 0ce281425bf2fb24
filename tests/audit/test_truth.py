"""Libraries whose names mislead, in; an audit that says only what is so, out."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from audit_samples import by_id, lines

from migrate_lens.audit import report, tree
from migrate_lens.audit.surface import Surface
from migrate_lens.model.audit import LibraryAudit

Files = dict[str, str | bytes]
Write = Callable[[Files], Path]


@pytest.fixture
def audited(write: Write, real: Surface) -> Callable[[Files], LibraryAudit]:
    """Audit files against the installed frameworks."""

    def run(files: Files) -> LibraryAudit:
        with tree.opened(str(write(files))) as opened:
            return report.audit_tree(opened, real, None)

    return run


pytestmark = pytest.mark.real

OWN = [
    "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self._wire()\n",
    "class Net(nn.Module):\n    def forward(self, x):\n        return self._cached_mask(x)\n",
    "class Net(nn.Module):\n    def forward(self, x):\n        self._step = 1\n        return self._helper.run(x)\n",
]
PRIVATE = [
    "class Net(nn.Module):\n    def drop(self):\n        self._load_from_state_dict({}, '', {}, True, [], [], [])\n",
    "class Net(nn.Module):\n    def names(self):\n        return list(self._named_members(dict.items))\n",
]


@pytest.mark.parametrize("source", OWN)
def test_a_member_that_torch_has_not_is_the_librarys_own(audited: Callable[[Files], LibraryAudit], source: str) -> None:
    library = audited({"lib/__init__.py": f"from torch import nn\n{source}"})
    assert not [gap for gap in by_id(library) if gap.startswith("torch.nn.Module._")]


@pytest.mark.parametrize("source", PRIVATE)
def test_a_private_member_that_torch_has_is_named(audited: Callable[[Files], LibraryAudit], source: str) -> None:
    library = audited({"lib/__init__.py": f"from torch import nn\n{source}"})
    assert [gap for gap in by_id(library) if gap.startswith("torch.nn.Module._")]


UNIONS = [
    ("def f(d: str | torch.device): ...", True),
    ("def f(d: torch.device | None = None): ...", True),
    ("Place = str | torch.device", True),
    ("class A:\n    d: torch.device | None", True),
    ("from typing import Optional\ndef f(d: Optional[torch.device] = None): ...", False),
    ("from typing import Union\nPlace = Union[str, torch.device]", False),
    ("def f(d: 'str | torch.device'): ...", False),
    ("def f(x: torch.Tensor | None): ...", False),
    ("def f(x: torch.dtype | str): ...", False),
]
COMPAT = "import paddle\npaddle.enable_compat()\n"


def _runs(program: str) -> bool:
    return subprocess.run([sys.executable, "-c", program], check=False, capture_output=True).returncode == 0


@pytest.mark.parametrize(("source", "raises"), UNIONS)
def test_a_union_of_types_is_said_to_raise_where_it_does(
    audited: Callable[[Files], LibraryAudit], source: str, raises: bool
) -> None:
    program = f"import torch\n{source}\n"
    assert _runs(program)
    assert _runs(COMPAT + program) is not raises
    assert bool(lines(audited({"lib/__init__.py": program}), "torch.device:exception")) is raises


def test_under_future_annotations_no_union_is_made(audited: Callable[[Files], LibraryAudit]) -> None:
    source = "from __future__ import annotations\nimport torch\ndef f(d: str | torch.device): ...\n"
    assert not lines(audited({"lib/__init__.py": source}), "torch.device:exception")


NAMED_LIKE_COMPILED: Files = {
    "lib/__init__.py": "import torch\nfrom other.names import with_ext, fast_cuda\nwith_ext(1)\n"
}
LOADS = "torch.ops.load_library:import_error:native_load"


def test_a_name_alone_makes_no_module_a_compiled_one(audited: Callable[[Files], LibraryAudit]) -> None:
    assert LOADS not in by_id(audited(NAMED_LIKE_COMPILED))
    python: Files = {"lib/__init__.py": "import torch\nfrom lib import _ext\n", "lib/_ext.py": "def f(x): return x\n"}
    assert LOADS not in by_id(audited(python))


def test_with_compiled_sources_such_a_name_is_one(audited: Callable[[Files], LibraryAudit]) -> None:
    assert LOADS in by_id(audited({**NAMED_LIKE_COMPILED, "csrc/fast.cu": "int main() { return 0; }\n"}))


def test_the_plan_begins_where_the_import_first_fails(audited: Callable[[Files], LibraryAudit]) -> None:
    library = audited({
        "lib/__init__.py": "from lib.late import a\nimport torch\nX = torch.segment_reduce\n",
        "lib/late.py": "import torch\nfrom lib.early import b\na = torch.nn.BatchNorm2d\n",
        "lib/early.py": "import torch\nb = torch.special.bessel_j0\n",
        "setup.py": "from setuptools import setup\nsetup()\n",
    })  # fmt: skip
    assert library.plan.first_patch.startswith("lib/early.py:2 ")
    assert not [step for step in library.plan.validation if step.startswith("build")]
    assert not [step for step in library.plan.validation if "{}" in step or "''" in step.replace("'lib'", "")]


def test_what_changes_values_in_silence_stands_before_what_raises(audited: Callable[[Files], LibraryAudit]) -> None:
    source = "import torch\ndef f(x, y):\n    torch.special.bessel_j0(x)\n    return torch.equal(x, y)\n"
    apis = [one.gap.api for one in audited({"lib/__init__.py": source}).gaps if one.gap.api.startswith("torch.")]
    assert apis.index("torch.equal") < apis.index("torch.special.bessel_j0")


ORDER: dict[str, tuple[dict[str, str], str]] = {
    "a line before a local import runs before what that imports": (
        {"lib/__init__.py": "import torch.utils.hooks\nfrom lib import deep\n", "lib/deep.py": "import torch.optim\n"},
        "lib/__init__.py:1",
    ),
    "a line behind a local import runs behind it": (
        {"lib/__init__.py": "from lib import deep\nimport torch.utils.hooks\n", "lib/deep.py": "import torch.optim\n"},
        "lib/deep.py:1",
    ),
    "a file that ran is not run again": (
        {
            "lib/__init__.py": "from lib import one, two\n",
            "lib/one.py": "import torch\nfrom lib import two\nimport torch.optim\n",
            "lib/two.py": "import torch\nfrom lib import one\nimport torch.utils.hooks\n",
        },
        "lib/two.py:3",
    ),
    "a file without torch is on the way": (
        {"lib/__init__.py": "from .way import x\n", "lib/way.py": "import os\nfrom .end import x\n",
         "lib/end.py": "\nfrom torch.optim import SGD\nx = SGD\n"},
        "lib/end.py:2",
    ),
    "a private module stops an import like any other": (
        {"lib/__init__.py": "from torch.utils._pytree import tree_map\nimport torch.optim\n"},
        "lib/__init__.py:1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ORDER)
def test_the_first_patch_is_where_the_import_stops(
    audited: Callable[[Files], LibraryAudit], name: str, tmp_path: Path
) -> None:
    """As Python itself says it: the import is tried in a fresh process; the last frame in the library is the place."""
    files, place = ORDER[name]
    library = audited(dict(files))
    assert library.plan.first_patch.partition(" ")[0] == place
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    program = "import paddle, sys; paddle.enable_compat(); sys.path.insert(0, sys.argv[1]); import lib"
    run = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=False)
    frames = [line.split('"') for line in run.stderr.splitlines() if line.startswith(f'  File "{tmp_path}')]
    path, line = frames[-1][1], frames[-1][2].split(",")[1].split()[1]
    assert f"{Path(path).relative_to(tmp_path).as_posix()}:{line}" == place


_READS = """
import torch
from torch.optim import Optimizer
from torch.distributed.fsdp import ShardingStrategy

def named():
    return ShardingStrategy.FULL_SHARD.name.lower(), torch.__version__.split("+")

def prepared(optimizer: Optimizer):
    return optimizer._is_mine, optimizer.param_groups

class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.factor = 2
        ctx.save_for_backward(x)
        return x * ctx.factor
"""


def test_the_inventory_has_names_of_torchs_alone(audited: Callable[[Files], LibraryAudit], real: Surface) -> None:
    library = audited({"lib/__init__.py": _READS})
    assert [name.api for name in library.apis if not real.is_torchs(name.api)] == []
    names = {name.api for name in library.apis}
    assert {"torch.optim.Optimizer", "torch.distributed.fsdp.ShardingStrategy"} <= names
