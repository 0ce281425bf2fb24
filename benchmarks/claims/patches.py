"""Patches in; what each does to a program, and to the statement that it replaces, on both sides, judged, out."""

from __future__ import annotations

import ast
import builtins
import difflib
import json
import os
import re
import shutil
import subprocess
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from .judges import (
    LOUD,
    Claimed,
    Judged,
    Patched,
    Replay,
    Run,
    Truth,
    both,
    judge_patch,
    judge_replays,
    statement_at,
    unsteady,
)  # fmt: skip
from .runs import Answer, Plain, run_of

TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
DTYPES = ("float64",)
VARIANTS = ("float64", "float16", "bfloat16", "meta", "ties")


class Tree:
    """A fresh copy of the library at one place, with some patches in it.

    Args:
        upstream: as it was downloaded.
        place: where copies are made.
    """

    def __init__(self, upstream: Path, place: Path) -> None:
        self.upstream, self.place = upstream, place

    def alone(self, patch: str) -> dict[str, str] | str:
        """The files that a patch changes, changed; or why it cannot be applied."""
        self.fresh({})
        done = subprocess.run(
            ["git", "apply", "--whitespace=nowarn", "-"], input=patch, cwd=self.place, text=True, capture_output=True,
            env=os.environ | {"GIT_CEILING_DIRECTORIES": str(self.place.parent)}, check=False,
        )  # fmt: skip
        if done.returncode:
            return done.stderr.strip() or "git apply fails"
        named = re.findall(r"^\+\+\+ b/(\S+)", patch, re.MULTILINE)
        return {name: (self.place / name).read_text() for name in named}

    def together(self, some: Sequence[Mapping[str, str]]) -> dict[str, str] | None:
        """Several patches in one tree; None where two of them meet in one place."""
        made: dict[str, str] = {}
        for files in some:
            for name, text in files.items():
                joined = merged(self.text(name), made[name], text) if name in made else text
                if joined is None:
                    return None
                made[name] = joined
        return made

    def text(self, name: str) -> str:
        """A file as upstream has it."""
        path = self.upstream / name
        return path.read_text() if path.exists() else ""

    def fresh(self, files: Mapping[str, str]) -> None:
        """The library with some files changed."""
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self.upstream, self.place, ignore=shutil.ignore_patterns("__pycache__"))
        for name, text in files.items():
            (self.place / name).parent.mkdir(parents=True, exist_ok=True)
            (self.place / name).write_text(text)


Edit = tuple[int, int, str]  # from, to, what stands there then


def merged(base: str, one: str, other: str) -> str | None:
    """Two changes of one text; None where they meet. Comments that both put in front of a line are kept."""
    if one == other:
        return one
    edits = sorted([*changes(base, one), *changes(base, other)])
    for (_, end, new), (start, stop, text) in pairwise(edits):
        comments = new.endswith("\n") and text.endswith("\n") and start == stop
        if end > start or (end == start and not comments and (new, text) != ("", "")):
            return None
    for start, end, new in reversed(edits):
        base = base[:start] + new + base[end:]
    return base


def changes(base: str, other: str) -> list[Edit]:
    """What is put where, token by token in the lines that differ."""
    old, new = base.splitlines(keepends=True), other.splitlines(keepends=True)
    offsets = list(accumulate(map(len, old), initial=0))
    edits: list[Edit] = []
    matcher = difflib.SequenceMatcher(a=old, b=new, autojunk=False)
    for tag, i, j, m, n in matcher.get_opcodes():
        code = [line for line in new[m:n] if not line.lstrip().startswith("#")]
        if tag == "equal":
            continue
        if tag == "replace" and len(code) == j - i:
            edits += by_line(old[i:j], new[m:n], offsets[i])
        else:
            edits.append((offsets[i], offsets[j], "".join(new[m:n])))
    return edits


def by_line(old: Sequence[str], new: Sequence[str], at: int) -> Iterator[Edit]:
    """Edits of some lines that were changed one by one, with comments put in front of them."""
    rows = iter(old)
    for line in new:
        if line.lstrip().startswith("#"):
            yield at, at, line
            continue
        before = next(rows)
        ours, theirs = TOKEN.findall(before), TOKEN.findall(line)
        starts = list(accumulate(map(len, ours), initial=at))
        matcher = difflib.SequenceMatcher(a=ours, b=theirs, autojunk=False)
        for tag, i, j, m, n in matcher.get_opcodes():
            if tag != "equal":
                yield starts[i], starts[j], "".join(theirs[m:n])
        at += len(before)


def added(before: str, after: str) -> set[int]:
    """The lines of the statements that a change put into a text."""
    matcher = difflib.SequenceMatcher(a=before.splitlines(), b=after.splitlines(), autojunk=False)
    fresh = {
        line + 1 for tag, _, _, m, n in matcher.get_opcodes() if tag != "equal" for line in range(m, max(n, m + 1))
    }
    spans = [range(n.lineno, (n.end_lineno or n.lineno) + 1) for n in ast.walk(ast.parse(after)) if simple(n)]
    return {line for span in spans for line in span if fresh & set(span)}


def simple(node: ast.AST) -> TypeGuard[ast.stmt]:
    """Whether a node is a statement without others in it."""
    return isinstance(node, ast.stmt) and not hasattr(node, "body")


class Patches:
    """Every patch of a library, each held against torch and against Paddle.

    Args:
        tree: the library.
        plain: interpreters that find it at the tree's place.
        probe: the program.
    """

    def __init__(self, tree: Tree, plain: Plain, probe: Path) -> None:
        self.tree, self.plain, self.probe = tree, plain, probe
        self.runs: dict[tuple[str, str], Run] = {}

    def judged(self, gaps: Mapping[str, Claimed], fixes: Sequence[Mapping[str, Any]]) -> Iterator[Judged]:
        """The verdict on each patch that was shown."""
        shown = {fix["gap"]: fix for fix in fixes}
        applied = {gap: self.tree.alone(fix["patch"]) for gap, fix in shown.items()}
        good = {gap: files for gap, files in applied.items() if not isinstance(files, str)}
        whole = {gap for gap, fix in shown.items() if fix["outcome"] == "offered"}
        silent = tuple(gap.id for gap in gaps.values() if gap.symptom not in LOUD and gap.id not in shown)
        for gap, files in applied.items():
            if isinstance(files, str):
                yield Judged("patch", gap, Truth.FALSE, f"does not apply: {files}")
                continue
            others = [f for g, f in good.items() if g != gap]
            program = judge_patch(gaps[gap], self.held(files, others, gap in whole, silent))
            rest = self.company(files, others)
            trees = [files, self.tree.together(rest) or {}, self.tree.together([*rest, files]) or files]
            alone = judge_replays(gaps[gap], list(replays(trees, self.tree, self.plain, self.probe)))
            yield both(program, alone)

    def held(
        self, files: Mapping[str, str], others: Sequence[Mapping[str, str]], whole: bool, silent: tuple[str, ...]
    ) -> Patched:
        """All runs that show what a patch does."""
        rest = self.company(files, others)
        company = self.tree.together([*rest, files]) or dict(files)
        without = self.tree.together(rest) or {}
        place = self.tree.place
        lines = frozenset(
            (str(place / name), line)
            for name in files if name.endswith(".py")
            for line in added(without.get(name, self.tree.text(name)), company[name])
        )  # fmt: skip
        torch = self.run("torch", {})
        able = [dtype for dtype in DTYPES if self.run("torch", {}, dtype=dtype).ending.passed]
        dtypes = {d: (self.run("torch", {}, dtype=d), self.run("torch", files, dtype=d)) for d in able}
        return Patched(
            {name: self.tree.text(name) for name in files}, files, whole, (torch, self.run("torch", files)), dtypes,
            self.run("paddle", without, tuple(files)), self.run("paddle", company, tuple(files)), lines, str(place),
            unsteady(torch, self.run("torch", {}, seed=1)), silent,
        )  # fmt: skip

    def company(self, files: Mapping[str, str], others: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
        """The other patches that go together with one, and with each other."""
        chosen: list[Mapping[str, str]] = []
        for one in others:
            if self.tree.together([files, *chosen, one]) is not None:
                chosen.append(one)
        return chosen

    def run(
        self, side: str, files: Mapping[str, str], watch: Sequence[str] = (), seed: int = 0, dtype: str = ""
    ) -> Run:
        """The program with some files changed; the same question is asked once."""
        key = (side, json.dumps([sorted(files.items()), sorted(watch), seed, dtype]))
        if key not in self.runs:
            self.tree.fresh(files)
            watched = [self.tree.place / name for name in watch]
            self.runs[key] = self.plain.run(side, self.probe, watched, seed, dtype)
        return self.runs[key]


# -- the patched statement alone ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pair:
    """The statements that a patch replaces, and those in their place.

    Attributes:
        file: that they stand in.
        line: of the first of upstream's.
        old: upstream's text.
        new: the patch's.
        prelude: statements that the patch puts at the top of the module.
    """

    file: str
    line: int
    old: str
    new: str
    prelude: str = ""

    def wanted(self) -> dict[str, list[str]]:
        """The names that the statements read, each with the attributes of it that they read."""
        wanted: dict[str, list[str]] = {}
        for node in ast.walk(ast.parse(f"{self.old}\n{self.new}")):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and not hasattr(builtins, node.id):
                wanted.setdefault(node.id, [])
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                wanted.setdefault(node.value.id, []).append(node.attr)
        return wanted

    def made(self) -> list[str]:
        """The names that the statements make."""
        tree = ast.parse(f"{self.old}\n{self.new}")
        stored = (n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        return list(dict.fromkeys((*stored, "returned")))


def pairs(name: str, before: str, after: str) -> list[Pair]:
    """What a change replaces by what, statement by statement; nothing where it changes more than simple statements."""
    old, new = ast.parse(before), ast.parse(after)
    top = {ast.unparse(one) for one in old.body}
    prelude = "\n".join(text for one in new.body if simple(one) and (text := ast.unparse(one)) not in top)
    try:
        found = list(aligned(old, new))
    except Unaligned:
        return []
    return [Pair(name, ours.lineno, replayable([ours]), replayable([theirs]), prelude) for ours, theirs in found]


class Unaligned(Exception):  # noqa: N818 - it is a result, not an error
    """Two programs of which one is not the other with some simple statements replaced."""


def aligned(old: ast.AST, new: ast.AST) -> Iterator[tuple[ast.stmt, ast.stmt]]:
    """Simple statements that differ, block by block; what is new at the top of a block is passed over.

    Raises:
        Unaligned: anything else differs.
    """
    for field in ("body", "orelse", "finalbody", "handlers"):
        ours, theirs = (list(getattr(node, field, [])) for node in (old, new))
        matcher = difflib.SequenceMatcher(a=[*map(ast.dump, ours)], b=[*map(ast.dump, theirs)], autojunk=False)
        for tag, i, j, m, n in matcher.get_opcodes():
            if tag == "delete" or (tag == "replace" and j - i > n - m):
                raise Unaligned
            if tag == "replace":
                yield from chain.from_iterable(map(replaced, ours[i:j], theirs[n - (j - i) : n]))


def replaced(one: ast.AST, other: ast.AST) -> Iterator[tuple[ast.stmt, ast.stmt]]:
    """A statement and the one in its place, or those in their blocks."""
    if simple(one) and simple(other):
        yield one, other
    elif type(one) is type(other) and head(one) == head(other):
        yield from aligned(one, other)
    else:
        raise Unaligned


def head(node: ast.AST) -> str:
    """What a compound statement says before its blocks."""
    return " ".join(
        ast.dump(part) for part in ast.iter_child_nodes(node) if not isinstance(part, (ast.stmt, ast.ExceptHandler))
    )


def replayable(statements: Sequence[ast.stmt]) -> str:
    """Statements as a program of their own: what a function returned is kept under a name."""
    lines = []
    for one in statements:
        if isinstance(one, (ast.Return, ast.Expr)) and one.value is not None:
            lines.append(f"returned = {ast.unparse(one.value)}")
        else:
            lines.append(ast.unparse(one))
    return textwrap.dedent("\n".join(lines))


@dataclass(frozen=True, slots=True)
class Texts:
    """A statement in four trees.

    Attributes:
        upstream: as it was.
        alone: with the patch.
        without: with all other patches.
        company: with all patches.
    """

    upstream: str
    alone: str
    without: str
    company: str


def replays(trees: Sequence[Mapping[str, str]], tree: Tree, plain: Plain, probe: Path) -> Iterator[Replay]:
    """Each statement that a patch replaces, run alone on both sides with what the library gave it under torch.

    Args:
        trees: the files as the patch alone, all others, and all together leave them.
        tree: the library.
        plain: interpreters.
        probe: the program.
    """
    python = [name for name in trees[0] if name.endswith(".py") and tree.text(name)]
    some = changed(trees[0], python, tree)
    if not some:
        return
    others = [{(one.file, one.line): one for one in changed(files, python, tree)} for files in trees[1:]]
    tree.fresh({})
    places = [(str(tree.place / one.file), one.line, one.wanted()) for one in some]
    kept = plain.job("torch", capture=str(probe), places=places, seed=0)
    for pair, given in zip(some, kept if isinstance(kept, list) else [[]] * len(some), strict=True):
        if not given:
            yield Replay(unable="the program does not come to it")
        yield from (Replay(unable=one["unwritten"]) for one in given if "unwritten" in one)
        without, company = (found.get((pair.file, pair.line)) for found in others)
        texts = Texts(
            f"{pair.prelude}\n{pair.old}", f"{pair.prelude}\n{pair.new}",
            f"{without.prelude}\n{without.new}" if without else f"{pair.prelude}\n{pair.old}",
            f"{company.prelude}\n{company.new}" if company else f"{pair.prelude}\n{pair.new}",
        )  # fmt: skip
        yield from replayed(pair, texts, [one["space"] for one in given if "space" in one], plain)


def at_sites(sites: Sequence[tuple[str, int]], tree: Tree, plain: Plain, probe: Path) -> list[Replay]:
    """The statements at some lines of the library or of the program, run alone on both sides."""
    tree.fresh({})
    some = [
        (path, pair) for name, line in sites if (path := located(name, tree, probe)) and (pair := statement(path, line))
    ]
    places = [(str(path), pair.line, pair.wanted()) for path, pair in some]
    kept = plain.job("torch", capture=str(probe), places=places, seed=0) if places else []
    done: list[Replay] = []
    for (_, pair), given in zip(some, kept if isinstance(kept, list) else [[]] * len(some), strict=True):
        done += [Replay(unable=one["unwritten"]) for one in given if "unwritten" in one]
        spaces = [one["space"] for one in given if "space" in one][:2]
        done += replayed(pair, Texts(pair.old, pair.old, pair.old, pair.old), spaces, plain)
    return done


def located(name: str, tree: Tree, probe: Path) -> Path | None:
    """A file of the library, or the program."""
    path = probe if name == probe.name else tree.place / name
    return path if path.suffix == ".py" and path.is_file() else None


def statement(path: Path, line: int) -> Pair | None:
    """What a line says: its statement, or what a compound statement asks for."""
    found = statement_at(ast.parse(path.read_text()), line)
    match found:
        case ast.If(test=asked) | ast.While(test=asked) | ast.For(iter=asked):
            text = f"returned = {ast.unparse(asked)}"
        case ast.stmt() if simple(found):
            text = replayable([found])
        case _:
            return None
    return Pair(path.name, found.lineno, text, text)


def changed(files: Mapping[str, str], names: Sequence[str], tree: Tree) -> list[Pair]:
    """All that some files replace in the library."""
    return [one for name in names if name in files for one in pairs(name, tree.text(name), files[name])]


def replayed(pair: Pair, texts: Texts, spaces: Sequence[Mapping[str, Any]], plain: Plain) -> Iterator[Replay]:
    """Both statements on both sides, and under torch with other inputs too; one process for each side."""
    versions = {"torch": (texts.upstream, texts.alone), "paddle": (texts.without, texts.company)}
    runs: dict[Key, Answer] = {}
    for side, variants in (("torch", ("", *VARIANTS)), ("paddle", ("",))):
        keys = [Key(side, number, v, new) for number in range(len(spaces)) for v in variants for new in (0, 1)]
        jobs = [
            {"text": versions[side][k.new], "space": spaces[k.number], "variant": k.variant, "made": pair.made()}
            for k in keys
        ]
        answer = plain.job(side, replay=jobs) if jobs else []
        runs |= dict(zip(keys, answer if isinstance(answer, list) else [answer] * len(keys), strict=True))
    for number in range(len(spaces)):
        yield replay_of({key: one for key, one in runs.items() if key.number == number}, number, pair.old)


class Key(NamedTuple):
    """Which replay: the side, the occurrence, the variant of its inputs, and whether the patch is in it."""

    side: str
    number: int
    variant: str
    new: int


def replay_of(runs: Mapping[Key, Answer], number: int, upstream: str) -> Replay:
    """The replays of one occurrence."""
    for answer in runs.values():
        if isinstance(answer, dict) and "unbuilt" in answer:
            return Replay(unable=answer["unbuilt"])
    done = {key: run_of(answer) for key, answer in runs.items()}
    sides = {s: (done[Key(s, number, "", 0)], done[Key(s, number, "", 1)]) for s in ("torch", "paddle")}
    others = {v: (done[Key("torch", number, v, 0)], done[Key("torch", number, v, 1)]) for v in VARIANTS}
    return Replay(sides["torch"], sides["paddle"], others, upstream)
