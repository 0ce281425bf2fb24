"""Interpreters that cannot be used, and interrupts, in; one line, a remedy, and no process left, out."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import PATIENCE, PIPES, lens, marked_with, running, wait_for

from migrate_lens.discovery.discover import discover
from migrate_lens.model.errors import RuntimeUnavailable
from migrate_lens.model.report import Runtime
from migrate_lens.runs.bench import Bench, RunRequest, Setting
from migrate_lens.runs.worker import Worker

pytestmark = pytest.mark.real


def diagnosed(folder: Path, *args: object) -> subprocess.CompletedProcess[str]:
    """Run ``diagnose`` to its end in a folder of its own."""
    return subprocess.run(
        lens("diagnose", *args), cwd=folder, capture_output=True, text=True, timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text("import torch\nresult = torch.ones(1)\n")
    return path


def interpreter(folder: Path, text: str) -> Path:
    """A program that stands where an interpreter is expected."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def with_package(folder: Path, name: str, source: str) -> str:
    """An interpreter that finds another package of this name first."""
    package = folder / "packages" / name
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(source)
    return f'PYTHONPATH={folder / "packages"} exec {sys.executable} "$@"'


BAD = {
    "no site-packages": ("torch", f'exec {sys.executable} -S "$@"', "has no usable torch", "pip install torch"),
    "no site-packages for Paddle": (
        "paddle", f'exec {sys.executable} -S "$@"', "has no usable paddle", "pip install paddlepaddle",
    ),
    "an interpreter that ends at once": ("torch", "exit 1", "ended before it could import torch", "--torch-python"),
    "an interpreter that is killed": ("paddle", "kill -9 $$", "ended before it could import paddle", "--paddle-python"),
    "something that prints": (
        "torch", "echo hello; echo '[1]'; echo 7", "ended before it could import torch", "--torch-python",
    ),
    "a Paddle without enable_compat": (
        "paddle", ("paddle", "__version__ = '2.6.2'\n"), "paddle 2.6.2 has no enable_compat", "paddlepaddle==3.3.1",
    ),
    "a torch that cannot be imported": (
        "torch", ("torch", "raise OSError('libc10.so: no such file')\n"), "importing torch failed", "repair it",
    ),
    "a torch that ends the process": (
        "torch", ("torch", "import os\nos.abort()\n"), "ended before it could import torch", "--torch-python",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_an_interpreter_that_cannot_be_used(name: str, script: Path, tmp_path: Path) -> None:
    family, how, message, remedy = BAD[name]
    text = how if isinstance(how, str) else with_package(tmp_path, *how)
    python = interpreter(tmp_path, text)
    before = set(tmp_path.iterdir())
    ran = diagnosed(tmp_path, script, f"--{family}-python", python)
    assert ran.returncode == 2, ran.stderr
    assert ran.stdout == ""
    assert message in ran.stderr
    assert remedy in ran.stderr
    assert "Traceback" not in ran.stderr
    assert len(ran.stderr.strip().splitlines()) <= 3
    assert set(tmp_path.iterdir()) == before


def test_an_interpreter_that_prints_as_it_starts_can_be_used(tmp_path: Path) -> None:
    python = interpreter(tmp_path, f'echo hello; echo "{{}} x"; exec {sys.executable} "$@"')
    with Worker(python, "torch") as worker:
        assert worker.environment().framework == "torch"


def test_a_worker_that_is_killed_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    with Worker(Path(sys.executable), "torch") as worker:
        worker.environment()
        os.kill(worker._process.pid, signal.SIGKILL)
        worker._process.wait()
        with pytest.raises(RuntimeUnavailable, match="ended unexpectedly"):
            worker.run({})


LEAVES = """
import subprocess, sys, torch
for detached in (False, True):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=detached)
result = torch.ones(1)
"""


def test_what_a_program_leaves_running_is_ended_with_it(
    tmp_path: Path, tag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIGRATE_LENS_TEST", tag)
    script = tmp_path / "script.py"
    script.write_text(LEAVES)
    library = discover(script)
    with Worker(Path(sys.executable), "torch") as worker:
        bench = Bench(worker, worker, tmp_path)
        setting = Setting(library, dict.fromkeys(Runtime, ()), (), PATIENCE)
        run = bench.run(RunRequest(setting, Runtime.TORCH, library.probes[0]))
        assert run.trace.ending.how == "finished"
        assert len(marked_with(tag)) == 1
        assert bench.run(RunRequest(setting, Runtime.TORCH, library.probes[0])).trace.ending.how == "finished"
    assert wait_for(lambda: not marked_with(tag))


# -- an interrupt at every stage -------------------------------------------------------------------------------------

STAY = """
import os, sys, time, subprocess
def stay(who):
    with open({marker!r}, "a") as file: file.write(who + "\\n")
    if who == {where!r} and open({marker!r}).read().split().count(who) == {time}:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        open({marker!r} + ".here", "w").close()
        time.sleep(600)
def side(): return "paddle" if "paddle" in sys.modules else "torch"
"""
RUN = "import torch\nstay(side())\nresult = torch.full((1,), 1)\n"
SETUP = """
stay("build")
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension
modules = [CppExtension("pkg._C", ["ops.cc"])]
setup(name="pkg", packages=["pkg"], ext_modules=modules, cmdclass={"build_ext": BuildExtension})
"""
STAGES = {
    "the run under torch": ("torch", 1, {"script.py": RUN}, "script.py"),
    "the run under paddle": ("paddle", 1, {"script.py": RUN}, "script.py"),
    "going on past gaps": ("paddle", 2, {"script.py": RUN}, "script.py"),
    "the import": ("torch", 1, {"pkg/__init__.py": RUN, "pyproject.toml": "[project]\nname = 'pkg'\n"}, "."),
    "the build": (
        "build",
        1,
        {"pkg/__init__.py": "x = 1\n", "setup.py": SETUP, "ops.cc": "#include <torch/extension.h>\n"},
        ".",
    ),
}


@pytest.fixture
def tag() -> Iterator[str]:
    """A mark for the environment; whatever still bears it at the end is ended."""
    mark = f"migrate-lens-test-{uuid.uuid4().hex}"
    yield mark
    for pid in marked_with(mark):
        os.kill(pid, signal.SIGKILL)


ENDS = [(signal.SIGINT, 1), (signal.SIGINT, 3), (signal.SIGTERM, 1), (signal.SIGHUP, 2)]


@pytest.mark.parametrize(("number", "times"), ENDS, ids=lambda value: str(value))
@pytest.mark.parametrize("name", STAGES)
def test_an_interrupt_leaves_no_process_and_no_file(
    name: str, number: signal.Signals, times: int, tmp_path: Path, tag: str
) -> None:
    where, round_, files, target = STAGES[name]
    library, work, private = tmp_path / "lib", tmp_path / "work", tmp_path / "tmp"
    work.mkdir()
    private.mkdir()
    marker = str(tmp_path / "marker")
    for path, text in files.items():
        (library / path).parent.mkdir(parents=True, exist_ok=True)
        stay = STAY.format(marker=marker, where=where, time=round_) if path.endswith(".py") else ""
        (library / path).write_text(stay + text)
    env = {**os.environ, "MIGRATE_LENS_TEST": tag, "TMPDIR": str(private)}
    with running(lens("diagnose", library / target), cwd=work, env=env, start_new_session=True, **PIPES) as process:
        assert wait_for(lambda: os.path.exists(marker + ".here") or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        assert len(marked_with(tag)) >= 3
        for _ in range(times):
            os.killpg(process.pid, number)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + number
    assert out == ""
    assert "Traceback" not in err
    assert wait_for(lambda: not marked_with(tag)), marked_with(tag)
    assert list(work.iterdir()) == []
    assert [p.name for p in private.iterdir() if p.name.startswith("migrate-lens-")] == []


def test_an_interrupt_while_the_frameworks_start(tmp_path: Path, tag: str, script: Path) -> None:
    env = {**os.environ, "MIGRATE_LENS_TEST": tag}
    with running(lens("diagnose", script), cwd=tmp_path, env=env, start_new_session=True, **PIPES) as process:
        assert wait_for(lambda: len(marked_with(tag)) >= 3)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert wait_for(lambda: not marked_with(tag))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["script.py"]


def test_a_driver_that_is_killed_takes_its_workers_along(tmp_path: Path, tag: str) -> None:
    marker = str(tmp_path / "marker")
    script = tmp_path / "script.py"
    script.write_text(STAY.format(marker=marker, where="torch", time=1) + RUN)
    env = {**os.environ, "MIGRATE_LENS_TEST": tag, "TMPDIR": str(tmp_path)}
    with running(lens("diagnose", script), cwd=tmp_path, env=env, **PIPES) as process:
        assert wait_for(lambda: os.path.exists(marker + ".here") or process.poll() is not None)
        assert process.poll() is None
        process.kill()
        process.wait()
        left = {pid for pid in marked_with(tag) if b"time.sleep(600)" not in _line(pid)}
        assert wait_for(lambda: not (marked_with(tag) & left))


def _line(pid: int) -> bytes:
    """The command line of a process, empty where it has ended since."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_what_a_start_up_file_prints_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = '{"error": "planted", "message": "", "kind": "broken", "code": 0}'
    (tmp_path / "sitecustomize.py").write_text(f"print('{answer}', flush=True)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with Worker(Path(sys.executable), "torch") as worker:
        assert worker.environment().framework == "torch"
