"""Commands that hang, flood or leave children behind, in; a bounded result and no process left, out."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from migrate_lens.native.process import HEAD, TAIL, Bounded, run_bounded


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def gone(pid: int, seconds: float = 5.0) -> bool:
    end = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not alive(pid)


def test_status_and_output_of_a_command(tmp_path: Path) -> None:
    ran = run_bounded(["/bin/sh", "-c", "echo out; echo err >&2; exit 4"], cwd=tmp_path, env=os.environ, timeout=10)
    assert (ran.returncode, ran.timed_out, ran.ok) == (4, False, False)
    assert ran.output.split() == ["out", "err"]


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    ran = run_bounded(["/no/such/program"], cwd=tmp_path, env={}, timeout=10)
    assert ran.returncode is None
    assert "No such file" in ran.output


def test_a_time_limit_ends_the_whole_group(tmp_path: Path) -> None:
    script = f"sleep 60 & echo $! > {tmp_path}/child; sleep 60"
    ran = run_bounded(["/bin/sh", "-c", script], cwd=tmp_path, env=os.environ, timeout=0.5)
    assert ran.timed_out
    assert ran.seconds < 10
    assert gone(int((tmp_path / "child").read_text()))


def test_what_a_finished_command_leaves_running_is_ended(tmp_path: Path) -> None:
    script = f"sleep 60 & echo $! > {tmp_path}/child; echo done"
    ran = run_bounded(["/bin/sh", "-c", script], cwd=tmp_path, env=os.environ, timeout=30)
    assert ran.ok
    assert ran.seconds < 10
    assert gone(int((tmp_path / "child").read_text()))


def test_output_without_end_is_kept_at_both_ends(tmp_path: Path) -> None:
    script = "import sys; sys.stdout.write('a' * 100); sys.stdout.write('b' * 5_000_000); sys.stdout.write('c' * 100)"
    ran = run_bounded([sys.executable, "-c", script], cwd=tmp_path, env=os.environ, timeout=30)
    assert ran.output.startswith("a" * 100)
    assert ran.output.endswith("c" * 100)
    assert len(ran.output) < HEAD + 2 * TAIL
    assert "bytes left out" in ran.output


def test_short_output_is_kept_whole() -> None:
    kept = Bounded(head=4, tail=4)
    for piece in (b"ab", b"cdef", b"gh"):
        kept.add(piece)
    assert kept.text() == "abcdefgh"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_when_the_driver_ends_early(tmp_path: Path, how: signal.Signals) -> None:
    root = Path(__file__).resolve().parents[2]
    program = (
        "import os, pathlib; from migrate_lens.native.process import run_bounded\n"
        f"run_bounded(['/bin/sh', '-c', 'echo $$ > {tmp_path}/child; exec sleep 60'],"
        " cwd=pathlib.Path('.'), env=os.environ, timeout=60)"
    )
    driver = subprocess.Popen([sys.executable, "-c", program], cwd=root, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 20
    while not (child := tmp_path / "child").exists() or not child.read_text():
        assert time.monotonic() < end
        time.sleep(0.02)
    driver.send_signal(how)
    driver.wait(20)
    assert gone(int(child.read_text()))
