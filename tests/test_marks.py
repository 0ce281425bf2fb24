"""Tests without a mark that start what only marked tests may, in; a refusal that names the mark, out."""

from __future__ import annotations

import subprocess
import sys

import marked
import pytest


@pytest.mark.parametrize("framework", ["torch", "paddle"])
def test_an_interpreter_that_imports_a_framework_is_refused(framework: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"import {framework}"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "needs pytest.mark.real" in done.stderr
    (offence,) = marked.committed()
    assert f"{framework}/__init__.py" in offence


@pytest.mark.parametrize(
    ("command", "mark"),
    [(["g++", "-c", "a.cc"], "native"), ([sys.executable, "migrate_lens/worker/run/boot.py", "torch"], "real")],
)
def test_a_compiler_and_a_worker_are_refused(command: list[str], mark: str) -> None:
    with pytest.raises(pytest.fail.Exception, match=rf"needs pytest\.mark\.{mark}"):
        subprocess.run(command, check=False)
    assert len(marked.committed()) == 1


@pytest.mark.native
def test_a_mark_allows_what_it_says() -> None:
    assert subprocess.run(["g++", "--help"], capture_output=True, check=False).returncode == 0
