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
from typing import Any

KEEP = 1 << 20
MOST_ERRORS = "-fmax-errors=3000"
NESTED = "MIGRATE_LENS_SHIM"
RECORDED = (".c", ".cc", ".cpp", ".cxx", ".c++", ".cu", ".hip", ".o", ".obj", ".a", ".so", ".mm", ".m", ".C", ".cppm")
CMAKE_QUIET = ("--build", "--install", "-E", "-P", "--version", "--help", "--find-package")


def main(argv: list[str]) -> int:
    """Runs the call that stands behind ``argv`` and records it when it compiles, links or configures something."""
    config_file, name, *args = argv
    with open(config_file, encoding="utf-8") as file:
        config = json.load(file)
    command = config["commands"][name]
    # CMake looks for compilers itself and must find the shims; a compiler's own helpers must not.
    env = (
        dict(os.environ, LC_ALL="C") if name == "cmake" else _environment(os.path.dirname(os.path.abspath(config_file)))
    )
    if os.environ.get(NESTED) or not _worth_a_record(name, args):
        return _plain(command + args, env)
    if config.get("dry"):
        _touch_output(args)
        _write(config["records"], name, command, args, 0.0, 0, "")
        return 0
    start = time.monotonic()
    kept = _kept(config.get("objects"), name, command, args)
    said = kept.find() if kept else None
    if said is not None:
        sys.stderr.write(said)
        _write(config["records"], name, command, args, time.monotonic() - start, 0, said)
        return 0
    more = [*_quiet(name), *config.get("extra", {}).get(name, ()), *(kept.extra if kept else ())]
    host = name not in ("cmake", "nvcc", "hipcc")
    code, text = _forwarded(command + args + more, env, *(config.get("limits", (0, 0)) if host else (0, 0)))
    if kept and code == 0:
        with contextlib.suppress(OSError):  # what cannot be kept is compiled again
            kept.keep(text)
    _write(config["records"], name, command, args, time.monotonic() - start, code, text)
    return code


def _kept(objects: dict[str, Any] | None, name: str, command: list[str], args: list[str]) -> Any:
    """The kept object of a call, if objects are kept and it makes one."""
    if not objects or not (module := _beside("objects")).makes_one_object(name, args):
        return None
    shelf = _beside("shelf").Shelf(Path(objects["folder"]), fresh=objects["fresh"])
    return module.Object(shelf, objects["place"], objects["basis"], command, args)


def _beside(name: str) -> Any:
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


def _quiet(name: str) -> list[str]:
    """Behind everything else: libraries ask for colours themselves."""
    return [] if name in ("cmake", "nvcc", "hipcc") else ["-fdiagnostics-color=never", MOST_ERRORS]


def _plain(command: list[str], env: dict[str, str]) -> int:
    try:
        os.execvpe(command[0], command, env)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return 127


def _forwarded(command: list[str], env: dict[str, str], seconds: float, memory: int) -> tuple[int, str]:
    """Runs the compiler within its limits, hands its stderr on as it comes, and keeps the first part of it."""

    def limit() -> None:
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    try:
        process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, preexec_fn=limit, process_group=0)
    except OSError as error:
        return 127, f"{command[0]}: {error.strerror}"
    assert process.stderr is not None
    watch = threading.Timer(seconds, os.killpg, (process.pid, signal.SIGKILL))
    watch.daemon = True
    start = time.monotonic()
    if seconds:
        watch.start()
    kept = bytearray()
    while data := process.stderr.read1(65536):  # type: ignore[attr-defined]
        kept += data[: max(0, KEEP - len(kept))]
        sys.stderr.buffer.write(data)
        sys.stderr.buffer.flush()
    code = process.wait()
    watch.cancel()
    if code < 0 and seconds and time.monotonic() - start >= seconds:
        kept += f"\n{command[0]}: fatal error: stopped after {seconds:.0f} s\n".encode()
    return (code if code >= 0 else 128 - code), kept.decode("utf-8", "replace")


def _touch_output(args: list[str]) -> None:
    if "-o" in args[:-1]:
        with open(args[args.index("-o") + 1], "ab"):
            pass


def _write(folder: str, name: str, command: list[str], args: list[str], seconds: float, code: int, text: str) -> None:
    """Writes the record under a name of its own and in one step: a reader sees all of it or nothing."""
    path = os.path.join(folder, f"{time.time_ns()}-{os.getpid()}.json")
    record = {
        "name": name,
        "command": command,
        "args": args,
        "cwd": os.getcwd(),
        "seconds": seconds,
        "rc": code,
        "stderr": text,
    }
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(record, file)
    os.replace(path + ".part", path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
