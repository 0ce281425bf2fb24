"""Text that is to be published in; the same text without people, machines, secrets and private packages out.

What is taken out gets a stand-in, the same one wherever it stands, so that a program still means what it meant: it is
the program with stand-ins that is run. In a log or in prose all is looked through; in a source the strings, since what
a name in code looks like says nothing, and names of private packages and of people.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from migrate_lens.model.errors import LensError
from migrate_lens.remedies.publish.keys import keys
from migrate_lens.remedies.publish.sources import Unreadable, in_strings, is_source, printable
from migrate_lens.remedies.publish.surroundings import Surroundings, surroundings


class Kind(StrEnum):
    """What was taken out."""

    KEY = "key"
    SECRET = "secret"
    VARIABLE = "variable"
    PERSON = "person"
    EMAIL = "email"
    HOST = "host"
    ADDRESS = "address"
    PATH = "path"
    PACKAGE = "package"


@dataclass(frozen=True, slots=True)
class Replaced:
    """Something that was taken out, which is not said here, and what stands for it."""

    kind: Kind
    stand_in: str


# What may stand in code as a name does; what stands for it is a name then.
_WORDS = frozenset((Kind.VARIABLE, Kind.PERSON, Kind.HOST))


class Unpublishable(LensError):  # noqa: N818 - says what the text is
    """Something private cannot be taken out of what was to be published."""


_NAME = (
    r"[\w-]*(?:token|secret|passw(?:or)?d|passphrase|pwd|api[_-]?key|access[_-]?key|private[_-]?key|auth|credential)"
    r"[\w-]*"
)
# A secret that is told by its name: what is assigned to it, or stands beside it in quotation marks.
_QUOTED_SECRET = re.compile(
    rf"(?i)(?P<head>(?<![\w-])(?:(?P<mark>\\?[\"']){_NAME}(?P=mark)\]?\s*[:=,]"
    rf"|{_NAME}\s*(?::\s*[\w.\[\]| ]+)?\s*[=:({{{{])"
    r"\s*[rbfuL]{0,2}(?P<quote>\\?[\"']))(?P<secret>(?!<)[^\"'\n]{3,}?)(?=(?P=quote))"
)
_BARE_SECRET = re.compile(
    rf"(?i)(?P<head>(?<![\w-]){_NAME}[\"']?\s*[=:]\s*)(?P<secret>(?!(?:bearer|basic)\s)[^\s'\",;<>(){{}}\[\]]{{6,}})"
)
_BEARER = re.compile(r"(?i)(?P<head>\b(?:bearer|basic)\s+)(?P<secret>[\w.~+/=-]{8,})")
_CREDENTIALS = re.compile(r"(?P<head>\w://)(?P<secret>[^/\s:@'\"<]+(?::[^/\s@'\"]+)?)(?=@)")
_EMAIL = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")
_ADDRESS = re.compile(
    r"\b(?!(?:127\.0\.0\.1|0\.0\.0\.0)\b)(?:\d{1,3}\.){3}\d{1,3}\b(?!\.\d)|\b(?:[0-9a-f]{1,4}:){4,7}[0-9a-f]{1,4}\b"
)
_PUBLIC = (
    r"(?:[\w-]+\.)*(?:github\.com|githubusercontent\.com|github\.io|gitlab\.com|pytorch\.org|paddlepaddle\.org(?:\.cn)?"
    r"|python\.org|pypi\.org|readthedocs\.io|ganssle\.io|nvidia\.com|wikipedia\.org|arxiv\.org|huggingface\.co"
    r"|stackoverflow\.com|numpy\.org|schemastore\.org|example\.(?:com|org)|localhost|127\.0\.0\.1)(?![\w.-])"
)
_URL_HOST = re.compile(
    r"(?P<head>\b(?:https?|wss?|ftp|ssh|git|grpc|tcp|redis|amqp|postgres\w*|mysql|mongodb(?:\+srv)?)://(?:[^/\s@'\"]*@)?)"
    rf"(?!{_PUBLIC})(?P<secret>[\w-][\w.-]*\w(?::\d+)?[^\s'\"<>)\]`,;]*)"
)
_INNER_HOST = re.compile(
    r"(?i)(?<![\w./<-])(?!(?:torch|paddle|self|at|c10|threading|numpy|np)\.)(?:[a-z0-9][\w-]*\.)+"
    r"(?:internal|intranet|corp|lan|localdomain|local|intra|private|home\.arpa)(?:\.[a-z][a-z0-9-]*)*(?![\w(]|\s*\()"
)
_CLOUD = re.compile(
    r"\b(?P<scheme>s3[an]?|gs|gcs|az|abfss?|wasbs?|adl|oss|cos|hdfs|viewfs|dbfs|obs|bos|minio)://(?P<secret>[^\s'\"<>)]+)"
)
_SITE = re.compile(r"(?:/[^\s'\":,;()]+)*/(?:site|dist)-packages/")
_STDLIB = re.compile(r"(?:/[^\s'\":,;()]+)+/lib/(python3\.\d+)/")
_HOMES = re.compile(r"(?:/home|/Users|/mnt/c/Users)/[^/\s'\":,;()<>]+")
_WINDOWS = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-Za-z]:(?:\\{1,2}|/(?=[^/]))|\\{2,4}[\w.$-]+\\{1,2})"
    r"(?:[^\s'\"<>|:*?\\/]+(?: [^\s'\"<>|:*?\\/]+)*[\\/]+)*[^\s'\"<>|:*?\\/]*"
)
_TEMPORARY = re.compile(r"(?:/private)?(?:/var/folders/[^\s'\":,;()]+|/tmp|/var/tmp|/dev/shm)/[^/\s'\":,;()<>]+")
_ABSOLUTE = re.compile(
    r"(?:(?<=-I)|(?<=-L)|(?<![\w./<>:~-]))/(?!paddle/paddle/)(?:[^\s/'\":,;()]+/){2,}([^\s/'\":,;()]+)"
)
_SOURCES = re.compile(r"[\w.-]+\.(?:py|cc?|cpp|cxx|cuh?|h|hpp|so|o)")
_LEAST = 8  # a value of so many letters is told from others wherever it stands


class Scrubber:
    """Takes out what must not be published.

    Args:
        private: names of packages that are nobody's business.
        known: what names this user and this machine; asked when left out.
    """

    def __init__(self, private: Iterable[str] = (), known: Surroundings | None = None) -> None:
        self._known = surroundings() if known is None else known
        self._packages = _packages(private)
        self._stand_ins: dict[tuple[Kind, str], str] = {}

    @property
    def replaced(self) -> tuple[Replaced, ...]:
        """What was taken out since this was made, in the order in which it was met."""
        return tuple(dict.fromkeys(Replaced(kind, text) for (kind, _), text in self._stand_ins.items()))

    def text(self, text: str) -> str:
        """A log, or prose."""
        text = _BARE_SECRET.sub(self._tailed(Kind.SECRET), self._told_by_name(text))
        return self._names(self._secrets(text))

    def source(self, name: str, text: str) -> str:
        """A source: its strings are looked through; names in it keep to one stand-in.

        Raises:
            Unpublishable: it cannot be read as what its name says, or what is left cannot be shown.
        """
        if not is_source(name):
            return self.text(text)
        try:
            strings = in_strings(name, self._told_by_name(text), lambda literal: self._secrets(literal))
        except Unreadable as error:
            raise Unpublishable(f"{name} cannot be looked through: {error}", "reproduce it by hand") from error
        made = self._names(strings)
        if not printable(made):
            raise Unpublishable(f"{name} has signs that cannot be shown", "reproduce it by hand")
        return made

    def files(self, files: Mapping[str, str]) -> dict[str, str]:
        """Sources by name; a name is looked through as well.

        Raises:
            Unpublishable: as with one source.
        """
        return {self._names(name): self.source(name, text) for name, text in files.items()}

    def refuse(self, texts: Mapping[str, str]) -> None:
        """Look once more at what is about to be written.

        Raises:
            Unpublishable: something that was taken out at one place, or a value of the environment, stands at another.
        """
        told = (Kind.KEY, Kind.SECRET, Kind.VARIABLE, Kind.EMAIL)
        secrets = {secret for kind, secret in self._stand_ins if kind in told and len(secret) >= _LEAST}
        for name, text in texts.items():
            if any(
                secret in text or secret in name
                for secret in secrets.union(self._known.values)
                if len(secret) >= _LEAST
            ):
                raise Unpublishable(f"{name} still holds something private", "reproduce it by hand")

    # -- what is taken out ---------------------------------------------------------------------------------------------

    def _instead(self, kind: Kind, secret: str, written: str = "") -> str:
        """The stand-in of a secret."""
        known = self._stand_ins.get((kind, secret))
        if known is None:
            number = 1 + len({text for (other, _), text in self._stand_ins.items() if other is kind})
            made = f"{kind}_{number}" if kind in _WORDS and secret.isidentifier() else f"<{kind}-{number}>"
            known = self._stand_ins[kind, secret] = written or made
        return known

    def _tailed(self, kind: Kind) -> Callable[[re.Match[str]], str]:
        """What takes the part of a match that is secret."""

        def taken(match: re.Match[str]) -> str:
            parts = match.groupdict()
            return f"{parts.get('head') or ''}{self._instead(kind, parts.get('secret') or match[0])}"

        return taken

    def _told_by_name(self, text: str) -> str:
        return _QUOTED_SECRET.sub(self._tailed(Kind.SECRET), text)

    def _secrets(self, text: str) -> str:
        """All that a pattern tells, in prose or in a string."""
        text = self._keys(text)
        text = _CREDENTIALS.sub(self._tailed(Kind.SECRET), text)
        text = _BEARER.sub(self._tailed(Kind.SECRET), text)
        for value in self._known.values:
            text = self._value(text, value)
        text = _EMAIL.sub(self._tailed(Kind.EMAIL), text)
        text = _URL_HOST.sub(self._tailed(Kind.HOST), text)
        text = self._paths(text)
        text = _INNER_HOST.sub(self._tailed(Kind.HOST), text)
        return _ADDRESS.sub(self._tailed(Kind.ADDRESS), text)

    def _keys(self, text: str) -> str:
        for start, end in reversed(list(keys(text))):
            text = f"{text[:start]}{self._instead(Kind.KEY, text[start:end])}{text[end:]}"
        return text

    def _value(self, text: str, value: str) -> str:
        """A text without a variable's value, also where it is written with escapes."""
        for written in dict.fromkeys((value, repr(value)[1:-1])):
            if written in text:
                pattern = re.escape(written)
                apart = pattern if len(written) >= _LEAST else rf"(?<![\w.-]){pattern}(?![\w-])"
                text = re.sub(apart, lambda _: self._instead(Kind.VARIABLE, value), text)
        return text

    def _paths(self, text: str) -> str:
        text = _CLOUD.sub(lambda match: f"{match['scheme']}://{self._instead(Kind.PATH, match['secret'])}", text)
        text = _WINDOWS.sub(self._windows, text)
        text = self._folder(_SITE, lambda match: "site-packages/", text)
        text = self._folder(_STDLIB, lambda match: f"{match[1]}/", text)
        if len(self._known.home) > 1:
            home = re.compile(rf"{re.escape(self._known.home)}(?=/|$|[\s'\":,;()])")
            text = self._folder(home, lambda match: "~", text)
        text = self._folder(_HOMES, lambda match: "~", text)
        text = self._folder(_TEMPORARY, lambda match: "<tmp>", text)
        for folder in self._known.folders:
            if folder in text:
                text = self._folder(re.compile(rf"{re.escape(folder)}(?![\w-])"), lambda match: "<path>", text)
        return self._folder(_ABSOLUTE, lambda match: f"<path>/{match[1]}", text)

    def _folder(self, pattern: re.Pattern[str], instead: Callable[[re.Match[str]], str], text: str) -> str:
        return pattern.sub(lambda match: self._instead(Kind.PATH, match[0], instead(match)), text)

    def _windows(self, match: re.Match[str]) -> str:
        last = re.split(r"[\\/]+", match[0])[-1]
        return self._instead(Kind.PATH, match[0], f"<path>/{last}" if _SOURCES.fullmatch(last) else "")

    def _names(self, text: str) -> str:
        """Names of people, of machines and of private packages, and values that are names."""
        named = (
            *((Kind.HOST, name) for name in self._known.machines),
            *((Kind.PERSON, name) for name in self._known.people),
            *((Kind.VARIABLE, value) for value in self._known.values if value.isidentifier()),
        )
        for kind, name in named:
            if name in text:
                text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", self._instead(kind, name), text)
        for name, instead in self._packages.items():
            if name in text:
                pattern = rf"(?<![A-Za-z0-9])(?<!torch\.)(?<!paddle\.){re.escape(name)}(?![A-Za-z0-9])"
                text = re.sub(pattern, self._instead(Kind.PACKAGE, name, instead), text)
        return text


def _packages(names: Iterable[str]) -> dict[str, str]:
    """A stand-in for each name; a distribution and its package, which are spelt differently, are one."""
    made: dict[str, str] = {}
    instead: dict[str, str] = {}
    for name in sorted(set(filter(None, names)), key=lambda name: (-len(name), name)):
        same = re.sub(r"[-_.]", "", name).lower()
        instead.setdefault(same, "mylib" if not instead else f"mylib{len(instead) + 1}")
        made[name] = instead[same]
    return made


def scrub(text: str, private: Iterable[str] = ()) -> str:
    """A log, or prose, without what must not be published.

    Args:
        text: the text.
        private: names of packages that are nobody's business.
    """
    return Scrubber(private).text(text)
