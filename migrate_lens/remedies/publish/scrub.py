"""Text that is to be published in; the same text without people, machines, secrets and private packages out."""

from __future__ import annotations

import getpass
import os
import platform
import re
from collections.abc import Iterable
from pathlib import Path

_TOKENS = (
    r"gh[pousr]_[A-Za-z0-9]{16,}", r"github_pat_\w{20,}", r"glpat-[\w-]{16,}", r"hf_[A-Za-z0-9]{16,}",
    r"pypi-[\w-]{20,}", r"sk-[A-Za-z0-9_-]{16,}", r"xox[abprs]-[\w-]{10,}", r"(?:AKIA|ASIA)[A-Z0-9]{16}",
    r"AIza[\w-]{30,}", r"eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{4,}",
)  # fmt: skip
_NAMED_SECRET = re.compile(
    r"(?i)\b([\w-]*(?:token|secret|passw(?:or)?d|api[_-]?key|access[_-]?key|auth)[\w-]*)(\s*[=:]\s*)"
    r"(?:'[^'\n]{4,}'|\"[^\"\n]{4,}\"|[^\s'\",;]{6,})"
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}")
_CREDENTIALS = re.compile(r"(\w+://)[^/\s:@]+(?::[^/\s@]+)?@")
_PEM = re.compile(r"-----BEGIN [A-Z ]+-----.*?-----END [A-Z ]+-----", re.DOTALL)
_EMAIL = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")
_ADDRESS = re.compile(r"\b(?!127\.0\.0\.1\b)(?:\d{1,3}\.){3}\d{1,3}\b(?!\.\d)")
_SITE = re.compile(r"(?:/[^\s'\":,;()]+)*/(?:site|dist)-packages/")
_STDLIB = re.compile(r"(?:/[^\s'\":,;()]+)+/lib/(python3\.\d+)/")
_HOMES = re.compile(r"(?:/home|/Users|/mnt/c/Users)/[^/\s'\":,;()]+|[A-Z]:\\Users\\[^\\\s'\"]+")
_TEMPORARY = re.compile(r"(?:/private)?(?:/var/folders/[^\s'\":,;()]+|/tmp|/var/tmp|/dev/shm)/[^/\s'\":,;()]+")
_ABSOLUTE = re.compile(
    r"(?:(?<=-I)|(?<=-L)|(?<![\w./<>:~-]))/(?!paddle/paddle/)(?:[^\s/'\":,;()]+/){2,}([^\s/'\":,;()]+)"
)
_SHORT = 3


def scrub(text: str, private: Iterable[str] = ()) -> str:
    """Replace what must not be published.

    Args:
        text: an issue, a log.
        private: names of packages that are nobody's business.
    """
    text = _PEM.sub("<key>", text)
    text = _CREDENTIALS.sub(r"\1<credentials>@", text)
    text = _BEARER.sub(r"\1 <token>", text)
    text = re.sub("|".join(_TOKENS), "<token>", text)
    text = _NAMED_SECRET.sub(r"\1\2<secret>", text)
    text = _EMAIL.sub("<email>", text)
    text = _paths(text)
    text = _ADDRESS.sub("<address>", text)
    for word, instead in _people():
        text = re.sub(rf"(?<![\w.-]){re.escape(word)}(?![\w-])", instead, text)
    for name in sorted(set(private), key=len, reverse=True):
        text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", "mylib", text)
    return text


def _paths(text: str) -> str:
    text = _SITE.sub("site-packages/", text)
    text = _STDLIB.sub(r"\1/", text)
    home = str(Path.home())
    if len(home) > _SHORT:
        text = text.replace(home + "/", "~/")
    text = _HOMES.sub("~", text)
    text = _TEMPORARY.sub("<tmp>", text)
    return _ABSOLUTE.sub(r"<path>/\1", text)


def _people() -> list[tuple[str, str]]:
    """This machine's and this user's names; a name that is an ordinary word says nothing and stays."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = os.environ.get("USER", "")
    host = platform.node()
    names = [(host, "<host>"), (host.partition(".")[0], "<host>"), (user, "<user>")]
    ordinary = {"root", "user", "admin", "localhost", "runner", "paddle", "torch", "python", ""}
    return [(name, instead) for name, instead in names if name.lower() not in ordinary and len(name) > _SHORT]
