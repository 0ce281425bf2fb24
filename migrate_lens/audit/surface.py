"""What torch and the installed Paddle have: two interpreters or a file in; a ``Surface`` that answers by name out.

Each framework is asked once per version and commit, in a process of its own; the answer is kept in the cache folder.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from migrate_lens.cpp import headers
from migrate_lens.model.errors import RuntimeUnavailable, StateError
from migrate_lens.model.progress import Progress
from migrate_lens.shipped import PACKAGE

SCHEMA = 1
WORKER = PACKAGE / "worker" / "run" / "surface.py"
ASKED = ("torch/version.py", "paddle/version/__init__.py")
IDENTITY = re.compile(r"^(?:__version__|git_version|full_version|commit)\b[^=]*=\s*['\"]([^'\"]*)['\"]", re.MULTILINE)
KEPT_CLASSES = ("Tensor", "TensorBase", "Library", "CUDAStream", "Stream", "Event", "TensorOptions", "Scalar")
# Constants and constructors that macros make: a header scanner cannot see them, so their absence says nothing.
MACRO_MADE = re.compile(r"k[A-Z]\w*|[A-Z]+_?[A-Z0-9_]*")


@dataclass(frozen=True, slots=True)
class Answer:
    """What both frameworks said about one name.

    Attributes:
        verdict: present, missing, fake, other_kind, or unknown (torch itself has no such name).
        name: the shortest part of the name that decides: a missing module rather than everything in it.
        kind: torch's kind of that part.
        paddle: Paddle's kind.
        refused: keywords that torch has and Paddle refuses.
        shadowed: Paddle has an equivalent with torch's semantics, and the proxy hands out another function.
    """

    verdict: str
    name: str
    kind: str = ""
    paddle: str = ""
    refused: frozenset[str] = frozenset()
    shadowed: bool = False


class Surface:
    """Answers by name; both frameworks were asked for every name in it."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.names: dict[str, list[Any]] = document["names"]
        self.torch: tuple[str, str] = tuple(document["torch"])
        self.paddle: tuple[str, str] = tuple(document["paddle"])
        self.known: dict[str, Answer] = {}

    def ask(self, api: str) -> Answer:
        """The verdict on a Python name."""
        if api not in self.known:
            self.known[api] = self._ask(api)
        return self.known[api]

    def _ask(self, api: str) -> Answer:
        parts = api.split(".")
        for size in range(1, len(parts) + 1):
            name = ".".join(parts[:size])
            row = self.names.get(name)
            if row is None:
                return Answer("unknown", api)
            if row[1] is None:
                return Answer("missing", name, row[0])
        row = self.names[api]
        verdict = "fake" if row[3] else "present" if row[0] == row[1] else "other_kind"
        return Answer(verdict, api, row[0], row[1], frozenset(row[2]), row[4])

    # -- native -------------------------------------------------------------------------------------------------------

    @cached_property
    def _native(self) -> dict[str, dict[str, Any]]:
        sides = self.document["native"]
        return {
            side: {
                key: {name: frozenset(v) for name, v in value.items()} if key == "methods" else frozenset(value)
                for key, value in sides[side].items()
            }
            for side in ("torch", "paddle")
        }

    def declared(self, what: str, name: str) -> Answer:
        """The verdict on a C++ name, macro or header: declared by torch's headers and by nothing in Paddle's."""
        torch, paddle = self._native["torch"][what], self._native["paddle"][what]
        last = name if what == "headers" else name.rpartition("::")[2]
        if last in paddle:
            return Answer("present", name, what, what)
        if last not in torch or (what == "names" and MACRO_MADE.fullmatch(last)):
            return Answer("unknown", name)
        return Answer("missing", name, what)

    def native_method(self, owner: str, name: str) -> Answer:
        """The verdict on a method of a C++ class; a class that Paddle has not gives no verdict on its methods."""
        torch, paddle = (self._methods(side, owner) for side in ("torch", "paddle"))
        if not paddle or name not in torch:
            return Answer("unknown", f"{owner}::{name}")
        return Answer("present" if name in paddle else "missing", f"{owner}::{name}", "function")

    def _methods(self, side: str, owner: str) -> frozenset[str]:
        methods = self._native[side]["methods"]
        found: frozenset[str] = methods.get(owner, frozenset())
        return found | methods.get("TensorBase", frozenset()) if owner == "Tensor" else found


# -- making and keeping ------------------------------------------------------------------------------------------------


def merge(torch: dict[str, Any], paddle: dict[str, Any]) -> dict[str, Any]:
    """One document of both answers; parameters that Paddle accepts are not kept."""
    answers = paddle["names"]
    names = {}
    for name, (kind, _, _) in torch["names"].items():
        row = answers.get(name)
        names[name] = [kind, row[0], row[1], row[3], row[4]] if row else [kind, None, [], False, False]
    native = {side["framework"]: native_of(side["include"]) for side in (torch, paddle)}
    for side in native.values():
        side["methods"] = {owner: side["methods"][owner] for owner in KEPT_CLASSES if owner in side["methods"]}
    return {
        "schema": SCHEMA,
        "torch": torch["identity"],
        "paddle": paddle["identity"],
        "names": names,
        "native": native,
    }


def native_of(include: list[str]) -> dict[str, Any]:
    """What the headers below some include folders declare, ready for JSON."""
    found = headers.scan([Path(folder) for folder in include])
    return {
        "names": sorted(found.names),
        "macros": sorted(found.macros),
        "headers": sorted(found.headers),
        "methods": {owner: sorted(names) for owner, names in sorted(found.methods.items())},
    }


def load(file: Path) -> Surface:
    """A saved surface."""
    try:
        document = json.loads(file.read_bytes())
        if document["schema"] == SCHEMA and {"names", "torch", "paddle", "native"} <= document.keys():
            return Surface(document)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StateError(
            f"cannot read the surface {file}: {error}", "save one with: audit --save-surface FILE"
        ) from error
    raise StateError(f"{file} is not a surface of schema {SCHEMA}", "save a new one with: audit --save-surface FILE")


def installed(torch_python: Path, paddle_python: Path, cache: Path, say: Progress) -> Surface:
    """The surface of the frameworks that two interpreters have, asked once per version."""
    identity = [identity_of(torch_python, 0), identity_of(paddle_python, 1)]
    for python, name, found in ((torch_python, "torch", identity[0]), (paddle_python, "Paddle", identity[1])):
        if not found:
            raise RuntimeUnavailable(f"{python} has no {name}", "name an interpreter that has it, or --surface FILE")
    stem = re.sub(r"[^\w.+-]", "_", "-".join(identity))
    kept = cache / f"surface-{SCHEMA}-{stem}-{tool_stamp()}.json"
    if kept.is_file():
        return load(kept)
    say(f"asking torch and Paddle what they have ({', '.join(identity)}): once per version")
    document = ask_both(torch_python, paddle_python)
    write(kept, document)
    return Surface(document)


def write(file: Path, document: dict[str, Any]) -> None:
    """Write a surface whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.{os.getpid()}")
    part.write_text(json.dumps(document, separators=(",", ":")), "utf-8")
    part.replace(file)


def tool_stamp() -> str:
    """Changes when the asking itself changes."""
    sides = sorted(WORKER.parents[1].glob("backends/*/surface.py"))
    stats = [Path(path).stat() for path in (*map(str, (WORKER, *sides)), headers.__file__, __file__)]
    return f"{sum(int(stat.st_mtime) ^ stat.st_size for stat in stats):x}"


def identity_of(python: Path, which: int) -> str:
    """Version and commit of the framework that an interpreter has, read from its files: importing it takes a second."""
    asked = ASKED[which]
    package = asked.partition("/")[0]
    origin = origin_of(python, package)
    if not origin:
        return ""
    text = (Path(origin).parent.parent / asked).read_text("utf-8", "replace")
    return f"{package}-" + "-".join(match[1][:12] for match in IDENTITY.finditer(text))


def origin_of(python: Path, package: str) -> str:
    """The file that an interpreter would import a package from; two virtual environments may share one binary."""
    if os.path.abspath(python) == os.path.abspath(sys.executable):
        spec = find_spec(package)
        return (spec.origin if spec else "") or ""
    code = f"import importlib.util as u; s = u.find_spec({package!r}); print(s.origin if s else '')"
    with tempfile.TemporaryDirectory() as empty:
        try:
            done = subprocess.run(
                [python, "-c", code], capture_output=True, text=True, check=False, timeout=60, cwd=empty
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RuntimeUnavailable(f"{python} cannot be run: {error}", "name another interpreter") from error
    return done.stdout.strip()


def ask_both(torch_python: Path, paddle_python: Path) -> dict[str, Any]:
    """Run the worker in each interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        torch, paddle = Path(folder) / "torch.json", Path(folder) / "paddle.json"
        ask(torch_python, ["torch", str(torch)], torch)
        ask(paddle_python, ["paddle", str(paddle), str(torch)], paddle)
        return merge(json.loads(torch.read_bytes()), json.loads(paddle.read_bytes()))


def ask(python: Path, arguments: list[str], out: Path) -> None:
    """One worker process; it has an answer if it wrote its file, whatever else happened at its exit."""
    try:
        done = subprocess.run(
            [python, str(WORKER), *arguments], capture_output=True, text=True, check=False, timeout=600, cwd=out.parent
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RuntimeUnavailable(
            f"{python} could not be asked: {error}", "name another interpreter, or --surface FILE"
        ) from error
    if not out.is_file():
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise RuntimeUnavailable(
            f"{arguments[0]} in {python} gave no answer: {last}", "import it by hand, or --surface FILE"
        )
