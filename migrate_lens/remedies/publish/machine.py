"""The last diagnosis' environments in; what an issue says of the machine, with no names in it, out."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

from migrate_lens.remedies.publish.issue import Facts

_NONE = "none (CPU only)"


def facts(environment: Mapping[str, Any]) -> Facts:
    """Versions of everything that may matter; what is not there is said to be none."""
    torch, paddle = environment["torch"], environment["paddle"]
    on_gpu = paddle["device"] != "cpu"
    driver = _line(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"])
    return Facts(
        paddle=paddle["version"], paddle_commit=paddle["commit"], torch=torch["version"], python=paddle["python"],
        cuda=_cuda() if on_gpu else _NONE, driver=driver or "none", system=_system(environment["platform"]),
        compiler=_line(["g++", "--version"]) or "none",
    )  # fmt: skip


def _cuda() -> str:
    found = re.search(r"release ([\d.]+)", _output(["nvcc", "--version"]))
    return found[1] if found else "present, no nvcc on PATH"


def _system(shown: str) -> str:
    try:
        release = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:  # not a Linux, or one that does not say what it is
        release = ""
    return f"{release} {platform.machine()}".strip() if release else re.sub(r"[-_.][\w.]*$", "", shown)


def _line(command: list[str]) -> str:
    return next(iter(_output(command).splitlines()), "").strip()


def _output(command: list[str]) -> str:
    if shutil.which(command[0]) is None:
        return ""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=20, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
