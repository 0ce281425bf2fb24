"""A library, a runtime and an interpreter go in; the built library in a private folder, and what was said, come out."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from migrate_lens.model.report import Finding, Library, Outcome, Runtime, Stage, StageResult
from migrate_lens.native import reuse
from migrate_lens.native.compiler import CompilerCall, has_compiler, read_calls
from migrate_lens.native.process import Ran, run_bounded
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


def build_library(library: Library, runtime: Runtime, python: Path, work: Path, *, timeout: float,
                  shelf: Shelf | None = None) -> BuildRun:  # fmt: skip
    """Builds a copy of ``library`` with its own setup under ``runtime``.

    Args:
        library: what was found in the user's path; never written to.
        runtime: real torch, or Paddle's compat answering ``import torch``.
        python: the interpreter of that runtime.
        work: a private folder; its subfolder named after the runtime is made anew.
        timeout: seconds that the whole build may take.
        shelf: where builds are kept; an unchanged one is taken from there.
    """
    if library.build is None or not library.build.native or library.build.kind == "jit":
        reason = (
            "compiled when it is imported" if library.build is not None and library.build.native else "nothing to build"
        )
        return BuildRun(StageResult(runtime, Stage.BUILD, PROBE, Outcome.SKIPPED, 0.0, reason), None)
    place = prepare(library.root, work / f"build-{runtime}")
    about = describe(python, place.root)
    basis = reuse.Basis.of(place, library, runtime, python, about) if shelf is not None else None
    objects = basis.objects(shelf, place) if basis is not None and shelf is not None else None
    env = environment(place, runtime, python, about, objects=objects, limit=timeout)
    steps = commands(library, place, python, pip=about.pip)
    detail = ""
    if not steps:
        detail = f"{python} has no pip, and the library has no setup.py that could be run without it"
    elif not has_compiler(env):
        detail = "no C++ compiler: neither CXX nor g++, c++ or clang++ on PATH; install g++, or set CXX"
    if detail:
        return BuildRun(StageResult(runtime, Stage.BUILD, PROBE, Outcome.FAILED, 0.0, detail), None, place.source)

    def build() -> Ran:
        return _run_all(steps, place, env, timeout)

    if shelf is None or basis is None:
        return _finished(library, runtime, place, build())
    return _kept_or_built(library, runtime, place, basis, shelf, build)


def _kept_or_built(library: Library, runtime: Runtime, place: Workplace, basis: reuse.Basis, shelf: Shelf,
                   build: Callable[[], Ran]) -> BuildRun:  # fmt: skip
    """The kept build if nothing that it depends on has changed, else a new one, which is kept if it would be the same
    the next time."""
    start = time.monotonic()
    if (old := reuse.restore(shelf, basis, place)) is not None:
        done = _finished(library, runtime, place, replace(old, seconds=time.monotonic() - start))
        note = f"{runtime}: an earlier build was reused ({old.seconds:.0f} s when it was made); --no-cache builds anew"
        return replace(done, notes=(*done.notes, note), key=basis.key)
    ran = build()
    done = _finished(library, runtime, place, ran)
    if not _lasting(done):
        return done
    why = reuse.keep(shelf, basis, place, ran)
    notes = (f"{runtime}: the build is not kept for the next diagnosis: {why}",) if why else ()
    return replace(done, notes=(*done.notes, *notes), key=basis.key)


def _lasting(done: BuildRun) -> bool:
    """Whether the next build would end the same way: it passed, or the sources or setup are the reason why not."""
    if done.passed or done.result.outcome is not Outcome.FAILED or done.result.runtime is Runtime.TORCH:
        return done.passed
    failed = [call for call in done.compiles if call.returncode != 0]
    own = all(not went_under(call) for call in failed)
    return own and bool(failed or done.errors) and not any(error.root.kind in PASSING for error in done.errors)


def commands(library: Library, place: Workplace, python: Path, *, pip: bool) -> list[list[str]]:
    """The command lines that build the copy, in order; none if there is no way to."""
    has_setup = (place.source / "setup.py").is_file()
    if library.build is not None and library.build.kind == "cmake":
        return _cmake(place, python, library.build.file.parent.relative_to(library.root))
    if pip:
        options = "--no-build-isolation --no-deps --no-index --no-cache-dir --no-compile --no-input"
        quiet = "--disable-pip-version-check --no-warn-script-location"
        pip_install = [str(python), "-m", "pip", "install", ".", *options.split(), *quiet.split()]
        return [[*pip_install, "--target", str(place.target)]]
    if has_setup:
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
            env["CMAKE_PREFIX_PATH"] = os.pathsep.join(filter(None, [prefix.read_text(), env.get("CMAKE_PREFIX_PATH")]))
            prefix.unlink()
        ran = run_bounded(step, cwd=place.source, env=env, timeout=max(1.0, timeout - seconds))
        seconds += ran.seconds
        output.append(ran.output)
        if not ran.ok and (FIND_TORCH not in step or ran.timed_out):  # CMake itself says at which line it misses torch
            break
    return Ran(ran.returncode, "".join(output), seconds, ran.timed_out)


def _finished(library: Library, runtime: Runtime, place: Workplace, ran: Ran) -> BuildRun:
    calls, errors = read_calls(place.calls), read_errors(place.errors)
    shutil.rmtree(place.tmp, ignore_errors=True)
    if ran.timed_out:
        outcome, detail = Outcome.TIMED_OUT, f"the build did not end within {ran.seconds:.0f} s and was stopped"
    elif ran.ok:
        outcome, detail = Outcome.PASSED, f"{sum(call.compiles for call in calls)} units compiled"
    else:
        crashed = ran.returncode is not None and ran.returncode < 0
        outcome = Outcome.CRASHED if crashed else Outcome.FAILED
        detail = failure_line(place.source, calls, errors, ran)
    result = StageResult(runtime, Stage.BUILD, PROBE, outcome, ran.seconds, detail)
    paddle = runtime is not Runtime.TORCH and outcome is not Outcome.PASSED
    return BuildRun(
        result=result,
        target=place.target if outcome is Outcome.PASSED else None,
        source=place.source,
        findings=setup_findings(errors, calls, place.source, library) if paddle else (),
        compiles=calls,
        errors=errors,
        notes=_notes(runtime, outcome, calls),
    )


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
