"""Gaps in; those that have one cause together, out: what shows at many names and is mended at one place is one issue.

Two gaps have one cause where Paddle says the same about both and neither message is about the name that was called: it
comes from below it, or from a module that both come from. Dtypes, shapes and numbers in it are those of the call.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from migrate_lens.model.report import Gap, Symptom

_RAISED = re.compile(r"^(?:.* )?raises (?P<error>[\w.]+): (?P<said>.+)", re.DOTALL)
_LAST = re.compile(r"^(?P<error>[A-Za-z_][\w.]*(?:Error|Exception|Warning|Interrupt|Exit)): (?P<said>.*)", re.MULTILINE)
_OF_THE_CALL = re.compile(
    r"\b(?:torch\.|paddle\.|VarType\.|DataType::)?(?:u?int\d+|b?float\d*\w*|complex\d+|bool|double|half|long)\b"
    r"|\[[\d, -]*\]|\(\d[\d, ]*\)|\b\d+\b", re.IGNORECASE,
)  # fmt: skip
_BELOW = re.compile(r"\(at /?\S+:\d+\)|^\(\w+\) ")
_MODULE = re.compile(r"No module named '[\w.]+'$")
_ONE_MESSAGE = frozenset((Symptom.EXCEPTION, Symptom.MISSING_API, Symptom.IMPORT_ERROR))
_CUT = 100  # letters of a message; a report may have cut its end


@dataclass(frozen=True, slots=True)
class Cause:
    """What Paddle says where the gaps of one cause are met.

    Attributes:
        error: the type of what it raises.
        said: its message, without what is the call's own.
    """

    error: str
    said: str


def cause(gap: Gap) -> Cause | None:
    """The cause of a gap, as far as it may be that of others; None where its message is about its own name."""
    raised = _RAISED.match(gap.actual)
    if raised is None or gap.symptom not in _ONE_MESSAGE:
        return None
    return _cause(raised, gap.api)


def cause_in(log: str, api: str) -> Cause | None:
    """The cause that the last exception in a log has."""
    *_, last = [None, *_LAST.finditer(log)]
    return None if last is None else _cause(last, api)


def _cause(raised: re.Match[str], api: str) -> Cause | None:
    error, said = raised["error"].rpartition(".")[2], " ".join(raised["said"].split())
    if not (_BELOW.search(said) or _MODULE.search(said)) or _about(api, said):
        return None
    return Cause(error, _OF_THE_CALL.sub("_", re.sub(r" ?\(at .*", "", said))[:_CUT])


def _about(api: str, said: str) -> bool:
    """Whether a message is about the very name that was called."""
    name = api.rpartition(".")[2]
    return re.search(rf"(?<![\w.]){re.escape(name)}(?:\(|['`\"])|'{re.escape(name)}'", said) is not None


def together(gap: Gap, others: Sequence[Gap]) -> list[Gap]:
    """A gap, and those of others that have its cause, in their order."""
    own = cause(gap)
    if own is None:
        return [gap]
    same = (other for other in others if other.symptom is gap.symptom and cause(other) == own)
    return [gap, *(other for other in same if other is not gap)]


def statement(source: str, log: str, name: str) -> str:
    """The line of a program at which a log says that it failed; empty where it does not say so."""
    numbers = re.findall(rf'File "(?:\./)?{re.escape(name)}", line (\d+)', log)
    lines = source.splitlines()
    number = int(numbers[-1]) if numbers else 0
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""
