"""Everything that a failed build left behind goes in; the one line that says why it failed comes out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from migrate_lens.native.compiler import CompilerCall
from migrate_lens.native.diagnostics import Diagnostic, Kind, parse
from migrate_lens.native.process import Ran
from migrate_lens.native.setup_errors import SetupError

_LIMIT = 300
_WRAPPERS = ("CalledProcessError", "CompileError", "LinkError", "SystemExit", "RuntimeError", "DistutilsExecError")
# pip shows what the build wrote between these two lines, and talks about itself before and after.
_PIP_BOX = re.compile(r"\[\d+ lines of output\]\n(.*?)\n\s*\[end of output\]", re.DOTALL)
_NOISE = re.compile(
    r"^(?:\[notice\]|note:|hint:|See above|error: (?:subprocess-exited|metadata-generation|legacy-install)"
    r"|ERROR: Failed building|ERROR: Could not build wheels|╰─>|× |│|\s*$|.*This error originates)"
)


def failure_line(source: Path, calls: Sequence[CompilerCall], errors: Sequence[SetupError], ran: Ran) -> str:
    """The first thing that went wrong: an exception of setup, a compiler's error, a linker's, else the last line."""
    for error in errors:
        root = error.root
        if root.kind not in _WRAPPERS:
            return _short(f"{_place(root, source)}{root.kind}: {root.message}")
    if line := _compiler_line(source, calls):
        return line
    for error in errors:
        if error.message:
            return _short(f"{_place(error, source)}{error.kind}: {error.message}")
    return _last_line(ran)


def _compiler_line(source: Path, calls: Sequence[CompilerCall]) -> str:
    failed = [call for call in calls if call.returncode != 0]
    failed.sort(key=lambda call: call.links)
    for call in failed:
        diagnostics = parse(call.stderr, call.cwd, lambda path: path.is_relative_to(source))
        first = next((diagnostic for diagnostic in diagnostics if _fails(diagnostic)), None)
        if first is not None:
            return _short(describe(first, source))
        if call.name == "cmake" and (match := re.search(r"CMake Error.*(?:\n+\s+.*){0,2}", call.stderr)):
            return _short(match[0])
        if call.stderr.strip():
            return _short(call.stderr.strip().splitlines()[-1])
    return ""


def went_under(call: CompilerCall) -> bool:
    """Whether a failed call says nothing of the source: the compiler broke, was killed, or was mute."""
    diagnostics = parse(call.stderr, call.cwd, lambda path: True)
    return not call.stderr.strip() or any(diagnostic.kind is Kind.COMPILER for diagnostic in diagnostics)


def _fails(diagnostic: Diagnostic) -> bool:
    return diagnostic.kind is not Kind.UNDEFINED_MACRO


def describe(diagnostic: Diagnostic, source: Path) -> str:
    """``csrc/ext.cc:11:3: message``, with the path as the user knows it."""
    place = diagnostic.site or diagnostic.at
    if place is None:
        return diagnostic.message
    path = place.path.relative_to(source) if place.path.is_relative_to(source) else place.path
    return f"{path}:{place.line}:{place.column}: {diagnostic.message}"


def _place(error: SetupError, source: Path) -> str:
    for frame in reversed(error.frames):
        path = Path(frame.file)
        if path.is_relative_to(source):
            return f"{path.relative_to(source)}:{frame.line}: "
    return ""


def _last_line(ran: Ran) -> str:
    boxed = _PIP_BOX.findall(ran.output)
    text = boxed[-1] if boxed else ran.output
    lines = [line.strip() for line in text.splitlines() if not _NOISE.match(line.strip())]
    said = [line for line in lines if re.match(r"(?:\w+\.)*\w*(?:Error|Exception|error|ERROR)\b", line)]
    return _short((said or lines or [f"exit status {ran.returncode}"])[-1])


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LIMIT else line[: _LIMIT - 3] + "..."
