"""What an installed framework has: a program run in its interpreter; torch names in (Paddle), one JSON file out.

``python surface.py torch OUT`` writes every torch name with its kind and its parameters.
``python surface.py paddle OUT NAMES`` reads that file back, asks Paddle's torch proxy for each name while real torch is
hidden, and writes what it answered. Only the standard library is imported beside the framework that is asked.
"""

from __future__ import annotations

import importlib
import importlib.abc
import inspect
import json
import pkgutil
import re
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BOGUS = "migrate_lens_no_such_keyword"
PRIVATE_ROOTS = ("torch._dynamo", "torch._subclasses", "torch._inductor", "torch._functorch", "torch._higher_order_ops")
# Classes whose members are asked one by one: those that a scanner can know the type of.
HOLDERS = (
    "torch.Tensor torch.Size torch.device torch.dtype torch.Generator torch.cuda.Stream torch.cuda.Event torch.Stream "
    "torch.Event torch.nn.Module torch.nn.Parameter torch.distributed.ProcessGroup torch.distributed.Work "
    "torch.autograd.Function torch.autograd.function.FunctionCtx torch.library.Library torch.finfo torch.iinfo "
    "torch.library.CustomOpDef"
)
SIGNATURE = re.compile(r"\w+\(([^)]*(?:\([^)]*\)[^)]*)*)\)\s*->\s*([^\n]*)")
PARAMETER = re.compile(r"^\*{0,2}(\w+)")


def kind_of(value: object) -> str:
    """module, class, function, or value: the four things that a program can tell apart by using a name."""
    if isinstance(value, types.ModuleType):
        return "module"
    if isinstance(value, type):
        return "class"
    return "function" if callable(value) else "value"


def documented(value: object) -> tuple[list[str], str]:
    """Parameters and result as the docstring's signature lines say them: C functions have no other."""
    doc = getattr(value, "__doc__", None)
    text = doc[:1500] if isinstance(doc, str) else ""
    names: dict[str, None] = {}
    result = ""
    for match in SIGNATURE.finditer(text):
        result = result or match[2].strip()
        for part in re.sub(r"\([^)]*\)|\[[^\]]*\]", "", match[1]).split(","):
            found = PARAMETER.match(part.strip())
            if part.strip() == "*":
                names.setdefault("*")
            elif found:
                names.setdefault(found[1])
    return [name for name in names if name not in ("self", "args", "kwargs")], result


def declared(value: object) -> tuple[list[str], str] | None:
    """Parameters and result from ``inspect``; None where it has no answer or an open ``**kwargs``."""
    try:
        signature = inspect.signature(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    names: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            return None
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in names:
            names.append("*")
        if parameter.kind is not parameter.VAR_POSITIONAL and parameter.name != "self":
            names.append(parameter.name)
    result = signature.return_annotation
    return names, "" if result is signature.empty else getattr(result, "__name__", str(result))


def describe(value: object) -> list[Any]:
    """[kind, parameters or None, result] of one torch object."""
    kind = kind_of(value)
    if kind == "module" or (kind == "value" and not callable(value)):
        return [kind, None, ""]
    names, result = declared(value) or documented(value)
    return [kind, names or None, "" if kind == "class" else result[:40]]


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


def torch_names() -> dict[str, list[Any]]:
    """Every name of every loaded torch module, and the members of its public classes."""
    found: dict[str, list[Any]] = {}
    seen: dict[int, list[Any]] = {}
    for module_name in torch_modules():
        module = sys.modules[module_name]
        found[module_name] = ["module", None, ""]
        for name in list(vars(module)):
            value = vars(module)[name]
            if (name.startswith("__") and name != "__version__") or not from_torch(value):
                continue
            full = f"{module_name}.{name}"
            found[full] = seen.setdefault(id(value), describe(value))
            if isinstance(value, type) and full in HOLDERS.split():
                for member, raw in members(value):
                    function = raw.__func__ if isinstance(raw, classmethod | staticmethod) else raw
                    found[f"{full}.{member}"] = seen.setdefault(id(function), describe_member(function))
    return found


def describe_member(value: object) -> list[Any]:
    """[kind, parameters or None, result] of a class member; properties are values."""
    return describe(value) if callable(value) else ["value", None, ""]


class Hide(importlib.abc.MetaPathFinder):
    """Keeps real torch out of this process: a name that the proxy does not answer is then absent."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname == "torch" or fullname.startswith("torch."):
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


ANSWERS = (ImportError, AttributeError, RuntimeError, TypeError, ValueError, OSError, NotImplementedError)


class Proxy:
    """Paddle's torch proxy, asked the way a program asks it: import the module, then take the attribute."""

    def __init__(self, modules: set[str]) -> None:
        self.modules = modules
        self.cache: dict[str, object] = {}

    def get(self, name: str) -> object:
        """The object behind a dotted torch name, or ``Hide`` (never an answer of Paddle's) if there is none."""
        if name not in self.cache:
            self.cache[name] = self._import(name) if name in self.modules else self._attribute(name)
        return self.cache[name]

    def _import(self, name: str) -> object:
        try:
            return importlib.import_module(name)
        except ANSWERS:
            return self._attribute(name) if "." in name else Hide

    def _attribute(self, name: str) -> object:
        owner, _, last = name.rpartition(".")
        base = self.get(owner) if owner else Hide
        try:
            return Hide if base is Hide else getattr(base, last)
        except ANSWERS:
            return Hide


def rejected(value: Any, names: list[str]) -> tuple[list[str], list[str]]:
    """Keywords that a callable refuses, and those it would not tell about.

    The call carries a keyword that nothing accepts, so binding fails and the body never runs; Python and Paddle's own
    parsers name the first keyword that they do not know.
    """
    refused: list[str] = []
    unclear: list[str] = []
    for name in names:
        if name == "*":
            continue
        verdict = ask_keyword(value, name)
        if verdict is not None:
            (refused if verdict else unclear).append(name)
    return refused, unclear


def ask_keyword(value: Any, name: str) -> bool | None:
    """True: refused. None: accepted. False: no clear answer."""
    try:
        value(**{name: None, BOGUS: None})
    except TypeError as error:
        text = str(error)
        if BOGUS in text:
            return None
        return f"'{name}'" in text and "unexpected keyword" in text
    except (ValueError, RuntimeError, AttributeError, AssertionError, NotImplementedError, ImportError, OSError):
        return False
    return False


def is_fake(value: object) -> bool:
    """Whether Paddle itself marks the object as a stand-in without function."""
    for candidate in (value, getattr(value, "__init__", None)):
        code = getattr(candidate, "__code__", None)
        if isinstance(code, types.CodeType) and any("fake_interface" in name for name in code.co_names):
            return True
    return False


def constructor(cls: type) -> Any:
    """What a class is called with."""
    return inspect.getattr_static(cls, "__init__")


def safe_to_ask(value: Any) -> bool:
    """Whether binding is checked before anything else happens: no open ``**kwargs`` takes part."""
    target: Any = constructor(value) if isinstance(value, type) else value
    while getattr(target, "__wrapped__", None) is not None:
        target = target.__wrapped__
    code = getattr(target, "__code__", None)
    return not isinstance(code, types.CodeType) or not code.co_flags & inspect.CO_VARKEYWORDS


def answer(value: object, expected: list[Any]) -> list[Any]:
    """[kind, refused keywords, unclear keywords, fake, shadowed] of what Paddle has for one torch name."""
    kind = kind_of(value)
    names = [n for n in expected[1] or () if not n.startswith("_")]
    if kind not in ("function", "class") or expected[0] not in ("function", "class") or not safe_to_ask(value):
        return [kind, [], names, is_fake(value), False]
    return [kind, *rejected(value, names), is_fake(value), False]


def paddle_answers(names: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """What the proxy has for each torch name; absent names are absent."""
    import paddle

    sys.meta_path.insert(0, Hide())
    paddle.enable_compat()
    proxy = Proxy({name for name, row in names.items() if row[0] == "module"})
    found = {name: answer(value, row) for name, row in names.items() if (value := proxy.get(name)) is not Hide}
    for name, row in found.items():
        row[4] = row[0] == "function" and is_shadowed(name, proxy.get(name))
    for owner, instance in instances(paddle).items():
        for name in names:
            if name.startswith(f"{owner}.") and names[name][0] != "module":
                answer_member(found, name, instance)
    return found


def is_shadowed(name: str, value: object) -> bool:
    """Whether ``paddle.compat`` has a function of this name with torch's semantics and the proxy has another."""
    owner, _, last = name.replace("torch", "paddle.compat", 1).rpartition(".")
    module = sys.modules.get(owner)
    return module is not None and vars(module).get(last, value) is not value


def instances(paddle: Any) -> dict[str, object]:
    """What Paddle gives a program where torch gives an instance of a class: the two classes have other names."""
    tensor = paddle.ones([2, 2])
    return {
        "torch.Tensor": tensor,
        "torch.nn.Parameter": tensor,
        "torch.dtype": tensor.dtype,
        "torch.device": getattr(tensor, "device", tensor.place),
        "torch.Size": tensor.shape,
        "torch.nn.Module": paddle.nn.Linear(1, 1),
    }


def answer_member(found: dict[str, list[Any]], name: str, instance: object) -> None:
    """The member of an instance, where the class alone gave no answer or the wrong kind."""
    member = name.rpartition(".")[2]
    kind = kind_of_member(instance, member)
    if kind is None:
        found.pop(name, None)
    elif name in found:
        found[name][0] = kind if found[name][0] == "value" else found[name][0]
    else:
        found[name] = [kind, [], [], False, False]


def kind_of_member(instance: object, name: str) -> str | None:
    """A property may hold something that can be called, so an instance is asked; None if it has no such member."""
    try:
        return "function" if callable(getattr(instance, name)) else "value"
    except AttributeError:
        return None
    except ANSWERS:
        return "value"


def include_dirs(package: str) -> list[str]:
    """Where the compiler finds the framework's headers, as its own ``cpp_extension`` says."""
    module = importlib.import_module(f"{package}.utils.cpp_extension")
    if package == "torch":
        return [str(entry) for entry in module.include_paths()]
    root = Path(importlib.import_module("paddle").__file__ or "").parent / "include"
    compat = root / "paddle/phi/api/include/compat"
    return [str(root), str(compat), str(compat / "torch/csrc/api/include")]


def main(argv: list[str]) -> int:
    """Ask the framework named first and write the answer to the file named second."""
    warnings.simplefilter("ignore")
    framework, out = argv[0], Path(argv[1])
    if framework == "torch":
        names = torch_names()
        module: Any = sys.modules["torch"]
        identity = [module.__version__, getattr(module.version, "git_version", "") or ""]
    else:
        names = paddle_answers(json.loads(Path(argv[2]).read_text("utf-8"))["names"])
        module = sys.modules["paddle"]
        identity = [module.version.full_version, getattr(module.version, "commit", "") or ""]
    document = {"framework": framework, "identity": identity, "names": names, "include": include_dirs(framework)}
    out.write_text(json.dumps(document, separators=(",", ":")), "utf-8")
    return 0


if __name__ == "__main__":
    del sys.path[0]  # this folder: its modules must not be taken for the framework's
    sys.exit(main(sys.argv[1:]))
