"""A compiler's command line goes in; the real compiler runs with it, and one JSON record of the call comes out.

Runs as a program of its own (``python -I -S shim.py CONFIG NAME ARGS...``) in front of a compiler on PATH, in whatever
environment a build makes, so it imports nothing but the standard library; two modules of this folder that hold to the
same are loaded by path.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, Protocol, TypedDict

KEEP = 1 << 20
MOST_ERRORS = "-fmax-errors=3000"
NESTED = "MIGRATE_LENS_SHIM"
RECORDED = (".c", ".cc", ".cpp", ".cxx", ".c++", ".cu", ".hip", ".o", ".obj", ".a", ".so", ".mm", ".m", ".C", ".cppm")
CMAKE_QUIET = ("--build", "--install", "-E", "-P", "--version", "--help", "--find-package")


def main(argv: list[str]) -> int:
    """Runs the call that stands behind ``argv`` and records it when it compiles, links or configures something."""
    config_file, name, *args = argv
    with open(config_file, encoding="utf-8") as file:
        config: Config = json.load(file)
    call = Call(name, config["commands"][name], args)
    if name == "cmake":  # it looks for compilers itself and must find the shims; a compiler's own helpers must not
        env = dict(os.environ, LC_ALL="C")
    else:
        env = _environment(os.path.dirname(os.path.abspath(config_file)))
    if os.environ.get(NESTED) or not _worth_a_record(name, args):
        return _plain(call.command + args, env)
    if config["dry"]:
        _touch_output(args)
        _write(config["records"], call, 0.0, Said(0, ""))
        return 0
    start = time.monotonic()
    said = _said(call, config, env)
    _write(config["records"], call, time.monotonic() - start, said)
    return said.code


class Objects(TypedDict):
    """Where objects are kept, as ``compiler.ObjectStore`` says it."""

    folder: str
    fresh: bool
    place: str
    basis: str


class Config(TypedDict):
    """What ``compiler.install_shims`` writes for all shims of a folder."""

    records: str
    commands: dict[str, list[str]]
    extra: dict[str, list[str]]
    dry: bool
    objects: Objects | None
    limits: tuple[float, int]


class Call(NamedTuple):
    """The name that a build called a compiler by, the real command, and the arguments."""

    name: str
    command: list[str]
    args: list[str]

    @property
    def host(self) -> bool:
        """Whether a compiler for the host runs: only those are limited and know g++'s options."""
        return self.name not in ("cmake", "nvcc", "hipcc")


class Said(NamedTuple):
    """A compiler's exit status and the first part of its stderr."""

    code: int
    text: str


class KeptObject(Protocol):
    """``objects.Object``, which is loaded by path."""

    extra: list[str]

    def find(self) -> str | None:
        """What the compiler said when it made the kept object, which now stands where it would."""
        ...

    def keep(self, said: str) -> None:
        """Keep the object that the call has just made."""
        ...


def _said(call: Call, config: Config, env: dict[str, str]) -> Said:
    """Takes the object of an equal call, or runs the compiler and keeps what it makes."""
    kept = _kept(config["objects"], call)
    text = kept.find() if kept is not None else None
    if text is not None:
        sys.stderr.write(text)
        return Said(0, text)
    argv = [*call.command, *call.args, *_quiet(call), *config["extra"].get(call.name, ())]
    if kept is not None:
        argv += kept.extra
    seconds, memory = config["limits"] if call.host else (0, 0)
    said = _forwarded(argv, env, seconds, memory)
    if kept is not None and said.code == 0:
        with contextlib.suppress(OSError):  # what cannot be kept is compiled again
            kept.keep(said.text)
    return said


def _kept(objects: Objects | None, call: Call) -> KeptObject | None:
    """The kept object of a call, if objects are kept and it makes one."""
    if objects is None:
        return None
    module = _beside("objects")
    if not module.makes_one_object(call.name, call.args):
        return None
    shelf = _beside("shelf").Shelf(Path(objects["folder"]), fresh=objects["fresh"])
    kept: KeptObject = module.Object(shelf, objects["place"], objects["basis"], call.command, call.args)
    return kept


def _beside(name: str) -> ModuleType:
    """A module in this file's folder that, as this one, needs nothing of the package."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"migrate_lens_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _environment(folder: str) -> dict[str, str]:
    """The caller's environment without the folder of shims, so that ccache and nvcc find the real compilers."""
    env = dict(os.environ, LC_ALL="C", GCC_COLORS="", **{NESTED: "1"})
    parts = [part for part in env.get("PATH", "").split(os.pathsep) if os.path.abspath(part) != folder]
    env["PATH"] = os.pathsep.join(parts)
    return env


def _worth_a_record(name: str, args: list[str]) -> bool:
    if name == "cmake":
        return not any(arg in CMAKE_QUIET for arg in args)
    return "-E" not in args and any(arg.endswith(RECORDED) for arg in args if not arg.startswith("-"))


def _quiet(call: Call) -> list[str]:
    """Behind everything else: libraries ask for colours themselves."""
    return ["-fdiagnostics-color=never", MOST_ERRORS] if call.host else []


def _plain(command: list[str], env: dict[str, str]) -> int:
    try:
        os.execvpe(command[0], command, env)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return 127


def _forwarded(command: list[str], env: dict[str, str], seconds: float, memory: int) -> Said:
    """Runs the compiler within its limits, hands its stderr on as it comes, and keeps the first part of it."""

    def limit() -> None:
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    try:
        process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, preexec_fn=limit, process_group=0)
    except OSError as error:
        return Said(127, f"{command[0]}: {error.strerror}")
    assert process.stderr is not None
    watch = threading.Timer(seconds, os.killpg, (process.pid, signal.SIGKILL))
    watch.daemon = True
    start = time.monotonic()
    if seconds:
        watch.start()
    kept = bytearray()
    while data := os.read(process.stderr.fileno(), 65536):
        kept += data[: max(0, KEEP - len(kept))]
        sys.stderr.buffer.write(data)
        sys.stderr.buffer.flush()
    code = process.wait()
    watch.cancel()
    if code < 0 and seconds and time.monotonic() - start >= seconds:
        kept += f"\n{command[0]}: fatal error: stopped after {seconds:.0f} s\n".encode()
    return Said(code if code >= 0 else 128 - code, kept.decode("utf-8", "replace"))


def _touch_output(args: list[str]) -> None:
    if "-o" in args[:-1]:
        with open(args[args.index("-o") + 1], "ab"):
            pass


def _write(folder: str, call: Call, seconds: float, said: Said) -> None:
    """Writes the record under a name of its own and in one step: a reader sees all of it or nothing."""
    path = os.path.join(folder, f"{time.time_ns()}-{os.getpid()}.json")
    record = {
        "name": call.name,
        "command": call.command,
        "args": call.args,
        "cwd": os.getcwd(),
        "seconds": seconds,
        "rc": said.code,
        "stderr": said.text,
    }
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(record, file)
    os.replace(path + ".part", path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
