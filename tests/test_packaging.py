"""The wheel, held against what an installed migrate-lens needs."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


@pytest.mark.parametrize("folder", ["rules", "templates"])
def test_the_wheel_has_every_rule_and_template(wheel: zipfile.ZipFile, folder: str) -> None:
    here = {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*") if path.is_file()}
    shipped = {name.removeprefix("migrate_lens/") for name in wheel.namelist()}
    assert here
    assert {name for name in here if "__pycache__" not in name} <= shipped


def test_the_wheel_has_every_module_and_no_test(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    here = {path.relative_to(ROOT).as_posix() for path in (ROOT / "migrate_lens").rglob("*.py")}
    assert here <= set(names)
    assert not [name for name in names if name.startswith(("tests/", "fixtures/", "benchmarks/"))]


def test_the_command_is_installed(wheel: zipfile.ZipFile) -> None:
    (entry,) = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    assert "migrate-lens = migrate_lens.cli:main" in wheel.read(entry).decode()
    (license_,) = [name for name in wheel.namelist() if name.endswith("licenses/LICENSE")]
    assert b"Apache License" in wheel.read(license_)


def test_the_wheel_depends_on_no_framework(wheel: zipfile.ZipFile) -> None:
    """Real users bring their own: two environments, and the tool in either or in a third."""
    (metadata,) = [name for name in wheel.namelist() if name.endswith("METADATA")]
    needed = [line for line in wheel.read(metadata).decode().splitlines() if line.startswith("Requires-Dist:")]
    assert not [line for line in needed if ("torch" in line or "paddle" in line) and "extra" not in line]
