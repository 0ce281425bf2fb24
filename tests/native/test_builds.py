"""The fixture libraries, in; real builds with both frameworks and the gaps between them, out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from native_samples import library
from processes import gone

from migrate_lens.model.report import BuildEntry, BuildKind, Library, Outcome, Runtime
from migrate_lens.native import BuildRun, NativeReport, build_library, compare_builds, diagnose_build
from migrate_lens.native.build import commands
from migrate_lens.native.workplace import Interpreter, Workplace

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
PYTHON = Path(sys.executable)
LIMIT = 600.0
COMPAT = "import paddle; paddle.disable_signal_handler(); paddle.enable_compat(); "


@dataclass(frozen=True)
class Both:
    """A library, built on both sides, and compared."""

    library: Library
    torch: BuildRun
    paddle: BuildRun
    report: NativeReport
    before: dict[str, int]
    after: dict[str, int]


def stamps(root: Path) -> dict[str, int]:
    return {str(path.relative_to(root)): path.stat().st_mtime_ns for path in root.rglob("*")}


def both(name: str, work: Path) -> Both:
    found = library(FIXTURES / name)
    before = stamps(found.root)
    torch = build_library(found, Runtime.TORCH, PYTHON, work, timeout=LIMIT)
    paddle = build_library(found, Runtime.TARGET, PYTHON, work, timeout=LIMIT)
    report = compare_builds(torch, paddle, PYTHON, work, LIMIT)
    return Both(found, torch, paddle, report, before, stamps(found.root))


@pytest.fixture(scope="session")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Both:
    return both("muladd", tmp_path_factory.mktemp("muladd"))


@pytest.fixture(scope="session")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Both:
    return both("muladd_gaps", tmp_path_factory.mktemp("muladd_gaps"))


def smoke(run: BuildRun, root: Path, front: str) -> str:
    code = f"{front}import runpy; print('RESULT', runpy.run_path({str(root / 'smoke.py')!r})['result'])"
    env = dict(os.environ, PYTHONPATH=str(run.target), PYTHONDONTWRITEBYTECODE="1")
    argv = [str(PYTHON), "-c", code]
    done = subprocess.run(argv, env=env, cwd=str(run.target), capture_output=True, text=True, check=True)
    return next(line for line in done.stdout.splitlines() if line.startswith("RESULT"))


@pytest.mark.real
@pytest.mark.native
def test_a_healthy_library_builds_and_runs_on_both_sides(healthy: Both) -> None:
    assert healthy.torch.result.outcome is Outcome.PASSED, healthy.torch.result.detail
    assert healthy.paddle.result.outcome is Outcome.PASSED, healthy.paddle.result.detail
    assert healthy.report.findings == ()
    root = healthy.library.root
    assert smoke(healthy.torch, root, "") == smoke(healthy.paddle, root, COMPAT)


@pytest.mark.real
@pytest.mark.native
def test_the_users_tree_is_not_touched(healthy: Both, broken: Both) -> None:
    assert healthy.before == healthy.after
    assert broken.before == broken.after


@pytest.mark.real
@pytest.mark.native
def test_every_compiler_call_is_recorded(healthy: Both) -> None:
    for run in (healthy.torch, healthy.paddle):
        assert sum(call.compiles for call in run.compiles) == 2
        assert sum(call.links for call in run.compiles) == 1


@pytest.mark.real
@pytest.mark.native
def test_one_diagnosis_finds_the_gaps_of_setup_and_of_the_sources_behind_it(broken: Both) -> None:
    assert broken.torch.result.outcome is Outcome.PASSED, broken.torch.result.detail
    assert broken.paddle.result.outcome is Outcome.FAILED
    assert broken.paddle.result.detail.startswith("setup.py:2: ModuleNotFoundError: ")
    expected = json.loads((broken.library.root / "expected.json").read_text())
    native = {(gap["api"], gap["symptom"]) for gap in expected if gap["layer"] in ("build", "cpp_api", "op_registry")}
    assert {(f.key.api, str(f.key.symptom)) for f in broken.report.findings} == native
    sites = {f.key.api: [(site.path, site.line) for site in f.sites] for f in broken.report.findings}
    assert sites["at::cumsum"] == [("csrc/scan.cc", 11)]
    assert sites["TORCH_FN"] == [("csrc/register.cc", 7)]
    assert broken.report.notes == ("read 3 of 3 units to the end",)


@pytest.mark.real
@pytest.mark.native
def test_what_does_not_build_under_torch_is_no_gap(broken: Both, tmp_path: Path) -> None:
    assert diagnose_build(broken.paddle, broken.paddle, PYTHON, tmp_path, 10) == ()


def test_a_library_without_native_code_has_no_build_stage(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text("raise SystemExit('must not run')\n")
    plain = library(tmp_path)
    for build in (
        None,
        BuildEntry(BuildKind.SETUPTOOLS, tmp_path / "setup.py", native=False),
        BuildEntry(BuildKind.JIT, tmp_path, True),
    ):
        found = Library(**{name: getattr(plain, name) for name in Library.__slots__} | {"build": build})
        run = build_library(found, Runtime.TORCH, PYTHON, tmp_path / "work", timeout=5)
        assert (run.result.outcome, run.target) == (Outcome.SKIPPED, None)


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("raise ValueError('no such luck')\n", "setup.py:1: ValueError: no such luck"),
        ("def f(:\n", "SyntaxError"),
        ("import sys\nsys.exit('needs a newer planet')\n", "needs a newer planet"),
    ],
)
def test_a_failed_build_says_why_in_one_line(tmp_path: Path, text: str, detail: str) -> None:
    root = tmp_path / "lib"
    root.mkdir()
    (root / "setup.py").write_text(text)
    run = build_library(library(root), Runtime.TORCH, PYTHON, tmp_path / "work", timeout=LIMIT)
    assert run.result.outcome is Outcome.FAILED
    assert detail in run.result.detail
    assert "\n" not in run.result.detail


STUCK = """
import pathlib, subprocess
with subprocess.Popen(["sleep", "600"]) as child:
    pathlib.Path({child!r}).write_text(str(child.pid))
"""


def test_a_build_that_hangs_is_stopped_with_all_it_started(tmp_path: Path) -> None:
    root = tmp_path / "lib"
    root.mkdir()
    child = tmp_path / "child"
    (root / "setup.py").write_text(STUCK.format(child=str(child)))
    for limit in (4.0, 40.0, 400.0):  # until it is long enough for the build to have started something
        run = build_library(library(root), Runtime.TORCH, PYTHON, tmp_path / "work", timeout=limit)
        assert run.result.outcome is Outcome.TIMED_OUT
        if child.exists() and child.read_text():
            break
    assert gone(int(child.read_text()))


def test_without_pip_setup_py_is_run_directly(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.source.mkdir()
    assert commands(library(tmp_path), place, PYTHON, pip=False) == []
    (place.source / "setup.py").write_text("")
    ((_, script, command, *_rest),) = commands(library(tmp_path), place, PYTHON, pip=False)
    assert (script, command) == ("setup.py", "build")
    ((*_, flag, target),) = commands(library(tmp_path), place, PYTHON, pip=True)
    assert (flag, target) == ("--target", str(place.target))


def test_cmake_is_not_shown_real_torch() -> None:
    about = Interpreter(torch=("/env/torch",))
    assert about.hidden_from_cmake == (
        "-DCMAKE_IGNORE_PATH=/env/torch/share/cmake/Torch;/env/torch/share/cmake/Caffe2",
    )
