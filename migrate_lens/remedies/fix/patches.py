"""Replacements and the text of their comment in; the changed files and a unified diff that ``git apply`` takes out."""

from __future__ import annotations

import ast
import difflib
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from migrate_lens.remedies.fix.fixing import Replacement
from migrate_lens.remedies.fix.slots import Edit, apply, line_starts
from migrate_lens.remedies.publish.issue import render_template

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
    newline = b"\r\n" if data.count(b"\r\n") * 2 > data.count(b"\n") else b"\n"
    starts = line_starts(data)
    edits: list[Edit] = []
    for made, comment in groups:
        if made[0].path.suffix != ".py":
            edits += [_commented(data, one.edit, comment, newline) for one in made]
            continue
        edits += [_topped(one.edit, comment) if one.edit.start == one.edit.end else one.edit for one in made]
        for line in sorted({_line_of(data, one.edit) for one in made if one.edit.start < one.edit.end}):
            start = starts[line - 1]
            indent = data[start : start + len(data[start:]) - len(data[start:].lstrip(b" \t"))]
            preludes = dict.fromkeys(o.candidate.prelude for o in made if o.candidate.prelude)
            words = [*words_of(comment, _WIDTH - len(indent)), *preludes]
            text = newline.join(indent + w.encode() for w in words) + newline
            edits.append(Edit(start, start, text.decode("utf-8", errors="surrogateescape")))
    return apply(data, edits)


def patched_alone(data: bytes, one: Replacement) -> bytes:
    """A file with one replacement and no comment, for a trial."""
    return apply(data, [one.edit])


def _topped(made: Edit, comment: Comment) -> Edit:
    """Lines that are put in, with the comment above them."""
    break_ = "\r\n" if "\r\n" in made.text else "\n"
    body = made.text.lstrip("\r\n")
    head = made.text[: len(made.text) - len(body)]
    return replace(made, text=head + break_.join([*words_of(comment, _WIDTH), body]))


def _commented(data: bytes, made: Edit, comment: Comment, newline: bytes) -> Edit:
    """A native edit with the comment above it, in one edit, so that it stands at the very place."""
    break_ = newline.decode()
    words = break_.join("//" + line[1:] for line in words_of(comment, _WIDTH))
    text = made.text.replace("\n", break_) if break_ != "\n" and "\r\n" not in made.text else made.text
    if text.startswith(break_):
        return replace(made, text=break_ + words + text)
    return replace(made, text=words + break_ + text)


def words_of(comment: Comment, width: int) -> list[str]:
    """The comment as lines."""
    text = render_template("workaround.txt.j2", {"c": comment}, None)
    todo, *others = text.strip().splitlines()
    lines = [f"# {todo}"]
    for paragraph in others:
        filled = textwrap.wrap(paragraph, max(width, 40), break_long_words=False, break_on_hyphens=False)
        lines += [f"# {line}" if n == 0 else f"#   {line}" for n, line in enumerate(filled)]
    return lines


def _line_of(data: bytes, made: Edit) -> int:
    """The line on which the innermost statement around an edit begins, where it begins its line."""
    starts = line_starts(data)
    best = 1
    for node in ast.walk(ast.parse(data)):
        if not isinstance(node, ast.stmt) or node.end_lineno is None:
            continue
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        begin = starts[first - 1]
        end = starts[node.end_lineno - 1] + (node.end_col_offset or 0)
        own = starts[node.lineno - 1] + node.col_offset
        leads = not data[starts[node.lineno - 1] : own].strip()
        if begin <= made.start and made.end <= end and leads:
            best = max(best, first)
    return best


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
    kept = [line + "\n" for line in lines[:-1]]
    return kept + ([lines[-1]] if lines[-1] else [])


def _one(old: str, new: str, before: list[str], after: list[str]) -> list[str]:
    """One file of a diff; a file that was not there, or was empty, has no old name."""
    found = []
    for line in difflib.unified_diff(before, after, f"a/{old}" if old else "/dev/null", f"b/{new}"):
        found.append(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n")
    return found


def relative(path: Path, root: Path) -> str:
    """A path as the diff names it."""
    return path.resolve().relative_to(root.resolve()).as_posix()
