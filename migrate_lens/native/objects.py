"""One call that makes an object out of a source goes in; the object of an equal earlier call, or nothing, comes out.

Two calls are equal if command, options, source, every header of the library's own that it read, and all that the whole
build depends on are the same. The folder of the build differs each time and does not count. Loaded by the shim, so it
imports nothing of this package; the shelf is handed in.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable
from typing import BinaryIO, Protocol, TypedDict

PLACE = "@PLACE@"
SOURCES = (".c", ".cc", ".cpp", ".cxx", ".c++", ".C")
HOSTS = ("g++", "gcc", "c++", "cc", "clang++", "clang")


class Keeper(Protocol):
    """What is asked of a shelf."""

    def take(self, key: str) -> BinaryIO | None:
        """An entry that is whole."""
        ...

    def put(self, key: str, fill: Callable[[BinaryIO], object]) -> str:
        """Keep an entry."""
        ...


class About(TypedDict):
    """The first line of a kept object: the headers that it was made of with their stamps, and what was said."""

    headers: dict[str, str]
    depfile: str
    said: str


class Object:
    """One call and the object that it makes.

    Args:
        shelf: where objects are kept.
        place: the folder of the build.
        basis: stands for all that the whole build depends on, its sources apart.
        args: the call's arguments.
        command: the real compiler.
    """

    def __init__(self, shelf: Keeper, place: str, basis: str, command: list[str], args: list[str]) -> None:
        self.shelf, self.place = shelf, place
        self.output = args[args.index("-o") + 1]
        given = [args[i + 1] for i, arg in enumerate(args[:-1]) if arg == "-MF"]
        self.depfile = given[0] if given else self.output + ".migrate-lens.d"
        self.extra = [] if given else ["-MMD", "-MF", self.depfile]
        source = next(arg for arg in args if _is_source(arg))
        said = json.dumps([basis, command, self.moved(json.dumps([args, os.getcwd()]))])
        self.key = "object-" + hashlib.blake2b(said.encode() + b"\0" + _read(source), digest_size=20).hexdigest()

    def moved(self, text: str) -> str:
        """A text without the folder of this build."""
        return text.replace(self.place, PLACE)

    def find(self) -> str | None:
        """Put the kept object where the call would; what the compiler said when it made it, None if there is none."""
        file = self.shelf.take(self.key)
        if file is None:
            return None
        with file:
            about: About = json.loads(file.readline().decode().replace(PLACE, self.place))
            if self.stamps(about["headers"]) != about["headers"]:
                return None
            with open(self.output, "wb") as out:
                out.write(file.read())
        if not self.extra:
            with open(self.depfile, "w", encoding="utf-8") as out:
                out.write(about["depfile"])
        return about["said"]

    def keep(self, said: str) -> None:
        """Keep the object that the call has just made."""
        depfile = _read(self.depfile).decode("utf-8", "replace")
        about: About = {"headers": self.stamps(_prerequisites(depfile)), "depfile": depfile, "said": said}
        line = self.moved(json.dumps(about)).encode() + b"\n"
        data = _read(self.output)
        self.shelf.put(self.key, lambda file: file.write(line + data))
        if self.extra:
            os.unlink(self.depfile)

    def stamps(self, paths: Iterable[str]) -> dict[str, str]:
        """The library's headers by content, others by size and time."""
        return {path: self.stamp(path) for path in paths}

    def stamp(self, path: str) -> str:
        """What changes when a file does; empty if it is not there."""
        try:
            if os.path.abspath(path).startswith(self.place + os.sep):
                return hashlib.blake2b(_read(path), digest_size=20).hexdigest()
            stat = os.stat(path)
        except OSError:
            return ""
        return f"{stat.st_size} {stat.st_mtime_ns}"


def makes_one_object(name: str, args: list[str]) -> bool:
    """Whether a call turns one source into one object and does nothing else."""
    other = any(arg in ("-E", "-S", "-M", "-MM", "-") or arg.startswith(("@", "-save-temps")) for arg in args)
    sources = [arg for arg in args if _is_source(arg)]
    return name in HOSTS and "-c" in args and "-o" in args[:-1] and len(sources) == 1 and not other


def _is_source(arg: str) -> bool:
    return not arg.startswith("-") and arg.endswith(SOURCES)


def _prerequisites(depfile: str) -> list[str]:
    """The files behind the colon of a rule as compilers write it."""
    text = depfile.replace("\\\n", " ").partition(": ")[2].partition("\n")[0]
    return [part.replace("\\ ", " ") for part in re.findall(r"(?:\\ |\S)+", text)]


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
