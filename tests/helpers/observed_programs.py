"""A bench on torch alone, and what an observed program must keep: the output, and an end of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate_lens.discovery.discover import discover
from migrate_lens.model.report import Runtime
from migrate_lens.runs.bench import Bench, RunRequest, Setting
from migrate_lens.runs.worker import Worker


@pytest.fixture(scope="module", name="bench")
def torch_bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with Worker(Path(sys.executable), "torch") as worker:
        yield Bench(worker, None, tmp_path_factory.mktemp("bench"))


def check_prints_the_same(bench: Bench, folder: Path, source: str) -> None:
    """Run a program plainly and observed."""
    program = folder / "program.py"
    program.write_text(source)
    library = discover(program)
    setting = Setting(library, dict.fromkeys(Runtime, ()), (), 120.0)
    run = bench.run(RunRequest(setting, Runtime.TORCH, library.probes[0]))
    plain = subprocess.run([sys.executable, str(program)], check=True, capture_output=True, text=True)
    assert run.file.with_suffix(".out").read_text() == plain.stdout
    assert run.trace.ending.how == "finished"
