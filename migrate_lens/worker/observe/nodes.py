"""The places in a program that are observed: source in, a rewritten tree and its table of nodes out.

Both runtimes run the same source, so a node (module, line, column, kind) names the same place in both, and the n-th
visit of it is the same visit: that is how calls align. Rewriting the program's own expressions, rather than wrapping
two different frameworks, sees names that are missing, attributes and operators alike, and touches neither framework.
"""

from __future__ import annotations

import ast
import builtins
import sys
from dataclasses import dataclass
from typing import NamedTuple

from migrate_lens.protocol import places
from migrate_lens.worker.observe import syntax
from migrate_lens.worker.observe.constants import Constant, constant
from migrate_lens.worker.observe.constants import name as named

# Names of the helpers that rewritten code calls.
CALL, METHOD, ATTRIBUTE, OPERATOR = "call", "method", "attribute", "operator"
BUILTIN = "builtin"  # a call of a builtin, whose arguments are known before it is called
SETITEM, INPLACE, INPLACE_ITEM, INPLACE_ATTRIBUTE = "setitem", "inplace", "inplace item", "inplace attribute"
DECORATE, FROM, IMPORT = "decorate", "from", "import"
# Helpers that only keep the program's order of evaluation, and its own names, out of the way of the others.
SLICE, OLD_ITEM, OLD_ATTRIBUTE = "slice", "old item", "old attribute"
SET_ATTRIBUTE = "set attribute"
INHERITED = "inherited"
NAMED = "named"  # what is called with arguments that are unpacked
HAND = "hand"  # what stands for a function that is handed to something that calls it

# Builtins whose answer about a framework's object may differ; the others are left as they stand.
OBSERVERS = frozenset((
    "isinstance", "issubclass", "hasattr", "getattr", "len", "int", "float", "bool", "complex", "str", "repr", "format",
    "hash", "list", "tuple", "sum", "max", "min", "abs", "round", "any", "all", "sorted", "divmod", "pow", "map",
))  # fmt: skip
BUILTINS = frozenset(dir(builtins)) - OBSERVERS
# Modules of the standard library that pass on what they are given; calls into the others never touch a tensor, and
# some of them look at the calling frame, so those calls are not rewritten.
PASSED_ON = frozenset(["math", "copy", "pickle", "operator", "importlib", "functools", "itertools"])
FRAMEWORK = "torch"
BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.LShift: "lshift", ast.RShift: "rshift", ast.BitAnd: "and_",
    ast.BitOr: "or_", ast.BitXor: "xor", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq",
    ast.NotEq: "ne", ast.USub: "neg", ast.Invert: "invert", ast.UAdd: "pos",
}  # fmt: skip


class Node(NamedTuple):
    """One observed place: where it stands, what it is, the torch name it has by its imports, and its handlers.

    ``caught`` holds the names of the exceptions that the nearest enclosing ``try`` catches; ``text`` is its source.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    kind: str
    name: str
    caught: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A module ready to compile, and its nodes in the order of their numbers."""

    tree: ast.Module
    nodes: tuple[Node, ...]
    imports_framework: bool


def rewrite(source: str, filename: str, base: int) -> Rewritten:
    """Rewrite one module.

    Args:
        source: its text.
        filename: for messages.
        base: the number of its first node.

    Raises:
        SyntaxError: the source does not parse.
    """
    tree = ast.parse(source, filename)
    rewriter = _Rewriter(tree, source, base)
    tree = ast.fix_missing_locations(rewriter.visit(tree))
    imports_framework = any(syntax.top(name) == FRAMEWORK for name in rewriter.aliases.values())
    return Rewritten(tree, tuple(rewriter.nodes), imports_framework)


class _Rewriter(ast.NodeTransformer):
    """Rewrites a tree in place.

    Args:
        tree: of the whole module.
        source: its text.
        base: the number of its first node.
    """

    def __init__(self, tree: ast.Module, source: str, base: int) -> None:
        self.aliases = syntax.aliases(tree)
        self._lines = source.split("\n")
        self._bound = syntax.bound(tree)
        self._given: frozenset[str] = frozenset()  # by the class around
        self._taken: set[tuple[int, int, int, int, str]] = set()
        self._base = base
        self._strings = syntax.annotations_are_strings(tree)
        self._caught: tuple[str, ...] = ()
        self._annotation = False
        self.nodes: list[Node] = []

    # -- helpers -----------------------------------------------------------------------------------------------

    def _number(self, node: ast.expr | ast.stmt, kind: str, name: str = "") -> ast.Constant:
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        text = self._text(node.lineno, node.col_offset, end_line, end_column)
        # Python 3.11 gives equal expressions in one f-string the same position; each is a place of its own.
        while (node.lineno, node.col_offset, end_line, end_column, kind) in self._taken:
            end_column += 1
        self._taken.add((node.lineno, node.col_offset, end_line, end_column, kind))
        self.nodes.append(Node(node.lineno, node.col_offset, end_line, end_column, kind, name, self._caught, text))
        return ast.Constant(self._base + len(self.nodes) - 1)

    def _text(self, line: int, column: int, end_line: int, end_column: int) -> str:
        first = self._lines[line - 1].encode()
        if line == end_line:
            return first[column:end_column].decode(errors="replace")[:160]
        return first[column:].decode(errors="replace").strip()[:160] + " ..."

    def _helper(self, name: str, old: ast.expr | ast.stmt, *args: ast.expr) -> ast.Call:
        return ast.copy_location(ast.Call(constant(name), list(args), []), old)

    def _origin(self, root: str) -> str:
        return self.aliases.get(root, "")

    def _framework_chain(self, node: ast.expr) -> tuple[ast.Name, tuple[str, ...], str] | None:
        chain = syntax.chain(node)
        if chain is None or not chain[1] or any(syntax.mangled(a) for a in chain[1]):
            return None
        origin = self._origin(chain[0].id)
        if syntax.top(origin) != FRAMEWORK:
            return None
        return chain[0], chain[1], ".".join((origin, *chain[1]))

    def _unobserved(self, root: str) -> bool:
        """Whether calls on this name never concern a framework."""
        if root in self._bound:
            return False
        origin = syntax.top(self._origin(root))
        if origin:
            return origin in sys.stdlib_module_names and origin not in PASSED_ON
        return root in BUILTINS

    # -- expressions -------------------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> ast.expr:
        func = node.func
        if isinstance(func, Constant):
            return node  # one of ours, whose arguments were visited
        chain = syntax.chain(func)
        if chain is not None:
            root, attributes = chain
            if root.id not in self._bound:
                self._hand(node, ".".join((self._origin(root.id) or root.id, *attributes)))
            if self._unobserved(root.id) and not (root.id == "super" and attributes):
                return self._with_arguments_visited(node)
        if isinstance(func, ast.Attribute) and not syntax.mangled(func.attr):
            return self._method(node, func)
        return self._plain_call(node)

    def _plain_call(self, node: ast.Call) -> ast.expr:
        """A call of anything but an attribute."""
        func = node.func
        name = (self._origin(func.id) or func.id) if isinstance(func, ast.Name) else ""
        number = self._number(node, places.CALL, name)
        if name in OBSERVERS and name not in self._bound and not _is_unpacking(node):
            ready = self._helper(BUILTIN, node, number, self.visit(func))
            self._with_arguments_visited(node)
            ready.args += node.args
            ready.keywords = node.keywords
            return ast.copy_location(ast.Call(ready, [], []), node)
        return self._looked_up(node, self._helper(CALL, func, number, self.visit(func)))

    def _looked_up(self, node: ast.Call, callee: ast.Call) -> ast.Call:
        """A call whose callee is looked up by a helper."""
        node.func = self._helper(NAMED, callee, callee) if _is_unpacking(node) else callee
        return self._with_arguments_visited(node)

    def _with_arguments_visited(self, node: ast.Call) -> ast.Call:
        node.args = [self.visit(argument) for argument in node.args]
        node.keywords = [self.visit(keyword) for keyword in node.keywords]
        return node

    def _hand(self, node: ast.Call, name: str) -> None:
        """See that the calls of a function that is handed on are observed too."""
        func = syntax.handed(node, name)
        if func is None:
            return
        number = self._number(func, places.CALL, self._named(func))
        seen = self._helper(HAND, func, number, self.visit(func))
        node.args = [seen if argument is func else argument for argument in node.args]
        for keyword in node.keywords:
            if keyword.value is func:
                keyword.value = seen

    def _named(self, node: ast.expr) -> str:
        """The torch name that an expression has by the file's imports."""
        whole = self._framework_chain(node)
        if whole is not None:
            _, _, name = whole
            return name
        return self._origin(node.id) if isinstance(node, ast.Name) else ""

    def _method(self, node: ast.Call, func: ast.Attribute) -> ast.expr:
        whole = self._framework_chain(func)
        name, attribute = (whole[2], ".".join(whole[1])) if whole else (func.attr, func.attr)
        number = self._number(node, places.METHOD, name)
        base = whole[0] if whole else self._base_of(func)
        callee = syntax.at_name(self._helper(METHOD, func, number, base, named(attribute)), func)
        return syntax.at_name(self._looked_up(node, callee), func)

    def _base_of(self, func: ast.Attribute) -> ast.expr:
        base = func.value
        if isinstance(base, ast.Call) and isinstance(base.func, ast.Name) and base.func.id == "super":
            return base
        return self.visit(base)  # type: ignore[no-any-return]

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if not isinstance(node.ctx, ast.Load) or syntax.mangled(node.attr):
            self.generic_visit(node)
            return node
        whole = self._framework_chain(node)
        if whole:
            root, attributes, name = whole
            number = self._number(node, places.ATTRIBUTE, name)
            read = self._helper(ATTRIBUTE, node, number, root, named(".".join(attributes)))
            return syntax.at_name(read, node)
        base = node.value
        name = base.id if isinstance(base, ast.Name) else ""
        if not self._annotation and name == "self" and node.attr not in self._given:
            number = self._number(node, places.ATTRIBUTE, node.attr)
            return syntax.at_name(self._helper(INHERITED, node, number, base, named(node.attr)), node)
        if self._annotation or name in ("self", "cls") or (name and self._unobserved(name)):
            self.generic_visit(node)
            return node
        number = self._number(node, places.ATTRIBUTE, node.attr)
        read = self._helper(ATTRIBUTE, node, number, self._base_of(node), named(node.attr))
        return syntax.at_name(read, node)

    def _operator(self, node: ast.expr, op: ast.AST, *operands: ast.expr) -> ast.expr:
        name = BINARY[type(op)]
        number = self._number(node, places.OPERATOR, name)
        return self._helper(OPERATOR, node, number, ast.Constant(name), *(self.visit(o) for o in operands))

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        if (self._annotation and not isinstance(node.op, ast.BitOr)) or _is_plain(node):
            self.generic_visit(node)
            return node
        return self._operator(node, node.op, node.left, node.right)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) != 1 or type(node.ops[0]) not in BINARY:
            self.generic_visit(node)
            return node
        return self._operator(node, node.ops[0], node.left, node.comparators[0])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if type(node.op) not in BINARY or isinstance(node.operand, ast.Constant):
            self.generic_visit(node)
            return node
        return self._operator(node, node.op, node.operand)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if not isinstance(node.ctx, ast.Load) or self._annotation:
            self.generic_visit(node)
            return node
        number = self._number(node, places.OPERATOR, "getitem")
        base = self.visit(node.value)
        return self._helper(OPERATOR, node, number, ast.Constant("getitem"), base, self._index(node.slice))

    def _index(self, index: ast.expr) -> ast.expr:
        """An index as an expression: slices become calls."""
        if isinstance(index, ast.Slice):
            parts = [self.visit(p) if p else ast.Constant(None) for p in (index.lower, index.upper, index.step)]
            return self._helper(SLICE, index, *parts)
        if isinstance(index, ast.Tuple) and any(isinstance(e, ast.Slice) for e in index.elts):
            return ast.copy_location(ast.Tuple([self._index(e) for e in index.elts], ast.Load()), index)
        return self.visit(index)  # type: ignore[no-any-return]

    # -- statements --------------------------------------------------------------------------------------------

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        target, name = node.target, BINARY[type(node.op)]
        if isinstance(target, ast.Attribute) and syntax.mangled(target.attr):
            self.generic_visit(node)
            return node
        name = "i" + name.rstrip("_")
        number, value = self._number(node, places.INPLACE, name), self.visit(node.value)
        if isinstance(target, ast.Name):
            load = ast.copy_location(ast.Name(target.id, ast.Load()), target)
            call = self._helper(INPLACE, node, number, ast.Constant(name), load, value)
            return ast.copy_location(ast.Assign([target], call), node)
        if isinstance(target, ast.Subscript):
            place, helper, read = self._index(target.slice), INPLACE_ITEM, OLD_ITEM
        else:
            place, helper, read = named(target.attr), INPLACE_ATTRIBUTE, OLD_ATTRIBUTE
        # The old value is read before the new operand is evaluated, as Python does.
        old = ast.Starred(self._helper(read, target, self.visit(target.value), place), ast.Load())
        call = self._helper(helper, node, number, ast.Constant(name), old, value)
        return ast.copy_location(ast.Expr(call), node)

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        target = node.targets[0]
        if len(node.targets) == 1 and isinstance(target, ast.Attribute) and not syntax.mangled(target.attr):
            number, value = self._number(node, places.SET_ATTRIBUTE, target.attr), self.visit(node.value)
            base, name = self.visit(target.value), named(target.attr)
            written = syntax.at_name(self._helper(SET_ATTRIBUTE, target, number, value, base, name), target)
            return ast.copy_location(ast.Expr(written), node)
        if len(node.targets) != 1 or not isinstance(target, ast.Subscript):
            self.generic_visit(node)
            return node
        number, value = self._number(node, places.SET_ITEM, "setitem"), self.visit(node.value)
        call = self._helper(SETITEM, target, number, value, self.visit(target.value), self._index(target.slice))
        return ast.copy_location(ast.Expr(call), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is not None:
            node.value = self.visit(node.value)
        if isinstance(node.target, (ast.Attribute, ast.Subscript)):
            node.target = self.visit(node.target)
        node.annotation = self._visit_annotation(node.annotation)
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.stmt]:
        if node.level or syntax.top(node.module or "") != FRAMEWORK:
            return [node]
        assert node.module
        number = self._number(node, places.FROM_IMPORT, node.module)
        names = ast.Tuple([ast.Constant(a.name) for a in node.names], ast.Load())
        statements: list[ast.stmt] = []
        for index, alias in enumerate(node.names):
            call = self._helper(FROM, node, number, ast.Constant(node.module), names, ast.Constant(index))
            target = ast.Name(alias.asname or alias.name, ast.Store())
            statement = ast.Expr(call) if alias.name == "*" else ast.Assign([target], call)
            statements.append(ast.copy_location(statement, node))
        return statements

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        return [self._import(node, alias) for alias in node.names]

    def _import(self, node: ast.Import, alias: ast.alias) -> ast.stmt:
        if syntax.top(alias.name) != FRAMEWORK:
            return ast.copy_location(ast.Import([alias]), node)
        number = self._number(node, places.IMPORT, alias.name)
        call = self._helper(IMPORT, node, number, ast.Constant(alias.name), ast.Constant(bool(alias.asname)))
        target = ast.Name(alias.asname or syntax.top(alias.name), ast.Store())
        return ast.copy_location(ast.Assign([target], call), node)

    def visit_Try(self, node: ast.Try) -> ast.stmt:
        outer = self._caught
        self._caught = outer + tuple(n for h in node.handlers for n in syntax.handled(h))
        node.body = self._block(node.body)
        self._caught = outer
        node.handlers = [self.visit(h) for h in node.handlers]
        node.orelse, node.finalbody = self._block(node.orelse), self._block(node.finalbody)
        return node

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        statements: list[ast.stmt] = []
        for statement in body:
            new = self.visit(statement)
            statements.extend(new if isinstance(new, list) else [new])
        return statements

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:
        return self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.stmt:
        node.decorator_list = [self._decorator(d) for d in node.decorator_list]
        self.visit(node.args)
        if node.returns is not None:
            node.returns = self._visit_annotation(node.returns)
        outer, self._caught = self._caught, ()
        node.body = self._block(node.body)
        self._caught = outer
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        if node.annotation is not None:
            node.annotation = self._visit_annotation(node.annotation)
        return node

    def _visit_annotation(self, annotation: ast.expr) -> ast.expr:
        if self._strings:
            return annotation
        outer, self._annotation = self._annotation, True
        try:
            return self.visit(annotation)  # type: ignore[no-any-return]
        finally:
            self._annotation = outer

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        node.decorator_list = [self._decorator(d) for d in node.decorator_list]
        node.bases = [self.visit(b) for b in node.bases]
        node.keywords = [self.visit(k) for k in node.keywords]
        outer, self._given = self._given, syntax.given(node)
        node.body = self._block(node.body)
        self._given = outer
        return node

    def _decorator(self, node: ast.expr) -> ast.expr:
        chain = syntax.chain(node.func if isinstance(node, ast.Call) else node)
        if chain is None or self._unobserved(chain[0].id) or chain[1][-1:] in (("setter",), ("getter",), ("deleter",)):
            return self.visit(node)  # type: ignore[no-any-return]
        origin = self._origin(chain[0].id)
        number = self._number(node, places.DECORATOR, ".".join((origin or chain[0].id, *chain[1])))
        return self._helper(DECORATE, node, number, self.visit(node))

    def visit_match_case(self, node: ast.match_case) -> ast.match_case:
        node.guard = self.visit(node.guard) if node.guard else None
        node.body = self._block(node.body)
        return node


def _is_unpacking(node: ast.Call) -> bool:
    """Whether a call has arguments that are unpacked."""
    return any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords)


def _is_plain(node: ast.BinOp) -> bool:
    """Whether an operator's left side is text, or both sides are constants."""
    left = node.left
    if isinstance(left, ast.JoinedStr):
        return True
    if not isinstance(left, ast.Constant):
        return False
    return isinstance(left.value, (str, bytes)) or isinstance(node.right, ast.Constant)
