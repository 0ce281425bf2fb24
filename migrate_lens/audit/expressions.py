"""Expressions of one Python file: a syntax node in, what it stands for out; torch uses below it are noted."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import ClassVar

from migrate_lens.audit.guards import guard_of, is_number, literal_of
from migrate_lens.audit.knowledge import CUSTOM_OP, GROUP, MODULE, PAIRS, SAME, TENSOR, result_of
from migrate_lens.audit.meaning import (
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
    instance,
    tensor,
)
from migrate_lens.audit.receivers import CallFacts, Receivers, last_line
from migrate_lens.model.uses import LAZY, Certainty, Guard

STRING = re.compile(r"torch\.\w[\w.]*|\W{0,3}\w*(?:TORCH|Torch|CUDA|NVCC|nvcc|cudart)\w*(?:[=.-]\S*)?")
DIMENSION = re.compile(r"(?:^|_)(?:dims?|axis|axes|d|i)(?:$|_|\d)")
TORCH_MODULE = re.compile(r"torch(\.\w+)*")
WIDEST = 10_000  # elements of a literal list beyond which it is data, not a program
LONGEST_ANNOTATION = 200  # letters of a string that may be an annotation
CHECKED = 12  # how many of the last uses an isinstance check may have brought
# Classes whose spelling differs between the frameworks.
SPELLED = ("torch.dtype", "torch.device", "torch.Size")
NATIVE_LOADERS = (".load_library", "cpp_extension.load", "cpp_extension.load_inline")
SEQUENCES = ("list", "sequence", "tuple", "iterable")

# Where a count is consumed, so that nothing can tell a number from a tensor that holds one.
TEST, ARGUMENT = "test", "argument"
COUNTS = ("numel", "nelement")
NUMBERS = ("range", "int", "float", "str", "print", "bool", "len", "abs")
SHAPES = {"tuple", "list"}

Handler = Callable[..., Meaning]
Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


class Expressions(Receivers):
    """Handlers by node class; the statements of the reader call them."""

    handlers: ClassVar[dict[type[ast.AST], Handler]] = {}

    # -- names and attributes -----------------------------------------------------------------------------------------

    def visit(self, node: ast.AST) -> Meaning:
        """What an expression stands for; every use below it is noted once."""
        return self.handlers.get(node.__class__, Expressions.anything)(self, node)

    def anything(self, node: ast.AST) -> Meaning:
        """A node without meaning of its own: look at what is below it."""
        for name in node._fields:
            child = getattr(node, name)
            if child.__class__ is list:
                for item in child:
                    if isinstance(item, ast.AST):
                        self.visit(item)
            elif isinstance(child, ast.AST):
                self.visit(child)
        return None

    def nothing(self, node: ast.AST) -> Meaning:
        """Operators and contexts."""
        return None

    def name(self, node: ast.Name) -> Meaning:
        """A name that is read."""
        meaning = self.lookup(node.id)
        self.note_read(meaning, node.lineno)
        return meaning

    def attribute(self, node: ast.Attribute) -> Meaning:
        """The longest attribute chain is one use."""
        meaning = self.settle(self.chain(node), node)
        self.note_read(meaning, last_line(node))
        return meaning

    def note_read(self, meaning: Meaning, line: int) -> None:
        """A torch name that is read; ``torch`` alone is no use."""
        if isinstance(meaning, TorchName) and "." in meaning.name:
            self.note("read", meaning.name, line)

    def chain(self, node: ast.expr, then: str = "") -> Meaning:
        """What a callee or an attribute's owner stands for, without noting the name itself."""
        if isinstance(node, ast.Name):
            return self.lookup(node.id)
        if isinstance(node, ast.Attribute):
            base = self.settle(self.chain(node.value, node.attr), node.value)
            return self.member(base, node.attr) or self.group_member(node)
        if isinstance(node, ast.Call):
            return self.call(node, then)
        return self.visit(node)

    # -- calls --------------------------------------------------------------------------------------------------------

    def call(self, node: ast.Call, then: str = "") -> Meaning:
        """A call: of a torch name, of a member, of an instance, or of something else."""
        target = self.chain(node.func)
        line = node.func.end_lineno or node.lineno
        first = self.given(node, target)
        match target:
            case None:
                self.pair(node, line, then)
                return self.plain_call(node, first)
            case TorchName():
                return self.torch_call(node, target, line, then)
            case Member():
                return self.method_call(node, target, line, then)
            case Instance():
                return self.instance_call(node, target, line, then)
            case OwnClass():
                return Instance(MODULE, Certainty.LIKELY) if target.kind is ClassKind.MODULE else None
            case NativeName():
                self.note("native_call", target.path, line, Certainty.LIKELY)
                return None
            case Around() | Several():
                return None

    def given(self, node: ast.Call, target: Meaning) -> Meaning:
        """Look at the arguments of a call; what the first one stands for."""
        first: Meaning = None
        outer, self.place = self.place, ARGUMENT if takes_any_number(node, target) else ""
        for index, arg in enumerate(node.args):
            meaning = self.visit(arg)
            self.hand_on(meaning, target, arg)
            if index == 0:
                first = meaning
        for keyword in node.keywords:
            self.hand_on(self.visit(keyword.value), target, keyword.value)
        self.place = outer
        return first

    def hand_on(self, given: Meaning, target: Meaning, arg: ast.expr) -> None:
        """A process group that goes to something that is not torch's."""
        if not isinstance(given, Instance) or given.of != GROUP:
            return
        if not (isinstance(target, TorchName) and target.is_member):
            self.note("handed", GROUP, arg.lineno, given.sure, GROUP)

    def torch_call(self, node: ast.Call, target: TorchName, line: int, then: str) -> Meaning:
        """A call of a torch name."""
        self.note("call", target.name, line, facts=call_facts(node, then))
        if target.name.endswith(NATIVE_LOADERS):
            self.note("load", target.name, line)
        return instance(result_of(target.name), Certainty.LIKELY)

    def method_call(self, node: ast.Call, target: Member, line: int, then: str) -> Meaning:
        """A call of a member of an instance; of a count it is of interest where it goes."""
        then = then or (self.place if target.name in COUNTS else "")
        self.note("method", target.api, line, target.sure, target.owner, call_facts(node, then))
        return instance(result_of(target.api), target.sure) if target.owner == TENSOR else None

    def instance_call(self, node: ast.Call, target: Instance, line: int, then: str) -> Meaning:
        """A call of an instance: a layer gives a tensor."""
        if target.of == CUSTOM_OP:
            self.note("call", f"{CUSTOM_OP}.__call__", line, target.sure, facts=call_facts(node, then))
        return Instance(TENSOR, Certainty.LIKELY) if target.of.startswith("torch.nn.") else None

    def pair(self, node: ast.Call, line: int, then: str) -> None:
        """``x.max(dim=1)`` and ``x.sort().values`` are a tensor's, whatever x is: arrays say axis."""
        func = node.func
        if not isinstance(func, ast.Attribute) or func.attr not in PAIRS:
            return
        if then in ("values", "indices") or any(keyword.arg in ("dim", "keepdim") for keyword in node.keywords):
            self.note("method", f"{TENSOR}.{func.attr}", line, Certainty.GUESS, TENSOR, call_facts(node, then))

    def plain_call(self, node: ast.Call, first: Meaning) -> Meaning:
        """A call of something that is not torch's: a few builtins and importers say more."""
        func = node.func
        if isinstance(func, ast.Name):
            name = func.id
        elif isinstance(func, ast.Attribute):
            name = func.attr
        else:
            return None
        if "import" in name and node.args:
            literal = literal_of(node.args[0])
            if TORCH_MODULE.fullmatch(literal):
                self.note("import", literal, node.lineno, Certainty.LIKELY)
                return TorchName(literal)
        if name in ("CDLL", "PyDLL"):
            self.note("load", "ctypes.CDLL", node.lineno, Certainty.LIKELY)
        elif name == "str" and isinstance(first, Instance) and first.of in SPELLED:
            self.note("str", first.of, node.lineno, first.sure)
        elif isinstance(func, ast.Name) and len(node.args) > 1:
            return self.builtin(name, node, first)
        return None

    def builtin(self, name: str, node: ast.Call, first: Meaning) -> Meaning:
        """Builtins that name an attribute or a class."""
        if name in ("getattr", "hasattr", "setattr"):
            return self.by_name(name, node, first)
        if name == "isinstance" and len(node.args) == 2:
            self.promote_isinstance(node.args[1])
            asked = {below.id for below in ast.walk(node.args[1]) if isinstance(below, ast.Name)} & SHAPES
            if isinstance(first, Instance) and first.of == "torch.Size" and len(asked) == 1:
                self.note("isinstance", first.of, node.lineno, first.sure, asked.pop())
        return None

    def by_name(self, name: str, node: ast.Call, owner: Meaning) -> Meaning:
        """``getattr``, ``hasattr`` and ``setattr`` with a literal name."""
        attr = literal_of(node.args[1])
        member = self.member(owner, attr) if attr and owner else None
        if name == "setattr":
            if isinstance(member, TorchName):
                self.note("patch", member.name, node.lineno)
            return None
        api = sure_name(member)
        if not api or name == "hasattr":
            return None
        guard = self.guard
        if len(node.args) > 2:
            self.guard = Guard.HASATTR
        self.note("getattr", api, node.lineno, value=member.owner if isinstance(member, Member) else "")
        self.guard = guard
        return member if isinstance(member, TorchName) else None

    def promote_isinstance(self, node: ast.expr) -> None:
        """The classes of an isinstance check were noted as reads: say what they are for."""
        lines = range(node.lineno, last_line(node) + 1)
        for index in range(len(self.uses) - 1, max(-1, len(self.uses) - CHECKED), -1):
            use = self.uses[index]
            if use.event == "read" and use.line in lines:
                self.uses[index] = use._replace(event="isinstance")

    # -- operators, containers, literals ------------------------------------------------------------------------------

    def subscript(self, node: ast.Subscript) -> Meaning:
        """Indexing a tensor gives a tensor; indexing a sequence of them too."""
        meaning = self.settle(self.chain(node.value, "[]"), node.value)
        if isinstance(node.value, ast.Name | ast.Attribute):
            self.note_read(meaning, last_line(node.value))
        self.visit_at(ARGUMENT, node.slice)
        return element(meaning) or tensor(meaning)

    def visit_at(self, place: str, node: ast.expr) -> Meaning:
        """What an expression stands for that is consumed where it stands: as a test, or as an argument."""
        outer, self.place = self.place, place
        meaning = self.visit(node)
        self.place = outer
        return meaning

    def tested(self, node: ast.While | ast.Assert) -> Meaning:
        """A statement with a test."""
        self.visit_at(TEST, node.test)
        for part in (*getattr(node, "body", ()), *getattr(node, "orelse", ())):
            self.visit(part)
        if isinstance(node, ast.Assert) and node.msg is not None:
            self.visit(node.msg)
        return None

    def binary(self, node: ast.BinOp) -> Meaning:
        """Arithmetic with a tensor gives a tensor."""
        alone = self.place if self.place == TEST else ""  # what is computed with a count is no count
        left = self.visit_at(alone, node.left)
        right = self.visit_at(ARGUMENT if tensor(left) else alone, node.right)
        self.joined(node, left, right)
        return tensor(left) or tensor(right)

    def joined(self, node: ast.BinOp, *operands: Meaning) -> None:
        """``X | Y``: torch's names in a union of types that Python makes when the line runs."""
        if not isinstance(node.op, ast.BitOr):
            return
        for operand in operands:
            if isinstance(operand, TorchName):
                self.note("union", operand.name, last_line(node))

    def unary(self, node: ast.UnaryOp) -> Meaning:
        """A sign keeps the type."""
        return tensor(self.visit(node.operand))

    def either(self, node: ast.IfExp) -> Meaning:
        """A conditional expression has the type of whichever branch is known."""
        test = guard_of(node.test)
        self.visit_at(TEST, node.test)
        outer, self.guard = self.guard, self.guard or test
        left, right = self.visit(node.body), self.visit(node.orelse)
        self.guard = outer
        return left or right

    def named(self, node: ast.NamedExpr) -> Meaning:
        """The walrus binds."""
        meaning = self.visit(node.value)
        self.scopes[-1][node.target.id] = meaning
        return meaning

    def constant(self, node: ast.Constant) -> Meaning:
        """Only strings that speak of torch or its tool chain are of interest."""
        text = node.value
        if isinstance(text, str) and 4 < len(text) < 120 and STRING.fullmatch(text):
            self.note("string", "", node.lineno, value=text)
        return None

    def sequence(self, node: ast.List | ast.Tuple | ast.Set) -> Meaning:
        """A long literal is data and is not looked into."""
        if len(node.elts) < WIDEST:
            for item in node.elts:
                self.visit(item)
        return None

    def comprehension(self, node: Comprehension) -> Meaning:
        """Targets of a comprehension are its own."""
        self.scopes.append({})
        for generator in node.generators:
            self.bind(generator.target, element(self.visit(generator.iter)))
            for test in generator.ifs:
                self.visit(test)
        if isinstance(node, ast.DictComp):
            self.visit(node.key)
            self.visit(node.value)
        else:
            self.visit(node.elt)
        self.scopes.pop()
        return None

    def function_literal(self, node: ast.Lambda) -> Meaning:
        """A lambda's parameters hide outer names; its body runs later."""
        self.scopes.append({arg.arg: None for arg in (*node.args.args, *node.args.kwonlyargs)})
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        self.visit(node.body)
        self.scopes.pop()
        return None

    # -- binding ------------------------------------------------------------------------------------------------------

    def bind(self, target: ast.expr, meaning: Meaning) -> None:
        """Give a name, an attribute of ``self``, or each part of a tuple its meaning."""
        if isinstance(target, ast.Name):
            self.scopes[-1][target.id] = meaning
        elif isinstance(target, ast.Tuple | ast.List):
            part = element(meaning)
            for item in target.elts:
                self.bind(item, part)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, None)
        elif isinstance(target, ast.Attribute):
            self.bind_attribute(target, meaning)
        else:
            self.visit(target)

    def bind_attribute(self, target: ast.Attribute, meaning: Meaning) -> None:
        """``self.x = ...`` teaches the class; ``torch.x = ...`` is a monkey patch."""
        base = self.chain(target.value)
        if isinstance(base, Around) and self.owner is not None:
            if meaning or target.attr not in self.owner.attrs:
                own = isinstance(meaning, OwnClass | Around | NativeName)
                self.owner.attrs[target.attr] = None if own else meaning
        elif isinstance(base, TorchName):
            self.note("patch", f"{base.name}.{target.attr}", last_line(target))
        else:
            self.settle(base, target.value)

    # -- annotations --------------------------------------------------------------------------------------------------

    def annotation(self, node: ast.expr | None) -> Meaning:
        """The instance that an annotation speaks of; its torch names are noted as annotations."""
        if node is None:
            return None
        if isinstance(node, ast.Name | ast.Attribute):
            meaning = self.chain(node)
            if not isinstance(meaning, TorchName) or not meaning.is_member:
                return None
            self.note("annotation", meaning.name, last_line(node), value=LAZY if self.lazy else "")
            return Instance(SAME.get(meaning.name, meaning.name), Certainty.CERTAIN)
        if isinstance(node, ast.Constant):
            return self.string_annotation(node)
        if isinstance(node, ast.BinOp):
            return self.union_annotation(node)
        if isinstance(node, ast.Subscript):
            return self.generic_annotation(node)
        self.anything(node)
        return None

    def string_annotation(self, node: ast.Constant) -> Meaning:
        """``"torch.Tensor"``: parsed only if it names torch or could be an imported class."""
        text = node.value
        if not isinstance(text, str) or len(text) > LONGEST_ANNOTATION:
            return None
        try:
            inner = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            return None
        for below in ast.walk(inner):
            if isinstance(below, ast.expr | ast.keyword | ast.arg):
                below.lineno = below.end_lineno = node.lineno
        lazy, self.lazy = self.lazy, True
        meaning = self.annotation(inner)
        self.lazy = lazy
        return meaning

    def union_annotation(self, node: ast.BinOp) -> Meaning:
        """``X | Y``: what Python makes of it when the line runs is one use of each name, and no annotation besides."""
        meanings = []
        for side in (node.left, node.right):
            before = len(self.uses)
            meanings.append(self.annotation(side))
            if not self.lazy and is_dotted(side):
                self.uses[before:] = [use._replace(event="union", value="") for use in self.uses[before:]]
        return meanings[0] or meanings[1]

    def generic_annotation(self, node: ast.Subscript) -> Meaning:
        """``Optional[X]`` is an X; ``list[X]`` a sequence of X; of other generics only the names are noted."""
        head = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        meanings = [self.annotation(part) for part in parts]
        self.annotation(node.value)
        if head in ("Optional", "Union", "Annotated", "Final"):
            return next((meaning for meaning in meanings if meaning), None)
        if head.lower() not in SEQUENCES or not meanings:
            return None
        first = meanings[0]
        return Several(first.of, first.sure) if isinstance(first, Instance) else first


def takes_any_number(node: ast.Call, target: Meaning) -> bool:
    """Whether a call reads a number and a tensor that holds one alike; ``split`` and several sizes do not."""
    match target:
        case TorchName(name=name) | Member(name=name):
            return len(node.args) == 1 and name.rpartition(".")[2] != "split"
        case _:
            return isinstance(node.func, ast.Name) and node.func.id in NUMBERS


def is_dotted(node: ast.expr) -> bool:
    """Whether an expression is a name, or an attribute of something."""
    return isinstance(node, ast.Name | ast.Attribute)


def sure_name(member: Meaning) -> str:
    """The torch name that a member stands for; empty where it is none, or no more than a guess."""
    match member:
        case TorchName():
            return member.name
        case Member() if member.sure is not Certainty.GUESS:
            return member.api
        case Instance() | Several() if member.sure is not Certainty.GUESS:
            return member.of
        case _:
            return ""


def call_facts(node: ast.Call, then: str) -> CallFacts:
    """Keyword names with their lines, how many positional arguments, and what is done with the result."""
    named = [keyword for keyword in node.keywords if keyword.arg]
    starred = any(isinstance(arg, ast.Starred) for arg in node.args)
    return CallFacts(
        keywords=tuple([str(keyword.arg) for keyword in named]),
        lines=tuple([keyword.lineno for keyword in named]),
        positional=-1 if starred else len(node.args),
        then=then,
        literal=literal_kind(node.args),
    )


def literal_kind(arguments: list[ast.expr]) -> str:
    """What the positional arguments of a call are by the look of them."""
    if any(map(is_number, arguments)):
        return "number"
    if any(isinstance(one, ast.List | ast.Tuple | ast.ListComp) for one in arguments):
        return "sequence"
    called = [one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in arguments]
    return "dimension" if any(DIMENSION.search(name) for name in called) else ""


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
    **dict.fromkeys((ast.While, ast.Assert), Expressions.tested),
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp), Expressions.comprehension),
    **dict.fromkeys((ast.Load, ast.Store, ast.Del, ast.Pass, ast.Break, ast.Continue), Expressions.nothing),
}
