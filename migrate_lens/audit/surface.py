"""What torch and the installed Paddle have: two interpreters or a file in; a ``Surface`` that answers by name out.

Each framework is asked once per version and commit, in a process of its own; the answer is kept in the cache folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, NotRequired, TypedDict

from migrate_lens.cpp import headers
from migrate_lens.model.audit import FrameworkVersion, Verdict
from migrate_lens.model.errors import RuntimeUnavailable, StateError
from migrate_lens.model.progress import Progress
from migrate_lens.shipped import PACKAGE

SCHEMA = 2
WORKER = PACKAGE / "worker" / "run" / "surface.py"
TORCH_VERSION, PADDLE_VERSION = "torch/version.py", "paddle/version/__init__.py"
IDENTITY = re.compile(r"^(?:__version__|git_version|full_version|commit)\b[^=]*=\s*['\"]([^'\"]*)['\"]", re.MULTILINE)
KEPT_CLASSES = ("Tensor", "TensorBase", "Library", "CUDAStream", "Stream", "Event", "TensorOptions", "Scalar")
# Constants and constructors that macros make: a header scanner cannot see them, so their absence says nothing.
MACRO_MADE = re.compile(r"k[A-Z]\w*|[A-Z]+_?[A-Z0-9_]*")


class Declaration(StrEnum):
    """What headers declare, beside methods."""

    NAMES = "names"
    MACROS = "macros"
    HEADERS = "headers"


class DeclaredNames(TypedDict):
    """What the headers of one framework declare, sorted; methods by class."""

    names: list[str]
    macros: list[str]
    headers: list[str]
    methods: dict[str, list[str]]


class Document(TypedDict):
    """A surface as it is kept: ``names`` holds the fields of ``AskedName`` by name, in order.

    ``members`` has what instances of torch's classes have, ``unread`` the modules of torch's that nobody imported,
    ``nearest`` for names that only torch has those of Paddle's that are called most like them.
    """

    schema: int
    torch: list[str]
    paddle: list[str]
    names: dict[str, list[object]]
    native: dict[str, DeclaredNames]
    members: dict[str, list[str]]
    unread: list[str]
    nearest: dict[str, str]


class FrameworkAnswer(TypedDict):
    """What the worker writes about one framework; in ``names``, Paddle's rows have one field more than torch's."""

    framework: str
    identity: list[str]
    include: list[str]
    names: dict[str, list[object]]
    members: NotRequired[dict[str, list[str]]]
    unread: NotRequired[list[str]]
    nearest: NotRequired[dict[str, str]]


class AskedName(NamedTuple):
    """What both frameworks say about a name that torch has.

    Attributes:
        kind: torch's kind.
        paddle: Paddle's kind, None if it has no such name.
        refused: keywords that torch has and Paddle refuses.
        fake: Paddle's is a stand-in that does nothing.
    """

    kind: str
    paddle: str | None
    refused: frozenset[str]
    fake: bool

    @classmethod
    def read(cls, row: list[object]) -> AskedName:
        """From a row of a document."""
        kind, paddle, refused, fake = row
        keywords = map(str, refused) if isinstance(refused, list) else ()
        return cls(str(kind), None if paddle is None else str(paddle), frozenset(keywords), bool(fake))


class Declared(NamedTuple):
    """``DeclaredNames``, to be asked."""

    plain: dict[Declaration, frozenset[str]]
    methods: dict[str, frozenset[str]]

    @classmethod
    def read(cls, names: DeclaredNames) -> Declared:
        """From a part of a document."""
        return cls(
            {
                Declaration.NAMES: frozenset(names["names"]),
                Declaration.MACROS: frozenset(names["macros"]),
                Declaration.HEADERS: frozenset(names["headers"]),
            },
            {owner: frozenset(methods) for owner, methods in names["methods"].items()},
        )

    def methods_of(self, owner: str) -> frozenset[str]:
        """The methods of a class; a tensor has those of its base."""
        own = self.methods.get(owner, frozenset())
        return own | self.methods.get("TensorBase", frozenset()) if owner == "Tensor" else own


@dataclass(frozen=True, slots=True)
class Answer:
    """What both frameworks said about one name.

    Attributes:
        verdict: what they say.
        name: the shortest part of the name that decides: a missing module rather than everything in it.
        kind: torch's kind of that part.
        paddle: Paddle's kind.
        refused: keywords that torch has and Paddle refuses.
        nearest: for a missing name, the one of Paddle's that is called most like it.
    """

    verdict: Verdict
    name: str
    kind: str = ""
    paddle: str = ""
    refused: frozenset[str] = frozenset()
    nearest: str = ""


class Surface:
    """Answers by name; both frameworks were asked for every name in it."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.torch = FrameworkVersion(*document["torch"])
        self.paddle = FrameworkVersion(*document["paddle"])
        self.known: dict[str, Answer] = {}

    def ask(self, api: str) -> Answer:
        """The verdict on a Python name."""
        if api not in self.known:
            self.known[api] = self._ask(api)
        return self.known[api]

    def _ask(self, api: str) -> Answer:
        if not self.is_torchs(api):
            return Answer(Verdict.UNKNOWN, api)
        parts = api.split(".")
        asked: AskedName | None = None
        for size in range(1, len(parts) + 1):
            name = ".".join(parts[:size])
            asked = self._name(name)
            if asked is None:
                return Answer(Verdict.UNKNOWN, api)
            if asked.paddle is None:
                return Answer(Verdict.MISSING, name, asked.kind, nearest=self.document["nearest"].get(name, ""))
        assert asked is not None
        return self._answer(api, asked)

    def _answer(self, api: str, asked: AskedName) -> Answer:
        """The verdict on a name that both have."""
        assert asked.paddle is not None
        if asked.fake:
            verdict = Verdict.FAKE
        elif asked.kind == asked.paddle:
            verdict = Verdict.PRESENT
        else:
            verdict = Verdict.OTHER_KIND
        return Answer(verdict, api, asked.kind, asked.paddle, asked.refused)

    def ask_member(self, api: str) -> Answer:
        """The verdict on a member of an instance: where its class is called otherwise, the instance is there still."""
        asked = self._name(api)
        if asked is None:
            return Answer(Verdict.UNKNOWN, api)
        return Answer(Verdict.MISSING, api, asked.kind) if asked.paddle is None else self._answer(api, asked)

    def is_torchs(self, api: str) -> bool:
        """Whether torch has a name, as far as can be told: what is behind a function or an unread module cannot."""
        names = self.document["names"]
        if api in names:
            return True
        owner, rest = api, ""
        while owner and owner not in names:
            owner, _, last = owner.rpartition(".")
            rest = f"{last}.{rest}" if rest else last
        kind = names[owner][0] if owner else "module"
        if kind == "class":
            return not self.knows_members(owner) or rest.partition(".")[0] in self.document["members"][owner]
        return kind != "module" or any(f"{api}.".startswith(f"{module}.") for module in self._unread_below(owner))

    def is_told(self, api: str) -> bool:
        """Whether torch told that it has a name; of what lies behind a function, a value or a class it told a part."""
        owner, _, last = api.rpartition(".")
        row = self._name(owner)
        if self._name(api) is not None or row is None or row.kind == "module":
            return True
        return last in self.document["members"].get(owner, ())

    def _unread_below(self, module: str) -> list[str]:
        """The modules in a package of torch's that nobody imported."""
        return [name for name in self.document["unread"] if name.startswith(f"{module}.")]

    def knows_members(self, owner: str) -> bool:
        """Whether torch was asked for the members of a class."""
        return owner in self.document["members"]

    def _name(self, name: str) -> AskedName | None:
        row = self.document["names"].get(name)
        return AskedName.read(row) if row is not None else None

    # -- native -------------------------------------------------------------------------------------------------------

    @cached_property
    def _torch_native(self) -> Declared:
        return Declared.read(self.document["native"]["torch"])

    @cached_property
    def _paddle_native(self) -> Declared:
        return Declared.read(self.document["native"]["paddle"])

    def declared(self, what: Declaration, name: str) -> Answer:
        """The verdict on a C++ name, macro or header: declared by torch's headers and by nothing in Paddle's."""
        last = name if what is Declaration.HEADERS else name.rpartition("::")[2]
        if last in self._paddle_native.plain[what]:
            return Answer(Verdict.PRESENT, name, what, what)
        if last not in self._torch_native.plain[what]:
            return Answer(Verdict.UNKNOWN, name)
        if what is Declaration.NAMES and MACRO_MADE.fullmatch(last):
            return Answer(Verdict.UNKNOWN, name)
        return Answer(Verdict.MISSING, name, what)

    def native_method(self, owner: str, name: str) -> Answer:
        """The verdict on a method of a C++ class; a class that Paddle has not gives no verdict on its methods."""
        torch, paddle = self._torch_native.methods_of(owner), self._paddle_native.methods_of(owner)
        if not paddle or name not in torch:
            return Answer(Verdict.UNKNOWN, f"{owner}::{name}")
        verdict = Verdict.PRESENT if name in paddle else Verdict.MISSING
        return Answer(verdict, f"{owner}::{name}", "function")


# -- making and keeping ------------------------------------------------------------------------------------------------


def merge(torch: FrameworkAnswer, paddle: FrameworkAnswer) -> Document:
    """One document of both answers; parameters that Paddle accepts are not kept."""
    names: dict[str, list[object]] = {}
    for name, (kind, _parameters, _result) in torch["names"].items():
        row = paddle["names"].get(name)
        if row:
            paddle_kind, refused, _, fake = row
            names[name] = [kind, paddle_kind, refused, fake]
        else:
            names[name] = [kind, None, [], False]
    native = {side["framework"]: native_of(side["include"]) for side in (torch, paddle)}
    return {
        "schema": SCHEMA,
        "torch": torch["identity"],
        "paddle": paddle["identity"],
        "names": names,
        "native": native,
        "members": torch.get("members", {}),
        "unread": torch.get("unread", []),
        "nearest": paddle.get("nearest", {}),
    }


def native_of(include: list[str]) -> DeclaredNames:
    """What the headers below some include folders declare, ready for JSON; of methods, those of a few classes."""
    declared = headers.scan([Path(folder) for folder in include])
    return {
        "names": sorted(declared.names),
        "macros": sorted(declared.macros),
        "headers": sorted(declared.headers),
        "methods": {owner: sorted(declared.methods[owner]) for owner in KEPT_CLASSES if owner in declared.methods},
    }


def load(file: Path) -> Surface:
    """A saved surface."""
    try:
        document: Document = json.loads(file.read_bytes())
        if document["schema"] == SCHEMA and {"names", "torch", "paddle", "native"} <= document.keys():
            return Surface(document)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise StateError(
            f"cannot read the surface {file}: {error}", "save one with: audit --save-surface FILE"
        ) from error
    raise StateError(f"{file} is not a surface of schema {SCHEMA}", "save a new one with: audit --save-surface FILE")


def installed(torch_python: Path, paddle_python: Path, cache: Path, say: Progress) -> Surface:
    """The surface of the frameworks that two interpreters have, asked once per version."""
    torch, paddle = identity_of(torch_python, TORCH_VERSION), identity_of(paddle_python, PADDLE_VERSION)
    for python, name, answer in ((torch_python, "torch", torch), (paddle_python, "Paddle", paddle)):
        if not answer:
            raise RuntimeUnavailable(f"{python} has no {name}", "name an interpreter that has it, or --surface FILE")
    identity = [torch, paddle]
    stem = re.sub(r"[^\w.+-]", "_", "-".join(identity))
    kept = cache / f"surface-{SCHEMA}-{stem}-{tool_stamp()}.json"
    if kept.is_file():
        with contextlib.suppress(StateError):  # what is damaged is made anew
            return load(kept)
    say(f"asking torch and Paddle what they have ({', '.join(identity)}): once per version")
    document = ask_both(torch_python, paddle_python)
    write(kept, document)
    return Surface(document)


def write(file: Path, document: Document) -> None:
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


def identity_of(python: Path, version_file: str) -> str:
    """Version and commit of the framework that an interpreter has, read from its files: importing it takes a second."""
    package = version_file.partition("/")[0]
    origin = origin_of(python, package)
    if not origin:
        return ""
    text = (Path(origin).parent.parent / version_file).read_text("utf-8", "replace")
    return f"{package}-" + "-".join(match[1][:12] for match in IDENTITY.finditer(text))


def origin_of(python: Path, package: str) -> str:
    """The file that an interpreter would import a package from; two virtual environments may share one binary."""
    if os.path.abspath(python) == os.path.abspath(sys.executable):
        spec = find_spec(package)
        return (spec.origin if spec else "") or ""
    code = f"import importlib.util as u; s = u.find_spec({package!r}); print(s.origin if s else '')"
    with tempfile.TemporaryDirectory() as empty:
        try:
            answer = subprocess.run(
                [python, "-c", code], capture_output=True, text=True, check=False, timeout=60, cwd=empty
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RuntimeUnavailable(f"{python} cannot be run: {error}", "name another interpreter") from error
    return answer.stdout.strip()


def ask_both(torch_python: Path, paddle_python: Path) -> Document:
    """Run the worker in each interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        torch, paddle = Path(folder) / "torch.json", Path(folder) / "paddle.json"
        ask(torch_python, ["torch", str(torch)], torch)
        ask(paddle_python, ["paddle", str(paddle), str(torch)], paddle)
        return merge(json.loads(torch.read_bytes()), json.loads(paddle.read_bytes()))


def ask(python: Path, arguments: list[str], out: Path) -> None:
    """One worker process; it has an answer if it wrote its file, whatever else happened at its exit."""
    try:
        worker = subprocess.run(
            [python, str(WORKER), *arguments], capture_output=True, text=True, check=False, timeout=600, cwd=out.parent
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RuntimeUnavailable(
            f"{python} could not be asked: {error}", "name another interpreter, or --surface FILE"
        ) from error
    if not out.is_file():
        last = (worker.stderr.strip().splitlines() or ["no output"])[-1]
        raise RuntimeUnavailable(
            f"{arguments[0]} in {python} gave no answer: {last}", "import it by hand, or --surface FILE"
        )
