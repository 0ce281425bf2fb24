"""Small libraries of each build system, in; a build on both sides by the plain way, and what stands in it, out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from native_samples import library

from migrate_lens.discovery.discover import discover
from migrate_lens.model.report import Outcome, Runtime, Site
from migrate_lens.native import BuildRun, NativeReport, build_library, compare_builds

PYTHON = Path(sys.executable)
LIMIT = 600.0
# Light headers: what is tried here is the way to the compiler.
UNIT = """\
#include <c10/macros/Macros.h>

#ifndef C10_LIKELY
#error "no C10_LIKELY"
#endif
int ready() { return 1; }
"""
LACKING = {"C10_LIKELY": (Site("csrc/ops.cc", 4),)}
CMAKE = """\
cmake_minimum_required(VERSION 3.18)
project(native LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(Torch REQUIRED)
add_library(native_ops SHARED csrc/ops.cc)
target_include_directories(native_ops PRIVATE ${TORCH_INCLUDE_DIRS})
install(TARGETS native_ops LIBRARY DESTINATION native)
install(FILES native/__init__.py DESTINATION native)
"""
SETUP = """\
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    packages=["native"],
    ext_modules=[CppExtension(name="native._C", sources=["csrc/ops.cc"])],
    cmdclass={"build_ext": BuildExtension},
)
"""
PYPROJECT = """\
[build-system]
requires = ["setuptools", "torch"]
build-backend = "setuptools.build_meta"

[project]
name = "native"
version = "1"
"""
SCIKIT = PYPROJECT.replace("setuptools.build_meta", "scikit_build_core.build").replace(
    '"setuptools"', '"scikit-build-core"'
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "native"
    for name, text in {"csrc/ops.cc": UNIT, "native/__init__.py": ""}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def both(root: Path, work: Path) -> tuple[BuildRun, BuildRun, NativeReport]:
    found = discover(root)
    torch = build_library(found, Runtime.TORCH, PYTHON, work, timeout=LIMIT)
    paddle = build_library(found, Runtime.TARGET, PYTHON, work, timeout=LIMIT)
    return torch, paddle, compare_builds(torch, paddle, PYTHON, work, LIMIT)


@pytest.mark.real
@pytest.mark.native
def test_a_bare_cmake_library(root: Path, tmp_path: Path) -> None:
    (root / "CMakeLists.txt").write_text(CMAKE)
    assert (entry := discover(root).build) is not None
    assert entry.kind == "cmake"
    torch, paddle, report = both(root, tmp_path / "work")
    assert torch.passed, torch.result.detail
    assert torch.target is not None
    assert [path.name for path in torch.target.rglob("*.so")] == ["libnative_ops.so"]
    assert paddle.result.outcome is Outcome.FAILED
    sites = {finding.key.api: finding.sites for finding in report.findings}
    assert sites["find_package(Torch)"] == (Site("CMakeLists.txt", 4),)
    assert "torch.utils.cmake_prefix_path" in sites
    assert LACKING.items() <= sites.items()


@pytest.mark.real
@pytest.mark.native
def test_a_pyproject_with_the_backend_of_setuptools(root: Path, tmp_path: Path) -> None:
    (root / "pyproject.toml").write_text(PYPROJECT)
    (root / "setup.py").write_text(SETUP)
    torch, paddle, report = both(root, tmp_path / "work")
    assert torch.passed, torch.result.detail
    assert [sum(call.compiles for call in run.compiles) for run in (torch, paddle)] == [1, 1]
    assert paddle.result.detail.startswith("csrc/ops.cc:4:")
    assert {finding.key.api: finding.sites for finding in report.findings} == LACKING


def test_a_backend_that_is_not_installed_is_named(root: Path, tmp_path: Path) -> None:
    (root / "pyproject.toml").write_text(SCIKIT.replace("scikit_build_core", "no_such_backend"))
    run = build_library(
        library(root, "pyproject", "pyproject.toml"), Runtime.TORCH, PYTHON, tmp_path / "work", timeout=LIMIT
    )
    assert run.result.outcome is Outcome.FAILED
    assert "no_such_backend" in run.result.detail


def test_scikit_build_core_is_seen_and_goes_through_pip(root: Path) -> None:
    (root / "pyproject.toml").write_text(SCIKIT)
    (root / "CMakeLists.txt").write_text(CMAKE)
    entry = discover(root).build
    assert entry is not None
    assert (entry.kind, entry.native) == ("scikit-build-core", True)
