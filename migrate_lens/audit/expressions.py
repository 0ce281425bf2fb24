"""Expressions of one Python file: a syntax node in, the torch name or class that it stands for out; uses are noted.

A type is a string: ``torch.nn`` is the torch name itself, ``=torch.Tensor`` an instance (``=`` certain, ``~`` by flow,
``?`` by convention), ``~[]torch.Tensor`` a sequence of them, ``~torch.Tensor>view`` a member not yet used, ``$`` the
instance of the class around, ``%module`` a class of this file, ``%native:`` a compiled module; else it is empty.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any, ClassVar

from migrate_lens.audit.guards import guard_of, is_number, literal_of
from migrate_lens.audit.knowledge import CUSTOM_OP, GROUP, MODULE, PAIRS, TENSOR, result_of
from migrate_lens.audit.receivers import MARKS, NATIVE, SURE, Receivers
from migrate_lens.model.uses import GUESS, LIKELY

STRING = re.compile(r"torch\.\w[\w.]*|\W{0,3}\w*(?:TORCH|Torch|CUDA|NVCC|nvcc|cudart)\w*(?:[=.-]\S*)?")
WIDEST = 10_000  # elements of a literal list beyond which it is data, not a program

Handler = Callable[[Any, Any], str]


class Expressions(Receivers):
    """Handlers by node class; the statements of the reader call them."""

    handlers: ClassVar[dict[type, Handler]] = {}

    # -- names and attributes -----------------------------------------------------------------------------------------

    def visit(self, node: Any) -> str:
        """The type of an expression; every use below it is noted once."""
        return self.handlers.get(node.__class__, Expressions.anything)(self, node)

    def anything(self, node: ast.AST) -> str:
        """A node without meaning of its own: look at what is below it."""
        for name in node._fields:
            child = getattr(node, name)
            if child.__class__ is list:
                for item in child:
                    if isinstance(item, ast.AST):
                        self.visit(item)
            elif isinstance(child, ast.AST):
                self.visit(child)
        return ""

    def nothing(self, node: ast.AST) -> str:
        """Operators and contexts."""
        return ""

    def name(self, node: ast.Name) -> str:
        """A name that is read."""
        found = self.lookup(node.id)
        if "." in found and found[0] not in MARKS:
            self.note("read", found, node.lineno)
        return found

    def attribute(self, node: ast.Attribute) -> str:
        """The longest attribute chain is one use."""
        found = self.settle(self.chain(node), node)
        if "." in found and found[0] not in MARKS:
            self.note("read", found, node.end_lineno or node.lineno)
        return found

    def chain(self, node: Any, then: str = "") -> str:
        """What a callee or an attribute's owner stands for, without noting the name itself."""
        if node.__class__ is ast.Name:
            return self.lookup(node.id)
        if node.__class__ is ast.Attribute:
            base = self.settle(self.chain(node.value, node.attr), node.value)
            return self.member(base, node.attr) or self.group_member(node)
        if node.__class__ is ast.Call:
            return self.call(node, then)
        return self.visit(node)

    # -- calls --------------------------------------------------------------------------------------------------------

    def call(self, node: ast.Call, then: str = "") -> str:
        """A call: of a torch name, of a member, of an instance, or of something else."""
        func = node.func
        target = self.chain(func)
        line = func.end_lineno or node.lineno
        first = ""
        for index, arg in enumerate(node.args):
            found = self.visit(arg)
            first = first if index else found
            self.hand_on(found, target, arg)
        for keyword in node.keywords:
            self.hand_on(self.visit(keyword.value), target, keyword.value)
        if not target:
            self.pair(node, line, then)
            return self.plain_call(node, func, first)
        if target.startswith(NATIVE):
            self.note("native_call", target[len(NATIVE) :].replace(":", "."), line, LIKELY)
        if target[0] in "%$":
            return f"~{MODULE}" if target == "%module" else ""
        return self.torch_call(node, target, line, then)

    def hand_on(self, found: str, target: str, arg: ast.expr) -> None:
        """A process group that goes to something that is not torch's."""
        if found[1:] == GROUP and found[0] in MARKS and not target.startswith("torch."):
            self.note("handed", GROUP, arg.lineno, SURE[found[0]], value=GROUP)

    def torch_call(self, node: ast.Call, target: str, line: int, then: str) -> str:
        """A call whose callee is torch's."""
        facts = self.arguments(node) | {"then": then}
        mark = target[0]
        if mark not in MARKS:
            self.note("call", target, line, **facts)
            self.loads(node, target, line)
            kept = result_of(target)
            return f"~{kept}" if kept else ""
        owner, _, attr = target[1:].partition(">")
        if attr:
            self.note("method", f"{owner}.{attr}", line, SURE[mark], value=owner, **facts)
            kept = result_of(f"{TENSOR}.{attr}") if owner == TENSOR else ""
            return f"{mark}{kept}" if kept else ""
        if owner == CUSTOM_OP:
            self.note("call", f"{CUSTOM_OP}.__call__", line, SURE[mark], **facts)
        return f"~{TENSOR}" if owner.startswith("torch.nn.") else ""

    def pair(self, node: ast.Call, line: int, then: str) -> None:
        """``x.max(dim=1)`` and ``x.sort().values`` are a tensor's, whatever x is: arrays say axis."""
        func = node.func
        if not isinstance(func, ast.Attribute) or func.attr not in PAIRS:
            return
        if then in ("values", "indices") or any(one.arg in ("dim", "keepdim") for one in node.keywords):
            facts = self.arguments(node) | {"then": then}
            self.note("method", f"{TENSOR}.{func.attr}", line, GUESS, value=TENSOR, **facts)

    def arguments(self, node: ast.Call) -> dict[str, Any]:
        """Keyword names with their lines, and how many positional arguments."""
        named = [keyword for keyword in node.keywords if keyword.arg]
        starred = any(arg.__class__ is ast.Starred for arg in node.args)
        return {
            "keywords": tuple(str(keyword.arg) for keyword in named),
            "lines": tuple(keyword.lineno for keyword in named),
            "positional": -1 if starred else len(node.args),
            "literal": "number" if any(map(is_number, node.args)) else "",
        }

    def loads(self, node: ast.Call, target: str, line: int) -> None:
        """A native library that a torch call brings in."""
        if target.endswith((".load_library", "cpp_extension.load", "cpp_extension.load_inline")):
            self.note("load", target, line)

    def plain_call(self, node: ast.Call, func: Any, first: str) -> str:
        """A call of something that is not torch's: a few builtins and importers say more."""
        name = func.id if func.__class__ is ast.Name else func.attr if func.__class__ is ast.Attribute else ""
        literal = literal_of(node.args[0]) if node.args else ""
        if "import" in name and re.fullmatch(r"torch(\.\w+)*", literal):
            self.note("import", literal, node.lineno, LIKELY)
            return literal
        if name in ("getattr", "hasattr", "setattr") and func.__class__ is ast.Name and len(node.args) > 1:
            return self.by_name(name, node, first)
        if name == "isinstance" and func.__class__ is ast.Name and len(node.args) == 2:
            self.promote_isinstance(node.args[1])
        elif name == "str" and first[:1] in MARKS and first[1:] in ("torch.dtype", "torch.device", "torch.Size"):
            self.note("str", first[1:], node.lineno, SURE[first[0]])
        elif name in ("CDLL", "PyDLL"):
            self.note("load", "ctypes.CDLL", node.lineno, LIKELY)
        elif name == "ProcessGroup" or name == "super":
            return ""
        return ""

    def by_name(self, name: str, node: ast.Call, owner: str) -> str:
        """``getattr``, ``hasattr`` and ``setattr`` with a literal name."""
        attr = literal_of(node.args[1])
        found = self.member(owner, attr) if attr and owner else ""
        if not found or found[0] in "$%?" or name == "hasattr":
            return ""
        if name == "setattr":
            self.note("patch", found.replace(">", "."), node.lineno)
            return ""
        guard, self.guard = self.guard, "hasattr" if len(node.args) > 2 else self.guard
        self.note("getattr", found.lstrip("=~").replace(">", "."), node.lineno)
        self.guard = guard
        return found if found[0] not in MARKS else ""

    def promote_isinstance(self, node: ast.expr) -> None:
        """The classes of an isinstance check were noted as reads: say what they are for."""
        lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for index in range(len(self.uses) - 1, max(-1, len(self.uses) - 12), -1):
            use = self.uses[index]
            if use.event == "read" and use.line in lines:
                self.uses[index] = use._replace(event="isinstance")

    # -- operators, containers, literals ------------------------------------------------------------------------------

    def subscript(self, node: ast.Subscript) -> str:
        """Indexing a tensor gives a tensor; indexing a sequence of them too."""
        found = self.settle(self.chain(node.value, "[]"), node.value)
        if "." in found and found[0] not in MARKS and node.value.__class__ in (ast.Name, ast.Attribute):
            self.note("read", found, node.value.end_lineno or node.lineno)
        self.visit(node.slice)
        if found[1:3] == "[]":
            return found[0] + found[3:]
        return found if found[1:] == TENSOR else ""

    def binary(self, node: ast.BinOp) -> str:
        """Arithmetic with a tensor gives a tensor."""
        left, right = self.visit(node.left), self.visit(node.right)
        for found in (left, right):
            if found[1:] == TENSOR:
                return found
        return ""

    def unary(self, node: ast.UnaryOp) -> str:
        """A sign keeps the type."""
        found = self.visit(node.operand)
        return found if found[1:] == TENSOR else ""

    def either(self, node: ast.IfExp) -> str:
        """A conditional expression has the type of whichever branch is known."""
        test = guard_of(node.test)
        self.visit(node.test)
        outer, self.guard = self.guard, self.guard or test
        left, right = self.visit(node.body), self.visit(node.orelse)
        self.guard = outer
        return left or right

    def named(self, node: ast.NamedExpr) -> str:
        """The walrus binds."""
        found = self.visit(node.value)
        self.scopes[-1][node.target.id] = found
        return found

    def constant(self, node: ast.Constant) -> str:
        """Only strings that speak of torch or its tool chain are of interest."""
        text = node.value
        if isinstance(text, str) and 4 < len(text) < 120 and STRING.fullmatch(text):
            self.note("string", "", node.lineno, value=text)
        return ""

    def sequence(self, node: ast.List | ast.Tuple | ast.Set) -> str:
        """A long literal is data and is not looked into."""
        if len(node.elts) < WIDEST:
            for element in node.elts:
                self.visit(element)
        return ""

    def comprehension(self, node: ast.AST) -> str:
        """Targets of a comprehension are its own."""
        self.scopes.append({})
        for generator in node.generators:  # type: ignore[attr-defined]
            found = self.visit(generator.iter)
            self.bind(generator.target, found[0] + found[3:] if found[1:3] == "[]" else "")
            for test in generator.ifs:
                self.visit(test)
        for part in ("elt", "key", "value"):
            if hasattr(node, part):
                self.visit(getattr(node, part))
        self.scopes.pop()
        return ""

    def function_literal(self, node: ast.Lambda) -> str:
        """A lambda's parameters hide outer names; its body runs later."""
        self.scopes.append({arg.arg: "" for arg in (*node.args.args, *node.args.kwonlyargs)})
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        self.visit(node.body)
        self.scopes.pop()
        return ""

    def bind(self, target: Any, found: str) -> None:
        """Give a name, an attribute of ``self``, or each part of a tuple its type."""
        if target.__class__ is ast.Name:
            self.scopes[-1][target.id] = found
        elif target.__class__ in (ast.Tuple, ast.List):
            part = found[0] + found[3:] if found[1:3] == "[]" else ""
            for element in target.elts:
                self.bind(element, part)
        elif target.__class__ is ast.Starred:
            self.bind(target.value, "")
        elif target.__class__ is ast.Attribute:
            self.bind_attribute(target, found)
        else:
            self.visit(target)

    def bind_attribute(self, target: ast.Attribute, found: str) -> None:
        """``self.x = ...`` teaches the class; ``torch.x = ...`` is a monkey patch."""
        base = self.chain(target.value)
        if base[:1] == "$" and self.owner is not None:
            if found or target.attr not in self.owner.attrs:
                self.owner.attrs[target.attr] = "" if found[:1] in "%$" else found
        elif base and base[0] not in "%$" and base[0] not in MARKS:
            self.note("patch", f"{base}.{target.attr}", target.end_lineno or target.lineno)
        else:
            self.settle(base, target.value)


Expressions.handlers = {
    ast.Name: Expressions.name,
    ast.Attribute: Expressions.attribute,
    ast.Call: Expressions.call,
    ast.Subscript: Expressions.subscript,
    ast.BinOp: Expressions.binary,
    ast.UnaryOp: Expressions.unary,
    ast.IfExp: Expressions.either,
    ast.NamedExpr: Expressions.named,
    ast.Constant: Expressions.constant,
    ast.List: Expressions.sequence,
    ast.Tuple: Expressions.sequence,
    ast.Set: Expressions.sequence,
    ast.Lambda: Expressions.function_literal,
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp), Expressions.comprehension),
    **dict.fromkeys((ast.Load, ast.Store, ast.Del, ast.Pass, ast.Break, ast.Continue), Expressions.nothing),
}
