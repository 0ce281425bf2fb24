"""A library, a runtime and an interpreter go in; the built library in a private folder, and what was said, come out."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from migrate_lens.errors import StateError
from migrate_lens.ladder import site_hook
from migrate_lens.ladder.compiler import CompilerCall, has_compiler, install_shims, read_calls
from migrate_lens.ladder.copying import copy_tree
from migrate_lens.ladder.process import Ran, run_bounded
from migrate_lens.ladder.setup_errors import SetupError, read_errors, setup_findings
from migrate_lens.ladder.summary import failure_line
from migrate_lens.model import Finding, Library, Outcome, Runtime, Stage, StageResult

PROBE = "build"
# Warnings only: an `#if` on a macro that nobody defines takes the other branch without a word. The rest of the flags
# make an object cheaper and change nothing that a library can see.
FLAGS = "-g0 -Wundef -Wno-error=undef"
DESCRIBE = (
    "import importlib.util, json, sysconfig; "
    "torch = importlib.util.find_spec('torch'); "
    "print(json.dumps({'pip': importlib.util.find_spec('pip') is not None, "
    "'torch': list(torch.submodule_search_locations or ()) if torch else [], "
    "'known': [str(sysconfig.get_config_var(k) or '') for k in ('CC', 'CXX', 'LDSHARED', 'LDCXXSHARED')]}))"
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
    """

    result: StageResult
    target: Path | None
    source: Path | None = None
    findings: tuple[Finding, ...] = ()
    compiles: tuple[CompilerCall, ...] = ()
    errors: tuple[SetupError, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the library was built."""
        return self.result.outcome is Outcome.PASSED


@dataclass(frozen=True, slots=True)
class Workplace:
    """The private folders of one build."""

    root: Path

    @property
    def source(self) -> Path:
        """The copy of the library."""
        return self.root / "src"

    @property
    def target(self) -> Path:
        """Where the library is installed."""
        return self.root / "target"

    @property
    def bin(self) -> Path:
        """The shims."""
        return self.root / "bin"

    @property
    def calls(self) -> Path:
        """Records of compiler calls."""
        return self.root / "calls"

    @property
    def errors(self) -> Path:
        """Records of exceptions."""
        return self.root / "errors"

    @property
    def site(self) -> Path:
        """Holds ``sitecustomize.py``."""
        return self.root / "site"

    @property
    def tmp(self) -> Path:
        """Temporary files of the build, gone with it."""
        return self.root / "tmp"

    def make(self) -> None:
        """Makes the folders, and puts the site hook in its own."""
        for folder in (self.target, self.bin, self.calls, self.errors, self.site, self.tmp):
            folder.mkdir(parents=True)
        shutil.copyfile(site_hook.__file__, self.site / "sitecustomize.py")


def build_library(library: Library, runtime: Runtime, python: Path, work: Path, *, timeout: float) -> BuildRun:
    """Builds a copy of ``library`` with its own setup under ``runtime``.

    Args:
        library: what was found in the user's path; never written to.
        runtime: real torch, or Paddle's compat answering ``import torch``.
        python: the interpreter of that runtime.
        work: a private folder; its subfolder named after the runtime is made anew.
        timeout: seconds that the whole build may take.
    """
    if library.build is None or not library.build.native or library.build.kind == "jit":
        reason = (
            "compiled when it is imported" if library.build is not None and library.build.native else "nothing to build"
        )
        return BuildRun(StageResult(runtime, Stage.BUILD, PROBE, Outcome.SKIPPED, 0.0, reason), None)
    place = prepare(library.root, work / f"build-{runtime}")
    about = describe(python, place.root)
    env = environment(place, runtime, python, about)
    steps = commands(library, place, python, pip=about.pip)
    detail = ""
    if not steps:
        detail = f"{python} has no pip, and the library has no setup.py that could be run without it"
    elif not has_compiler(env):
        detail = "no C++ compiler: neither CXX nor g++, c++ or clang++ on PATH"
    if detail:
        return BuildRun(StageResult(runtime, Stage.BUILD, PROBE, Outcome.FAILED, 0.0, detail), None, place.source)
    ran = _run_all(steps, place, env, timeout)
    return _finished(library, runtime, place, ran)


def prepare(root: Path, folder: Path) -> Workplace:
    """A fresh workplace with a copy of ``root`` in it."""
    place = Workplace(folder)
    try:
        if folder.exists():
            shutil.rmtree(folder)
        place.make()
        copy_tree(root, place.source)
    except (OSError, shutil.Error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "some files cannot be read"
        raise StateError(f"cannot copy {root} to {folder}: {reason}", "check permissions and free space") from error
    return place


@dataclass(frozen=True, slots=True)
class Interpreter:
    """What a build has to know of the interpreter: pip, the compilers it was built with, and where torch is."""

    pip: bool = False
    known: tuple[str, ...] = ()
    torch: tuple[str, ...] = ()

    @property
    def hidden_from_cmake(self) -> tuple[str, ...]:
        """CMake searches site-packages by itself and would find the TorchConfig.cmake that Python is not shown."""
        folders = [f"{root}/share/cmake/{name}" for root in self.torch for name in ("Torch", "Caffe2")]
        return (f"-DCMAKE_IGNORE_PATH={';'.join(folders)}",) if folders else ()


def describe(python: Path, folder: Path) -> Interpreter:
    """Asks ``python`` itself."""
    ran = run_bounded([python, "-c", DESCRIBE], cwd=folder, env=os.environ, timeout=60)
    try:
        data = json.loads(ran.output.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return Interpreter()
    return Interpreter(pip=bool(data["pip"]), known=tuple(data["known"]), torch=tuple(data["torch"]))


def environment(
    place: Workplace, runtime: Runtime, python: Path, about: Interpreter, *, dry: bool = False
) -> dict[str, str]:
    """The variables of a build: the user's own, with the shims and the site hook in front."""
    env = dict(os.environ)
    env["PATH"] = os.pathsep.join([str(python.parent), env.get("PATH", os.defpath)])
    cmake = () if runtime is Runtime.TORCH else about.hidden_from_cmake
    env |= install_shims(place.bin, place.calls, env, about.known, extra={"cmake": cmake}, dry=dry)
    flags = {name: f"{env.get(name, '')} {FLAGS}".strip() for name in ("CFLAGS", "CXXFLAGS")}
    front = [str(place.site), *filter(None, [env.get("PYTHONPATH")])]
    return (
        env
        | flags
        | {
            "LC_ALL": "C",
            "PYTHONPATH": os.pathsep.join(front),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
            "TMPDIR": str(place.tmp),
            "MAX_JOBS": "2",
            "CMAKE_BUILD_PARALLEL_LEVEL": "2",
            "PIP_CONFIG_FILE": os.devnull,
            "MIGRATE_LENS_RUNTIME": str(runtime),
            "MIGRATE_LENS_ERRORS": str(place.errors),
            # The copy has no .git to ask.
            "SETUPTOOLS_SCM_PRETEND_VERSION": env.get("SETUPTOOLS_SCM_PRETEND_VERSION", "0.0.0"),
            "PBR_VERSION": env.get("PBR_VERSION", "0.0.0"),
        }
    )


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
    find = "import os, torch; open(os.environ['MIGRATE_LENS_PREFIX'], 'w').write(torch.utils.cmake_prefix_path)"
    configure = ["cmake", "-S", str(place.source / folder), "-B", made, "-DCMAKE_BUILD_TYPE=Release"]
    return [
        [str(python), "-c", find],
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
        if not ran.ok:
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
