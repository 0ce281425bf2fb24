"""One Python file: bytes in, a ``Scan`` of every torch use out; nothing is imported or run."""

from __future__ import annotations

import ast
import re
import sys
from collections import deque
from typing import NamedTuple

from migrate_lens.audit.expressions import Expressions, Handler
from migrate_lens.audit.guards import guard_of, guard_of_try
from migrate_lens.audit.knowledge import CTX, CUSTOM_OP, TENSOR
from migrate_lens.audit.meaning import (
    LAYER,
    Around,
    ClassKind,
    Instance,
    Meaning,
    Member,
    NativeName,
    OwnClass,
    Several,
    TorchName,
    element,
)
from migrate_lens.audit.receivers import CallFacts, Class, Scope, last_line
from migrate_lens.audit.source import ignores, import_span, parse
from migrate_lens.model.uses import Certainty, Guard, Import, Scan

DEEPEST = 6_000  # Python frames: deep nesting is read, endless nesting is a reason to skip
NATIVE_MODULE = re.compile(r"(?:[\w.]+\.)?(?:_C|_ext|_cuda|_kernels|\w+_(?:cpp|cuda|ext|C))")
BACKWARD = "torch.autograd.Function.backward"
AUTOGRAD_METHODS = ("forward", "backward", "setup_context", "jvp", "vjp")
AUTOGRAD_BASES = ("torch.autograd.Function", "torch.autograd.function.Function")

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Waiting(NamedTuple):
    """A function body that is read later: where it stands, and under what."""

    node: Function
    owner: Class | None
    scopes: list[Scope]
    guard: Guard


class Reader(Expressions):
    """Handlers for statements; function bodies at module level wait until all module-level names are known."""

    def __init__(self, seeds: dict[str, str]) -> None:
        super().__init__(seeds)
        self.globals = self.scopes[0]
        self.imports: list[Import] = []
        self.waiting: deque[Waiting] = deque()

    def run(self, tree: ast.Module) -> None:
        """Module level first, then the bodies that it defines."""
        self.lazy = any(
            isinstance(node, ast.ImportFrom) and node.module == "__future__" and node.names[0].name == "annotations"
            for node in tree.body[:8]
        )
        self.block(tree.body)
        while self.waiting:
            node, self.owner, self.scopes, self.guard = self.waiting.popleft()
            self.at = "call"
            self.body(node)

    def block(self, body: list[ast.stmt]) -> None:
        """Statements in order."""
        handlers = self.handlers
        for node in body:
            handlers.get(node.__class__, Expressions.anything)(self, node)

    # -- imports ------------------------------------------------------------------------------------------------------

    def import_module(self, node: ast.Import) -> Meaning:
        """``import torch.nn as nn``."""
        for alias in node.names:
            top = alias.name.partition(".")[0]
            if top == "torch":
                self.note("import", alias.name, alias.lineno)
                self.scopes[-1][alias.asname or "torch"] = TorchName(alias.name if alias.asname else "torch")
            else:
                self.imports.append(Import(0, alias.name, (), self.at, alias.lineno))
                self.native_module(alias.name, alias.lineno)
                bound = alias.asname or top
                self.hide(bound, native_name(alias.name, bound))
        return None

    def import_from(self, node: ast.ImportFrom) -> Meaning:
        """``from torch import nn``; other modules are kept for the import graph and for re-exports."""
        module = node.module or ""
        if node.level or module.partition(".")[0] != "torch":
            self.import_other(node, module)
            return None
        for alias in node.names:
            if alias.name == "*":
                self.note("import", f"{module}.__all__", alias.lineno)
                continue
            self.note("import", f"{module}.{alias.name}", alias.lineno, value="from")
            self.scopes[-1][alias.asname or alias.name] = TorchName(f"{module}.{alias.name}")
        return None

    def import_other(self, node: ast.ImportFrom, module: str) -> None:
        """Names of a module that is not torch's."""
        names = tuple([f"{alias.name}={alias.asname}" if alias.asname else alias.name for alias in node.names])
        self.imports.append(Import(node.level, module, names, self.at, node.lineno))
        for alias in node.names:
            self.native_module(alias.name, alias.lineno)
            self.hide(alias.asname or alias.name, native_name(module, alias.name) or native_name(alias.name))

    def native_module(self, name: str, line: int) -> None:
        """A compiled module of the library's own, known by how such modules are called."""
        if NATIVE_MODULE.fullmatch(name):
            self.note("load", name, line, Certainty.LIKELY)

    def hide(self, name: str, meaning: Meaning) -> None:
        """A name bound to something else, unless a re-export already said what it is."""
        if not self.scopes[-1].get(name):
            self.scopes[-1][name] = meaning

    # -- definitions --------------------------------------------------------------------------------------------------

    def function(self, node: Function) -> Meaning:
        """Decorators, defaults and annotations run now; the body when it is called."""
        self.defined.add(node.name)
        before = len(self.uses)
        self.decorators(node.decorator_list)
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        custom = any(use.api == "torch.library.custom_op" for use in self.uses[before:])
        if self.owner is None or len(self.scopes) > 1:
            self.scopes[-1][node.name] = Instance(CUSTOM_OP, Certainty.CERTAIN) if custom else None
        scopes = [*self.scopes, self.parameters(node)]
        if self.at == "import":
            self.waiting.append(Waiting(node, self.owner, scopes, self.guard))
            return None
        outer = self.owner, self.scopes, self.guard, self.inside
        self.scopes = scopes
        self.body(node)
        self.owner, self.scopes, self.guard, self.inside = outer
        return None

    def decorators(self, decorators: list[ast.expr]) -> None:
        """Names of torch above a definition are noted as decorators."""
        if not decorators:
            return
        before = len(self.uses)
        for decorator in decorators:
            self.visit(decorator)
        lines = {decorator.lineno for decorator in decorators}
        for index in range(before, len(self.uses)):
            if self.uses[index].event in ("read", "call") and self.uses[index].line in lines:
                self.uses[index] = self.uses[index]._replace(event="decorator")

    def parameters(self, node: Function) -> Scope:
        """What a function's parameters stand for, from annotations and from torch's conventions."""
        args = node.args
        scope: Scope = {}
        for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs):
            scope[arg.arg] = self.annotation(arg.annotation)
        for rest in (args.vararg, args.kwarg):
            if rest is not None:
                self.annotation(rest.annotation)
                scope[rest.arg] = None
        self.annotation(node.returns)
        self.conventions(node, scope)
        return scope

    def conventions(self, node: Function, scope: Scope) -> None:
        """``self``, ``ctx``, and the inputs of ``forward``."""
        if "ctx" in scope and scope["ctx"] is None:
            scope["ctx"] = Instance(CTX, Certainty.GUESS)
        names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args)]
        if not names or self.owner is None:
            return
        if not is_static(node):
            scope[names[0]] = Around()
        elif self.owner.kind is ClassKind.FUNCTION:
            scope[names[0]] = Instance(CTX, Certainty.CERTAIN)
        if self.owner.kind is ClassKind.MODULE and node.name == "forward":
            for name in names[1 : len(names) - len(node.args.defaults)]:
                scope[name] = scope[name] or Instance(TENSOR, Certainty.GUESS)

    def body(self, node: Function) -> None:
        """A function's statements, in its own scope."""
        kind = self.owner.kind if self.owner else ClassKind.PLAIN
        if kind is ClassKind.FUNCTION and node.name in AUTOGRAD_METHODS:
            self.inside = f"autograd.{node.name}"
        elif not self.inside or (self.at == "call" and self.inside.startswith("autograd")):
            self.inside = "forward" if kind is ClassKind.MODULE and node.name == "forward" else ""
        at, self.at = self.at, "call"
        self.block(node.body)
        self.at = at

    def klass(self, node: ast.ClassDef) -> Meaning:
        """Bases say whether it is a layer or an autograd function; the class body runs now."""
        self.decorators(node.decorator_list)
        meaning: OwnClass | NativeName = OwnClass(ClassKind.PLAIN)
        for base in node.bases:
            meaning = self.base(base) or meaning
        for keyword in node.keywords:
            self.visit(keyword.value)
        kind = meaning.kind if isinstance(meaning, OwnClass) else ClassKind.PLAIN
        methods = {statement.name for statement in node.body if isinstance(statement, Function)}
        own = Class(kind, methods)
        outer, self.owner = self.owner, own
        scope: Scope = {}
        self.scopes.append(scope)
        at = self.at
        self.block(node.body)
        self.at = at
        self.scopes.pop()
        own.attrs.update({name: value for name, value in scope.items() if is_sure(value)})
        self.owner = outer
        self.scopes[-1][node.name] = meaning
        return None

    def base(self, node: ast.expr) -> OwnClass | NativeName | None:
        """What a base makes of a class; None where it says nothing of torch."""
        meaning = self.chain(node) if isinstance(node, ast.Name | ast.Attribute) else self.visit(node)
        if isinstance(meaning, NativeName):
            return meaning
        if isinstance(meaning, OwnClass):
            return meaning if meaning.kind else None
        if not isinstance(meaning, TorchName):
            return None
        self.note("base", meaning.name, last_line(node))
        if meaning.name in AUTOGRAD_BASES:
            return OwnClass(ClassKind.FUNCTION)
        return OwnClass(ClassKind.MODULE) if LAYER.fullmatch(meaning.name) else None

    # -- assignment ---------------------------------------------------------------------------------------------------

    def assign(self, node: ast.Assign) -> Meaning:
        """Bind each target to what the value stands for; an unpacked call says so."""
        unpack = "unpack" if isinstance(node.targets[0], ast.Tuple) else ""
        value = node.value
        meaning = self.call(value, unpack) if isinstance(value, ast.Call) else self.visit(value)
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.assign_name(target, value, meaning)
            else:
                self.bind(target, meaning)
        return None

    def assign_name(self, target: ast.Name, value: ast.expr, meaning: Meaning) -> None:
        """``torch = None`` beside a guarded import keeps the import; ``torch = try_import()`` is one."""
        scope = self.scopes[-1]
        if meaning is None:
            if isinstance(value, ast.Constant) and scope.get(target.id):
                return
            if target.id == "torch" and isinstance(value, ast.Call) and self.at == "import":
                meaning = TorchName("torch")
        scope[target.id] = meaning

    def assign_annotated(self, node: ast.AnnAssign) -> Meaning:
        """The annotation wins over the value."""
        annotated = self.annotation(node.annotation)
        value = self.visit(node.value) if node.value is not None else None
        self.bind(node.target, annotated or value)
        return None

    def assign_augmented(self, node: ast.AugAssign) -> Meaning:
        """``+=`` keeps the type of its target."""
        self.visit(node.value)
        if isinstance(node.target, ast.Attribute):
            self.settle(self.chain(node.target), node.target)
        elif not isinstance(node.target, ast.Name):
            self.visit(node.target)
        return None

    # -- control flow -------------------------------------------------------------------------------------------------

    def under(self, guard: Guard, body: list[ast.stmt]) -> None:
        """Statements that a condition makes optional."""
        outer, self.guard = self.guard, self.guard or guard
        self.block(body)
        self.guard = outer

    def branch(self, node: ast.If) -> Meaning:
        """Both branches of a guarding test are optional."""
        guard = guard_of(node.test)
        outer = self.guard
        if guard is Guard.VERSION:
            self.guard = outer or guard
        self.visit(node.test)
        self.guard = outer
        self.under(guard, node.body)
        self.under(Guard.NONE if guard is Guard.TYPE_CHECKING else guard, node.orelse)
        return None

    def attempt(self, node: ast.Try | ast.TryStar) -> Meaning:
        """What stands in a ``try`` that survives an ImportError is optional, and so is its alternative."""
        guard = guard_of_try(node)
        self.under(guard, node.body)
        for handler in node.handlers:
            if handler.type is not None:
                self.visit(handler.type)
            self.under(guard, handler.body)
        self.under(guard, node.orelse)
        self.block(node.finalbody)
        return None

    def loop(self, node: ast.For | ast.AsyncFor) -> Meaning:
        """Iterating a sequence of tensors gives tensors."""
        self.bind(node.target, element(self.visit(node.iter)))
        self.block(node.body)
        self.block(node.orelse)
        return None

    def context(self, node: ast.With | ast.AsyncWith) -> Meaning:
        """``with torch.cuda.stream(s) as t``."""
        for item in node.items:
            meaning = self.visit(item.context_expr)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, meaning)
        self.block(node.body)
        return None

    def expression(self, node: ast.Expr) -> Meaning:
        """A docstring says nothing."""
        if not isinstance(node.value, ast.Constant):
            self.visit(node.value)
        return None

    def give_back(self, node: ast.Return) -> Meaning:
        """What ``backward`` returns has an arity that Paddle checks."""
        value = node.value
        if value is None:
            return None
        if self.inside == "autograd.backward" and isinstance(value, ast.Tuple):
            nones = sum(isinstance(part, ast.Constant) and part.value is None for part in value.elts)
            arity = CallFacts(positional=len(value.elts))
            self.note("return", BACKWARD, node.lineno, value=f"none:{nones}", facts=arity)
        self.visit(value)
        return None


STATEMENTS: dict[type[ast.AST], Handler] = {
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


def native_name(module: str, name: str = "") -> NativeName | None:
    """What a name from the library's own compiled module stands for; None for other modules."""
    if not NATIVE_MODULE.fullmatch(module):
        return None
    last = module.rpartition(".")[2]
    return NativeName(f"{last}.{name}" if name and name != module else last)


def is_static(node: Function) -> bool:
    """Whether a method gets no instance."""
    return any(isinstance(decorator, ast.Name) and decorator.id == "staticmethod" for decorator in node.decorator_list)


def is_sure(meaning: Meaning) -> bool:
    """Whether what stands for an instance in a class body does so by more than convention."""
    return isinstance(meaning, Instance | Several | Member) and meaning.sure is not Certainty.GUESS


def exports(scope: Scope) -> tuple[tuple[str, str], ...]:
    """Module-level names that another module could import and that stand for torch names."""
    return tuple([(name, meaning.name) for name, meaning in scope.items() if isinstance(meaning, TorchName)])


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
    return Scan(
        uses=tuple(dict.fromkeys(reader.uses)),
        imports=tuple(reader.imports),
        exports=exports(reader.globals),
        ignores=ignores(source),
        torch=bool(reader.uses),
        span=import_span(tree),
    )
