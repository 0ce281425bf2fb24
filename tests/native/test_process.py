"""Commands that hang, flood or leave children behind, in; a bounded result and no process left, out."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import PATIENCE, gone, running, wait_for

from migrate_lens.native.process import HEAD, TAIL, Bounded, run_bounded


def test_status_and_output_of_a_command(tmp_path: Path) -> None:
    ran = run_bounded(
        ["/bin/sh", "-c", "echo out; echo err >&2; exit 4"], cwd=tmp_path, env=os.environ, timeout=PATIENCE
    )
    assert (ran.returncode, ran.timed_out, ran.ok) == (4, False, False)
    assert ran.output.split() == ["out", "err"]


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    ran = run_bounded(["/no/such/program"], cwd=tmp_path, env={}, timeout=PATIENCE)
    assert ran.returncode is None
    assert "No such file" in ran.output


def test_a_time_limit_ends_the_whole_group(tmp_path: Path) -> None:
    child = tmp_path / "child"
    script = f"sleep 600 & echo $! > {child}.new; mv {child}.new {child}; sleep 600"
    for limit in (0.5, 5.0, 50.0):  # until it is long enough for the command to have started something
        ran = run_bounded(["/bin/sh", "-c", script], cwd=tmp_path, env=os.environ, timeout=limit)
        assert ran.timed_out
        if child.exists():
            break
    assert gone(int(child.read_text()))


def test_what_a_finished_command_leaves_running_is_ended(tmp_path: Path) -> None:
    script = f"sleep 6000 & echo $! > {tmp_path}/child; echo done"
    ran = run_bounded(["/bin/sh", "-c", script], cwd=tmp_path, env=os.environ, timeout=PATIENCE)
    assert ran.ok
    assert gone(int((tmp_path / "child").read_text()))


LEAVES = {
    "a session": "setsid sleep 6000 & echo $! > CHILD",
    "a session of a session": "setsid sh -c 'setsid sleep 6000 & echo $! > CHILD' &",
    "one that closed everything": "setsid sh -c 'exec <&- >&- 2>&-; sleep 6000 & echo $! > CHILD; wait' &",
    "one in another folder": "(cd / && setsid nohup sleep 6000 > /dev/null 2>&1 & echo $! > CHILD)",
}


@pytest.mark.parametrize("name", LEAVES)
def test_what_leaves_its_session_is_ended_too(name: str, tmp_path: Path) -> None:
    child = tmp_path / "child"
    script = LEAVES[name].replace("CHILD", str(child)) + f"\nwhile [ ! -s {child} ]; do sleep 0.01; done; echo done"
    ran = run_bounded(["/bin/sh", "-c", script], cwd=tmp_path, env=os.environ, timeout=PATIENCE)
    assert ran.ok
    assert gone(int(child.read_text()))


def test_output_without_end_is_kept_at_both_ends(tmp_path: Path) -> None:
    script = "import sys; sys.stdout.write('a' * 100); sys.stdout.write('b' * 5_000_000); sys.stdout.write('c' * 100)"
    ran = run_bounded([sys.executable, "-c", script], cwd=tmp_path, env=os.environ, timeout=PATIENCE)
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
    child = tmp_path / "child"
    script = f"echo $$ > {child}.new; mv {child}.new {child}; exec sleep 600"
    program = (
        "import os, pathlib; from migrate_lens.native.process import run_bounded\n"
        f"run_bounded(['/bin/sh', '-c', {script!r}], cwd=pathlib.Path('.'), env=os.environ, timeout=600)"
    )
    root = Path(__file__).resolve().parents[2]
    with running([sys.executable, "-c", program], cwd=root, stderr=subprocess.DEVNULL) as driver:
        assert wait_for(lambda: child.exists() or driver.poll() is not None)
        driver.send_signal(how)
        driver.wait(PATIENCE)
    assert gone(int(child.read_text()))
