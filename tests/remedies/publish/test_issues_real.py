"""Programs and a native library with real torch and Paddle: what their issues say, show, and do not give away."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate_lens.cli import app as cli
from migrate_lens.remedies.publish.verify import UNDER_PADDLE

pytestmark = [pytest.mark.real, pytest.mark.native]

_TOKEN = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
_PROGRAM = f"""\
'''Written by Jane Quartzmann.'''
import os
import torch
import torch.nn.functional as F

x = torch.arange(8 * 8 * 3.0).reshape(1, 3, 8, 8)
seen = []
for padding in (0, 0, 0, 0, 0, 1):
    seen.append(F.avg_pool2d(x, 2, padding=padding).sum())  # by jane
y = torch.tensor([3, 1], dtype=torch.int64)
z = torch.tensor([2, 2], dtype=torch.int32)
sums = [y + z, y - z, y * z]
kind = torch.tensor([1.5]).type(torch.float64)
{{"password": "hunter2hunter2"}}.get(os.environ["SOME_SETTING"])
missing = torch.detach(torch.tensor([1.0], requires_grad=True))
token = {_TOKEN!r}
result = [s.tolist() for s in sums] + [s.tolist() for s in seen] + [kind.dtype == torch.float64, token]
"""


def _runs(file: Path, *, paddle: bool) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *(["-c", UNDER_PADDLE] if paddle else []), file.name]
    return subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def issues(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the issues of the program were emitted."""
    folder = tmp_path_factory.mktemp("kinds")
    (folder / "prog.py").write_text(_PROGRAM)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("SOME_SETTING", "lanternfalcon77")
        assert cli.main(["diagnose", "prog.py"]) == cli.GAPS
        cli.main(["issue", "--emit", "--all"])
        yield folder / "issues"


def _made(issues: Path, name: str) -> Path:
    (file,) = issues.glob(f"*{name}*/mre.py")
    assert _runs(file, paddle=False).returncode == 0
    return file


def test_of_a_loop_the_round_that_differs_is_reproduced(issues: Path) -> None:
    file = _made(issues, "avg_pool2d")
    assert "padding=1" in file.read_text()
    assert "AssertionError" in _runs(file, paddle=True).stderr


def test_the_overload_is_the_librarys(issues: Path) -> None:
    file = _made(issues, "Tensor.type")
    assert ".type(torch.float64)" in file.read_text()
    assert "TypeError" in _runs(file, paddle=True).stderr


def test_type_promotion_at_many_operators_is_one_issue(issues: Path) -> None:
    found = [file for file in issues.glob("*/issue.md") if "Type promotion" in file.read_text()]
    assert len(found) == 1
    text = found[0].read_text()
    assert [name for name in ("torch.Tensor.add", ".sub", ".mul") if name not in text.splitlines()[0]] == []
    assert all(f"out = x {sign} y" in text for sign in "+-*")
    for file in found[0].parent.glob("mre*.py"):
        assert _runs(file, paddle=False).returncode == 0
        assert "Type promotion" in _runs(file, paddle=True).stderr


def test_no_file_gives_anything_away(issues: Path) -> None:
    private = (_TOKEN, "hunter2", "lanternfalcon77", "Quartzmann", "by jane", "pristine", "worker", str(issues.parent))
    texts = {file: file.read_text() for file in issues.rglob("*") if file.is_file()}
    assert len(texts) > 10
    assert [(file.name, word) for file, text in texts.items() for word in private if word in text] == []


_LIBRARY = {
    "setup.py": """\
from setuptools import setup
from torch.utils import cpp_extension

setup(
    name="quartzlib",
    author="Jane Quartzmann",
    packages=["quartzlib"],
    ext_modules=[cpp_extension.CppExtension(name="quartzlib._C", sources=["csrc/ops.cc"])],
    cmdclass={"build_ext": cpp_extension.BuildExtension},
)
""",
    "quartzlib/__init__.py": '"""Jane Quartzmann."""\nimport torch\nfrom quartzlib import _C\n\n'
    "ops = torch.ops.quartzlib\n",
    "quartzlib/unused.py": "KEY = 'hunter2hunter2'\n",
    "csrc/ops.cc": f"""\
// Copyright Jane Quartzmann ``` <script>alert(1)</script> @quartz {_TOKEN}
#include <Python.h>
#include <ATen/ATen.h>
#include <torch/library.h>

/* key: {_TOKEN} */
extern "C" PyObject* PyInit__C(void) {{
  static struct PyModuleDef def = {{PyModuleDef_HEAD_INIT, "_C", nullptr, -1, nullptr}};
  return PyModule_Create(&def);
}}
static const char* unused_token = "{_TOKEN}";
at::Tensor other(const at::Tensor& x) {{ return x.clone(); }}
int64_t index_of(const at::Tensor& x) {{ return x.device().index(); }}  // jane: -1
TORCH_LIBRARY(quartzlib, m) {{
  m.def("other(Tensor x) -> Tensor", &other);
  m.def("index_of(Tensor x) -> int", &index_of);
}}
""",
    "smoke.py": f"""\
import torch
import quartzlib

token = {_TOKEN!r}
print(token)
quartzlib.ops.other(torch.ones(2))
result = {{"index": quartzlib.ops.index_of(torch.ones(2))}}
""",
}


def test_a_native_library_is_not_posted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in _LIBRARY.items():
        (tmp_path / "lib" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "lib" / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["diagnose", "lib"]) == cli.GAPS
    assert cli.main(["issue", "--emit", "--all"]) == 0
    (folder,) = (tmp_path / "issues").iterdir()
    sources = {file.relative_to(folder).as_posix(): file.read_text() for file in folder.rglob("*") if file.is_file()}
    private = (_TOKEN, "uartz", "hunter2", "<script>", "jane", "Tensor other", "ops.other", "unused", "// ", "/*")
    written = {name: text.replace('"out/*.egg"', "") for name, text in sources.items() if not name.endswith(".log")}
    assert [(name, word) for name, text in written.items() for word in private if word in text] == []
    assert "x.device().index()" in sources["csrc/ops.cc"]
    assert [name for name in sources if "unused" in name or "smoke" in name] == []


def test_a_set_up_that_fails_needs_nothing_to_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setup = _LIBRARY["setup.py"].replace('name="quartzlib._C", sources=', '"quartzlib._C", ')
    for name, text in {**_LIBRARY, "setup.py": setup}.items():
        (tmp_path / "lib" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "lib" / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["diagnose", "lib"]) == cli.GAPS
    assert cli.main(["issue", "--emit", "--all"]) == 0
    (folder,) = (tmp_path / "issues").iterdir()
    assert (folder / "csrc" / "ops.cc").read_text().strip() in ("", "#include <Python.h>")
    assert "CppExtension('mylib._C'" in (folder / "setup.py").read_text()
    assert not (folder / "mylib").exists()
