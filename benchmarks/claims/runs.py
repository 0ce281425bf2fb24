"""Plain interpreters of both sides: a program or a question in; how it ended and what it saw, for the judges, out."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .judges import Ending, Run, Seen, inner

PLAIN = Path(__file__).resolve().parent / "plain.py"
FRAME = re.compile(r'^ *File "([^"]+)", line (\d+)', re.MULTILINE)
ERROR = re.compile(r"^([A-Za-z_][\w.]*)(?::[ \n]?([\s\S]*))?$", re.MULTILINE)
Answer = dict[str, Any] | list[Any] | Ending


class Plain:
    """Plain interpreters of both sides, and where they look for modules.

    Args:
        folder: for jobs and answers.
        paths: of the library and what it needs.
        limit: seconds for one run.
    """

    def __init__(self, folder: Path, paths: Sequence[Path], limit: float = 180.0) -> None:
        self.folder, self.paths, self.limit = folder, [str(path) for path in paths], limit
        folder.mkdir(parents=True, exist_ok=True)

    def job(self, side: str, **asked: Any) -> Answer:
        """What ``plain`` answers, or how it died."""
        job, out = self.folder / "job.json", self.folder / "out.json"
        out.unlink(missing_ok=True)
        job.write_text(json.dumps({"side": side, "paths": self.paths, **asked}))
        ending = self.started([sys.executable, "-X", "faulthandler", str(PLAIN), str(job), str(out)], self.folder)
        return json.loads(out.read_text()) if out.exists() else ending

    def run(self, side: str, program: Path, watch: Sequence[Path] = (), seed: int = 0, dtype: str = "") -> Run:
        """A program on one side."""
        files, follow = [str(path) for path in watch], side == "torch"
        return run_of(self.job(side, program=str(program), watch=files, seed=seed, follow=follow, dtype=dtype))

    def started(self, command: Sequence[str], folder: Path) -> Ending:
        """How a command ends in a folder, read off its traceback; nothing of ours is on its path."""
        env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        env |= {"PYTHONDONTWRITEBYTECODE": "1", "GLOG_minloglevel": "3", "HF_HUB_OFFLINE": "1"}
        with subprocess.Popen(
            command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, errors="replace",
        ) as process:  # fmt: skip
            try:
                _, err = process.communicate(timeout=self.limit)
            except subprocess.TimeoutExpired:
                process.kill()
                return Ending("timeout", f"after {self.limit:.0f} s")
        return read_ending(process.returncode, err)


def read_ending(code: int, err: str) -> Ending:
    """How a process ended, by its status and the last traceback that it printed."""
    if code == 0:
        return Ending()
    block = err[max(err.rfind("Traceback (most recent call last)"), 0) :]
    if code < 0:
        died = err[max(err.rfind("Fatal Python error"), 0) :]
        frames = tuple((path, int(line)) for path, line in reversed(FRAME.findall(died)))
        return Ending(signal.Signals(-code).name, "", frames)
    frames = tuple((path, int(line)) for path, line in FRAME.findall(block))
    found = ERROR.search(block)
    name, message = (found[1], found[2] or "") if found else (f"exit status {code}", "")
    return inner(Ending(name.rpartition(".")[2], message.strip(), frames))


def ending_of(one: Mapping[str, Any]) -> Ending:
    """An ending as ``plain`` wrote it."""
    frames = tuple((path, line) for path, line in one["frames"])
    return inner(Ending(one["error"], one["message"], frames, one.get("spot", "")))


def run_of(answer: Answer) -> Run:
    """A run as ``plain`` wrote it, or as it died."""
    if isinstance(answer, Ending):
        return Run(answer)
    if isinstance(answer, list):
        return Run(Ending("answer", "several answers to one question"))
    lines = frozenset((path, line) for path, line in answer.get("lines", ()))
    return Run(ending_of(answer["ending"]), lines, {path: seen_of(one) for path, one in answer["seen"].items()})


def seen_of(one: Mapping[str, Any]) -> Seen:
    """A value as ``plain`` wrote it."""
    grad = one.get("grad")
    return Seen(
        one["kind"], one.get("dtype", ""), tuple(one.get("shape", ())), one.get("requires_grad", False),
        tuple(one.get("values", ())), None if grad is None else tuple(grad),
    )  # fmt: skip
