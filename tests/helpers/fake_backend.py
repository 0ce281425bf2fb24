"""Sources, in; what they do as they stand and what they do rewritten, out: a recorder over a framework that is none."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import sys
import traceback
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrate_lens.model.value import Encoded
from migrate_lens.protocol import journal as wire
from migrate_lens.worker.backends.writes import Writes
from migrate_lens.worker.observe import forms
from migrate_lens.worker.observe.import_hook import Instrumenter
from migrate_lens.worker.observe.recorder import Recorder

PROGRAM = "<program>"
FOLDER = Path(__file__).parents[1] / "worker" / "programs"
_NAMES = itertools.count()


def programs(name: str) -> dict[str, str]:
    """Sources by their headings: each begins with ``## heading``, or with ``## heading -> what comes of it``."""
    return {heading: source for heading, (source, _) in expected_of(name).items()}


def expected_of(name: str) -> dict[str, tuple[str, list[str]]]:
    """Sources and what their headings announce, a list with commas."""
    parts = (FOLDER / name).read_text().removeprefix("## ").split("\n\n## ")
    split = ((*heading.partition(" -> "), source) for heading, _, source in (part.partition("\n") for part in parts))
    return {heading: (source.rstrip("\n"), wanted.split(", ")) for heading, _, wanted, source in split}


class Tensor:
    """The tensor of a framework that is none: it notes what is asked of it and answers with itself."""

    log: list[str]

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def _noted(self, what: str) -> Tensor:
        self.log.append(what)
        return self

    def __add__(self, other: object) -> Tensor:
        return self._noted("add")

    def __iadd__(self, other: object) -> Tensor:
        return self._noted("iadd")

    def __neg__(self) -> Tensor:
        return self._noted("neg")

    def __lt__(self, other: object) -> Tensor:
        return self._noted("lt")

    def __getitem__(self, index: object) -> Tensor:
        return self._noted(f"get {index!r}")

    def __setitem__(self, index: object, value: object) -> None:
        self._noted(f"set {index!r}")


class Module:
    """The layer class of a framework that is none."""

    def forward(self) -> None:
        return None


def _method(self: Tensor, *args: object, **kwargs: object) -> Tensor:
    self.log.append(f"call {len(args)} {sorted(kwargs)}")
    return self


# The framework's functions have its globals: that is how they are told from the program's own.
SPACE: dict[str, Any] = {"__name__": "torch"}
for _name in ("a", "b", "sum", "mean", "size"):
    setattr(Tensor, _name, types.FunctionType(_method.__code__, SPACE, _name))
Tensor.__module__ = Module.__module__ = "torch"


class FakeBackend(Writes):
    """A backend for which every tensor is alike."""

    name = "fake"
    tops = frozenset(("torch",))

    def __init__(self) -> None:
        super().__init__(Tensor, Module, ())

    def look(self, value: Any) -> Encoded:
        return ("T", "float32", (), None, "cpu", False)

    def version(self, value: Any) -> int:
        return 0

    def special(self, value: Any, kind: type) -> Encoded | None:
        return None

    def random_state(self) -> bytes:
        return b""

    def differentiable(self, value: Any) -> bool:
        return False

    def held(self, layer: Any) -> list[Any]:
        return []

    def extent(self, value: Any) -> tuple[int, int] | None:
        return None


_ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # another in each run of the same program


@dataclass(frozen=True)
class Behaviour:
    """What a program did: its result or what it raised, with its own lines in the traceback, and what it printed."""

    ending: str
    detail: str
    lines: tuple[int, ...]
    printed: str


@dataclass(frozen=True)
class Observed:
    """What a rewritten program did, and the frames that were recorded."""

    behaviour: Behaviour
    frames: list[tuple[Any, ...]]


def behave(code: types.CodeType, module: types.ModuleType, given: dict[str, Any]) -> Behaviour:
    module.__dict__.update(given)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(code, module.__dict__)
    except BaseException as error:  # noqa: BLE001 - a program may raise anything, and that is what is compared
        lines = tuple(f.lineno or 0 for f in traceback.extract_tb(error.__traceback__) if f.filename == PROGRAM)
        return Behaviour(type(error).__name__, _ADDRESS.sub(" at", str(error)), lines, printed.getvalue())
    return Behaviour("finished", repr(module.__dict__.get("result")), (), printed.getvalue())


@contextlib.contextmanager
def fresh_module(name: str) -> Any:
    """A module that is imported for as long as the program runs."""
    module = types.ModuleType(name)
    sys.modules[name] = module
    try:
        yield module
    finally:
        del sys.modules[name]


def plain(source: str, **given: Any) -> Behaviour:
    """Run a source as it stands."""
    with fresh_module("program") as module:
        return behave(compile(source, PROGRAM, "exec", dont_inherit=True), module, given)


def rewritten(source: str, folder: Path, **given: Any) -> Observed:
    """Run a source rewritten, with every name of the program observed."""
    path = folder / f"{next(_NAMES)}.trace"
    journal = wire.Journal(path)
    recorder = Recorder(FakeBackend(), journal, inputs=True)
    instrumenter = Instrumenter(recorder, forms.make(recorder), frozenset(("program",)))
    with fresh_module("program") as module:
        code = instrumenter.compile("program", PROGRAM, source.encode())
        behaviour = behave(code, module, given)
    journal.close()
    return Observed(behaviour, list(wire.read(path)[1]))


def calls(observed: Observed) -> list[str]:
    """Documented names of the recorded calls, in order."""
    return [frame[4] for frame in observed.frames if frame[0] in ("call", "raise", "absent")]
