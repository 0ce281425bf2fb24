"""Extensions that could not be built, in; how a program that looks for them by name or by folder finds them, out."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from pathlib import Path

import pytest

from migrate_lens.worker.heal.standins import import_unbuilt


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(importlib.machinery.PathFinder, "find_spec", importlib.machinery.PathFinder.find_spec)
    import_unbuilt(frozenset({"fastlib._kernels"}))


def test_an_extension_that_is_looked_for_in_its_folder_is_found_there(tmp_path: Path) -> None:
    for finder in (importlib.machinery.PathFinder, importlib.machinery.PathFinder()):
        spec = finder.find_spec("_kernels", [str(tmp_path)])
        assert spec is not None
        assert spec.origin is not None
        assert Path(spec.origin).parent == tmp_path


def test_what_is_no_extension_of_the_library_is_not_made_up(tmp_path: Path) -> None:
    assert importlib.machinery.PathFinder.find_spec("_other", [str(tmp_path)]) is None
    assert importlib.machinery.PathFinder.find_spec("_kernels") is None


def test_what_is_there_is_found_as_before(tmp_path: Path) -> None:
    (tmp_path / "_kernels.py").write_text("answer = 42")
    spec = importlib.machinery.PathFinder.find_spec("_kernels", [str(tmp_path)])
    assert spec is not None
    assert spec.origin == str(tmp_path / "_kernels.py")
