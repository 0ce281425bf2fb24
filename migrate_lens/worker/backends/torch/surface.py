"""What an installed torch has: every name with its kind, its parameters and its result.

Loaded by path in an interpreter that need not have migrate-lens installed (see ``worker.run.surface``).
"""

from __future__ import annotations

import dis
import functools
import importlib
import inspect
import pkgutil
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from migrate_lens.worker.run.surface import Row, kind_of

PRIVATE_ROOTS = ("torch._dynamo", "torch._subclasses", "torch._inductor", "torch._functorch", "torch._higher_order_ops")
# Classes whose members are asked one by one: those that a scanner can know the type of.
HOLDERS = frozenset((
    "torch.Tensor", "torch.Size", "torch.device", "torch.dtype", "torch.Generator", "torch.cuda.Stream",
    "torch.cuda.Event", "torch.Stream", "torch.Event", "torch.nn.Module", "torch.nn.Parameter",
    "torch.distributed.ProcessGroup", "torch.distributed.Work", "torch.autograd.Function",
    "torch.autograd.function.FunctionCtx", "torch.library.Library", "torch.finfo", "torch.iinfo",
    "torch.library.CustomOpDef",
))  # fmt: skip
CTX = "torch.autograd.function.FunctionCtx"
SIGNATURE = re.compile(r"\w+\(([^)]*(?:\([^)]*\)[^)]*)*)\)\s*->\s*([^\n]*)")
PARAMETER = re.compile(r"^\*{0,2}(\w+)")


def documented(value: object) -> tuple[list[str], str]:
    """Parameters and result as the docstring's signature lines say them: C functions have no other."""
    doc = getattr(value, "__doc__", None)
    text = doc[:1500] if isinstance(doc, str) else ""
    parameters: dict[str, None] = {}
    result = ""
    for match in SIGNATURE.finditer(text):
        result = result or match[2].strip()
        for part in re.sub(r"\([^)]*\)|\[[^\]]*\]", "", match[1]).split(","):
            parameter = PARAMETER.match(part.strip())
            if part.strip() == "*":
                parameters.setdefault("*")
            elif parameter:
                parameters.setdefault(parameter[1])
    return [name for name in parameters if name not in ("self", "args", "kwargs")], result


def declared(value: object) -> tuple[list[str], str] | None:
    """Parameters and result from ``inspect``; None where it has no answer or an open ``**kwargs``."""
    try:
        signature = inspect.signature(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    parameters: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            return None
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parameters:
            parameters.append("*")
        if parameter.kind is not parameter.VAR_POSITIONAL and parameter.name != "self":
            parameters.append(parameter.name)
    result = signature.return_annotation
    return parameters, "" if result is signature.empty else getattr(result, "__name__", str(result))


def describe(value: object) -> Row:
    """[kind, parameters or None, result] of one torch object."""
    kind = kind_of(value)
    if kind == "module" or (kind == "value" and not callable(value)):
        return [kind, None, ""]
    parameters, result = declared(value) or documented(value)
    return [kind, parameters or None, "" if kind == "class" else result[:40]]


def torch_modules() -> list[str]:
    """Import what torch documents, and what is private but used outside; the names of all loaded modules."""
    import torch

    for name in (*sorted(public_modules(list(torch.__path__), "torch.")), *PRIVATE_ROOTS):
        try:
            importlib.import_module(name)
        except (ImportError, AttributeError, RuntimeError, TypeError, ValueError, OSError, AssertionError):
            continue  # a module whose optional dependency is absent: it answers to nobody here
    return sorted(n for n, m in sys.modules.items() if (n == "torch" or n.startswith("torch.")) and m is not None)


def public_modules(path: list[str], prefix: str) -> Iterator[str]:
    """Dotted names below a package, found without importing anything, leaving private ones and programs out."""
    for info in pkgutil.iter_modules(path, prefix):
        last = info.name.rpartition(".")[2]
        if last.startswith("_") or last in ("testing", "launch", "benchmark", "bottleneck"):
            continue
        yield info.name
        if info.ispkg:
            yield from public_modules([f"{entry}/{last}" for entry in path], f"{info.name}.")


def from_torch(value: object) -> bool:
    """Whether a name found in a torch module is torch's own, and not something that it imports."""
    if isinstance(value, types.ModuleType):
        return value.__name__.partition(".")[0] == "torch"
    owner = getattr(value, "__module__", None)
    return owner is None or (isinstance(owner, str) and owner.partition(".")[0] in ("torch", "builtins"))


def members(cls: type) -> Iterator[tuple[str, object]]:
    """Names of a class that ``object`` has not, with their values where reading them is harmless."""
    for name in dir(cls):
        if name.startswith("__") or name in object.__dict__:
            continue
        yield name, inspect.getattr_static(cls, name, None)


def names(asked: dict[str, Row]) -> dict[str, Row]:
    """Every name of every loaded torch module, and the members of its public classes; nothing is asked for."""
    rows: dict[str, Row] = {}
    seen: dict[int, Row] = {}
    for module_name in torch_modules():
        module = sys.modules[module_name]
        rows[module_name] = ["module", None, ""]
        for name in list(vars(module)):
            value = vars(module)[name]
            if (name.startswith("__") and name != "__version__") or not from_torch(value):
                continue
            full = f"{module_name}.{name}"
            rows[full] = seen.setdefault(id(value), describe(value))
            if isinstance(value, type) and full in HOLDERS:
                for member, raw in members(value):
                    function = raw.__func__ if isinstance(raw, classmethod | staticmethod) else raw
                    rows[f"{full}.{member}"] = seen.setdefault(id(function), describe_member(function))
    torch: Any = sys.modules["torch"]
    rows |= {f"torch.nn.Module.{name}": ["value", None, ""] for name in vars(torch.nn.Module())}
    context = Context.of(torch)
    for name in dir(context):
        if not name.startswith("__"):
            rows.setdefault(f"{CTX}.{name}", describe_member(getattr(context, name, None)))
    return rows


class Context:
    """What a custom operation's forward is handed: its members are known on an instance alone."""

    seen: Any = None

    @classmethod
    def of(cls, torch: Any) -> Any:
        """The context of an operation that is run once."""

        def forward(ctx: Any, x: Any) -> Any:
            cls.seen = ctx
            return x.clone()

        function: Any = type("Asked", (torch.autograd.Function,), {"forward": staticmethod(forward)})
        function.apply(torch.ones(1))
        return cls.seen


def members_of(asked: dict[str, Row]) -> dict[str, list[str]]:
    """For every public class among some names what its instances have beside what every object has, sorted.

    Its own names and its bases', and what an ``__init__`` of torch's gives to an instance.
    """
    found: dict[str, list[str]] = {}
    known: dict[type, list[str]] = {}
    for name, row in asked.items():
        module, _, last = name.rpartition(".")
        wanted = row[0] == "class" and "._" not in name and module in sys.modules
        value = vars(sys.modules[module]).get(last) if wanted else None
        if isinstance(value, type):
            if value not in known:
                given = {attr for base in value.__mro__ for attr in given_by_init(base)}
                known[value] = sorted(given | {attr for attr in dir(value) if attr not in object.__dict__})
            found[name] = known[value]
    return found


@functools.cache
def given_by_init(cls: type) -> frozenset[str]:
    """The attributes that a class's own ``__init__`` sets."""
    code = getattr(vars(cls).get("__init__"), "__code__", None)
    if not isinstance(code, types.CodeType) or not cls.__module__.startswith("torch"):
        return frozenset()
    return frozenset(one.argval for one in dis.get_instructions(code) if one.opname == "STORE_ATTR")


def unread_modules() -> list[str]:
    """Modules that lie in torch's folder and were not imported: nobody can say what they hold."""
    root = Path(sys.modules["torch"].__file__ or "").parent
    files = (path.relative_to(root.parent).with_suffix("").parts for path in root.rglob("*.py"))
    names = {".".join(parts[:-1] if parts[-1] == "__init__" else parts) for parts in files}
    return sorted(name for name in names if name not in sys.modules)


def beside(asked: dict[str, Row], rows: dict[str, Row]) -> dict[str, Any]:
    """What is known beside the names: the members of classes, and modules that were not read."""
    return {"members": members_of(rows), "unread": unread_modules()}


def describe_member(value: object) -> Row:
    """[kind, parameters or None, result] of a class member; properties are values."""
    return describe(value) if callable(value) else ["value", None, ""]


def identity() -> list[str]:
    """Version and commit."""
    module: Any = sys.modules["torch"]
    return [module.__version__, getattr(module.version, "git_version", "") or ""]


def include_dirs() -> list[str]:
    """Where the compiler finds torch's headers, as its own ``cpp_extension`` says."""
    module = importlib.import_module("torch.utils.cpp_extension")
    return [str(entry) for entry in module.include_paths()]
