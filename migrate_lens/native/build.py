"""A library, a runtime and an interpreter go in; the built library in a private folder, and what was said, come out."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from migrate_lens.model.report import BuildKind, Finding, Library, Outcome, Runtime, Stage, StageResult
from migrate_lens.native import reuse
from migrate_lens.native.compiler import CompilerCall, Limits, ShimOptions, has_compiler, read_calls
from migrate_lens.native.process import Ran, memory_limit, run_bounded
from migrate_lens.native.setup_errors import SetupError, read_errors, setup_findings
from migrate_lens.native.shelf import Shelf
from migrate_lens.native.summary import failure_line, went_under
from migrate_lens.native.workplace import Workplace, describe, environment, prepare

PROBE = "build"
FIND_TORCH = "import os, torch; open(os.environ['MIGRATE_LENS_PREFIX'], 'w').write(torch.utils.cmake_prefix_path)"
# Exceptions that say more of the machine than of the library.
PASSING = (
    "OSError",
    "MemoryError",
    "KeyboardInterrupt",
    "TimeoutError",
    "ConnectionError",
    "URLError",
    "BlockingIOError",
)


@dataclass(frozen=True, slots=True)
class BuildRun:
    """One build of the library in one runtime.

    Attributes:
        result: how it ended; ``detail`` is one line.
        target: private folder that holds the installed library, to be put in front of ``sys.path``; None if not built.
        source: the copy that was built, None if there was nothing to build.
        findings: what setup itself failed on, Paddle side only; compile and link are judged by ``diagnose_build``.
        compiles: every compiler, linker and CMake call.
        errors: exceptions that ended an interpreter during the build, oldest first.
        notes: lines for a person.
        key: stands for all that its outcome depends on; empty where that is not known.
    """

    result: StageResult
    target: Path | None
    source: Path | None = None
    findings: tuple[Finding, ...] = ()
    compiles: tuple[CompilerCall, ...] = ()
    errors: tuple[SetupError, ...] = ()
    notes: tuple[str, ...] = ()
    key: str = ""

    @property
    def passed(self) -> bool:
        """Whether the library was built."""
        return self.result.outcome is Outcome.PASSED


@dataclass(frozen=True, slots=True)
class _Building:
    """A build that is about to start: what is built, under what, where."""

    library: Library
    runtime: Runtime
    place: Workplace

    def ended(self, outcome: Outcome, detail: str) -> BuildRun:
        """A build that did not start."""
        return BuildRun(_result(self.runtime, outcome, 0.0, detail), None, self.place.source)


def build_library(
    library: Library, runtime: Runtime, python: Path, work: Path, *, timeout: float, shelf: Shelf | None = None
) -> BuildRun:
    """Builds a copy of ``library`` with its own setup under ``runtime``.

    Args:
        library: what was found in the user's path; never written to.
        runtime: real torch, or Paddle's compat answering ``import torch``.
        python: the interpreter of that runtime.
        work: a private folder; its subfolder named after the runtime is made anew.
        timeout: seconds that the whole build may take.
        shelf: where builds are kept; an unchanged one is taken from there.
    """
    if why := _nothing_to_build(library):
        return BuildRun(_result(runtime, Outcome.SKIPPED, 0.0, why), None)
    place = prepare(library.root, work / f"build-{runtime}")
    building = _Building(library, runtime, place)
    about = describe(python, place.root)
    basis = reuse.Basis.of(place, library, runtime, python, about) if shelf is not None else None
    objects = basis.objects(shelf, place) if basis is not None and shelf is not None else None
    options = ShimOptions(objects=objects, limits=Limits(timeout, memory_limit()))
    env = environment(place, runtime, python, about, options)
    steps = commands(library, place, python, pip=about.pip)
    if not steps:
        reason = f"{python} has no pip, and the library has no setup.py that could be run without it"
        return building.ended(Outcome.FAILED, reason)
    if not has_compiler(env):
        reason = "no C++ compiler: neither CXX nor g++, c++ or clang++ on PATH; install g++, or set CXX"
        return building.ended(Outcome.FAILED, reason)

    def build() -> Ran:
        return _run_all(steps, place, env, timeout)

    if shelf is None or basis is None:
        return _finished(building, build())
    return _kept_or_built(building, basis, shelf, build)


def _nothing_to_build(library: Library) -> str:
    """Why a library has no build of its own; empty if it has one."""
    if library.build is None or not library.build.native:
        return "nothing to build"
    return "compiled when it is imported" if library.build.kind is BuildKind.JIT else ""


def _kept_or_built(building: _Building, basis: reuse.Basis, shelf: Shelf, build: Callable[[], Ran]) -> BuildRun:
    """The kept build if nothing that it depends on has changed, else a new one, which is kept if it would be the same
    the next time."""
    runtime, place = building.runtime, building.place
    start = time.monotonic()
    if (old := reuse.restore(shelf, basis, place)) is not None:
        restored = _finished(building, replace(old, seconds=time.monotonic() - start))
        note = f"{runtime}: an earlier build was reused ({old.seconds:.0f} s when it was made); --no-cache builds anew"
        return replace(restored, notes=(*restored.notes, note), key=basis.key)
    ran = build()
    built = _finished(building, ran)
    if not _lasting(built):
        return built
    notes = built.notes
    if why := reuse.keep(shelf, basis, place, ran):
        notes = (*notes, f"{runtime}: the build is not kept for the next diagnosis: {why}")
    return replace(built, notes=notes, key=basis.key)


def _lasting(built: BuildRun) -> bool:
    """Whether the next build would end the same way: it passed, or the sources or setup are the reason why not."""
    if built.passed:
        return True
    if built.result.outcome is not Outcome.FAILED or built.result.runtime is Runtime.TORCH:
        return False
    failed = [call for call in built.compiles if call.returncode != 0]
    if any(went_under(call) for call in failed) or any(error.root.kind in PASSING for error in built.errors):
        return False
    return bool(failed or built.errors)


def commands(library: Library, place: Workplace, python: Path, *, pip: bool) -> list[list[str]]:
    """The command lines that build the copy, in order; none if there is no way to."""
    if library.build is not None and library.build.kind is BuildKind.CMAKE:
        return _cmake(place, python, library.build.file.parent.relative_to(library.root))
    if pip:
        options = "--no-build-isolation --no-deps --no-index --no-cache-dir --no-compile --no-input"
        quiet = "--disable-pip-version-check --no-warn-script-location"
        pip_install = [str(python), "-m", "pip", "install", ".", *options.split(), *quiet.split()]
        return [[*pip_install, "--target", str(place.target)]]
    if (place.source / "setup.py").is_file():
        return [[str(python), "setup.py", "build", "--build-lib", str(place.target)]]
    return []


def _cmake(place: Workplace, python: Path, folder: Path) -> list[list[str]]:
    """A bare CMake library: told where torch is as its documentation says, built and installed into the target."""
    made = str(place.root / "cmake")
    configure = ["cmake", "-S", str(place.source / folder), "-B", made, "-DCMAKE_BUILD_TYPE=Release"]
    return [
        [str(python), "-c", FIND_TORCH],
        [
            *configure,
            f"-DPython_EXECUTABLE={python}",
            f"-DPython3_EXECUTABLE={python}",
            f"-DCMAKE_INSTALL_PREFIX={place.target}",
        ],
        ["cmake", "--build", made],
        ["cmake", "--install", made],
    ]


def _run_all(steps: list[list[str]], place: Workplace, env: dict[str, str], timeout: float) -> Ran:
    """Runs the steps until one fails; their outputs are joined and their time is shared."""
    seconds, output = 0.0, []
    prefix = place.root / "prefix"
    env = env | {"MIGRATE_LENS_PREFIX": str(prefix)}
    ran = Ran(0, "", 0.0)
    for step in steps:
        if prefix.exists():
            folders = [prefix.read_text(), env.get("CMAKE_PREFIX_PATH")]
            env["CMAKE_PREFIX_PATH"] = os.pathsep.join(filter(None, folders))
            prefix.unlink()
        ran = run_bounded(step, cwd=place.source, env=env, timeout=max(1.0, timeout - seconds))
        seconds += ran.seconds
        output.append(ran.output)
        goes_on = FIND_TORCH in step and not ran.timed_out  # CMake itself says at which line it misses torch
        if not ran.ok and not goes_on:
            break
    return Ran(ran.returncode, "".join(output), seconds, ran.timed_out)


def _finished(building: _Building, ran: Ran) -> BuildRun:
    """What a build that ran left behind."""
    runtime, place = building.runtime, building.place
    calls, errors = read_calls(place.calls), read_errors(place.errors)
    shutil.rmtree(place.tmp, ignore_errors=True)
    outcome = _outcome(ran)
    match outcome:
        case Outcome.TIMED_OUT:
            detail = f"the build did not end within {ran.seconds:.0f} s and was stopped"
        case Outcome.PASSED:
            detail = f"{sum(call.compiles for call in calls)} units compiled"
        case _:
            detail = failure_line(place.source, calls, errors, ran)
    passed = outcome is Outcome.PASSED
    judged = runtime is not Runtime.TORCH and not passed
    return BuildRun(
        result=_result(runtime, outcome, ran.seconds, detail),
        target=place.target if passed else None,
        source=place.source,
        findings=setup_findings(errors, calls, place.source) if judged else (),
        compiles=calls,
        errors=errors,
        notes=_notes(runtime, outcome, calls),
    )


def _outcome(ran: Ran) -> Outcome:
    if ran.timed_out:
        return Outcome.TIMED_OUT
    if ran.ok:
        return Outcome.PASSED
    crashed = ran.returncode is not None and ran.returncode < 0
    return Outcome.CRASHED if crashed else Outcome.FAILED


def _result(runtime: Runtime, outcome: Outcome, seconds: float, detail: str) -> StageResult:
    return StageResult(runtime, Stage.BUILD, PROBE, outcome, seconds, detail)


def _notes(runtime: Runtime, outcome: Outcome, calls: tuple[CompilerCall, ...]) -> tuple[str, ...]:
    notes = []
    if outcome is Outcome.PASSED and not any(call.compiles for call in calls):
        notes.append(f"{runtime}: the build ended well and compiled nothing")
    if any(call.device for call in calls):
        notes.append(f"{runtime}: GPU units were compiled, not run: no GPU was used")
    return tuple(notes)


def outside(env: Mapping[str, str]) -> dict[str, str]:
    """An environment for compiler calls of our own: the user's, with messages in the C locale and without colours."""
    return dict(env) | {"LC_ALL": "C", "GCC_COLORS": ""}
