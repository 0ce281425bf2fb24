"""What discovery says of a folder or a file, held against what the person who wrote it would say."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from files import Write
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate_lens.discovery import tree
from migrate_lens.discovery.discover import discover
from migrate_lens.model.errors import LensError, LibraryError, UsageError
from migrate_lens.model.report import ProbeKind

Files = dict[str, str | bytes]
CPP_SETUP = """
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension
NAME = "fast-ops"
setup(name=NAME, packages=["fast_ops"], ext_modules=[CppExtension("fast_ops._C", ["csrc/a.cc"])])
"""


# --- packages and modules ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "name", "import_root", "packages", "modules"),
    [
        pytest.param(
            {
                "pyproject.toml": '[project]\nname = "my-lib"\n',
                "my_lib/__init__.py": "",
                "my_lib/ops.py": "",
                "my_lib/_private.py": "",
                "my_lib/sub/__init__.py": "",
                "my_lib/sub/deep.py": "",
                "my_lib/data/table.py": "",
                "my_lib/tests/__init__.py": "",
                "my_lib/tests/test_ops.py": "",
                "tests/__init__.py": "",
                "docs/conf.py": "",
                "examples/__init__.py": "",
                "benchmarks/__init__.py": "",
                "build/lib/my_lib/__init__.py": "",
                "setup.py": "",
            },
            "my-lib",
            ".",
            ("my_lib",),
            ("my_lib", "my_lib.sub", "my_lib.ops", "my_lib.sub.deep"),
            id="flat",
        ),
        pytest.param(
            {"pyproject.toml": '[project]\nname = "a"\n', "src/a/__init__.py": "", "src/b/__init__.py": "", "x.py": ""},
            "a",
            "src",
            ("a", "b"),
            ("a", "b"),
            id="src",
        ),
        pytest.param(
            {"pyproject.toml": '[project]\nname = "a"\n', "a/__init__.py": "", "src/kernel.cc": "", "src/gen.py": ""},
            "a",
            ".",
            ("a",),
            ("a",),
            id="flat, with C++ in src",
        ),
        pytest.param(
            {"pyproject.toml": '[project]\nname = "py-a"\n', "a/__init__.py": "", "src/gen.py": "", "hubconf.py": ""},
            "py-a",
            ".",
            ("a",),
            ("a",),
            id="flat, with a script in src",
        ),
        pytest.param(
            {"pyproject.toml": '[project]\nname = "a"\n', "a/k.cc": "", "src/a/__init__.py": "", "hubconf.py": ""},
            "a",
            "src",
            ("a",),
            ("a",),
            id="src, with C++ in a folder of the same name",
        ),
        pytest.param(
            {"setup.py": "setup(package_dir={'': 'gone'})", "a/__init__.py": ""},
            "a",
            ".",
            ("a",),
            ("a",),
            id="wrong where",
        ),
        pytest.param(
            {"a/__init__.py": "def (:", "a/ok.py": ""},
            "a",
            ".",
            ("a",),
            ("a.ok",),
            id="an __init__ that does not parse",
        ),
        pytest.param(
            {"pyproject.toml": '[project]\nname = "One-File"\n', "one_file.py": "", "helper.py": ""},
            "One-File",
            ".",
            ("one_file",),
            ("one_file",),
            id="single module",
        ),
        pytest.param(
            {"pyproject.toml": '[tool.setuptools]\npy-modules = ["b", "a"]\n', "a.py": "", "b.py": "", "c.py": ""},
            "a",
            ".",
            ("a", "b"),
            ("a", "b"),
            id="py-modules",
        ),
        pytest.param(
            {"pyproject.toml": '[tool.setuptools.packages.find]\nwhere = ["python"]\n', "python/kit/__init__.py": ""},
            "kit",
            "python",
            ("kit",),
            ("kit",),
            id="where of pyproject",
        ),
        pytest.param(
            {
                "setup.cfg": "[metadata]\nname = kit\n[options]\npackages = find:\npackage_dir =\n    = lib\n",
                "setup.py": "from setuptools import setup\nsetup()\n",
                "lib/kit/__init__.py": "",
            },
            "kit",
            "lib",
            ("kit",),
            ("kit",),
            id="setup.cfg",
        ),
        pytest.param(
            {
                "setup.py": "import setuptools as s\ns.setup(name='kit', packages=s.find_packages(where='code'))\n",
                "code/kit/__init__.py": "",
            },
            "kit",
            "code",
            ("kit",),
            ("kit",),
            id="find_packages of setup.py",
        ),
        pytest.param(
            {"PKG-INFO": "Metadata-Version: 2.1\nName: kit-dist\n", "setup.py": "", "kit/__init__.py": ""},
            "kit-dist",
            ".",
            ("kit",),
            ("kit",),
            id="unpacked sdist",
        ),
        pytest.param(
            {"pyproject.toml": '[project]\nname = "ns"\n', "ns/part/__init__.py": "", "ns/part/a.py": ""},
            "ns",
            ".",
            ("ns",),
            ("ns.part", "ns.part.a"),
            id="namespace package",
        ),
        pytest.param({"tests/__init__.py": ""}, "tests", ".", ("tests",), ("tests",), id="tests are all there is"),
        pytest.param(
            {"model.py": "", "train.py": ""}, "model", ".", ("model", "train"), ("model", "train"), id="loose"
        ),
    ],
)
def test_packages(
    write: Write, files: Files, name: str, import_root: str, packages: tuple[str, ...], modules: tuple[str, ...]
) -> None:
    root = write(files)
    library = discover(root)
    assert library.name == name
    assert library.import_root == Path(os.path.normpath(root / import_root))
    assert library.packages == packages
    assert library.modules == modules
    assert library.root == root


def test_an_installed_package(write: Write) -> None:
    root = write({"kit/__init__.py": "", "kit/ops.py": "", "other/__init__.py": ""})
    library = discover(root / "kit")
    assert (library.root, library.import_root) == (root / "kit", root)
    assert (library.name, library.packages, library.modules) == ("kit", ("kit",), ("kit", "kit.ops"))
    assert library.build is None


def test_a_subpackage_keeps_its_full_name(write: Write) -> None:
    root = write({"kit/__init__.py": "", "kit/sub/__init__.py": "", "kit/sub/a.py": "", "kit/b.py": ""})
    library = discover(root / "kit" / "sub")
    assert (library.import_root, library.packages) == (root, ("kit",))
    assert library.modules == ("kit.sub", "kit.sub.a")


# --- build entries and native sources ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "kind", "file"),
    [
        ({"setup.py": CPP_SETUP}, "setuptools", "setup.py"),
        ({"setup.py": "from tools import exts\nsetup(ext_modules=exts())\n"}, "setuptools", "setup.py"),
        ({"setup.py": "kw = {}\nkw['ext_modules'] = []\nsetup(**kw)\n"}, "setuptools", "setup.py"),
        (
            {"pyproject.toml": '[build-system]\nbuild-backend = "scikit_build_core.build"\n', "CMakeLists.txt": ""},
            "scikit-build-core",
            "pyproject.toml",
        ),
        ({"CMakeLists.txt": "project(x)\nFind_Package( Torch REQUIRED)\n"}, "cmake", "CMakeLists.txt"),
        (
            {"pyproject.toml": '[build-system]\nbuild-backend = "mesonpy"\n', "csrc/a.cpp": ""},
            "pyproject",
            "pyproject.toml",
        ),
        ({"fast_ops/jit.py": "from torch.utils.cpp_extension import load as l\nm = l('x', ['a.cc'])\n"}, "jit", None),
        (
            {"fast_ops/jit.py": "import torch.utils.cpp_extension\ntorch.utils.cpp_extension.load_inline('x')\n"},
            "jit",
            None,
        ),
        ({"fast_ops/jit.py": "from torch.utils import cpp_extension as c\ndef f(): return c.load('x')\n"}, "jit", None),
    ],
)
def test_build_entry(write: Write, files: Files, kind: str, file: str | None) -> None:
    root = write({"fast_ops/__init__.py": "", **files})
    build = discover(root).build
    assert build is not None
    assert (build.kind, build.native) == (kind, True)
    assert build.file == root / (file or "fast_ops/jit.py")


@pytest.mark.parametrize(
    "files",
    [
        {"setup.py": "from setuptools import setup\nsetup(name='pure')\n"},
        {"pyproject.toml": '[build-system]\nbuild-backend = "hatchling.build"\n', "csrc/a.cc": ""},
        {"CMakeLists.txt": "# find_package(Torch)\n"},
        {"pure/io.py": "from json import load\nload('cpp_extension')\n"},
        {"tests/test_jit.py": "from torch.utils.cpp_extension import load\nload('x')\n"},
    ],
)
def test_nothing_to_build(write: Write, files: Files) -> None:
    assert discover(write({"pure/__init__.py": "", **files})).build is None


def test_native_sources_are_sorted_and_build_outputs_left_out(write: Write) -> None:
    names = ["csrc/b.cu", "csrc/a.cc", "include/a.hpp", "csrc/x.cxx", "csrc/d.cuh"]
    root = write({"fast_ops/__init__.py": "", "setup.py": CPP_SETUP, "build/a.cc": "", **dict.fromkeys(names, "")})
    library = discover(root)
    assert library.native_sources == tuple(sorted(root / name for name in names))
    assert (library.name, library.packages) == ("fast-ops", ("fast_ops",))


# --- probes -----------------------------------------------------------------------------------------------------------

PROJECT: Files = {
    "kit/__init__.py": "from .ops import run\n",
    "kit/ops.py": "def run(): ...\nclass Model:\n    def make(self): ...\n",
    "kit/lazy.py": "def __getattr__(name): ...\n",
    "tests/test_ops.py": "def test_run(): ...\n",
    "tests/deep/ops_test.py": "class TestOps:\n    def test_a(self): ...\n",
    "tests/test_speed.py": "print('a script')\n",
    "tests/helper.py": "",
}


@pytest.mark.parametrize(
    ("spec", "kind", "file"),
    [
        ("tests/test_speed.py", ProbeKind.SCRIPT, "tests/test_speed.py"),
        ("tests/test_ops.py", ProbeKind.PYTEST, "tests/test_ops.py"),
        ("tests/test_ops.py::test_run", ProbeKind.PYTEST, "tests/test_ops.py"),
        ("tests/deep/ops_test.py::TestOps::test_a", ProbeKind.PYTEST, "tests/deep/ops_test.py"),
        ("kit.ops:run", ProbeKind.CALLABLE, None),
        ("kit.ops:Model.make", ProbeKind.CALLABLE, None),
        ("kit:run", ProbeKind.CALLABLE, None),
        ("kit.lazy:anything", ProbeKind.CALLABLE, None),
        ("tests.helper:", None, None),
        ("numpy.linalg:norm", ProbeKind.CALLABLE, None),
    ],
)
def test_given_probes(write: Write, spec: str, kind: ProbeKind | None, file: str | None) -> None:
    root = write(PROJECT)
    if kind is None:
        with pytest.raises(UsageError):
            discover(root, [spec])
        return
    library = discover(root, [spec], configured=["nothing.py"])
    (probe,) = library.probes
    assert (probe.kind, probe.spec, probe.path) == (kind, spec, root / file if file else None)
    assert library.probes_from == "option"


@pytest.mark.parametrize(
    ("spec", "message", "remedy"),
    [
        ("smok.py", "no such file", "script"),
        ("tests/test_op.py", "no such file", "did you mean tests/test_ops.py?"),
        ("tests/test_op.py::test_run", "no such file", "did you mean tests/test_ops.py?"),
        ("kit.op:run", "no module kit.op", "did you mean kit.ops?"),
        ("kit.ops:rum", "nothing called rum", "did you mean run?"),
        ("kit.ops:zzz", "nothing called zzz", "it has run"),
        ("kit.ops", "not a probe", "package.module:callable"),
        ("kit.ops:1+1", "not a probe", "package.module:callable"),
        ("tests", "not a probe", "package.module:callable"),
        ("bad.py", "syntax error in line 1", "correct"),
        ("kit.bad:make", "syntax error in line 2", "correct"),
    ],
)
def test_a_probe_that_cannot_be(write: Write, spec: str, message: str, remedy: str) -> None:
    root = write({**PROJECT, "bad.py": "def (:\n", "kit/bad.py": "x = 1\ny = = 2\n"})
    with pytest.raises(UsageError) as caught:
        discover(root, [spec])
    assert spec in caught.value.message
    assert message in caught.value.message
    assert remedy in caught.value.remedy


def test_configured_probes_come_after_given_ones(write: Write) -> None:
    root = write({**PROJECT, "smoke.py": ""})
    assert discover(root, configured=["kit.ops:run"]).probes_from == "config"
    assert [probe.spec for probe in discover(root, configured=["kit.ops:run"]).probes] == ["kit.ops:run"]


@pytest.mark.parametrize(
    ("files", "specs", "origin"),
    [
        (
            {"smoke.py": "", "test.py": "", "examples/b.py": "", "examples/a.py": "", "tests/smoke_x.py": ""},
            ["smoke.py", "test.py", "examples/a.py", "examples/b.py", "tests/smoke_x.py"],
            "found",
        ),
        ({"examples/a.py": "", "test_kit.py": "def test_a(): ...\n"}, ["examples/a.py"], "found"),
        ({"test_kit.py": "def test_a(): ...\n"}, ["test_kit.py"], "found"),
        ({"kit/tests/test_kit.py": "def test_a(): ...\n"}, ["imports"], "imports"),
        ({}, ["imports"], "imports"),
        ({"smoke.py": "def (:\n"}, ["imports"], "imports"),
    ],
)
def test_found_probes(write: Write, files: Files, specs: list[str], origin: str) -> None:
    library = discover(write({"kit/__init__.py": "", **files}))
    assert [probe.spec for probe in library.probes] == specs
    assert library.probes_from == origin


def test_pytest_files_are_for_the_test_stage(write: Write) -> None:
    root = write({**PROJECT, "smoke.py": "", "kit/tests/test_in.py": "def test_a(): ...\n", "kit/test_tools.py": ""})
    library = discover(root)
    assert [path.relative_to(root).as_posix() for path in library.tests] == [
        "kit/tests/test_in.py",
        "tests/deep/ops_test.py",
        "tests/test_ops.py",
    ]
    assert [probe.spec for probe in library.probes] == ["smoke.py"]


def test_without_a_program_every_public_module_is_imported(write: Write) -> None:
    (probe,) = discover(write({"kit/__init__.py": "", "kit/a.py": "", "kit/_b.py": ""})).probes
    assert (probe.kind, probe.modules) == (ProbeKind.IMPORTS, ("kit", "kit.a"))


# --- lone scripts -----------------------------------------------------------------------------------------------------


def test_a_lone_script_is_its_own_probe(write: Write) -> None:
    root = write({"prog.py": "result = 1\n", "other.py": ""})
    library = discover(root / "prog.py")
    assert (library.name, library.script, library.root) == ("prog", root / "prog.py", root)
    assert (library.packages, library.modules) == ((), ())
    (probe,) = library.probes
    assert (probe.kind, probe.spec, probe.path) == (ProbeKind.SCRIPT, "prog.py", root / "prog.py")


def test_a_callable_in_a_lone_script(write: Write) -> None:
    root = write({"modelfile.py": "def make(): ...\n"})
    library = discover(root / "modelfile.py", ["modelfile:make"])
    assert [(probe.kind, probe.spec) for probe in library.probes] == [(ProbeKind.CALLABLE, "modelfile:make")]
    assert (library.import_root, library.packages) == (root, ("modelfile",))
    with pytest.raises(UsageError, match="nothing called mak"):
        discover(root / "modelfile.py", ["modelfile:mak"])


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "path", "message", "remedy"),
    [
        ({}, "nope", "no such path", "folder"),
        ({"a.txt": ""}, "a.txt", "not a Python file", ".py"),
        ({"a-1.0.tar.gz": ""}, "a-1.0.tar.gz", "is an archive", "tar -xf a-1.0.tar.gz"),
        ({"a-1.0-py3-none-any.whl": ""}, "a-1.0-py3-none-any.whl", "is an archive", "python -m zipfile -e"),
        ({"a.txt": ""}, ".", "no Python", "folder"),
        ({"a.py": "x = = 1\n"}, "a.py", "syntax error in line 1", "correct"),
        ({"a.py": b"x = '\xff'\n"}, "a.py", "utf-8", "correct"),
        ({"a.py": "def (:\n"}, ".", "a.py: syntax error in line 1", "correct"),
        ({"lib-1.0/setup.py": "", "lib-1.0/kit.py": ""}, ".", "not a project itself", "lib-1.0"),
        ({"setup.py": ""}, ".", "no module and no program", "--probe"),
    ],
)
def test_bad_paths(write: Write, files: Files, path: str, message: str, remedy: str) -> None:
    root = write(files)
    before = sorted(root.rglob("*"))
    with pytest.raises(LensError) as caught:
        discover(root / path)
    assert message in caught.value.message
    assert remedy in caught.value.remedy
    assert "\n" not in caught.value.message + caught.value.remedy
    assert sorted(root.rglob("*")) == before


def test_what_cannot_be_read_is_skipped_and_said(write: Write) -> None:
    root = write(
        {
            "kit/__init__.py": "",
            "kit/bad.py": "a\nb c\n",
            "kit/bytes.py": b"x = '\xe9'\n",
            "kit/latin.py": b"# -*- coding: latin-1 -*-\nx = '\xe9'\n",
            "kit/bom.py": b"\xef\xbb\xbfx = 1\n",
            "kit/coding.py": b"# coding: klingon\n",
            "kit/null.py": b"x = 1\x00\n",
            "kit/warns.py": "x = '\\d'\n",
            "kit/deep.py": "(" * 500 + ")" * 500 + "\n",
        }
    )
    library = discover(root)
    assert library.modules == ("kit", "kit.bom", "kit.latin", "kit.warns")
    reasons = {skipped.path: skipped.reason for skipped in library.skipped}
    assert sorted(reasons) == ["kit/bad.py", "kit/bytes.py", "kit/coding.py", "kit/deep.py", "kit/null.py"]
    assert "line 2" in reasons["kit/bad.py"]
    assert all("\n" not in reason for reason in reasons.values())


def test_links_and_pipes(write: Write, tmp_path: Path) -> None:
    root = write({"kit/__init__.py": "", "kit/a.py": ""})
    (tmp_path / "elsewhere").mkdir()
    (root / "kit" / "loop").symlink_to(root)
    (root / "kit" / "self.py").symlink_to(root / "kit" / "self.py")
    (root / "kit" / "gone.py").symlink_to(root / "kit" / "nothing.py")
    (root / "kit" / "out").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(root / "kit" / "pipe.py")
    library = discover(root)
    assert library.modules == ("kit", "kit.a")
    assert [(skipped.path, skipped.reason) for skipped in library.skipped] == [
        ("kit/out", "a link to a folder outside the library")
    ]


def test_a_link_to_a_library_is_the_library(write: Write, tmp_path: Path) -> None:
    root = write({"kit/__init__.py": ""})
    (tmp_path / "link").symlink_to(root)
    assert discover(tmp_path / "link").packages == ("kit",)


@pytest.mark.parametrize("folder", [".git", ".venv", "node_modules", "__pycache__", "build", "dist", "kit.egg-info"])
def test_tools_folders_are_left_alone(write: Write, folder: str) -> None:
    root = write({"kit/__init__.py": "", f"{folder}/x.py": "def (:\n", f"kit/{folder}/x.py": "def (:\n"})
    assert discover(root).skipped == ()


def test_an_environment_of_any_name_is_left_alone(write: Write) -> None:
    root = write({"kit/__init__.py": "", "env39/pyvenv.cfg": "", "env39/lib/x/__init__.py": "", "env39/x.py": "def (:"})
    assert discover(root).packages == ("kit",)
    assert discover(root).skipped == ()


def test_an_unreadable_folder_is_skipped(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write({"kit/__init__.py": "", "kit/secret/__init__.py": ""})
    monkeypatch.setattr(os, "scandir", _refuse(os.scandir, "secret"))
    library = discover(root)
    assert [(skipped.path, skipped.reason) for skipped in library.skipped] == [("kit/secret", "Permission denied")]


def test_an_unreadable_file_is_skipped(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write({"kit/__init__.py": "", "kit/secret.py": ""})
    monkeypatch.setattr(Path, "read_bytes", _refuse(Path.read_bytes, "secret.py"))
    assert [skipped.reason for skipped in discover(root).skipped] == ["Permission denied"]


def _refuse(real: Callable[..., object], name: str) -> Callable[..., object]:
    """Permission bits mean nothing to root, so the refusal is played."""

    def call(path: str | Path, *rest: object) -> object:
        if Path(path).name == name:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *rest)

    return call


@pytest.mark.parametrize("broken", ["[project\n", "[project]\nname = 3\n", "project = 1\n", b"\xff\xfe"])
def test_a_broken_pyproject_declares_nothing(write: Write, broken: str | bytes) -> None:
    files: Files = {
        "pyproject.toml": broken,
        "kit/__init__.py": "",
        "setup.cfg": "no section\n",
        "setup.py": "def (:\n",
    }
    library = discover(write(files))
    assert library.packages == ("kit",)
    assert [skipped.path for skipped in library.skipped] == ["setup.py"]


def test_nothing_is_run_or_imported(write: Write) -> None:
    bomb = "import os\nos._exit(7)\n"
    root = write({"setup.py": bomb, "kit/__init__.py": bomb, "smoke.py": bomb, "conftest.py": bomb})
    before = set(sys.modules)
    assert discover(root).packages == ("kit",)
    assert "kit" not in set(sys.modules) - before


# --- properties -------------------------------------------------------------------------------------------------------


@given(st.binary(max_size=200))
@settings(max_examples=200)
def test_any_bytes_are_read_or_refused_in_one_line(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.py"
    path.write_bytes(data)
    read = tree.check(path)
    assert isinstance(read, bytes) or (read and "\n" not in read)


PARTS = st.sampled_from(["kit", "src", "tests", "examples", "_p", "build", "x-y", "smoke", "test_a", "__init__"])
PATHS = st.lists(PARTS, min_size=1, max_size=4).map(lambda parts: "/".join(parts) + ".py")


@given(files=st.sets(PATHS, max_size=8))
@settings(max_examples=100)
def test_any_tree_is_a_library_or_an_error(tmp_path_factory: pytest.TempPathFactory, files: set[str]) -> None:
    root = tmp_path_factory.mktemp("any")
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    try:
        library = discover(root)
    except (LibraryError, UsageError):
        return
    assert library.probes
    assert {module.partition(".")[0] for module in library.modules} <= set(library.packages)
    assert discover(root) == library
