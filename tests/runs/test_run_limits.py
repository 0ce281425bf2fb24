"""Programs that write without end, and disks that are full, in; one line and exit code 2, and nothing left, out."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from processes import PATIENCE, lens

from migrate_lens.protocol.journal import Journal, ran_full, read

ENDLESS = {
    "prints": "print('x' * 1000)",
    "complains": "sys.stderr.write('x' * 1000)",
    "writes beneath Python": "os.write(1, b'x' * 100000)",
}


def limited(size: int) -> Callable[[], None]:
    """What makes every file of a process end at a size: as a disk that is full does."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def ran(folder: Path, *arguments: object, most: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, with a private folder for what is temporary beside it."""
    (folder / "tmp").mkdir(exist_ok=True)
    return subprocess.run(
        lens(*arguments), cwd=folder, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(folder / "tmp")}, preexec_fn=limited(most) if most else None,
    )  # fmt: skip


@pytest.mark.real
@pytest.mark.parametrize("name", ENDLESS)
def test_output_without_end_is_one_line(name: str, tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(f"import os, sys, torch\nwhile True: {ENDLESS[name]}\n")
    done = ran(tmp_path, "diagnose", "prog.py")
    assert done.returncode == 2
    assert "does not end under torch before there are 64 MiB of its output" in done.stderr
    assert len(done.stderr.splitlines()) == 2
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["prog.py", "tmp"]


@pytest.mark.real
@pytest.mark.parametrize("command", [["diagnose"], ["trace", "-o", "kept.trace", "--record", "values"]])
def test_a_trace_that_the_disk_has_no_room_for_is_one_line(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text("import torch\nfor _ in range(99999): x = torch.ones(100) + 1\n")
    done = ran(tmp_path, *command, "prog.py", most=3 << 20)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "No space left on device" in done.stderr
    assert len(done.stderr.splitlines()) == 2
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["prog.py", "tmp"]


FILL = """
import sys
from migrate_lens.protocol.journal import Journal
journal = Journal(sys.argv[1], full=lambda: sys.exit(9))
for number in range(10**6):
    journal.write(("op", 0, "x" * 1000, number))
"""


def test_a_trace_of_a_full_disk_says_so_and_keeps_what_was_written(tmp_path: Path) -> None:
    file = tmp_path / "t.trace"
    command = [sys.executable, "-c", FILL, str(file)]
    done = subprocess.run(command, check=False, timeout=PATIENCE, preexec_fn=limited(5 << 20))
    assert done.returncode == 9
    assert ran_full(file)
    assert [frame[3] for frame in read(file)[1]][:100] == list(range(100))


def test_a_trace_that_fits_does_not_say_so(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "t.trace")
    for number in range(5000):
        journal.write(("op", 0, "x" * 1000, number))
    journal.close()
    assert not ran_full(tmp_path / "t.trace")
    assert len(list(read(tmp_path / "t.trace")[1])) == 5000
