"""The import contract, held against trees that break it; and imports that the contract cannot see, searched for."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "migrate_lens"
IMPORTERS = frozenset({"import_module", "__import__", "find_spec", "run_module"})
PROCESS_START = "worker/run"  # a worker loads what a job needs when it knows which framework it has


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of the package with its contract."""
    shutil.copytree(PACKAGE, tmp_path / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def checked(house: Path) -> subprocess.CompletedProcess[str]:
    """The import contract of a tree."""
    program = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=house,
        env={**os.environ, "PYTHONPATH": str(house)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_tree_as_it_is_keeps_the_contract(house: Path) -> None:
    done = checked(house)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["newroom.py", "newroom/__init__.py"])
def test_a_module_without_a_place_breaks_the_contract(house: Path, name: str) -> None:
    path = house / PACKAGE.name / name
    path.parent.mkdir(exist_ok=True)
    path.write_text('"""A room that nobody has drawn."""\n')
    done = checked(house)
    assert done.returncode == 1
    assert "newroom" in done.stdout


def test_an_import_from_above_breaks_the_contract(house: Path) -> None:
    (house / PACKAGE.name / "model" / "climbs.py").write_text('"""Reaches up."""\nfrom migrate_lens import reports\n')
    done = checked(house)
    assert done.returncode == 1
    assert "migrate_lens.model.climbs -> migrate_lens.reports" in done.stdout


def test_every_room_has_its_paragraph() -> None:
    """One paragraph a room in ``docs/architecture.md``: what goes in, what comes out, what it may touch."""
    drawn = re.findall(r"\*\*([a-z, ]+)\*\*", (ROOT / "docs" / "architecture.md").read_text())
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    modules = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert {name for names in drawn for name in names.split(", ")} == packages | modules


def by_string(source: str) -> Iterator[str]:
    """The modules of ours that a source imports by a string."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called not in IMPORTERS:
            continue
        for name in map(head, node.args[:1]):
            if name.startswith((f"{PACKAGE.name}.", ".")):
                yield name


def head(text: ast.expr) -> str:
    """What a text begins with, as far as the source says it."""
    match text:
        case ast.Constant(value=str(value)):
            return value
        case ast.JoinedStr(values=[first, *_]):
            return head(first)
        case ast.BinOp(left=left):
            return head(left)
    return ""


@pytest.mark.parametrize(
    ("source", "modules"),
    [
        ("import importlib\nimportlib.import_module('migrate_lens.reports')", ["migrate_lens.reports"]),
        ("from importlib import import_module\nimport_module('migrate_lens.' + name)", ["migrate_lens."]),
        ("__import__(f'migrate_lens.reports.{name}')", ["migrate_lens.reports."]),
        ("import_module('.reports', 'migrate_lens')", [".reports"]),
        ("import_module('torch.nn')\nimport_module(name)", []),
        ("import migrate_lens.reports\nprint('migrate_lens.reports')", []),
    ],
)
def test_an_import_by_string_is_seen(source: str, modules: list[str]) -> None:
    assert list(by_string(source)) == modules


def test_nothing_is_reached_by_a_string_but_where_a_worker_starts() -> None:
    reached = {
        path.relative_to(PACKAGE).as_posix(): modules
        for path in PACKAGE.rglob("*.py")
        if (modules := list(by_string(path.read_text())))
    }
    assert {name: modules for name, modules in reached.items() if not name.startswith(PROCESS_START)} == {}
