"""A folder goes in; it gets a shim for every compiler on PATH, and the calls that a build made come out as values."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from migrate_lens.native import shim

COMPILERS = ("g++", "gcc", "c++", "cc", "clang++", "clang", "nvcc", "hipcc", "cmake")
# What g++ suggests instead of an unknown name makes thousands of errors take minutes; nobody reads so many.
MOST_ERRORS = shim.MOST_ERRORS
WRAPPERS = ("ccache", "sccache", "distcc")
SOURCES = (".c", ".cc", ".cpp", ".cxx", ".c++", ".C", ".cu", ".hip", ".mm", ".m", ".cppm")
PAIRED = (
    "-o",
    "-I",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-include",
    "-imacros",
    "-x",
    "-MF",
    "-MT",
    "-MQ",
    "-D",
    "-U",
    "-L",
    "-l",
)
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class CompilerCall:
    """One call of a compiler, linker or CMake during a build.

    Attributes:
        name: the name that the build called it by.
        command: the real command, with ccache and its like in front if there is one.
        args: its arguments, as the build gave them.
        cwd: the folder it ran in.
        seconds: wall time.
        returncode: its exit status.
        stderr: what it said, without colours, in the C locale; the first megabyte.
        source: the source file it compiles, absolute, None for links and configurations.
        output: its ``-o``, absolute, None if there is none.
    """

    name: str
    command: tuple[str, ...]
    args: tuple[str, ...]
    cwd: Path
    seconds: float
    returncode: int
    stderr: str
    source: Path | None
    output: Path | None

    @property
    def compiles(self) -> bool:
        """Whether it turns one source of the library into one object; a configuration's trials do not count."""
        if self.source is None or "CMakeFiles" in self.source.parts:
            return False
        return self.name != "cmake" and ("-c" in self.args or "-fsyntax-only" in self.args)

    @property
    def links(self) -> bool:
        """Whether it makes a library or a program."""
        return self.name != "cmake" and not self.compiles and self.output is not None

    @property
    def device(self) -> bool:
        """Whether a GPU compiler ran."""
        return self.name in ("nvcc", "hipcc")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one compiler call may take: seconds and bytes; 0 is no limit."""

    seconds: float = 0
    memory: int = 0


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """Where objects are kept between builds.

    Attributes:
        folder: the shelf that holds them.
        fresh: nothing is taken from it, only put.
        place: the private folder of this build, which does not count when two calls are compared.
        basis: stands for all that each object depends on beside its own call.
    """

    folder: Path
    fresh: bool
    place: Path
    basis: str


@dataclass(frozen=True, slots=True)
class ShimOptions:
    """What a shim does beside recording a call.

    Attributes:
        extra: arguments that a compiler, by its name, gets behind its own.
        dry: nothing is compiled, outputs are only touched.
        objects: where objects are kept; None keeps none.
        limits: what one call may take.
    """

    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)
    dry: bool = False
    objects: ObjectStore | None = None
    limits: Limits = Limits()


def install_shims(
    folder: Path, records: Path, environ: Mapping[str, str], known: Iterable[str], options: ShimOptions | None = None
) -> dict[str, str]:
    """Puts a shim in ``folder`` for each compiler that ``environ`` reaches, and returns the variables that lead there.

    Args:
        folder: where the shims go; made if needed.
        records: where each call leaves its record.
        environ: the environment of the build.
        known: command lines that the interpreter was built with (``CC``, ``CXX``, ``LDSHARED``).
        options: what the shims do beside recording.
    """
    folder.mkdir(parents=True, exist_ok=True)
    records.mkdir(parents=True, exist_ok=True)
    path = environ.get("PATH", os.defpath)
    commands = _commands(known, path)
    variables = _redirected(environ, folder, path, commands)
    _write(folder, records, commands, options or ShimOptions())
    variables["PATH"] = os.pathsep.join([str(folder), path])
    return variables


def _commands(known: Iterable[str], path: str) -> dict[str, list[str]]:
    """The real command behind each compiler's name: the usual ones, and those that an interpreter was built with."""
    commands: dict[str, list[str]] = {}
    for name in COMPILERS:
        if program := shutil.which(name, path=path):
            commands[name] = [program]
    for line in known:
        name = next(iter(_words(line)), "")
        if not name or os.sep in name or name in WRAPPERS:
            continue
        if program := shutil.which(name, path=path):
            commands.setdefault(name, [program])
    return commands


def has_compiler(environ: Mapping[str, str]) -> bool:
    """Whether there is any C++ compiler that a build could call."""
    names = [*_words(environ.get("CXX", ""))[:1], "g++", "c++", "clang++"]
    return any(shutil.which(name, path=environ.get("PATH", os.defpath)) for name in names)


def _redirected(environ: Mapping[str, str], folder: Path, path: str, commands: dict[str, list[str]]) -> dict[str, str]:
    """``CC`` and its like, pointed at a shim, with their flags kept and a compiler cache moved behind the shim."""
    variables: dict[str, str] = {}
    for variable in ("CC", "CXX", "PYTORCH_NVCC", "CUDACXX"):
        words = _words(environ.get(variable, ""))
        front = 1 if words and Path(words[0]).name in WRAPPERS else 0
        program = shutil.which(words[front], path=path) if len(words) > front else None
        if program is None:
            continue
        name = Path(words[front]).name
        commands[name] = [*words[:front], program]
        variables[variable] = shlex.join([str(folder / name), *words[front + 1 :]])
    return variables


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _write(folder: Path, records: Path, commands: Mapping[str, list[str]], options: ShimOptions) -> None:
    """Writes a script for each command, and the one file that tells ``shim`` all about them."""
    config = {
        "records": str(records),
        "commands": commands,
        "extra": {name: list(arguments) for name, arguments in options.extra.items()},
        "dry": options.dry,
        "objects": asdict(options.objects) if options.objects is not None else None,
        "limits": [options.limits.seconds, options.limits.memory],
    }
    file = folder / "shims.json"
    file.write_text(json.dumps(config, default=str), encoding="utf-8")
    for name in commands:
        line = shlex.join([sys.executable, "-I", "-S", shim.__file__, str(file), name])
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {line} "$@"\n', encoding="utf-8")
        script.chmod(0o755)


def read_calls(records: Path) -> tuple[CompilerCall, ...]:
    """All calls that left a whole record, oldest first."""
    calls = []
    for path in sorted(records.glob("*.json")):
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:  # a full disk leaves an empty file
            continue
        calls.append(_call(data))
    return tuple(calls)


def _call(data: Mapping[str, object]) -> CompilerCall:
    args, command = data["args"], data["command"]
    assert isinstance(args, list)
    assert isinstance(command, list)
    cwd = Path(str(data["cwd"]))
    sources = [arg for arg in plain_arguments(args) if arg.endswith(SOURCES)]
    output = args[args.index("-o") + 1] if "-o" in args[:-1] else None
    return CompilerCall(
        name=str(data["name"]),
        command=tuple(map(str, command)),
        args=tuple(args),
        cwd=cwd,
        seconds=float(str(data["seconds"])),
        returncode=int(str(data["rc"])),
        stderr=_ANSI.sub("", str(data["stderr"])),
        source=Path(os.path.normpath(cwd / sources[0])) if sources else None,
        output=Path(os.path.normpath(cwd / output)) if output else None,
    )


def plain_arguments(args: Iterable[str]) -> list[str]:
    """The arguments that are neither options nor the value of one."""
    plain, skip = [], False
    for arg in args:
        if not skip and not arg.startswith("-"):
            plain.append(arg)
        skip = not skip and arg in PAIRED
    return plain
