"""What an installed torch has: every name with its kind, its parameters and its result.

Loaded by path in an interpreter that need not have migrate-lens installed (see ``worker.run.surface``).
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
import types
from collections.abc import Iterator
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
    rows |= {f"torch.nn.Module.{name}": ["value", None, ""] for name in vars(sys.modules["torch"].nn.Module())}
    return rows


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
