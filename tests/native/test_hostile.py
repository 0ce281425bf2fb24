"""Sources that no compiler likes, and machines without one, in; a clear outcome and no process left, out."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from native_samples import FakeTorch, library
from processes import PATIENCE, PIPES, lens, marked_with, running, wait_for

from migrate_lens.cli.app import main
from migrate_lens.model.report import Outcome, Runtime
from migrate_lens.native import build_library, process
from migrate_lens.native import units as units_module
from migrate_lens.native.compiler import Limits, ShimOptions, install_shims, read_calls
from migrate_lens.native.process import run_bounded, session
from migrate_lens.native.units import Ground, Unit, UnitCheck, check_units

ENDLESS = """
template <int N, class... T> struct deep { using type = typename deep<N - 1, T..., deep<N - 1, T...>>::type; };
template <class... T> struct deep<0, T...> { using type = int; };
constexpr long spin(long n) { long s = 0; for (long i = 0; i < n; ++i) for (long j = 0; j < n; ++j) s ^= j; return s; }
static_assert(spin(1000000000) != 0);
"""
HUGE = """
template <int N> struct wide { static constexpr int a[1 << N] = {}; };
constexpr auto fill() { struct { char data[2000000000]; } all{}; for (auto& c : all.data) c = 1; return all; }
constexpr auto filled = fill();
"""
SETUP = """
from setuptools import Extension, setup
setup(name="lib", packages=[], ext_modules=[Extension("_c", ["a.cc"], extra_compile_args={flags!r})])
"""


def checked(root: Path, text: str, *flags: str) -> UnitCheck:
    """One unit, checked by the real compiler."""
    source = root / "lib" / "a.cc"
    source.parent.mkdir(exist_ok=True)
    source.write_text(text)
    ground = Ground(source.parent, root / "standins", root / "bridged", FakeTorch(), time.monotonic() + PATIENCE)
    (check,) = check_units([Unit("a.cc", ("g++", "-std=c++17", *flags), source, source.parent)], ground)
    return check


@pytest.fixture
def nothing_left(tmp_path: Path) -> Iterator[None]:
    """No compiler may outlive the test."""
    yield
    assert marked_with(str(tmp_path)) == set()


@pytest.mark.native
@pytest.mark.usefixtures("nothing_left")
def test_a_unit_without_end_is_stopped_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units_module, "UNIT_SECONDS", 2.0)
    check = checked(tmp_path, ENDLESS, "-fconstexpr-ops-limit=9223372036854775807", "-fconstexpr-loop-limit=2147483647")
    assert not check.reached
    assert "was stopped" in check.reason


@pytest.mark.native
@pytest.mark.usefixtures("nothing_left")
def test_a_unit_that_wants_all_memory_does_not_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units_module, "memory_limit", lambda: 1 << 30)
    check = checked(tmp_path, HUGE, "-fconstexpr-ops-limit=9223372036854775807", "-fconstexpr-loop-limit=2147483647")
    assert not check.reached
    assert "memory" in check.reason


@pytest.mark.native
def test_a_source_that_does_not_parse_is_one_construct_and_not_hundreds(tmp_path: Path) -> None:
    check = checked(tmp_path, "int f( {{{{ ] ;;; template <\n" * 50)
    assert check.reached
    assert len(check.constructs) == 1


@pytest.mark.native
def test_twenty_thousand_different_errors_take_bounded_time_and_space(tmp_path: Path) -> None:
    check = checked(tmp_path, "".join(f"int v{n} = missing_{n};\n" for n in range(20_000)))
    assert not check.reached
    assert "more errors than" in check.reason
    assert len(check.constructs) == 1
    assert sum(construct.folded for construct in check.constructs) > 1000


@pytest.mark.native
def test_a_file_that_is_no_text_at_all(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/data.h").write_bytes(bytes(range(256)) * 64)
    check = checked(tmp_path, '#include "data.h"\nint x = at::nothing;\n')
    assert check.reached


@pytest.mark.usefixtures("nothing_left")
def test_a_compiler_call_of_a_build_has_limits_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "g++").write_text("#!/bin/sh\nsleep 600\n")
    (tmp_path / "g++").chmod(0o755)
    records = tmp_path / "records"
    env = dict(os.environ, PATH=f"{tmp_path}:/usr/bin:/bin")
    env |= install_shims(tmp_path / "shims", records, env, (), ShimOptions(limits=Limits(1.0, 1 << 32)))
    ran = run_bounded(["g++", "-c", "a.cc"], cwd=tmp_path, env=env, timeout=PATIENCE)
    (call,) = read_calls(records)
    assert ran.returncode != 0
    assert "stopped after 1 s" in call.stderr


@pytest.mark.usefixtures("nothing_left")
def test_what_has_a_group_of_its_own_ends_with_its_session(tmp_path: Path) -> None:
    """As ninja does with each compiler."""
    started = tmp_path / "started"
    code = (
        "import pathlib, subprocess, time; subprocess.Popen(['sleep', '600'], process_group=0)\n"
        f"pathlib.Path({str(started)!r}).touch(); time.sleep(600)"
    )
    env = {**os.environ, "MIGRATE_LENS_TEST": str(tmp_path)}
    for limit in (1.0, 10.0, 100.0):  # until it is long enough for the command to have started something
        ran = run_bounded([sys.executable, "-c", code], cwd=tmp_path, env=env, timeout=limit)
        assert ran.timed_out
        if started.exists():
            break
    assert started.exists()


def test_a_session_knows_its_members() -> None:
    with subprocess.Popen(["/bin/sh", "-c", "sleep 600 & wait"], start_new_session=True) as leader:
        assert wait_for(lambda: bool(session(leader.pid)))
        assert len(session(leader.pid)) == 1
        process.kill_group(leader)
        assert session(leader.pid) == []


def test_a_machine_without_a_compiler_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "lib"
    root.mkdir()
    (root / "setup.py").write_text(SETUP.format(flags=[]))
    (root / "a.cc").write_text("int x;\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name, path=None: None)
    run = build_library(library(root), Runtime.TORCH, Path(sys.executable), tmp_path / "work", timeout=PATIENCE)
    assert run.result.outcome is Outcome.FAILED
    assert "no C++ compiler" in run.result.detail
    assert "install g++" in run.result.detail


@pytest.fixture
def small(tmp_path: Path) -> Path:
    root = tmp_path / "lib"
    root.mkdir()
    (root / "setup.py").write_text(SETUP.format(flags=[]))
    (root / "a.cc").write_text("int x;\n")
    (root / "smoke.py").write_text("import torch\nresult = torch.ones(2).sum()\n")
    return root


@pytest.mark.real
@pytest.mark.native
def test_two_diagnoses_at_once_in_one_folder_both_end_well(small: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    command = lens("diagnose", small, "--state", state)
    with running(command, **PIPES) as first, running(command, **PIPES) as second:
        said = [each.communicate(timeout=2 * PATIENCE) for each in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), said
    assert sorted(path.name for path in state.iterdir() if not path.name.startswith(".")) == ["report.json", "traces"]
    assert (state / "traces/index.json").is_file()


@pytest.mark.real
@pytest.mark.native
def test_a_library_that_does_not_compile_under_torch_ends_there(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (small / "a.cc").write_text("int x( {\n")
    assert main(["diagnose", str(small), "--state", str(tmp_path / "state")]) == 3
    shown = capsys.readouterr().out
    assert "a.cc:1" in shown
    assert "baseline does not run" in shown
