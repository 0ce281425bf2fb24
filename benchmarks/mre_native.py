"""Labelled extensions in; the share whose gap has a reproduction that anybody can build and run, out.

Each case is diagnosed and its issues are emitted through the command line. Then each emitted folder is copied to an
empty one and run on both sides by a script that knows nothing else: ``python mre.py``, and the same with compat
switched on. It counts when it passes under torch and fails under Paddle with an error that names what the label names.
Answers are kept by case below WORK, so that a run goes on where it was stopped.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PADDLE = "import runpy, sys, paddle; paddle.enable_compat(); runpy.run_path(sys.argv[1], run_name='__main__')"
_LEFT = shutil.ignore_patterns("issue.md", "note.md", "*.log", "mre.json")
_LIMIT = 900
_ERROR = re.compile(r"error:|undefined symbol|cannot find|Error\b|double free|corruption|Aborted")
_COMMON = frozenset(("at", "torch", "c10", "tensor", "std", "the", "a", "of", "with", "and", "run", "h"))


def words(text: str) -> set[str]:
    """The names in a text that tell it from others."""
    return {w.lower().strip("_") for w in re.findall(r"[A-Za-z_]\w+", text)} - _COMMON


def emitted(root: Path, case: dict[str, Any], work: Path) -> float:
    """Diagnose a case and emit all its issues; the seconds that emitting took."""
    tool = str(Path(sys.executable).with_name("migrate-lens"))
    work.mkdir(parents=True, exist_ok=True)
    if not (work / ".migrate-lens" / "report.json").exists():
        subprocess.run(
            [tool, "diagnose", str(root / case["dir"])], capture_output=True, timeout=_LIMIT, cwd=work, check=False
        )
    shutil.rmtree(work / "issues", ignore_errors=True)
    start = time.monotonic()
    done = subprocess.run(
        [tool, "issue", "--emit", "--all"], capture_output=True, text=True, timeout=3 * _LIMIT, cwd=work, check=False
    )
    (work / "issue.out").write_text(done.stdout + done.stderr)
    return time.monotonic() - start


def held(folder: Path, case: dict[str, Any]) -> str:
    """Run one emitted folder on both sides; why it does not count, empty where it does."""
    ours = _run(folder, [])
    if ours.returncode:
        return f"fails under torch: {(ours.stdout + ours.stderr)[-300:]}"
    theirs = _run(folder, ["-c", PADDLE])
    if theirs.returncode == 0:
        return "passes under Paddle"
    output = theirs.stdout + theirs.stderr
    said = "\n".join(line for line in output.splitlines() if _ERROR.search(line))
    if theirs.returncode < 0 or words(said) & words(case["construct"]) or _same(said, case["paddle_outcome"]):
        return ""
    return f"fails otherwise: {said[-300:]}"


def _same(said: str, label: str) -> bool:
    """Whether an error is of the type that was labelled."""
    unlinked = re.findall(r"cannot find -l\w+", label)
    if unlinked:
        return any(one in said for one in unlinked)
    header = re.search(r"fatal error: (\S+): No such file", label)
    if header:
        return header[1] in said
    labelled = set(re.findall(r"\b\w+(?:Error|Exception)\b", label))
    return bool(labelled & set(re.findall(r"\b\w+(?:Error|Exception)\b", said))) or label.startswith("ok")


def _run(folder: Path, switch: list[str]) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as clean:
        shutil.copytree(folder, clean, ignore=_LEFT, dirs_exist_ok=True)
        command = [sys.executable, *switch, "mre.py"]
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_LIMIT, cwd=clean, check=False
        )


def measure(cases: Path, only: str, every: int, work: Path, checked: int) -> int:
    """Go through the cases that have a gap; those with an answer in WORK are not run again.

    Args:
        cases: their file.
        only: a pattern that their ids must have.
        every: take each so-manieth.
        work: where answers are kept.
        checked: run each so-manieth again by itself; of the others the tool's own runs count, which are the same two.
    """
    chosen = [json.loads(line) for line in cases.read_text().splitlines() if line.strip()]
    chosen = [c for c in chosen if c["stage"] not in ("agrees", "baseline")]
    chosen = [c for c in chosen if re.search(only, c["id"])][::every]
    good, seconds = 0, []
    for number, case in enumerate(chosen):
        answer = work / case["id"] / "answer.json"
        if not answer.exists():
            answer.parent.mkdir(parents=True, exist_ok=True)
            took = emitted(cases.parent, case, work / case["id"])
            folders = [p for p in sorted((work / case["id"]).glob("issues/*/")) if (p / "mre.json").exists()]
            said = {p.name: held(p, case) if number % checked == 0 else "" for p in folders}
            answer.write_text(json.dumps({"seconds": took, "said": said}, indent=1))
        known = json.loads(answer.read_text())
        held_ = [name for name, why in known["said"].items() if not why]
        good += bool(held_)
        seconds.append(known["seconds"])
        print(
            f"--- {case['id']}: {'reproduced by ' + held_[0] if held_ else known['said'] or 'nothing emitted'}",
            flush=True,
        )
    print(f"reproduced {good}/{len(chosen)}; median {statistics.median(seconds or [0]):.0f} s to emit a case")
    return int(good < 0.85 * len(chosen))
