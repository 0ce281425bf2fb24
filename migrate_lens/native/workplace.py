"""A library's root and an interpreter go in; the private folders and the variables of one build come out."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from migrate_lens.model.errors import StateError
from migrate_lens.model.report import Runtime
from migrate_lens.native import site_hook
from migrate_lens.native.compiler import ShimOptions, install_shims
from migrate_lens.native.copying import copy_tree
from migrate_lens.native.process import run_bounded

# Warnings only: an `#if` on a macro that nobody defines takes the other branch without a word. The rest of the flags
# make an object cheaper and change nothing that a library can see.
FLAGS = "-g0 -Wundef -Wno-error=undef"
DESCRIBE = """\
import importlib.util, json, sys, sysconfig

def folders(name):
    spec = importlib.util.find_spec(name)
    return list(spec.submodule_search_locations or ()) if spec else []

print(json.dumps({
    "pip": importlib.util.find_spec("pip") is not None,
    "torch": folders("torch"),
    "paddle": folders("paddle"),
    "known": [str(sysconfig.get_config_var(k) or "") for k in ("CC", "CXX", "LDSHARED", "LDCXXSHARED")],
    "search": sys.path[1:],
    "version": sys.version,
}))
"""


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
    """What a build has to know of the interpreter.

    Attributes:
        pip: whether it has pip.
        known: the compilers that it was built with.
        torch: where torch is.
        paddle: where Paddle is.
        search: where it looks for modules.
        version: what it says of itself; empty if it could not be asked.
    """

    pip: bool = False
    known: tuple[str, ...] = ()
    torch: tuple[str, ...] = ()
    paddle: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    version: str = ""

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
    lists = {name: tuple(data[name]) for name in ("known", "torch", "paddle", "search")}
    return Interpreter(pip=bool(data["pip"]), version=str(data["version"]), **lists)


def environment(
    place: Workplace, runtime: Runtime, python: Path, about: Interpreter, options: ShimOptions
) -> dict[str, str]:
    """The variables of a build: the user's own, with the shims and the site hook in front."""
    env = dict(os.environ)
    env["PATH"] = os.pathsep.join([str(python.parent), env.get("PATH", os.defpath)])
    if runtime is not Runtime.TORCH:
        options = replace(options, extra={**options.extra, "cmake": about.hidden_from_cmake})
    env |= install_shims(place.bin, place.calls, env, about.known, options)
    for name in ("CFLAGS", "CXXFLAGS"):
        env[name] = f"{env.get(name, '')} {FLAGS}".strip()
    python_path = [str(place.site), *filter(None, [env.get("PYTHONPATH")])]
    return env | {
        "LC_ALL": "C",
        "PYTHONPATH": os.pathsep.join(python_path),
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
