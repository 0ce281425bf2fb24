"""Clean processes: what a program sees in each, how each ends, and which of them are forks."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import PATIENCE, alive, gone, wait_for

from migrate_lens.commands.issue import log
from migrate_lens.remedies.publish import cleanroom
from migrate_lens.remedies.publish.cleanroom import CleanRoom
from migrate_lens.remedies.publish.verify import TIMES

PYTHON = Path(sys.executable)
FAKE_TORCH = """
import os, sys, types
print("torch is here", file=sys.stderr)
if "paddle" not in sys.modules:
    with open(os.environ["IMPORTS"], "a") as file:
        file.write("torch\\n")
version = types.SimpleNamespace(cuda=os.environ.get("FAKE_CUDA"), hip=None)
"""
FAKE_PADDLE = """
def is_compiled_with_cuda(): return False
def is_compiled_with_xpu(): return False
def enable_compat(scope=None):
    import sys
    sys.modules["paddle"].on = True
"""


@pytest.fixture
def imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Fake frameworks on the path; the file in which each import of torch is a line."""
    (tmp_path / "torch.py").write_text(FAKE_TORCH)
    (tmp_path / "paddle.py").write_text(FAKE_PADDLE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("IMPORTS", str(tmp_path / "imports"))
    return tmp_path / "imports"


@pytest.fixture
def room(imports: Path) -> Iterator[CleanRoom]:
    with CleanRoom(PYTHON, PYTHON) as made:
        yield made


def test_every_run_sees_an_empty_folder_and_nothing_of_the_runs_before(room: CleanRoom) -> None:
    source = (
        "import os, sys, torch\n"
        "assert os.listdir() == ['mre.py'] and not hasattr(torch, 'seen') and __name__ == '__main__'\n"
        "assert sys.modules['__main__'].__dict__ is globals()\n"
        "assert not any(name.startswith('migrate_lens') for name in sys.modules)\n"
        "torch.seen = True\n"
        "open('left', 'w').close()\n"
    )
    for _ in range(2):
        verdict = room.verify({"mre.py": source}, "mre.py")
        assert [run.output for run in (*verdict.torch, *verdict.paddle)] == ["torch is here\n"] * 2 * TIMES
        assert all(run.passed for run in (*verdict.torch, *verdict.paddle))


def test_a_fork_is_what_a_fresh_interpreter_is(room: CleanRoom) -> None:
    """Arguments, search path, traceback and exit status are those of the command as it is typed."""
    source = (
        "import sys, helper\nimport torch\nprint(sys.argv, sys.path[0], __file__, helper.x)\nraise KeyError('\\n')\n"
    )
    verdict = room.verify({"mre.py": source, "helper.py": "x = 1\n"}, "mre.py")
    for side in (verdict.torch, verdict.paddle):
        assert [run.failure for run in side] == ["KeyError"] * TIMES
        assert f"{TIMES - 1} more runs, each the same" in log(side)
        assert "pristine" not in log(side)


def test_frames_of_a_fork_are_the_programs(room: CleanRoom) -> None:
    """A framework may show the whole stack, as Paddle does in some messages."""
    source = "import traceback\n\nimport torch\n\n\ndef f():\n    traceback.print_stack()\n\n\nf()\nraise KeyError(1)\n"
    for side in (verdict := room.verify({"mre.py": source}, "mre.py")).torch, verdict.paddle:
        assert [run.output.count("in f") for run in side] == [1] * TIMES
        assert "pristine" not in log(side)
        assert f"{TIMES - 1} more runs, each the same" in log(side)


@pytest.mark.parametrize(
    ("ending", "failure"),
    [
        ("import os; os._exit(3)", "exit status 3"),
        ("import os; os.abort()", "SIGABRT"),
        ("raise SystemExit(4)", "exit status 4"),
        ("import atexit, os; atexit.register(os._exit, 5)", "exit status 5"),
    ],
)
def test_each_way_to_end_is_told(room: CleanRoom, ending: str, failure: str) -> None:
    verdict = room.verify({"mre.py": ending}, "mre.py")
    assert {run.failure for run in (*verdict.torch, *verdict.paddle)} == {failure}


def test_a_program_that_hangs_is_ended_and_the_next_one_runs(room: CleanRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(cleanroom, "TIMEOUT", 1.0)
        hung = room.verify({"mre.py": "import time; time.sleep(600)"}, "mre.py")
    assert {run.failure for run in (*hung.torch, *hung.paddle)} == {"timeout"}
    assert all(run.passed for run in room.verify({"mre.py": "print('well')"}, "mre.py").torch)


def test_the_framework_is_imported_once_for_all_forks(room: CleanRoom, imports: Path) -> None:
    for _ in range(3):
        room.verify({"mre.py": "import torch\n"}, "mre.py")
    assert len(imports.read_text().splitlines()) == 3 + 1  # a fresh interpreter each time, and the one that is forked


def test_what_may_not_be_forked_runs_afresh(room: CleanRoom, imports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_CUDA", "12.8")
    verdict = room.verify({"mre.py": "import torch\n"}, "mre.py")
    assert all(run.passed for run in verdict.torch)
    assert len(verdict.torch) == TIMES
    assert len(imports.read_text().splitlines()) == TIMES + 1


def test_an_interpreter_that_dies_is_no_verdict_on_the_program(room: CleanRoom) -> None:
    room.verify({"mre.py": ""}, "mre.py")
    parent = "import os; os.kill(os.getppid(), 9) if os.path.exists('/proc/self') and 'empty' in os.getcwd() else None"
    verdict = room.verify({"mre.py": parent}, "mre.py")
    assert all(run.passed for run in (*verdict.torch, *verdict.paddle))


def test_no_process_is_left(imports: Path, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    source = f"import os\nopen({str(pids)!r}, 'a').write(f'{{os.getppid()}}\\n')\n"
    with CleanRoom(PYTHON, PYTHON) as room:
        room.verify({"mre.py": source}, "mre.py")
    parents = {int(line) for line in pids.read_text().split()} - {os.getpid()}
    assert parents
    assert not any(alive(pid) for pid in parents)


def test_leaving_early_ends_what_runs_with_what_it_started(imports: Path, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    source = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n{{child.pid}}\\n')\n"
        "time.sleep(600)\n"
    )

    threads: list[threading.Thread] = []

    def interrupted() -> None:
        with CleanRoom(PYTHON, PYTHON) as room:
            threads.append(threading.Thread(target=room.verify, args=({"mre.py": source}, "mre.py"), daemon=True))
            threads[0].start()
            assert wait_for(lambda: pids.exists() and len(pids.read_text().split()) >= 2 * 4)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    threads[0].join(PATIENCE)
    assert not threads[0].is_alive()
    assert all(gone(int(pid)) for pid in pids.read_text().split())


@pytest.mark.real
def test_both_real_frameworks() -> None:
    source = "import torch\nassert torch.ones(2).numel() == 2 and type(torch.ones(2).numel()) is int\n"
    with CleanRoom(PYTHON, PYTHON) as room:
        verdict = room.verify({"mre.py": source}, "mre.py")
        assert verdict.holds("AssertionError"), verdict
        assert f"{TIMES - 1} more runs, each the same" in log(verdict.paddle)
        assert room.verify({"mre.py": "import torch\nassert torch.ones(2).sum() == 2\n"}, "mre.py").holds("") is True
