"""One Python file: bytes in, a ``Scan`` of every torch use out; nothing is imported or run."""

from __future__ import annotations

import ast
import re
import sys
from typing import Any

from migrate_lens.audit.annotations import Annotations
from migrate_lens.audit.expressions import Expressions, Handler
from migrate_lens.audit.guards import guard_of, guard_of_try
from migrate_lens.audit.knowledge import CTX, CUSTOM_OP, TENSOR
from migrate_lens.audit.receivers import LAYER, NATIVE, Class
from migrate_lens.audit.source import exports, ignores, import_span, parse
from migrate_lens.model.uses import LIKELY, Scan

DEEPEST = 6_000  # Python frames: deep nesting is read, endless nesting is a reason to skip
NATIVE_MODULE = re.compile(r"(?:[\w.]+\.)?(?:_C|_ext|_cuda|_kernels|\w+_(?:cpp|cuda|ext|C))")
STATIC = frozenset(("staticmethod",))


class Reader(Annotations):
    """Handlers for statements; function bodies at module level wait until all module-level names are known."""

    def __init__(self, seeds: dict[str, str]) -> None:
        super().__init__(seeds)
        self.globals = self.scopes[0]
        self.imports: list[tuple[int, str, tuple[str, ...], str]] = []
        self.waiting: list[tuple[Any, Class | None, list[dict[str, str]], str]] = []

    def run(self, tree: ast.Module) -> None:
        """Module level first, then the bodies that it defines."""
        self.lazy = any(
            isinstance(node, ast.ImportFrom) and node.module == "__future__" and node.names[0].name == "annotations"
            for node in tree.body[:8]
        )
        self.block(tree.body)
        while self.waiting:
            node, self.owner, self.scopes, self.guard = self.waiting.pop(0)
            self.at = "call"
            self.body(node)

    def block(self, body: list[ast.stmt]) -> None:
        """Statements in order."""
        handlers = self.handlers
        for node in body:
            handlers.get(node.__class__, Expressions.anything)(self, node)

    # -- imports ------------------------------------------------------------------------------------------------------

    def import_module(self, node: ast.Import) -> str:
        """``import torch.nn as nn``."""
        for alias in node.names:
            top = alias.name.partition(".")[0]
            if top == "torch":
                self.note("import", alias.name, alias.lineno)
                self.scopes[-1][alias.asname or "torch"] = alias.name if alias.asname else "torch"
            else:
                self.imports.append((0, alias.name, (), self.at))
                self.native_module(alias.name, alias.lineno)
                self.hide(alias.asname or top, native_type(alias.name, alias.asname or top))
        return ""

    def import_from(self, node: ast.ImportFrom) -> str:
        """``from torch import nn``; other modules are kept for the import graph and for re-exports."""
        module = node.module or ""
        if node.level or module.partition(".")[0] != "torch":
            names = tuple(f"{one.name}={one.asname}" if one.asname else one.name for one in node.names)
            self.imports.append((node.level, module, names, self.at))
            for alias in node.names:
                self.native_module(alias.name, alias.lineno)
                self.hide(alias.asname or alias.name, native_type(module, alias.name) or native_type(alias.name))
            return ""
        for alias in node.names:
            if alias.name == "*":
                self.note("import", f"{module}.__all__", alias.lineno)
                continue
            self.note("import", f"{module}.{alias.name}", alias.lineno, value="from")
            self.scopes[-1][alias.asname or alias.name] = f"{module}.{alias.name}"
        return ""

    def native_module(self, name: str, line: int) -> None:
        """A compiled module of the library's own, known by how such modules are called."""
        if NATIVE_MODULE.fullmatch(name):
            self.note("load", name, line, LIKELY)

    def hide(self, name: str, found: str = "") -> None:
        """A name bound to something else, unless a re-export already said what it is."""
        if not self.scopes[-1].get(name):
            self.scopes[-1][name] = found

    # -- definitions --------------------------------------------------------------------------------------------------

    def function(self, node: Any) -> str:
        """Decorators, defaults and annotations run now; the body when it is called."""
        self.defined.add(node.name)
        before = len(self.uses)
        decorators = [self.visit(decorator) for decorator in node.decorator_list]
        self.mark_decorators(before, node.decorator_list)
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        custom = any(use.api == "torch.library.custom_op" for use in self.uses[before:])
        if self.owner is None or len(self.scopes) > 1:
            self.scopes[-1][node.name] = f"={CUSTOM_OP}" if custom else ""
        del decorators
        scope = self.parameters(node)
        entry = (node, self.owner, [*self.scopes, scope], self.guard)
        if self.at == "import":
            self.waiting.append(entry)
        else:
            kept = self.owner, self.scopes, self.guard, self.inside
            self.scopes = entry[2]
            self.body(node)
            self.owner, self.scopes, self.guard, self.inside = kept
        return ""

    def mark_decorators(self, before: int, decorators: list[ast.expr]) -> None:
        """Names of torch above a definition are noted as decorators."""
        lines = {decorator.lineno for decorator in decorators}
        for index in range(before, len(self.uses)):
            if self.uses[index].event in ("read", "call") and self.uses[index].line in lines:
                self.uses[index] = self.uses[index]._replace(event="decorator")

    def parameters(self, node: Any) -> dict[str, str]:
        """The types of a function's parameters, from annotations and from torch's conventions."""
        args = node.args
        scope: dict[str, str] = {}
        for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs):
            found = self.annotation(arg.annotation)
            scope[arg.arg] = found if "%" not in found else ""
        for arg in filter(None, (args.vararg, args.kwarg)):
            self.annotation(arg.annotation)
            scope[arg.arg] = ""
        self.annotation(node.returns)
        self.conventions(node, scope)
        return scope

    def conventions(self, node: Any, scope: dict[str, str]) -> None:
        """``self``, ``ctx``, and the inputs of ``forward``."""
        names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args)]
        if "ctx" in scope and not scope["ctx"]:
            scope["ctx"] = f"?{CTX}"
        if not names or self.owner is None:
            return
        static = any(isinstance(one, ast.Name) and one.id in STATIC for one in node.decorator_list)
        if self.owner.kind == "function" and static:
            scope[names[0]] = f"={CTX}"
        elif not static:
            scope[names[0]] = "$"
        if self.owner.kind == "module" and node.name == "forward":
            plain = names[1 : len(names) - len(node.args.defaults)]
            scope.update({name: f"?{TENSOR}" for name in plain if not scope[name]})

    def body(self, node: Any) -> None:
        """A function's statements, in its own scope."""
        kind = self.owner.kind if self.owner else ""
        if kind == "function" and node.name in ("forward", "backward", "setup_context", "jvp", "vjp"):
            self.inside = f"autograd.{node.name}"
        elif not self.inside or (self.at == "call" and self.waiting is not None and self.inside.startswith("autograd")):
            self.inside = "forward" if kind == "module" and node.name == "forward" else ""
        at, self.at = self.at, "call"
        self.block(node.body)
        self.at = at

    def klass(self, node: ast.ClassDef) -> str:
        """Bases say whether it is a layer or an autograd function; the class body runs now."""
        before = len(self.uses)
        for decorator in node.decorator_list:
            self.visit(decorator)
        self.mark_decorators(before, node.decorator_list)
        kind = ""
        for base in node.bases:
            kind = self.base(base) or kind
        for keyword in node.keywords:
            self.visit(keyword.value)
        outer, self.owner = self.owner, Class(kind)
        self.owner.methods = {one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
        scope: dict[str, str] = {}
        self.scopes.append(scope)
        at = self.at
        self.block(node.body)
        self.at = at
        self.scopes.pop()
        self.owner.attrs.update({name: found for name, found in scope.items() if found[:1] in "=~" and found})
        self.owner = outer
        self.scopes[-1][node.name] = f"%{kind}"
        return ""

    def base(self, node: ast.expr) -> str:
        """The kind that a base gives: module, function, or nothing known."""
        found = self.chain(node) if isinstance(node, ast.Name | ast.Attribute) else self.visit(node)
        if not found or found[0] in "$=~?":
            return ""
        if found[0] == "%":
            return found[1:]
        self.note("base", found, node.end_lineno or node.lineno)
        if found in ("torch.autograd.Function", "torch.autograd.function.Function"):
            return "function"
        return "module" if LAYER.fullmatch(found) else ""

    # -- assignment ---------------------------------------------------------------------------------------------------

    def assign(self, node: ast.Assign) -> str:
        """Bind each target to the value's type; an unpacked call says so."""
        unpack = "unpack" if isinstance(node.targets[0], ast.Tuple) else ""
        value = node.value
        found = self.call(value, unpack) if value.__class__ is ast.Call else self.visit(value)
        for target in node.targets:
            if target.__class__ is ast.Name:
                self.assign_name(target, value, found)
            else:
                self.bind(target, found)
        return ""

    def assign_name(self, target: ast.Name, value: ast.expr, found: str) -> None:
        """``torch = None`` beside a guarded import keeps the import; ``torch = try_import()`` is one."""
        known = self.scopes[-1].get(target.id, "")
        if not found and known and isinstance(value, ast.Constant):
            return
        if not found and target.id == "torch" and isinstance(value, ast.Call) and self.at == "import":
            found = "torch"
        self.scopes[-1][target.id] = found

    def assign_annotated(self, node: ast.AnnAssign) -> str:
        """The annotation wins over the value."""
        found = self.annotation(node.annotation)
        value = self.visit(node.value) if node.value is not None else ""
        self.bind(node.target, found or value)
        return ""

    def assign_augmented(self, node: ast.AugAssign) -> str:
        """``+=`` keeps the type of its target."""
        self.visit(node.value)
        if isinstance(node.target, ast.Attribute):
            self.settle(self.chain(node.target), node.target)
        elif not isinstance(node.target, ast.Name):
            self.visit(node.target)
        return ""

    # -- control flow -------------------------------------------------------------------------------------------------

    def under(self, guard: str, body: list[ast.stmt]) -> None:
        """Statements that a condition makes optional."""
        outer, self.guard = self.guard, self.guard or guard
        self.block(body)
        self.guard = outer

    def branch(self, node: ast.If) -> str:
        """Both branches of a guarding test are optional."""
        guard = guard_of(node.test)
        outer, self.guard = self.guard, self.guard or ("version" if guard == "version" else "")
        self.visit(node.test)
        self.guard = outer
        self.under(guard, node.body)
        self.under(guard if guard != "type_checking" else "", node.orelse)
        return ""

    def attempt(self, node: ast.Try) -> str:
        """What stands in a ``try`` that survives an ImportError is optional, and so is its alternative."""
        guard = guard_of_try(node)
        self.under(guard, node.body)
        for handler in node.handlers:
            if handler.type is not None:
                self.visit(handler.type)
            self.under(guard, handler.body)
        self.under(guard, node.orelse)
        self.block(node.finalbody)
        return ""

    def loop(self, node: Any) -> str:
        """Iterating a sequence of tensors gives tensors."""
        found = self.visit(node.iter)
        self.bind(node.target, found[0] + found[3:] if found[1:3] == "[]" else "")
        self.block(node.body)
        self.block(node.orelse)
        return ""

    def context(self, node: Any) -> str:
        """``with torch.cuda.stream(s) as t``."""
        for item in node.items:
            found = self.visit(item.context_expr)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, found)
        self.block(node.body)
        return ""

    def expression(self, node: ast.Expr) -> str:
        """A docstring says nothing."""
        if node.value.__class__ is not ast.Constant:
            self.visit(node.value)
        return ""

    def give_back(self, node: ast.Return) -> str:
        """What ``backward`` returns has an arity that Paddle checks."""
        value = node.value
        if value is None:
            return ""
        if self.inside == "autograd.backward" and isinstance(value, ast.Tuple):
            nones = sum(isinstance(part, ast.Constant) and part.value is None for part in value.elts)
            self.note(
                "return",
                "torch.autograd.Function.backward",
                node.lineno,
                positional=len(value.elts),
                value=f"none:{nones}",
            )
        self.visit(value)
        return ""


Handlers = dict[type, Handler]
STATEMENTS: Handlers = {
    ast.Import: Reader.import_module,
    ast.ImportFrom: Reader.import_from,
    ast.FunctionDef: Reader.function,
    ast.AsyncFunctionDef: Reader.function,
    ast.ClassDef: Reader.klass,
    ast.Assign: Reader.assign,
    ast.AnnAssign: Reader.assign_annotated,
    ast.AugAssign: Reader.assign_augmented,
    ast.If: Reader.branch,
    ast.Try: Reader.attempt,
    ast.TryStar: Reader.attempt,
    ast.For: Reader.loop,
    ast.AsyncFor: Reader.loop,
    ast.With: Reader.context,
    ast.AsyncWith: Reader.context,
    ast.Expr: Reader.expression,
    ast.Return: Reader.give_back,
}
Reader.handlers = Expressions.handlers | STATEMENTS


def native_type(module: str, name: str = "") -> str:
    """What a name from the library's own compiled module stands for, or empty."""
    if not NATIVE_MODULE.fullmatch(module):
        return ""
    return f"{NATIVE}{module.rpartition('.')[2]}" + (f":{name}" if name and name != module else "")


def scan_python(source: bytes, path: str, seeds: dict[str, str] | None = None) -> Scan:
    """Every torch use in one file; ``seeds`` are names that its imports take from a re-export of torch.

    A file that never says torch is read no further, unless seeds say otherwise: its imports are found by their text.
    """
    tree = parse(source, path)
    if isinstance(tree, str):
        return Scan(reason=tree, torch=b"torch" in source)
    reader = Reader(seeds or {})
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, DEEPEST))
    try:
        reader.run(tree)
    except RecursionError:
        return Scan(reason="nested too deeply to read", torch=True)
    finally:
        sys.setrecursionlimit(limit)
    uses, imports = dict.fromkeys(reader.uses), dict.fromkeys(reader.imports)
    return Scan(
        tuple(uses), tuple(imports), exports(reader.globals), ignores(source), "", bool(uses), import_span(tree)
    )
