"""This process in; what names its user and its machine, and what its environment holds, out."""

from __future__ import annotations

import builtins
import contextlib
import getpass
import keyword
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

SHORT = 3  # a name of so many letters is too short to be told from other words
_ORDINARY = frozenset(("root", "user", "admin", "localhost", "runner", "paddle", "torch", "python", ""))
# Variables whose values say how a terminal, a locale or a process is set, and nothing about anybody.
_HARMLESS = re.compile(
    r"(?:LC_.*|LANG(?:UAGE)?|TERM.*|COLORTERM|COLUMNS|LINES|SHLVL|LS_COLORS|LESS.*|EDITOR|VISUAL|PAGER|TZ|_|PS\d|IFS"
    r"|(?:OMP|MKL|KMP|GLOG|FLAGS|CUDA|NVIDIA|NCCL|PYTORCH|PADDLE|MIGRATE_LENS|PYTEST)_.*|PYTHON.*|C(?:C|XX)(?:FLAGS)?|MAKE\w*"
    r"|(?:XDG_|DBUS_|SSH_AUTH|WSL_|GPG_)\w*|DISPLAY|OSTYPE|HOSTTYPE|MACHTYPE|DEBIAN_FRONTEND|CI)$"
)
_TELLING = re.compile(
    r"(?i)token|secret|passw|pwd$|key|auth|cred|cookie|session|dsn|webhook|salt|private|cert|signature"
)
_PLAIN = re.compile(
    r"[\d.,:+-]{1,11}|(?i:true|false|yes|no|on|off|none|null|auto|always|never|linux(?:-gnu)?|x86_64|aarch64)"
)
_SYSTEM = re.compile(
    r"/?|/(?:root|tmp|var|usr|bin|sbin|lib\d*|etc|opt|home|dev|proc|sys|mnt|srv|run)"
    r"(?:/(?:local|bin|sbin|lib\d*|tmp|null|share))*"
)
_WORDS = frozenset((
    *sys.stdlib_module_names, *keyword.kwlist, *dir(builtins), "pytorch", "paddlepaddle", "inductor", "eager",
    "float16", "float32", "float64", "bfloat16", "production", "development", "testing", "default", "disabled",
    "enabled", "verbose", "warning", "bilinear", "bicubic", "nearest", "reflect", "replicate", "constant", "circular",
    "gradient", "function", "module", "library", "tensor", "device", "python3", "noninteractive", "github", "ubuntu",
    "debian",
))  # fmt: skip
_USERS = ("USER", "LOGNAME", "USERNAME", "GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME")
_LEAST, _LEAST_TELLING = 6, 4


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What must not be published of this process.

    Attributes:
        values: values of variables, the longest first.
        folders: folders that variables name, the longest first.
        people: names of its user.
        machines: names of its machine.
        home: its user's folder.
    """

    values: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    home: str = field(default="", repr=False)

    def beside(self, public: str) -> Surroundings:
        """The same without values that an issue has anyway, whoever posts it: a version, a word of its template."""
        return replace(self, values=tuple(value for value in self.values if value not in public))


def surroundings(environment: Mapping[str, str] | None = None) -> Surroundings:
    """What is known of this process, now."""
    variables = dict(os.environ if environment is None else environment)
    values = {part for name, value in variables.items() for part in _parts(name, value)}
    folders = {value for value in values if value.startswith("/")}
    host = platform.node()
    people = {name for name in _people(variables) if name.lower() not in _ORDINARY and len(name) > SHORT}
    machines = {name for name in (host, host.partition(".")[0]) if name.lower() not in _ORDINARY and len(name) > SHORT}
    return Surroundings(
        _longest_first(values - folders), _longest_first(folders), _longest_first(people), _longest_first(machines),
        str(Path.home()),
    )  # fmt: skip


def _longest_first(names: set[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=lambda name: (-len(name), name)))


def _parts(name: str, value: str) -> Iterator[str]:
    """What a variable's value gives away: all of it, and each of its lines; of a list of folders each of them."""
    telling = _TELLING.search(name) is not None
    if _HARMLESS.match(name) and not telling:
        return
    if "/" in value and re.fullmatch(r"(?:/[^:\n]*:?)+", value):
        yield from (
            folder for folder in (part.rstrip("/") for part in value.split(":")) if not _SYSTEM.fullmatch(folder)
        )
        return
    for part in (value, *value.splitlines()):
        if _gives_away(part.strip(), telling=telling):
            yield part.strip()


def _gives_away(value: str, *, telling: bool) -> bool:
    if telling:
        return len(value) >= _LEAST_TELLING and not _PLAIN.fullmatch(value)
    plain = _PLAIN.fullmatch(value) or value.lower() in _WORDS or value.lower() in _ORDINARY
    return len(value) >= _LEAST and not plain


def _people(variables: Mapping[str, str]) -> Iterator[str]:
    """Names of the user: as the system, the environment and git have them."""
    with contextlib.suppress(OSError, KeyError):
        yield getpass.getuser()
    yield from (variables.get(name, "") for name in _USERS)
    yield from _by_the_system()
    yield from _by_git()


def _by_the_system() -> Iterator[str]:
    try:
        import pwd

        yield pwd.getpwuid(os.getuid()).pw_gecos.partition(",")[0].strip()
    except (ImportError, KeyError):
        return


def _by_git() -> Iterator[str]:
    for what in ("user.name", "user.email"):
        try:
            command = ["git", "config", "--get", what]
            process = subprocess.run(
                command, capture_output=True, text=True, timeout=10, check=False, stdin=subprocess.DEVNULL
            )
        except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
            return
        yield process.stdout.strip()
