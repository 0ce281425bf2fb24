"""A suite of a library through the whole diagnosis: what its table says of each test, on both sides, for real."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from migrate_lens.cli import main

pytestmark = pytest.mark.real

LIBRARY = """
    import torch


    def volume(matrix):
        return torch.slogdet(matrix)[1]


    def total(values):
        return values.sum()


    def device_of(module):
        return next(module.parameters()).device
"""
TESTS = """
    import unittest

    import pytest
    import torch

    from mylib import device_of, total, volume


    @pytest.fixture(scope="module")
    def ones():
        return torch.ones(3)


    def test_total(ones):
        assert total(ones) == 3


    @pytest.mark.parametrize("size", [2, 3])
    def test_volume(size):
        assert volume(torch.eye(size)) == 0


    def test_that_fails_under_torch():
        assert total(torch.ones(2)) == 3


    @pytest.mark.skip
    def test_that_is_skipped():
        raise AssertionError


    @pytest.mark.xfail
    def test_that_is_known_to_fail():
        assert total(torch.ones(2)) == 3


    class OfModules(unittest.TestCase):
        def setUp(self):
            self.module = torch.nn.Linear(2, 2)

        def test_device(self):
            self.assertEqual(device_of(self.module).type, "cpu")

        def test_parts(self):
            for size in (1, 2):
                with self.subTest(size=size):
                    self.assertEqual(total(torch.ones(size)), size)
"""


BROKEN = """
    import no_such_module


    def test_nothing():
        no_such_module.run()
"""


def written(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(textwrap.dedent(text))
    return root


def diagnosed(root: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> dict[str, dict[str, object]]:
    main(["diagnose", str(root), "--state", str(root.parent / "state"), "--format", "json", *flags])
    document: dict[str, dict[str, object]] = json.loads(capsys.readouterr().out)
    return document


@pytest.fixture
def library(tmp_path: Path) -> Path:
    files = {"mylib/__init__.py": LIBRARY, "tests/test_all.py": TESTS, "tests/test_broken.py": BROKEN}
    return written(tmp_path / "lib", files)


def test_each_test_is_told_on_both_sides_with_the_gaps_that_hold_it_back(
    library: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = diagnosed(library, capsys)
    table = report["tests"]
    rows = {row["node"].partition("::")[2]: row for row in table["rows"]}  # type: ignore[attr-defined]
    told = {name: (row["torch"], row["paddle"], row["healed"]) for name, row in rows.items()}
    assert told == {
        "test_total": ("passed", "passed", "passed"),
        "test_volume[2]": ("passed", "failed", "passed"),
        "test_volume[3]": ("passed", "failed", "passed"),
        "test_that_fails_under_torch": ("failed", "failed", ""),
        "test_that_is_skipped": ("skipped", "skipped", ""),
        "test_that_is_known_to_fail": ("skipped", "skipped", ""),
        "OfModules::test_device": ("passed", "failed", "passed"),
        "OfModules::test_parts": ("passed", "passed", "passed"),
    }
    assert rows["test_volume[2]"]["gaps"] == ["torch.slogdet:missing_api"]
    assert rows["OfModules::test_device"]["gaps"] == ["torch.nn.Module.parameters:value"]
    assert table["pass"] == {"torch": 5, "paddle": 2, "healed": 5}
    assert table["held_back"] == {"torch.slogdet:missing_api": 2, "torch.nn.Module.parameters:value": 1}
    assert table["unexplained"] == []
    assert [gap["id"] for gap in report["gaps"]] == ["torch.slogdet:missing_api", "torch.nn.Module.parameters:value"]  # type: ignore[index]
    aside = {one["probe"]: one["reason"] for one in report["not_exercised"]}  # type: ignore[index]
    assert "no_such_module" in aside["tests/test_broken.py"]
    assert "fails under torch" in aside["tests/test_all.py::test_that_fails_under_torch"]


def test_tests_are_chosen_as_pytest_chooses_them(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = diagnosed(library, capsys, "--test-select", "volume and 2")["tests"]
    assert [row["node"] for row in table["rows"]] == ["tests/test_all.py::test_volume[2]"]  # type: ignore[attr-defined]
    node = "tests/test_all.py::OfModules"
    table = diagnosed(library, capsys, "--probe", node)["tests"]
    assert [row["node"] for row in table["rows"]] == [f"{node}::test_device", f"{node}::test_parts"]  # type: ignore[attr-defined]


ENDS = """
    import os

    import torch


    def test_before():
        assert torch.ones(2).sum() == 2


    def test_that_ends_the_process():
        if "paddle" in repr(type(torch.ones(1))):
            os._exit(3)


    def test_behind():
        assert torch.slogdet(torch.eye(2))[1] == 0
"""


def test_a_test_that_ends_the_process_is_a_row_and_the_others_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = written(tmp_path / "lib", {"mylib/__init__.py": LIBRARY, "tests/test_ends.py": ENDS})
    rows = diagnosed(root, capsys)["tests"]["rows"]
    assert [row["paddle"] for row in rows] == ["passed", "crashed: exit status 3", "failed"]  # type: ignore[attr-defined]
    assert rows[2]["healed"] == "passed"  # type: ignore[index]
    assert rows[2]["gaps"] == ["torch.slogdet:missing_api"]  # type: ignore[index]


UNEXPLAINED = """
    import sys

    import torch


    def test_that_asks_who_answers():
        assert torch.ones(1).sum() == 1
        assert "paddle" not in sys.modules
"""


def test_a_test_that_no_gap_explains_is_named_as_that(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = written(tmp_path / "lib", {"mylib/__init__.py": LIBRARY, "tests/test_type.py": UNEXPLAINED})
    table = diagnosed(root, capsys)["tests"]
    assert table["unexplained"] == ["tests/test_type.py::test_that_asks_who_answers"]
    assert table["pass"] == {"torch": 1, "paddle": 0, "healed": 0}


SAME_NAMES = {
    "mylib/__init__.py": LIBRARY,
    "tests/a/test_one.py": "import torch\n\n\ndef test_a():\n    assert torch.ones(1).sum() == 1\n",
    "tests/b/test_one.py": "import torch\n\n\ndef test_b():\n    assert torch.slogdet(torch.eye(2))[1] == 0\n",
}


def test_two_files_of_one_name_that_pytest_cannot_run_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = diagnosed(written(tmp_path / "lib", SAME_NAMES), capsys)["tests"]
    assert {row["node"]: row["healed"] for row in table["rows"]} == {  # type: ignore[attr-defined]
        "tests/a/test_one.py::test_a": "passed",
        "tests/b/test_one.py::test_b": "passed",
    }
