"""Replacements and the text of their comment in; the changed files and a unified diff that ``git apply`` takes out."""

from __future__ import annotations

import ast
import difflib
import io
import textwrap
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from migrate_lens.remedies import templates
from migrate_lens.remedies.fix.slots import Edit, apply, first_line, line_starts
from migrate_lens.remedies.fix.trials import Replacement

_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Comment:
    """What stands above a workaround.

    Attributes:
        owner: who, or which issue.
        api: what Paddle must support before it can go.
        solves: what it solves.
        why: why now, and why this is the same.
        delete: how to delete it.
    """

    owner: str
    api: str
    solves: str
    why: str
    delete: str


def patched(data: bytes, groups: Sequence[tuple[Sequence[Replacement], Comment]]) -> bytes:
    """A file with replacements and, above each statement that has one, the comment of its group."""
    newline = "\r\n" if data.count(b"\r\n") * 2 > data.count(b"\n") else "\n"
    edits: list[Edit] = []
    for replacements, comment in groups:
        if replacements[0].path.suffix == ".py":
            edits += _in_python(data, replacements, comment, newline)
        else:
            edits += [_commented(one.edit, comment, newline) for one in replacements]
    return apply(data, edits)


def _in_python(data: bytes, replacements: Sequence[Replacement], comment: Comment, newline: str) -> Iterator[Edit]:
    """The edits of a group, and a comment above each statement that is changed."""
    preludes = dict.fromkeys(one.candidate.prelude for one in replacements if one.candidate.prelude)
    changed: dict[int, list[str]] = {}
    for one in replacements:
        if one.edit.start == one.edit.end:
            yield _topped(one.edit, comment)
        else:
            yield one.edit
            changed.setdefault(_line_of(data, one.edit), []).extend(_comments_lost(data, one.edit))
    starts = line_starts(data)
    for line in sorted(changed):
        start = starts[line - 1]
        rest = data[start:]
        indent = rest[: len(rest) - len(rest.lstrip(b" \t"))].decode("utf-8", errors="surrogateescape")
        words = [*words_of(comment, _WIDTH - len(indent)), *changed[line], *preludes]
        yield Edit(start, start, newline.join(indent + word for word in words) + newline)


def _comments_lost(data: bytes, made: Edit) -> list[str]:
    """The user's comments in a span that an edit replaces, which its text does not have."""
    span = data[made.start : made.end].decode("utf-8", errors="surrogateescape")
    if "#" not in span:
        return []
    readline = io.StringIO(f"({span}\n)\n").readline
    comments = [token.string for token in tokenize.generate_tokens(readline) if token.type == tokenize.COMMENT]
    return [comment for comment in comments if comment not in made.text]


def patched_alone(data: bytes, one: Replacement) -> bytes:
    """A file with one replacement and no comment, for a trial."""
    return apply(data, [one.edit])


def _topped(made: Edit, comment: Comment) -> Edit:
    """Lines that are put in, with the comment above them."""
    newline = "\r\n" if "\r\n" in made.text else "\n"
    body = made.text.lstrip("\r\n")
    head = made.text[: len(made.text) - len(body)]
    return replace(made, text=head + newline.join([*words_of(comment, _WIDTH), body]))


def _commented(made: Edit, comment: Comment, newline: str) -> Edit:
    """A native edit with the comment above it, in one edit, so that it stands at the very place."""
    words = newline.join("//" + line[1:] for line in words_of(comment, _WIDTH))
    text = made.text.replace("\n", newline) if newline != "\n" and "\r\n" not in made.text else made.text
    if text.startswith(newline):
        return replace(made, text=newline + words + text)
    return replace(made, text=words + newline + text)


def words_of(comment: Comment, width: int) -> list[str]:
    """The comment as lines."""
    text = templates.render("workaround.txt.j2", {"c": comment})
    todo, *others = text.strip().splitlines()
    lines = [f"# {todo}"]
    for paragraph in others:
        filled = textwrap.wrap(paragraph, max(width, 40), break_long_words=False, break_on_hyphens=False)
        lines += [f"# {line}" if n == 0 else f"#   {line}" for n, line in enumerate(filled)]
    return lines


def _line_of(data: bytes, made: Edit) -> int:
    """The line on which the innermost statement around an edit begins, where it begins its line."""
    starts = line_starts(data)
    lines = [1]
    for node in ast.walk(ast.parse(data)):
        if isinstance(node, ast.stmt) and _encloses(node, made, data, starts):
            lines.append(first_line(node))
    return max(lines)


def _encloses(node: ast.stmt, made: Edit, data: bytes, starts: Sequence[int]) -> bool:
    """Whether a statement is around an edit, and the first on its line."""
    if node.end_lineno is None or node.end_col_offset is None:
        return False
    line = starts[node.lineno - 1]
    leads = not data[line : line + node.col_offset].strip()
    begin, end = starts[first_line(node) - 1], starts[node.end_lineno - 1] + node.end_col_offset
    return leads and begin <= made.start and made.end <= end


def diff(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> str:
    """A unified diff of changed files, by path relative to the library."""
    parts = []
    for path, before in old.items():
        after = new[path]
        if before != after:
            parts.extend(_one(path if before else "", path, _lines(before), _lines(after)))
    return "".join(parts)


def _lines(data: bytes) -> list[str]:
    text = data.decode("utf-8", errors="surrogateescape")
    lines = text.split("\n")
    whole, last = [line + "\n" for line in lines[:-1]], lines[-1]
    return [*whole, last] if last else whole


def _one(old: str, new: str, before: list[str], after: list[str]) -> list[str]:
    """One file of a diff; a file that was not there, or was empty, has no old name."""
    lines = difflib.unified_diff(before, after, f"a/{old}" if old else "/dev/null", f"b/{new}")
    return [line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines]


def relative(path: Path, root: Path) -> str:
    """A path as the diff names it."""
    return path.resolve().relative_to(root.resolve()).as_posix()
