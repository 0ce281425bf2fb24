"""Small libraries, imported for real under compat; the plan's first patch is the line on which that import fails."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from migrate_lens.audit import report, tree
from migrate_lens.audit.surface import Surface

Files = dict[str, str | bytes]

pytestmark = pytest.mark.real

LIBRARIES: dict[str, Files] = {
    "a file's own line before what it imports": {
        "lib/__init__.py": "import torch\nX = torch.segment_reduce\nfrom lib.late import y\n",
        "lib/late.py": "import torch\ny = torch.nn.BatchNorm2d\n",
    },
    "what a file imports before its own line": {
        "lib/__init__.py": "from lib.late import y\nimport torch\nX = torch.segment_reduce\n",
        "lib/late.py": "import torch\nfrom lib import last\ny = torch.segment_reduce\n",
        "lib/last.py": "import torch\n\nz = torch.frombuffer\n",
    },
    "a private name": {
        "lib/__init__.py": "import os\nfrom lib import tools\n",
        "lib/tools.py": "import torch\nfrom torch._dynamo import disable\ny = torch.segment_reduce\n",
    },
    "what only a type checker reads": {
        "lib/__init__.py": (
            "from typing import TYPE_CHECKING\nimport torch\nif TYPE_CHECKING:\n    from lib.types import T\n"
            "from lib.core import y\n"
        ),
        "lib/types.py": "import torch\nT = torch.optim.Optimizer\n",
        "lib/core.py": "import torch\n\n\ny = torch.optim.SGD\n",
    },
    "annotations that nobody evaluates": {
        "lib/__init__.py": (
            "from __future__ import annotations\nimport torch\ndef f(x: torch.optim.Optimizer): ...\n\n"
            "def g(x):\n    y: torch.optim.SGD = x\n    return y\ny = torch.optim\n"
        )
    },
    "an optional import": {
        "lib/__init__.py": (
            "try:\n    from lib.fast import y\nexcept ImportError:\n    y = None\n"
            "import torch\nz = torch.segment_reduce\n"
        ),
        "lib/fast.py": "from torch.optim import SGD as y\n",
    },
    "a union in a class body": {
        "lib/__init__.py": "from lib.spec import Spec\nimport torch\nX = torch.optim\n",
        "lib/spec.py": "import torch\nclass Spec:\n    place: torch.device\n    other: torch.device | None\n",
    },
    "a base class two imports down": {
        "lib/__init__.py": "from lib.sub import core\n",
        "lib/sub/__init__.py": "from lib.sub.base import B\nimport torch.optim\n",
        "lib/sub/base.py": "import torch\nclass B(torch.optim.Optimizer):\n    pass\n",
        "lib/sub/core.py": "import torch.optim\n",
    },
}
IMPORTED = """
import os, sys, traceback
sys.path.insert(0, ".")
import paddle
paddle.enable_compat(scope={"lib"})
try:
    import lib
except Exception as error:
    frames = [(os.path.relpath(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    print(*[frame for frame in frames if frame[0].startswith("lib/")][-1], sep=":")
"""


@pytest.mark.parametrize("files", LIBRARIES.values(), ids=LIBRARIES)
def test_the_first_patch_is_where_the_import_fails(write: Callable[[Files], Path], real: Surface, files: Files) -> None:
    root = write(files)
    with tree.opened(str(root)) as opened:
        library = report.audit_tree(opened, real, None)
    done = subprocess.run([sys.executable, "-c", IMPORTED], cwd=root, check=True, capture_output=True, text=True)
    assert library.plan.first_patch.partition(" ")[0] == done.stdout.strip()
    stopping, *_ = library.gaps
    assert done.stdout.strip() in [f"{site.path}:{site.line}" for site in stopping.gap.sites]
    plain = subprocess.run([sys.executable, "-c", "import lib"], cwd=root, check=False, capture_output=True, text=True)
    assert not plain.returncode, plain.stderr
