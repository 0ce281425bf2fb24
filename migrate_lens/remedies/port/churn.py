"""Two revisions of a port in; its edits by layer, and edits that have nothing to do with the port, out."""

from __future__ import annotations

import ast
import re
import subprocess
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from migrate_lens.model.errors import UsageError
from migrate_lens.model.report import Layer

_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")
_BUILD = re.compile(
    r"(^|/)(setup\.(py|cfg)|pyproject\.toml|CMakeLists\.txt|MANIFEST\.in|requirements[\w-]*\.txt|.*\.cmake)$"
)
_NATIVE = re.compile(r"\.(cc|cpp|cxx|cu|cuh|h|hpp)$")
_COMMENT = re.compile(r"^\s*(#|//|\*|/\*|$)")


@dataclass(frozen=True, slots=True)
class Hunk:
    """One edit: where it is now, and the lines before and after."""

    path: str
    line: int
    removed: tuple[str, ...]
    added: tuple[str, ...]

    @property
    def layer(self) -> Layer:
        """The layer that it touches."""
        text = "\n".join((*self.removed, *self.added))
        if _BUILD.search(self.path):
            return Layer.BUILD
        if re.search(r"TORCH_LIBRARY|torch\.(ops|library)\b", text):
            return Layer.OP_REGISTRY
        if _NATIVE.search(self.path):
            return Layer.CPP_API
        if re.search(r"\bpaddle\b|enable_compat|import torch\b|from torch\b", text):
            return Layer.PYTHON_PROXY
        return Layer.PYTHON_INTERFACE

    @property
    def churn(self) -> str:
        """Why it has nothing to do with the port; empty where it may."""
        before, after = (_squeezed(lines) for lines in (self.removed, self.added))
        if before == after:
            return "white space only"
        if all(_COMMENT.match(line) for line in (*self.removed, *self.added)):
            mentions = re.search(r"(?i)workaround|paddle|compat", "\n".join(self.added))
            return "" if mentions else "comments only"
        return _same_syntax(self.removed, self.added)


def _squeezed(lines: tuple[str, ...]) -> str:
    return re.sub(r"\s+", "", "".join(lines))


def _same_syntax(before: tuple[str, ...], after: tuple[str, ...]) -> str:
    try:
        same = _syntax(before) == _syntax(after)
    except (SyntaxError, ValueError):
        return ""
    return "formatting only" if same and before and after else ""


def _syntax(lines: tuple[str, ...]) -> str:
    return ast.dump(ast.parse(textwrap.dedent("\n".join(lines))))


def hunks(root: Path, base: str) -> tuple[Hunk, ...]:
    """All edits of a working tree since a revision; files that are new count whole.

    Raises:
        UsageError: it is no git tree, or there is no such revision.
    """
    options = ("--unified=0", "--no-color", "--no-ext-diff", "--relative")
    git = subprocess.run(
        ["git", "-C", str(root), "diff", *options, base, "--", "."],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if git.returncode:
        reason = next(iter(git.stderr.strip().splitlines()), "git failed")
        raise UsageError(f"--base {base}: {reason}", "name a commit of the tree at PATH")
    return tuple(_hunks(git.stdout))


def _hunks(diff: str) -> Iterator[Hunk]:
    """The edits of a diff without context; where one begins, the one before it is over."""
    path, line = "", 0
    lines: list[str] = []
    for text in diff.splitlines():
        start = _HUNK.match(text)
        if (start or text.startswith("diff ")) and lines:
            yield _hunk(path, line, lines)
            lines = []
        if start:
            line = int(start[1])
        elif text.startswith(("+++ b/", "--- a/")):
            path = text[6:]
        elif text.startswith(("+++ ", "--- ")):
            continue
        elif text.startswith(("+", "-")):
            lines.append(text)
    if lines:
        yield _hunk(path, line, lines)


def _hunk(path: str, line: int, lines: list[str]) -> Hunk:
    removed = tuple(text[1:] for text in lines if text.startswith("-"))
    added = tuple(text[1:] for text in lines if text.startswith("+"))
    return Hunk(path, line, removed, added)


def changed_lines(edits: tuple[Hunk, ...]) -> dict[str, set[int]]:
    """Lines that were added or changed, by path."""
    lines: dict[str, set[int]] = {}
    for hunk in edits:
        lines.setdefault(hunk.path, set()).update(range(hunk.line, hunk.line + len(hunk.added)))
    return lines
