"""A package with a branch of its own and with private helpers, with real torch and real Paddle: fixed and run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from migrate_lens.cli import app as cli
from migrate_lens.remedies.publish.verify import UNDER_PADDLE

pytestmark = [pytest.mark.real, pytest.mark.native]

_CONTEXT = "torch.autograd.function.FunctionCtx.saved_tensors:missing_api"
_FILES = {
    "pyproject.toml": '[project]\nname = "pkg"\nversion = "1"\n',
    "pkg/__init__.py": "from pkg.ops import total\nfrom pkg.flat import joined, parted\n",
    "pkg/ops.py": "import torch\n\nFAST = True\n\n\ndef total(x, n):\n    if FAST:  # kept\n"
    '        return torch.segment_reduce(x, "sum", lengths=n)\n'
    "    return torch.stack([p.sum() for p in torch.split(x, n.tolist())])\n",
    "pkg/flat.py": "import torch\nfrom torch._utils import _flatten_dense_tensors as join, _unflatten_dense_tensors\n"
    "\n\ndef joined(n):\n    return join([torch.ones(n), torch.zeros(n)])\n\n\n"
    "def parted(x):\n    return [p.tolist() for p in _unflatten_dense_tensors(x, [torch.ones(1), torch.ones(3)])]\n",
    "pkg/square.py": "import torch\n\n\nclass Square(torch.autograd.Function):\n    @staticmethod\n"
    "    def forward(ctx, x):\n        ctx.save_for_backward(x)\n        return x * x\n\n    @staticmethod\n"
    "    def backward(ctx, g):\n        (x,) = ctx.saved_tensors\n        return 2.0 * x * g\n",
    "pkg/more.py": "from torch._utils import _flatten_dense_tensors\n",
    "smoke.py": "import torch\nimport pkg, pkg.more\nfrom pkg.square import Square\n\nx = torch.arange(4.0)\n"
    "y = torch.tensor([1.0, 3.0], requires_grad=True)\nSquare.apply(y).sum().backward()\n"
    "result = [pkg.total(x, torch.tensor([1, 3])).tolist(), pkg.joined(1).tolist(), pkg.parted(x), y.grad.tolist()]\n"
    "assert result == [[0.0, 6.0], [1.0, 0.0], [[0.0], [1.0, 2.0, 3.0]], [2.0, 6.0]], result\n",
}


def _write(folder: Path) -> Path:
    for name, text in _FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def fixes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, Any]]]:
    """What became of each gap, with the patches written to the tree."""
    folder = tmp_path_factory.mktemp("kinds")
    lib = _write(folder / "lib")
    subprocess.run(["git", "init", "-q"], cwd=lib, check=True)
    subprocess.run(["git", "add", "-A"], cwd=lib, check=True)
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "upstream"], cwd=lib, check=True
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert cli.main(["diagnose", "lib"]) == cli.GAPS
        assert cli.main(["issue", "--emit", _CONTEXT]) == 0
        cli.main(["fix", "--apply", "--owner", "jane"])
        gaps = json.loads(Path(".migrate-lens/report.json").read_text())["gaps"]
        yield {gap["id"]: gap["workaround"] or {} for gap in gaps}


def test_each_gap_has_the_kind_that_fits(fixes: dict[str, dict[str, Any]]) -> None:
    assert {gap: (w.get("kind"), w.get("verified")) for gap, w in fixes.items()} == {
        "torch._utils._flatten_dense_tensors:missing_api": ("shim_module", True),
        "torch._utils._unflatten_dense_tensors:missing_api": ("shim", True),
        "torch.segment_reduce:missing_api": ("feature_gate", True),
        _CONTEXT: ("equal_api", True),
    }


def test_the_library_runs_on_both_sides_and_is_finished(fixes: dict[str, dict[str, Any]]) -> None:
    lib = Path("lib")
    text = (lib / "pkg" / "ops.py").read_text()
    assert '    if FAST and hasattr(torch, "segment_reduce"):  # kept\n' in text
    assert "from pkg._torch_shim import _flatten_dense_tensors as join" in (lib / "pkg" / "flat.py").read_text()
    for switch in ([], ["-c", UNDER_PADDLE]):
        done = subprocess.run(
            [sys.executable, *switch, "smoke.py"], cwd=lib, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert cli.main(["diagnose", "lib", "--state", "after"]) == cli.NO_GAPS
    assert cli.main(["check", "lib", "--base", "HEAD", "--state", "after"]) == 0


def test_what_only_a_backward_sees_is_reproduced_by_a_function_of_its_own(fixes: dict[str, dict[str, Any]]) -> None:
    (file,) = Path("issues").glob("*saved_tensors*/mre.py")
    text = file.read_text()
    assert "ctx.saved_tensors" in text
    assert "Square" not in text
    assert len(text.split("\n")) <= 25
    for switch, code in (([], 0), (["-c", UNDER_PADDLE], 1)):
        done = subprocess.run([sys.executable, *switch, file.name], cwd=file.parent, capture_output=True, check=False)
        assert done.returncode == code


def test_git_takes_each_patch_also_that_of_a_new_file(fixes: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    for number, workaround in enumerate(fixes.values()):
        lib = _write(tmp_path / str(number))
        subprocess.run(["git", "init", "-q"], cwd=lib, check=True)
        subprocess.run(["git", "apply", "-"], input=workaround["patch"].encode(), cwd=lib, check=True)
        assert any((lib / name).read_text() != text for name, text in _FILES.items())
