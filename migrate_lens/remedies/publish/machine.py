"""The last diagnosis' environments in; what an issue says of the machine, with no names in it, out."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess

from migrate_lens.model.report import Environment
from migrate_lens.remedies.publish.issue import Facts


def facts(torch: Environment, paddle: Environment, machine: str) -> Facts:
    """Versions of everything that may matter; empty for what is not there.

    Args:
        torch: its side of the diagnosis.
        paddle: its side.
        machine: the platform, as Python names it.
    """
    driver = _line(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"])
    return Facts(
        paddle=paddle.version,
        paddle_commit=paddle.commit,
        torch=torch.version,
        python=paddle.python,
        cuda="" if paddle.device == "cpu" else _cuda(),
        driver=driver,
        system=_system(machine),
        compiler=_line(["g++", "--version"]),
    )


def _cuda() -> str:
    release = re.search(r"release ([\d.]+)", _output(["nvcc", "--version"]))
    return release[1] if release else "?"


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
        process = subprocess.run(
            command, capture_output=True, text=True, timeout=20, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout if process.returncode == 0 else ""
