"""Exceptions of setup.py as the site hook records them, in; findings with torch's names, out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from migrate_lens.model.report import Site, Symptom
from migrate_lens.native import site_hook
from migrate_lens.native.compiler import CompilerCall
from migrate_lens.native.setup_errors import SetupError, read_errors, setup_findings

# A stand-in for Paddle: what a finder of its kind answers for torch, with a builder of another signature.
PADDLE = {
    "paddle/__init__.py": """
import importlib.abc, importlib.util, sys
calls = []
def disable_signal_handler(): calls.append("signals")
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] != "torch":
            return None
        real = name.replace("torch", "paddle", 1)
        import importlib
        source = importlib.import_module(real)
        class Loader(importlib.abc.Loader):
            def create_module(self, spec): return source
            def exec_module(self, module): pass
        return importlib.util.spec_from_loader(name, Loader(), is_package=hasattr(source, "__path__"))
def enable_compat():
    calls.append("compat")
    sys.meta_path.insert(0, Finder())
""",
    "paddle/utils/__init__.py": "",
    "paddle/utils/cpp_extension/__init__.py": "from .cpp_extension import BuildExtension, CppExtension\n",
    "paddle/utils/cpp_extension/cpp_extension.py": """
class BuildExtension:
    pass
def CppExtension(sources, **kw):
    return dict(kw, sources=list(sources) + [])
""",
}


class World:
    """An interpreter with a made-up Paddle, a made-up real torch that must stay hidden, and the site hook."""

    def __init__(self, root: Path) -> None:
        self.root, self.source, self.errors = root, root / "src", root / "errors"
        files = dict(PADDLE)
        files["torch/__init__.py"] = "real = True\n"
        files["torch-9.dist-info/METADATA"] = "Metadata-Version: 2.1\nName: torch\nVersion: 9\n"
        files["sitecustomize.py"] = "import os; os.environ['CHAINED'] = 'yes'\n"
        for name, text in files.items():
            path = root / "packages" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for folder in (self.source, self.errors, root / "site"):
            folder.mkdir()
        (root / "site/sitecustomize.py").write_text(Path(site_hook.__file__).read_text())

    def run(self, text: str, runtime: str = "paddle") -> subprocess.CompletedProcess[str]:
        (self.source / "setup.py").write_text(text)
        env = dict(
            os.environ,
            PYTHONPATH=f"{self.root / 'site'}:{self.root / 'packages'}",
            PYTHONDONTWRITEBYTECODE="1",
            MIGRATE_LENS_RUNTIME=runtime,
            MIGRATE_LENS_ERRORS=str(self.errors),
        )
        argv = [sys.executable, str(self.source / "setup.py")]
        return subprocess.run(argv, env=env, cwd=self.source, capture_output=True, text=True, check=False)

    def findings(self, text: str) -> list[tuple[Symptom, str, str, tuple[Site, ...]]]:
        self.run(text)
        found = setup_findings(read_errors(self.errors), (), self.source)
        return [(f.key.symptom, f.key.api, f.key.detail, f.sites) for f in found]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


CASES = [
    (
        "from torch.utils.cpp_extension import CppExtension, include_paths\n",
        (Symptom.MISSING_API, "torch.utils.cpp_extension.include_paths", "", (Site("setup.py", 1),)),
    ),
    (
        "import torch.utils\ntorch.utils.cmake_prefix_path\n",
        (Symptom.MISSING_API, "torch.utils.cmake_prefix_path", "", (Site("setup.py", 2),)),
    ),
    (
        "from torch.__config__ import parallel_info\n",
        (Symptom.MISSING_API, "torch.__config__", "", (Site("setup.py", 1),)),
    ),
    (
        "from torch.utils.cpp_extension import CppExtension\n\nCppExtension('a._C', ['a.cc'], sources=[])\n",
        (Symptom.EXCEPTION, "torch.utils.cpp_extension.CppExtension", "TypeError", (Site("setup.py", 3),)),
    ),
    (
        "from torch.utils.cpp_extension import CppExtension\nCppExtension(7)\n",
        (Symptom.EXCEPTION, "torch.utils.cpp_extension.CppExtension", "TypeError", (Site("setup.py", 2),)),
    ),
    (
        "import torch\ntorch.__version__ = '3.3'\nassert torch.__version__.split('.')[0] < '3', 'torch 2 only'\n",
        (Symptom.EXCEPTION, "torch.__version__", "AssertionError", (Site("setup.py", 3),)),
    ),
    (
        "from torch.utils.cpp_extension import BuildExtension\nclass Mine(BuildExtension): pass\nMine().use_ninja\n",
        (Symptom.MISSING_API, "torch.utils.cpp_extension.BuildExtension.use_ninja", "", (Site("setup.py", 3),)),
    ),
    (
        "import importlib.metadata as m\nm.version('torch')\n",
        (Symptom.MISSING_API, "importlib.metadata.version(torch)", "", (Site("setup.py", 2),)),
    ),
    ("raise RuntimeError('needs torch 2')\n", (Symptom.EXCEPTION, "setup.py", "RuntimeError", (Site("setup.py", 1),))),
]


@pytest.mark.parametrize(("text", "want"), CASES)
def test_an_exception_of_setup_becomes_a_finding(world: World, text: str, want: tuple[Any, ...]) -> None:
    assert world.findings(text) == [want]


def test_setup_py_is_known_when_it_is_executed_from_a_string(world: World) -> None:
    text = """
code = "\\nimport torch\\n\\nraise ValueError('inside')\\n"
names = {"__name__": "__main__", "__file__": __file__}
exec(compile(code, "<string>", "exec"), names)
"""
    assert world.findings(text) == [(Symptom.EXCEPTION, "setup.py", "ValueError", (Site("setup.py", 4),))]


def test_a_guarded_import_is_no_finding(world: World) -> None:
    text = (
        "try:\n    from torch.utils.cpp_extension import include_paths\nexcept ImportError:\n    include_paths = None\n"
    )
    assert world.findings(text) == []


def test_compat_is_switched_on_once_and_real_torch_is_hidden(world: World) -> None:
    text = """
import importlib.metadata, importlib.util, os, sys
assert "paddle" not in sys.modules
names = {d.metadata["Name"] for d in importlib.metadata.distributions()}
import torch, torch.utils
assert not hasattr(torch, "real")
import paddle
assert paddle.calls == ["signals", "compat"], paddle.calls
assert "torch" not in names
try:
    importlib.metadata.version("torch")
except importlib.metadata.PackageNotFoundError:
    pass
else:
    raise SystemExit("torch is visible")
assert importlib.metadata.version("pytest")
assert os.environ["CHAINED"] == "yes"
"""
    done = world.run(text)
    assert done.returncode == 0, done.stderr


def test_under_torch_nothing_is_hidden_and_exceptions_are_kept(world: World) -> None:
    done = world.run(
        "import torch\nassert torch.real\nimport importlib.metadata as m\nassert m.version('torch')\n1 / 0\n", "torch"
    )
    assert "ZeroDivisionError" in done.stderr
    assert [error.kind for error in read_errors(world.errors)] == ["ZeroDivisionError"]


def test_an_interpreter_without_our_variables_is_left_alone(world: World) -> None:
    env = dict(os.environ, PYTHONPATH=f"{world.root / 'site'}:{world.root / 'packages'}")
    code = "import torch, os; assert torch.real and os.environ['CHAINED'] == 'yes'"
    assert subprocess.run([sys.executable, "-c", code], env=env, check=False).returncode == 0


def test_what_a_builder_raises_after_a_compiler_is_no_finding(tmp_path: Path) -> None:
    error = SetupError("CompileError", "command g++ failed", "", "", ())
    assert setup_findings([error], (), tmp_path) == ()


def test_half_a_record_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text(json.dumps({"class": "X"})[:-3])
    assert read_errors(tmp_path) == ()


CMAKE = """\
CMake Error at CMakeLists.txt:6 (find_package):
  By not providing "FindTorch.cmake" in CMAKE_MODULE_PATH this project has
  asked CMake to find a package configuration file provided by "Torch", but
  CMake did not find one.

  Could not find a package configuration file provided by "Torch" with any of
  the following names:

    TorchConfig.cmake
"""


def test_a_package_that_cmake_does_not_find(tmp_path: Path) -> None:
    call = CompilerCall("cmake", ("cmake",), ("-S", "."), tmp_path, 1.0, 1, CMAKE, None, None)
    (found,) = setup_findings([], [call], tmp_path)
    assert (found.key.api, found.sites) == ("find_package(Torch)", (Site("CMakeLists.txt", 6),))
    other = CMAKE.replace("Torch", "Boost")
    call = CompilerCall("cmake", ("cmake",), ("-S", "."), tmp_path, 1.0, 1, other, None, None)
    assert setup_findings([], [call], tmp_path) == ()
