"""Judges of claims: what was claimed and what plain interpreters said, in; true, false or unanswerable, and why, out.

Pure functions: nothing here runs a program, and nothing of migrate-lens is imported.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

# Two runs of one program on one side; sums may be taken in another order.
SAME = (1e-5, 1e-7)
# The two sides, relative and absolute, for what a program of some hundred float32 operations gives.
ALIKE = (2e-3, 1e-4)
# Parts of a name that say nothing about what is missing.
COMMON = frozenset(("torch", "Tensor", "nn", "Module", "functional", "utils", "paddle"))
# Symptoms of a call that ends; all others can be passed without a word.
LOUD = frozenset(("missing_api", "missing_argument", "exception", "crash", "timeout", "import_error", "op_not_found"))
ABSENT = frozenset(("AttributeError", "ImportError", "ModuleNotFoundError", "NameError", "NotImplementedError"))
# Symptoms of which an assertion can look at another one instead, and the attribute that it looks at then.
ASPECTS = frozenset(("value", "shape", "dtype", "gradient"))
RAISING = frozenset(("missing_api", "missing_argument", "exception", "import_error"))
ASSERTED = {"shape": "shape", "dtype": "dtype", "requires_grad": "requires_grad", "device": "device"}
OPERATORS: Mapping[str, type[ast.AST] | tuple[type[ast.AST], ...]] = {
    "add": ast.Add, "sub": ast.Sub, "subtract": ast.Sub, "rsub": ast.Sub, "mul": ast.Mult, "multiply": ast.Mult,
    "div": ast.Div, "true_divide": ast.Div, "divide": ast.Div, "floor_divide": ast.FloorDiv, "remainder": ast.Mod,
    "fmod": ast.Mod, "pow": ast.Pow, "matmul": ast.MatMult, "bitwise_and": ast.BitAnd, "bitwise_or": ast.BitOr,
    "bitwise_xor": ast.BitXor, "bitwise_not": ast.Invert, "logical_not": ast.Invert, "neg": ast.USub, "lt": ast.Lt,
    "le": ast.LtE, "gt": ast.Gt, "ge": ast.GtE, "eq": ast.Eq, "ne": ast.NotEq, "getitem": ast.Subscript,
    "setitem": ast.Subscript, "bool": (ast.If, ast.While, ast.Assert, ast.BoolOp, ast.Not),
    "iter": (ast.For, ast.Starred),
    "and": ast.BitAnd, "or": ast.BitOr, "xor": ast.BitXor, "invert": ast.Invert, "truediv": ast.Div,
    "floordiv": ast.FloorDiv, "mod": ast.Mod, "contains": ast.In, "lshift": ast.LShift, "rshift": ast.RShift,
}  # fmt: skip


# In the text of an error of Paddle's engine: its frames, innermost first, and the exception of Python.
INNER = re.compile(r"^ +(\S+\.py)\((\d+)\): ", re.MULTILINE)
WRAPPED = re.compile(r"=\n +([A-Za-z_][\w.]*): (.*(?:\n(?! *\n).*)*)")


class Truth(StrEnum):
    """What became of a claim."""

    TRUE = "true"
    FALSE = "false"
    UNANSWERABLE = "unanswerable"


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim and its verdict.

    Attributes:
        kind: reproduction, patch, gap, verdict, issue text, plan, or audit name, keyword, advice.
        subject: what it is about.
        truth: the verdict.
        reason: why; empty where it is true.
    """

    kind: str
    subject: str
    truth: Truth
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a plain run ended.

    Attributes:
        error: the exception's type, a signal, or ``timeout``; empty where it passed.
        message: of the exception.
        frames: file and line of each frame, outermost first.
        spot: the expression of the program itself that failed, where that is known.
    """

    error: str = ""
    message: str = ""
    frames: tuple[tuple[str, int], ...] = ()
    spot: str = ""

    @property
    def passed(self) -> bool:
        """Whether the program ran to its end."""
        return not self.error

    def line_in(self, name: str) -> int:
        """The innermost line of a file in the traceback, 0 where it has none."""
        return next((line for path, line in reversed(self.frames) if path.endswith(name)), 0)

    def __str__(self) -> str:
        if self.passed:
            return "passes"
        where = f" at {'/'.join(self.frames[-1][0].split('/')[-2:])}:{self.frames[-1][1]}" if self.frames else ""
        return f"{self.error}: {self.message.splitlines()[0][:140] if self.message else ''}{where}"


def inner(ending: Ending) -> Ending:
    """What a backward raised, where a framework wraps it in an error of its own with the traceback as text."""
    frames = tuple((path, int(line)) for path, line in reversed(INNER.findall(ending.message)))
    raised = WRAPPED.search(ending.message)
    if not frames or raised is None:
        return ending
    return Ending(raised[1].rpartition(".")[2], raised[2].strip(), (*ending.frames, *frames))


@dataclass(frozen=True, slots=True)
class Seen:
    """What a program can see of one value."""

    kind: str
    dtype: str = ""
    shape: tuple[int, ...] = ()
    requires_grad: bool = False
    values: tuple[float | str, ...] = ()
    grad: tuple[float | str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """A plain run of a program: how it ended, which watched lines ran, what could be seen afterwards."""

    ending: Ending
    lines: frozenset[tuple[str, int]] = frozenset()
    seen: Mapping[str, Seen] | None = None

    @property
    def values(self) -> Mapping[str, Seen]:
        """What was seen; nothing where the process died."""
        return self.seen or {}


@dataclass(frozen=True, slots=True)
class Claimed:
    """A gap as it was claimed."""

    id: str
    api: str
    symptom: str


# -- a reproduction ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Played:
    """A reproduction and its runs.

    Attributes:
        source: the program.
        name: its file's name.
        torch: how it ended under torch.
        paddle: how it ended under Paddle.
        rest: how what stands behind the failing statement ended, with torch's values for what that should have made;
            None where nothing stands there or it cannot be said.
    """

    source: str
    name: str
    torch: Ending
    paddle: Ending
    rest: Ending | None = None


def judge_reproduction(gap: Claimed, played: Played) -> Judged:
    """A reproduction passes under torch and fails under Paddle, at its own gap and at nothing else."""
    reason = fault_of_reproduction(gap, played)
    return Judged("reproduction", gap.id, Truth.FALSE if reason else Truth.TRUE, reason)


def fault_of_reproduction(gap: Claimed, played: Played) -> str:
    """What is wrong with a reproduction; empty if nothing is."""
    if not played.torch.passed:
        return f"under torch: {played.torch}"
    if played.paddle.passed:
        return "passes under Paddle"
    if gap.symptom in ("crash", "timeout"):
        return "" if lethal(played.paddle) else f"a {gap.symptom} was claimed; under Paddle: {played.paddle}"
    line = played.paddle.line_in(played.name)
    tree = ast.parse(played.source)
    failing = statement_at(tree, line)
    if failing is None:
        return f"no statement of its own is in the traceback: {played.paddle}"
    other = other_symptom(gap.symptom, failing, played.paddle)
    if other:
        return f"{other} at line {line}, `{ast.unparse(failing)[:80]}`; the gap is about {gap.symptom}"
    if played.paddle.error == "AssertionError":
        if not sliced(tree, failing, gap.api):
            return f"the failing assertion, line {line}, has nothing to do with {gap.api}"
    elif not about(tree, failing, gap.api):
        return f"fails at line {line}, `{ast.unparse(failing)[:100]}`, which is not about {gap.api}: {played.paddle}"
    if gap.symptom == "missing_api" and not says_absent(gap.api, played.paddle):
        return f"{gap.api} is called missing; the failure is another: {played.paddle}"
    if played.rest is not None and not played.rest.passed:
        return f"with line {line} healed, the rest fails under Paddle: {played.rest}"
    return ""


def other_symptom(symptom: str, failing: ast.stmt, paddle: Ending) -> str:
    """What a reproduction shows in place of its gap's symptom; empty if it shows that."""
    if paddle.error != "AssertionError":
        of_none = "NoneType" in paddle.message and symptom == "gradient"  # no gradient where torch has one
        return f"raises {paddle.error}" if symptom in ASPECTS and not of_none else ""
    if symptom in RAISING and isinstance(failing, ast.Assert) and "hasattr" not in ast.unparse(failing):
        return "asserts a result"
    if symptom in ASPECTS and isinstance(failing, ast.Raise):
        return "asserts that torch raises"
    aspect = asserted(failing) if symptom in ASPECTS else ""
    return f"asserts {aspect}" if aspect not in (symptom, "") else ""


def asserted(failing: ast.stmt) -> str:
    """What an assertion looks at beside values; empty where it looks at these."""
    test = failing.test if isinstance(failing, ast.Assert) else failing
    seen = {n.attr for n in ast.walk(test) if isinstance(n, ast.Attribute)}
    return next((aspect for word, aspect in ASSERTED.items() if word in seen), "")


def lethal(ending: Ending) -> bool:
    """Whether a process was killed or did not end."""
    return ending.error.startswith("SIG") or ending.error == "timeout"


def says_absent(api: str, ending: Ending) -> bool:
    """Whether a failure is the absence of a name."""
    if ending.error == "AssertionError":
        return True
    parts = [part for part in api.split(".") if part not in COMMON]
    return ending.error in ABSENT and any(re.search(rf"\b{re.escape(part)}\b", ending.message) for part in parts)


def statement_at(tree: ast.Module, line: int) -> ast.stmt | None:
    """The smallest statement that a line belongs to."""
    around = [n for n in ast.walk(tree) if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or n.lineno)]
    return min(around, key=lambda n: ((n.end_lineno or n.lineno) - n.lineno, -n.col_offset), default=None)


def about(tree: ast.Module, failing: ast.stmt, api: str) -> bool:
    """Whether a statement itself uses an API, or calls what another statement made of it."""
    head = header(failing)
    if any(names(node, api) for node in head):
        return True
    called = {
        n.func.id for part in head for n in ast.walk(part) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
    }
    used = called | {n.id for part in head for n in ast.walk(part) if isinstance(n, ast.Name)}
    # A layer, a context or a partial: the API made it, and the failing statement is the first to run it.
    owners = (
        api if api.rpartition(".")[2] not in ("forward", "__call__", "backward", "step") else api.rpartition(".")[0]
    )
    return any(
        any(names(part, owners) for part in header(other)) and bound(other) & used
        for other in ast.walk(tree) if isinstance(other, ast.stmt) and other.lineno < failing.lineno
    )  # fmt: skip


def header(statement: ast.stmt) -> list[ast.AST]:
    """A statement without the blocks in it."""
    inner = {id(n) for field in ("body", "orelse", "finalbody", "handlers") for n in getattr(statement, field, [])}
    if not inner:
        return [statement]
    return [n for n in ast.iter_child_nodes(statement) if id(n) not in inner] + [_shell(statement)]


def _shell(statement: ast.stmt) -> ast.AST:
    """The statement's own kind with nothing in it: an ``if`` asks for a truth value."""
    return type(statement)()


def names(node: ast.AST, api: str) -> bool:
    """Whether a piece of a program names an API, by its last name or by the operator that stands for it."""
    last = api.rpartition(".")[2]
    kinds = operators(last)
    return any(_spells(one, last) or isinstance(one, kinds) for one in ast.walk(node))


def operators(last: str) -> type[ast.AST] | tuple[type[ast.AST], ...]:
    """The operators that are written for a method; __radd__ and __iadd__ are written + too."""
    bare = last.strip("_")
    turned = bare[1:] if last.startswith(("__r", "__i")) else bare
    return OPERATORS.get(bare) or OPERATORS.get(turned) or ()


def _spells(node: ast.AST, last: str) -> bool:
    match node:
        case ast.Attribute(attr=text) | ast.Name(id=text) | ast.keyword(arg=str(text)):
            return text == last
        case ast.alias(name=text) | ast.ImportFrom(module=str(text)):
            return last in text.split(".")
        case ast.Constant(value=str(text)):
            return last in re.split(r"[^\w]+", text)
    return False


def bound(statement: ast.stmt) -> set[str]:
    """Names that a statement makes or may write into."""
    made = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        made.add(statement.name)
    for node in ast.walk(statement):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner))):
                made.add(owner)
            case ast.Call(args=given):
                made |= {n.id for one in given for n in ast.walk(one) if isinstance(n, ast.Name)}
            case (
                ast.Subscript(value=ast.Name(id=owner), ctx=ast.Store())
                | ast.Attribute(value=ast.Name(id=owner), ctx=ast.Store())
            ):
                made.add(owner)
            case ast.alias(name=name, asname=other):
                made.add(other or name.partition(".")[0])
    return made


def sliced(tree: ast.Module, failing: ast.stmt, api: str) -> bool:
    """Whether what an assertion looks at comes from an API: the statements that made its names, and theirs."""
    if names(failing, api):
        return True
    if isinstance(failing, ast.Raise):  # what was tried did not raise
        failing = next((n for n in tree.body if isinstance(n, ast.Try) and failing in ast.walk(n)), failing)
    wanted = {n.id for n in ast.walk(failing) if isinstance(n, ast.Name)}
    if any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in ast.walk(failing)):
        wanted |= {n.id for one in tree.body if calls_backward(one) for n in ast.walk(one) if isinstance(n, ast.Name)}
    before = sorted(
        (n for n in ast.walk(tree) if isinstance(n, ast.stmt) and n is not failing and n.lineno <= failing.lineno),
        key=lambda n: -n.lineno,
    )
    for _ in range(2):  # functions stand before what they call
        for one in before:
            if not bound(one) & (wanted - {"torch"}):
                continue
            if any(
                names(part, api)
                for part in ([one] if isinstance(one, (ast.FunctionDef, ast.ClassDef)) else header(one))
            ):
                return True
            wanted |= {n.id for n in ast.walk(one) if isinstance(n, ast.Name)}
    return False


def calls_backward(statement: ast.stmt) -> bool:
    """Whether a statement fills gradients."""
    return any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in ast.walk(statement))


# -- a patch -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Patched:
    """A patch and the runs of the program without and with it.

    Attributes:
        before: text of each file that it changes, by name.
        after: the same, changed.
        whole: whether it was claimed that the whole stage passes, rather than the call alone.
        torch: under torch, without and with it.
        others: the same with other default dtypes.
        without: under Paddle with all other patches.
        with_it: under Paddle with it too.
        lines: the lines, (path, line), of the statements that it put there.
        library: the folder that the library stands in.
        random: what another seed changes under torch.
        silent: gaps that no patch closes and that can change values without a word.
    """

    before: Mapping[str, str]
    after: Mapping[str, str]
    whole: bool
    torch: tuple[Run, Run]
    others: Mapping[str, tuple[Run, Run]]
    without: Run
    with_it: Run
    lines: frozenset[tuple[str, int]]
    library: str
    random: frozenset[str] = frozenset()
    silent: tuple[str, ...] = ()


def judge_patch(gap: Claimed, patch: Patched) -> Judged:
    """A patch changes nothing under torch that can be seen, and gets past its gap under Paddle."""
    if code_of(patch.before) == code_of(patch.after):
        return Judged("patch", gap.id, Truth.FALSE, "changes comments only")
    seen = difference(patch.torch[0], patch.torch[1])
    if seen:
        return Judged("patch", gap.id, Truth.FALSE, f"changes torch: {seen}")
    for dtype, (one, other) in patch.others.items():
        seen = difference(one, other) if one.ending.passed else ""
        if seen:
            return Judged("patch", gap.id, Truth.FALSE, f"changes torch where the default dtype is {dtype}: {seen}")
    return Judged("patch", gap.id, *under_paddle(patch))


def code_of(files: Mapping[str, str]) -> dict[str, str]:
    """What the files say to Python, without comments and layout."""
    return {name: ast.dump(ast.parse(text)) for name, text in files.items() if name.endswith(".py")} | {
        name: text for name, text in files.items() if not name.endswith(".py")
    }


def difference(one: Run, other: Run) -> str:
    """What a program can see that differs between two runs of it on one side; empty if nothing does."""
    if one.ending.error != other.ending.error:
        return f"{one.ending} -> {other.ending}"
    for path in dict.fromkeys((*one.values, *other.values)):
        ours, theirs = one.values.get(path), other.values.get(path)
        if ours is None or theirs is None:
            return f"{path} is there on one side only"
        what = unlike(ours, theirs, SAME)
        if what:
            return f"{path}: {what}"
    return ""


def unlike(one: Seen, other: Seen, bounds: tuple[float, float], flags: bool = True) -> str:
    """What is not the same of two values."""
    aspects = ("kind", "dtype", "shape", *(("requires_grad",) if flags else ()))
    for aspect in aspects:
        if getattr(one, aspect) != getattr(other, aspect):
            return f"{aspect} {getattr(one, aspect)} -> {getattr(other, aspect)}"
    far = apart(one.values, other.values, bounds)
    if far:
        return f"values differ: {far}"
    if (one.grad is None) != (other.grad is None):
        return f"grad {'None' if one.grad is None else 'a number'} -> {'None' if other.grad is None else 'a number'}"
    far = apart(one.grad or (), other.grad or (), bounds)
    return f"grad differs: {far}" if far else ""


def apart(ours: Sequence[float | str], theirs: Sequence[float | str], bounds: tuple[float, float]) -> str:
    """The first numbers that are further from each other than the bounds."""
    if len(ours) != len(theirs):
        return f"{len(ours)} numbers and {len(theirs)}"
    relative, absolute = bounds
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(one, str) or isinstance(other, str):
            if str(one) != str(other):
                return f"{one} and {other}"
        elif not (
            math.isclose(one, other, rel_tol=relative, abs_tol=absolute) or (math.isnan(one) and math.isnan(other))
        ):
            return f"{one:.6g} and {other:.6g}"
    return ""


def under_paddle(patch: Patched) -> tuple[Truth, str]:
    """Whether the program gets past the gap under Paddle with a patch, with torch's values as far as it comes."""
    ran, before, after = patch.with_it.lines & patch.lines, patch.without, patch.with_it
    stopped = next((f for f in reversed(after.ending.frames) if f[0].startswith(patch.library)), None)
    if stopped in patch.lines and stopped is not None:
        return Truth.FALSE, f"does not get past the gap under Paddle: {after.ending} (line {stopped[1]})"
    if patch.whole and not after.ending.passed:
        return Truth.FALSE, f"the stage was said to pass: {after.ending}"
    if not ran:
        return Truth.UNANSWERABLE, f"the patched lines are not reached under Paddle: {after.ending}"
    far = foreign(patch.torch[0], after, patch.random)
    if far and (patch.whole or not patch.silent):
        return Truth.FALSE, f"not torch's result under Paddle: {far}"
    if same_run(before, after):
        return Truth.FALSE, f"changes nothing under Paddle: {after.ending} without it too, and the same values"
    if far:
        return Truth.UNANSWERABLE, f"{far}; it may come from {', '.join(patch.silent)}"
    return Truth.TRUE, ""


def foreign(torch: Run, paddle: Run, random: frozenset[str]) -> str:
    """The first result under Paddle that is not torch's; what was kept before the end of the run is compared."""
    for path, theirs in paddle.values.items():
        ours = torch.values.get(path)
        if ours is None or path in random or not path.startswith("result"):
            continue
        what = unlike(ours, theirs, ALIKE, flags=False) if theirs.kind == ours.kind == "tensor" else ""
        if what:
            return f"{path}: {what}"
    return ""


def same_run(one: Run, other: Run) -> bool:
    """Whether two runs under Paddle came equally far with the same values."""
    ends = (one.ending.error, one.ending.message) == (other.ending.error, other.ending.message)
    return ends and one.values == other.values


def unsteady(one: Run, other: Run) -> frozenset[str]:
    """What another seed changes under torch."""
    paths = {*one.values, *other.values}
    return frozenset(
        p for p in paths if p not in one.values or p not in other.values or unlike(one.values[p], other.values[p], SAME)
    )


# -- the patched statement alone ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Replay:
    """The statement that a patch puts in the place of another, run with what the library gave it under torch.

    Attributes:
        torch: upstream's and the patch's under torch.
        paddle: the same under Paddle.
        others: the same under torch with other inputs: another dtype, or all numbers equal.
        upstream: the statement as upstream has it.
        unable: why it cannot be run alone; empty where it can.
    """

    torch: tuple[Run, Run] = (Run(Ending()), Run(Ending()))
    paddle: tuple[Run, Run] = (Run(Ending()), Run(Ending()))
    others: Mapping[str, tuple[Run, Run]] = field(default_factory=dict)
    upstream: str = ""
    unable: str = ""


def judge_replays(gap: Claimed, replays: Sequence[Replay]) -> Judged:
    """A patched statement gives upstream's result under torch and, with the same inputs, under Paddle."""
    done = [one for one in replays if able_under_torch(one)]
    able = [one for one in done if not behind_another(gap.api, one)]
    for one in able:
        reason = fault_of_replay(one)
        if reason:
            return Judged("patch", gap.id, Truth.FALSE, f"the patched statement alone: {reason}")
    if not able:
        why = next((one.unable or f"under torch: {one.torch[0].ending}" for one in replays), "no statement")
        why = next((behind_another(gap.api, one) for one in done), why)
        return Judged("patch", gap.id, Truth.UNANSWERABLE, f"the patched statement cannot be run alone: {why}")
    if gap.symptom not in ("alias", "state", "scope") and all(same_run(*one.paddle) for one in able):
        return Judged(
            "patch", gap.id, Truth.FALSE, "the patched statement does under Paddle what upstream's does there"
        )
    return Judged("patch", gap.id, Truth.TRUE)


def behind_another(api: str, one: Replay) -> str:
    """Where the patched statement fails under Paddle in a part of it that is upstream's own and not the gap's."""
    spot = one.paddle[1].ending.spot
    failing = outermost(spot)
    if not spot or not failing or fault_of_torch(one) or named_by(failing, api):
        return ""
    own = {outermost(ast.unparse(n)) for n in ast.walk(ast.parse(one.upstream)) if isinstance(n, ast.expr)}
    return f"another gap in it, at `{spot[:80]}`: {one.paddle[1].ending}" if failing in own else ""


def outermost(text: str) -> str:
    """What an expression does last: the function called, the operator, the attribute; empty for anything else."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return ""
    match node:
        case ast.Call(func=ast.Attribute(attr=name)) | ast.Call(func=ast.Name(id=name)) | ast.Attribute(attr=name):
            return name
        case ast.BinOp(op=operator) | ast.UnaryOp(op=operator) | ast.Compare(ops=[operator]):
            return type(operator).__name__
        case ast.Subscript():
            return "Subscript"
    return ""


def named_by(failing: str, api: str) -> bool:
    """Whether a function's or an operator's name stands for an API."""
    last = api.rpartition(".")[2]
    kinds = operators(last)
    return failing == last or failing in {kind.__name__ for kind in (kinds if isinstance(kinds, tuple) else (kinds,))}


def fault_of_torch(one: Replay) -> str:
    """What a patched statement changes under torch; empty if nothing."""
    changed = difference(*one.torch)
    if changed:
        return f"changes torch: {changed}"
    for name, pair in one.others.items():
        changed = difference(*pair) if pair[0].ending.passed else ""
        if changed:
            return f"changes torch with {name}: {changed}"
    return ""


def fault_of_replay(one: Replay) -> str:
    """What a patched statement does otherwise than upstream's under torch; empty if nothing."""
    changed = fault_of_torch(one)
    if changed:
        return changed
    if not one.paddle[1].ending.passed:
        return f"fails under Paddle: {one.paddle[1].ending}"
    for path, ours in one.torch[0].values.items():
        theirs = one.paddle[1].values.get(path, Seen("nothing"))
        what = unlike(ours, theirs, ALIKE, flags=not path.startswith("gradient"))
        if what:
            return f"under Paddle {path}: {what}"
    return ""


def both(whole: Judged, alone: Judged) -> Judged:
    """What the program and the statement alone say together: what either shows to be false is false."""
    for truth in (Truth.FALSE, Truth.TRUE):
        for one in (whole, alone):
            if one.truth is truth:
                return one
    return Judged(whole.kind, whole.subject, Truth.UNANSWERABLE, f"{whole.reason}; {alone.reason}")


# -- verdicts and gaps -------------------------------------------------------------------------------------------------


def judge_verdict(no_gaps: bool, torch: Run, paddle: Run, random: frozenset[str] = frozenset()) -> Judged:
    """ "No gaps" is true of a program that passes on both sides with the same results, and of no other."""
    if not torch.ending.passed:
        return Judged("verdict", "the program", Truth.UNANSWERABLE, f"it fails under torch: {torch.ending}")
    far = "" if paddle.ending.passed else str(paddle.ending)
    far = far or foreign(torch, paddle, random)
    if no_gaps and far:
        return Judged("verdict", "no gaps", Truth.FALSE, f"a plain run under Paddle: {far}")
    return Judged("verdict", "no gaps" if no_gaps else "gaps", Truth.TRUE)


def judge_gap(
    gap: Claimed, sites: Sequence[tuple[str, int]], reproduced: bool, paddle: Run, alone: Sequence[Replay] = ()
) -> Judged:
    """A gap is true if a reproduction shows it, the statement alone, or the plain program, which ends at it.

    Args:
        gap: the claim.
        sites: where it was found.
        reproduced: whether a reproduction of it was judged true.
        paddle: the plain program under Paddle.
        alone: the statements at its sites, run alone with what they were given under torch.
    """
    if reproduced or any(differs_alone(gap.api, one) for one in alone):
        return Judged("gap", gap.id, Truth.TRUE)
    if gap.symptom in LOUD and paddle.ending.passed:
        return Judged("gap", gap.id, Truth.FALSE, "the plain program passes under Paddle, and no reproduction shows it")
    if any(path.endswith(name) and line == at for path, line in paddle.ending.frames for name, at in sites):
        return Judged("gap", gap.id, Truth.TRUE)
    unable = [one.unable or f"under torch it {one.torch[0].ending}" for one in alone if not able_under_torch(one)]
    why = next(iter(unable), "it does under Paddle what it does in torch")
    said = f"; the statement alone: {why}" if alone else ""
    return Judged("gap", gap.id, Truth.UNANSWERABLE, f"not reproduced, and the plain run does not come to it{said}")


def able_under_torch(one: Replay) -> bool:
    """Whether a statement could be run alone where it is known to work."""
    return not one.unable and one.torch[0].ending.passed


def differs_alone(api: str, one: Replay) -> bool:
    """Whether a statement, alone and with equal inputs, does something else under Paddle, by an API."""
    torch, paddle = one.torch[0], one.paddle[0]
    if not able_under_torch(one):
        return False
    if not paddle.ending.passed:
        return named_by(outermost(paddle.ending.spot), api)
    return any(
        unlike(ours, paddle.values.get(path, Seen("nothing")), ALIKE, flags=not path.startswith("gradient"))
        for path, ours in torch.values.items()
    )


def judge_first(sites: Sequence[tuple[str, int]], paddle: Run, library: str) -> Judged | None:
    """Where the plain program fails in the library, some gap must name the place; None where it fails elsewhere."""
    inside = own_frames(paddle.ending, library)
    if paddle.ending.passed or not inside:
        return None
    if any(path.endswith("/" + name) and line == at for path, line in inside for name, at in sites):
        return Judged("verdict", "the first failure", Truth.TRUE)
    return Judged("verdict", "the first failure", Truth.FALSE, f"no gap names it: {paddle.ending}")


def own_frames(ending: Ending, library: str) -> list[tuple[str, int]]:
    """The frames of a library in a traceback; none where another library, which it calls, is what failed."""
    inside = [index for index, (path, _) in enumerate(ending.frames) if path.startswith(library)]
    behind = ending.frames[inside[-1] + 1 :] if inside else ()
    beside = [path for path, _ in behind if not re.search(r"/(?:paddle|importlib|contextlib\.py)|^<", path)]
    return [] if beside else [ending.frames[index] for index in inside]


# -- the audit ---------------------------------------------------------------------------------------------------------


def judge_name(name: str, claim: str, torch: str, paddle: str) -> Judged:
    """``missing`` and ``present`` are asked again."""
    subject = f"{name} {claim}"
    if torch != "yes":
        return Judged("audit name", subject, Truth.FALSE, "torch has no such name")
    right = (paddle == "yes") == (claim == "present")
    reason = "" if right else f"Paddle {'has it' if paddle == 'yes' else 'has not'}"
    return Judged("audit name", subject, Truth.TRUE if right else Truth.FALSE, reason)


def judge_keyword(name: str, keyword: str, torch: str, paddle: str) -> Judged:
    """A keyword that torch takes and Paddle refuses."""
    subject = f"{name}({keyword}=) refused"
    if paddle == "yes" or torch == "no":
        who = "Paddle takes it" if paddle == "yes" else "torch refuses it too"
        return Judged("audit keyword", subject, Truth.FALSE, who)
    if torch == "yes" and paddle == "no":
        return Judged("audit keyword", subject, Truth.TRUE)
    return Judged("audit keyword", subject, Truth.UNANSWERABLE, f"torch: {torch}; Paddle: {paddle}")


def judge_advice(rule: str, text: str, torch: Ending | None, paddle: Ending | None) -> Judged:
    """Advice that says that something works is run."""
    subject = f"{rule}: {text[:60]}"
    if torch is None or paddle is None:
        return Judged("audit advice", subject, Truth.UNANSWERABLE, "no program for it in truth.toml")
    for side, ending in (("torch", torch), ("Paddle", paddle)):
        if not ending.passed:
            return Judged("audit advice", subject, Truth.FALSE, f"under {side}: {ending}")
    return Judged("audit advice", subject, Truth.TRUE)


def judge_unseen(unseen: Sequence[str], gaps: Mapping[str, Sequence[Claimed]]) -> Iterator[Judged]:
    """A file in which the plan says that nothing was seen by reading has no missing name of torch's in a run either.

    What only a run can see there, values and what an object's class decides, the plan does not speak of.
    """
    for name in unseen:
        met = [gap.id for gap in gaps.get(name, ()) if readable(gap)]
        reason = f"a run finds {', '.join(met)}" if met else ""
        yield Judged("plan", f"none seen by reading: {name}", Truth.FALSE if met else Truth.TRUE, reason)


def readable(gap: Claimed) -> bool:
    """Whether a gap is a name of torch's that stands in the text, and not a member of an object."""
    return gap.symptom == "missing_api" and gap.api.startswith("torch.") and not gap.api.startswith("torch.Tensor.")


def judge_first_patch(first: str, imported: Ending, library: str) -> Judged | None:
    """The first patch stands where the plain import fails first; None where it passes, or fails in another library."""
    frames = own_frames(imported, library)
    inside = [(path.removeprefix(library).lstrip("/"), line) for path, line in frames]
    if imported.passed or not inside:
        return None
    right = any(first.startswith(f"{path}:{line} ") for path, line in inside)
    reason = "" if right else f"the import fails at {inside[-1][0]}:{inside[-1][1]}: {imported}"
    return Judged("plan", f"first patch {first.partition(' ')[0]}", Truth.TRUE if right else Truth.FALSE, reason)


# -- the text of an issue ----------------------------------------------------------------------------------------------

CUT = re.compile(r"\w\.\.\.|…")
MACHINE = re.compile(r"/(?:tmp|home|root|work)/\S+")
LEFT = re.compile(r"\{\{|\}\}|\{%|\bNone\b is|<bound method|Difference\(|object at 0x")


# A number that stands alone: no part of a dtype's or a version's name.
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.]*\w)")


def foreign_numbers(body: str, source: str) -> str:
    """Numbers that an issue expects and its reproduction does not have: they are another run's."""
    expected = re.search(r"^## Expected\n(.*?)(?=^## |\Z)", body, re.MULTILINE | re.DOTALL)
    found = NUMBER.findall(re.sub(r"`[^`]*`|```.*?```", "", expected[1], flags=re.DOTALL)) if expected else []
    known = {float(one) for one in NUMBER.findall(source)}
    return ", ".join(dict.fromkeys(one for one in found if float(one) not in known))


def judge_issue(gap: Claimed, body: str, source: str = "") -> Judged:
    """An issue can be posted as it is.

    Args:
        gap: that it is about.
        body: its text.
        source: its reproduction.
    """
    foreign = foreign_numbers(body, source) if source else ""
    title = body.splitlines()[0] if body else ""
    faults = [
        f"cut words in the title: {title}" if CUT.search(title) else "",
        f"a path of this machine: {found[0]}" if (found := MACHINE.search(body)) else "",
        f"a piece of the program that made it: {found[0]}" if (found := LEFT.search(body)) else "",
        "the title hedges: missing or inconsistent" if "missing or inconsistent" in title else "",
        "build noise" if re.search(r"No ccache found", body) else "",
        f"expects {foreign}, which the reproduction does not have" if foreign else "",
    ]
    reason = "; ".join(fault for fault in faults if fault)
    return Judged("issue text", gap.id, Truth.FALSE if reason else Truth.TRUE, reason)
