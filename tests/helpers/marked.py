"""What a test starts, in; a failure that names the mark which the test lacks, out.

An audit hook watches the test's own process and, by way of ``sitecustomize.py`` beside this file, the interpreters that
it starts: real torch or Paddle belongs to tests marked ``real``, a compiler to those marked ``native``.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

MARKS = frozenset({"real", "native"})
LACKING = "MIGRATE_LENS_TEST_LACKS"
OFFENCES = "MIGRATE_LENS_TEST_OFFENCES"

_FRAMEWORK = re.compile(r"(?:site|dist)-packages/(?:torch|paddle)/__init__\.py$")
_WORKER = "worker/run/boot.py"
_COMPILERS = frozenset({"cc", "c++", "gcc", "g++", "clang", "clang++", "nvcc", "hipcc", "ninja", "cmake"})


def watch(refuse: Callable[[str], object]) -> None:
    """Look at what this interpreter runs and starts from now on; a hook stays for its lifetime.

    Args:
        refuse: raises what no ``except Exception`` hides.
    """
    sys.addaudithook(lambda event, given: _judge(event, given, refuse))


def _judge(event: str, given: tuple[Any, ...], refuse: Callable[[str], object]) -> None:
    if event not in ("exec", "subprocess.Popen") or not os.environ.get(LACKING):
        return
    needed, what = _program(given[0]) if event == "exec" else _command(*given)
    if needed in os.environ[LACKING].split():
        message = f"it {what}, so it needs pytest.mark.{needed}"
        if OFFENCES in os.environ:
            with open(os.environ[OFFENCES], "a", encoding="utf-8") as file:
                file.write(f"{message}\n")
        refuse(message)


def _program(code: Any) -> tuple[str, str]:
    """The mark that running a module's code needs."""
    path = str(getattr(code, "co_filename", ""))
    if _FRAMEWORK.search(path):
        return "real", f"imports {path}"
    return "", ""


def _command(executable: Any, arguments: Any, _folder: Any, environment: Any) -> tuple[str, str]:
    """The mark that starting a process needs."""
    words = [arguments] if isinstance(arguments, str | bytes | os.PathLike) else list(arguments)
    names = [os.fsdecode(word) for word in words]
    for name in names:
        if name.endswith(_WORKER) and not _is_ours(os.fsdecode(executable)):
            return "real", f"starts a worker ({name})"
    path = (os.environ if environment is None else environment).get("PATH")
    program = shutil.which(os.fsdecode(executable), path=path) or ""
    if Path(program).name in _COMPILERS and not _is_ours(program):
        return "native", f"starts {program}"
    return "", ""


def _is_ours(program: str) -> bool:
    """Whether a program is one that a test has written for itself."""
    return os.path.abspath(program).startswith(os.path.join(tempfile.gettempdir(), ""))


def lacking(marks: Iterable[str]) -> str:
    """The marks that a test has not."""
    return " ".join(sorted(MARKS - set(marks)))


def committed() -> list[str]:
    """What was done without its mark since this was asked last."""
    offences = Path(os.environ[OFFENCES])
    if not offences.exists():
        return []
    lines = offences.read_text("utf-8").splitlines()
    offences.unlink()
    return sorted(set(lines))
