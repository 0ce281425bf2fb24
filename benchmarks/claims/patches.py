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
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeGuard

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
    unsteady,
)  # fmt: skip
from .runs import Answer, Plain, run_of

DTYPES = ("float64", "bfloat16")
VARIANTS = ("float64", "float16", "bfloat16", "ties")


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


def merged(base: str, one: str, other: str) -> str | None:
    """Two changes of one text; None where they meet."""
    if one == other:
        return one
    edits = sorted([*changes(base, one), *changes(base, other)])
    if any(a[1] > b[0] or a[:2] == b[:2] for a, b in pairwise(edits)):
        return None
    lines = base.splitlines(keepends=True)
    for start, end, new in reversed(edits):
        lines[start:end] = new
    return "".join(lines)


def changes(base: str, other: str) -> list[tuple[int, int, list[str]]]:
    """What is put where: first line, line behind the last, the new lines."""
    old, new = base.splitlines(keepends=True), other.splitlines(keepends=True)
    matcher = difflib.SequenceMatcher(a=old, b=new, autojunk=False)
    return [(i, j, new[m:n]) for tag, i, j, m, n in matcher.get_opcodes() if tag != "equal"]


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
            alone = judge_replays(gaps[gap], list(replays(files, self.tree, self.plain, self.probe)))
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
    """What a patch replaces by what, statement by statement; nothing where it changes more than simple statements."""
    old, new = ast.parse(before), ast.parse(after)
    top = {ast.unparse(one) for one in old.body}
    prelude = "\n".join(text for one in new.body if simple(one) and (text := ast.unparse(one)) not in top)
    matcher = difflib.SequenceMatcher(a=before.splitlines(), b=after.splitlines(), autojunk=False)
    found = []
    for tag, i, j, m, n in matcher.get_opcodes():
        ours, theirs = at_lines(old, i, max(j, i + 1)), at_lines(new, m, max(n, m + 1))
        if tag == "insert" and theirs:  # what was put in front of a statement goes with it
            ours, theirs = at_lines(old, i, i + 1), at_lines(new, m, n + 1)
        if tag == "equal" or not ours or not theirs or all(one in new.body for one in theirs):
            continue
        found.append(Pair(name, ours[0].lineno, replayable(ours), replayable(theirs), prelude))
    return [one for one in found if one.old != one.new]


def at_lines(tree: ast.Module, start: int, end: int) -> list[ast.stmt]:
    """The simple statements on some lines, counted from 0."""
    some = [n for n in ast.walk(tree) if simple(n)]
    return sorted((n for n in some if n.lineno <= end and start < (n.end_lineno or n.lineno)), key=lambda n: n.lineno)


def replayable(statements: Sequence[ast.stmt]) -> str:
    """Statements as a program of their own: what a function returned is kept under a name."""
    lines = []
    for one in statements:
        if isinstance(one, (ast.Return, ast.Expr)) and one.value is not None:
            lines.append(f"returned = {ast.unparse(one.value)}")
        else:
            lines.append(ast.unparse(one))
    return textwrap.dedent("\n".join(lines))


def replays(patch: Mapping[str, str], tree: Tree, plain: Plain, probe: Path) -> Iterator[Replay]:
    """Each statement that a patch replaces, run alone on both sides with what the library gave it under torch."""
    python = {name: text for name, text in patch.items() if name.endswith(".py") and tree.text(name)}
    some = [one for name, text in python.items() for one in pairs(name, tree.text(name), text)]
    if not some:
        return
    tree.fresh({})
    places = [(str(tree.place / one.file), one.line, one.wanted()) for one in some]
    kept = plain.job("torch", capture=str(probe), places=places, seed=0)
    for pair, given in zip(some, kept if isinstance(kept, list) else [[]] * len(some), strict=True):
        if not given:
            yield Replay(unable="the program does not come to it")
        yield from (Replay(unable=one["unwritten"]) for one in given if "unwritten" in one)
        yield from replayed(pair, [one["space"] for one in given if "space" in one], plain)


def replayed(pair: Pair, spaces: Sequence[Mapping[str, Any]], plain: Plain) -> Iterator[Replay]:
    """Both statements on both sides, and under torch with other inputs too; one process for each side."""
    texts = [f"{pair.prelude}\n{text}" for text in (pair.old, pair.new)]
    runs: dict[tuple[str, int, str, int], Answer] = {}
    for side, variants in (("torch", ("", *VARIANTS)), ("paddle", ("",))):
        keys = [(side, number, v, new) for number in range(len(spaces)) for v in variants for new in (0, 1)]
        jobs = [{"text": texts[n], "space": spaces[i], "variant": v, "made": pair.made()} for _, i, v, n in keys]
        answer = plain.job(side, replay=jobs) if jobs else []
        runs |= dict(zip(keys, answer if isinstance(answer, list) else [answer] * len(keys), strict=True))
    for number in range(len(spaces)):
        yield replay_of({key: one for key, one in runs.items() if key[1] == number}, number)


def replay_of(runs: Mapping[tuple[str, int, str, int], Answer], number: int) -> Replay:
    """The replays of one occurrence."""
    for answer in runs.values():
        if isinstance(answer, dict) and "unbuilt" in answer:
            return Replay(unable=answer["unbuilt"])
    done = {key: run_of(answer) for key, answer in runs.items()}
    sides = {side: (done[side, number, "", 0], done[side, number, "", 1]) for side in ("torch", "paddle")}
    others = {v: (done["torch", number, v, 0], done["torch", number, v, 1]) for v in VARIANTS}
    return Replay(sides["torch"], sides["paddle"], others)
