"""A block of code in one's own process in, the trace of what it made loaded functions do out.

The functions of loaded modules that import torch get the code that a fresh import would have given them in a worker;
at the end they get their own back. Nothing else of the process is touched.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import sys
import tempfile
import threading
import types
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from migrate_lens.model.errors import UsageError
from migrate_lens.model.report import Level, Runtime
from migrate_lens.model.target import TARGET
from migrate_lens.model.trace import Trace
from migrate_lens.protocol.journal import Journal
from migrate_lens.runs.bench import Steering
from migrate_lens.runs.limits import Limit
from migrate_lens.runs.store import load
from migrate_lens.worker import backends
from migrate_lens.worker.backends.framework import Backend
from migrate_lens.worker.observe import forms
from migrate_lens.worker.observe.failures import failure_of
from migrate_lens.worker.observe.import_hook import Instrumenter
from migrate_lens.worker.observe.recorder import Recorder

_BODY = Limit(
    "body-not-observed",
    "the block itself calls torch, and those calls are not recorded",
    "put them into a function, and call that in the block",
)
_FRAMEWORKS = ("torch", TARGET.package)


@dataclass
class Recording:
    """What a block did; complete when the block has ended.

    Attributes:
        trace: the trace, None until the block has ended.
        limits: what it does not hold.
    """

    limits: list[Limit] = field(default_factory=list)
    trace: Trace | None = None


_open = threading.Lock()


@contextlib.contextmanager
def recording(output: Path | None, level: Level, caller: types.FrameType) -> Iterator[Recording]:
    """Record while a block runs; see ``migrate_lens.api.record``."""
    backend, version = _backend()
    backend.whole = Steering(level).whole
    if not _open.acquire(blocking=False):
        raise UsageError("a block of this process is being recorded already", "record one block at a time")
    try:
        with tempfile.TemporaryDirectory(prefix="migrate-lens-") as folder:
            file = output or Path(folder) / "block.trace"
            journal = Journal(file)
            about = {**version, "level": str(level), "probe": "block", "spec": caller.f_code.co_filename}
            journal.write(("about", about))
            made = Recording([_BODY] if _calls_torch(caller) else [])
            swapped = _Swapped(journal, backend)
            try:
                swapped.swap()
                yield made
                journal.write(("outcome", "finished", None, False))
            except BaseException as error:
                journal.write(("outcome", "raised", failure_of(error), []))
                raise
            finally:
                swapped.restore()
                journal.write(("users", swapped.users, swapped.refused))
                journal.mute()
                journal.close()
                made.trace = load(file)
    finally:
        _open.release()


def _backend() -> tuple[Backend, dict[str, str]]:
    """The side of the seam for the framework that answers ``import torch`` in this process."""
    torch, target = sys.modules.get("torch"), sys.modules.get(TARGET.package)
    if torch is not None and not hasattr(torch, "_original_module"):
        return backends.load("torch").make_backend(), _about(Runtime.TORCH, torch)
    if target is None:
        said = f"nothing to record: neither torch nor {TARGET.package} is loaded"
        raise UsageError(said, "import torch before the block")
    return backends.load(TARGET.name).make_backend(), _about(Runtime.TARGET, target)


def _about(runtime: Runtime, framework: types.ModuleType) -> dict[str, str]:
    version = str(vars(framework)["__version__"])
    return {"runtime": str(runtime), "framework": str(runtime), "version": version}


class _Swapped:
    """Loaded functions with rewritten code, until they are restored."""

    def __init__(self, journal: Journal, backend: Backend) -> None:
        recorder = Recorder(backend, journal, inputs=True)
        self._helpers: dict[str, object] = {**forms.make(recorder)}
        self._instrumenter = Instrumenter(recorder, self._helpers, frozenset())
        self._old: list[tuple[types.FunctionType, types.CodeType]] = []
        self._modules: list[types.ModuleType] = []
        self._rewritten: set[int] = set()

    def swap(self) -> None:
        """Give the functions of all loaded modules that import torch rewritten code."""
        functions = [value for value in gc.get_objects() if type(value) is types.FunctionType]
        for module in list(sys.modules.values()):
            self._module(module, functions)

    def _module(self, module: types.ModuleType, functions: list[types.FunctionType]) -> None:
        path = getattr(module, "__file__", None)
        if type(module) is not types.ModuleType or not path or not path.endswith(".py"):
            return
        try:
            source = Path(path).read_bytes()
            if not self._instrumenter.wanted(module.__name__, source):
                return
            code = self._instrumenter.compile(module.__name__, path, source)
        except (OSError, SyntaxError, RecursionError, UnicodeError) as error:
            self._instrumenter.refused.append((module.__name__, f"{type(error).__name__}: {error}"))
            return
        pairs = _matching(compile(source, path, "exec", dont_inherit=True), code)
        self._rewritten.update(id(new) for _, new in pairs)
        self._modules.append(module)
        module.__dict__.update(self._helpers)
        for function in functions:
            if function.__globals__ is module.__dict__:
                self._rewrite(function, pairs)

    def _rewrite(self, function: types.FunctionType, pairs: list[tuple[types.CodeType, types.CodeType]]) -> None:
        """Give one function its rewritten code, if there is one that fits."""
        own = function.__code__
        new = next((new for old, new in pairs if old == own), None)
        if new is None or new.co_freevars != own.co_freevars:
            return
        self._old.append((function, own))
        function.__code__ = new

    @property
    def users(self) -> list[str]:
        """Modules that import torch."""
        return list(self._instrumenter.users)

    @property
    def refused(self) -> list[tuple[str, str]]:
        """Modules that could not be observed, and why."""
        return list(self._instrumenter.refused)

    def restore(self) -> None:
        """Give every function its own code back.

        What the block made and left behind (inner functions, generators, hooks) keeps rewritten code, which goes on
        working and records nothing: its module keeps the helpers.
        """
        for function, code in self._old:
            function.__code__ = code
        left = {id(space) for space in self._left_behind()}
        for module in self._modules:
            if id(module.__dict__) not in left:
                for name in self._helpers:
                    module.__dict__.pop(name, None)

    def _left_behind(self) -> Iterator[dict[str, object]]:
        """The names of each function or generator that still has rewritten code."""
        for value in gc.get_objects():
            if type(value) is types.FunctionType and id(value.__code__) in self._rewritten:
                yield value.__globals__
            elif type(value) is types.GeneratorType and id(value.gi_code) in self._rewritten and value.gi_frame:
                yield value.gi_frame.f_globals


def _matching(old: types.CodeType, new: types.CodeType) -> list[tuple[types.CodeType, types.CodeType]]:
    """The code of each function before and after rewriting; two on one line are told apart by their order.

    Where their number differs nothing is said of them, and they stay as they are.
    """
    before, after = _by_mark(old), _by_mark(new)
    same = (mark for mark in before if len(before[mark]) == len(after.get(mark, ())))
    return [pair for mark in same for pair in zip(before[mark], after[mark], strict=True)]


def _by_mark(code: types.CodeType) -> dict[tuple[str, int], list[types.CodeType]]:
    codes: dict[tuple[str, int], list[types.CodeType]] = defaultdict(list)
    for mark, inner in _codes(code):
        codes[mark].append(inner)
    return codes


def _codes(code: types.CodeType) -> Iterator[tuple[tuple[str, int], types.CodeType]]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield (constant.co_qualname, constant.co_firstlineno), constant
            yield from _codes(constant)


def _calls_torch(caller: types.FrameType) -> bool:
    """Whether the block that a frame is running calls torch itself, or computes with its objects."""
    try:
        tree = ast.parse(Path(caller.f_code.co_filename).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return False
    space: dict[str, object] = {**caller.f_globals, **caller.f_locals}
    statements = [statement for block in _blocks(tree, caller.f_lineno) for statement in block.body]
    parts = (part for statement in statements for part in ast.walk(statement))
    return any(_is_framework(_value(used, space)) for part in parts for used in _used(part))


def _blocks(tree: ast.Module, line: int) -> Iterator[ast.With]:
    """The ``with`` statements that begin at a line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.With) and node.lineno <= line <= node.body[0].lineno:
            yield node


def _used(part: ast.AST) -> list[ast.expr]:
    """What an expression calls or computes with."""
    if isinstance(part, ast.Call):
        return [part.func]
    if isinstance(part, ast.BinOp):
        return [part.left, part.right]
    if isinstance(part, ast.Subscript):
        return [part.value]
    return [part.operand] if isinstance(part, ast.UnaryOp) else []


def _value(node: ast.expr, space: dict[str, object]) -> object:
    """What a dotted name stands for, as far as modules go: ``x`` for the method ``x.sum``; None for anything else."""
    if isinstance(node, ast.Name):
        return space.get(node.id)
    if not isinstance(node, ast.Attribute):
        return None
    owner = _value(node.value, space)
    if isinstance(owner, types.ModuleType) and type(owner) is types.ModuleType and not _is_framework(owner):
        return vars(owner).get(node.attr)
    return owner


def _is_framework(value: object) -> bool:
    name = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return isinstance(name, str) and name.partition(".")[0] in _FRAMEWORKS
