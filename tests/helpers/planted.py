"""A number in; secrets of twelve kinds, made at random from it, out: none may stand in anything that is emitted."""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Mapping

_LETTERS = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"
_WORD = ("harbour", "quartz", "lantern", "meridian", "falcon", "thicket", "ember", "sable", "cobalt", "willow")


def _of(made: random.Random, letters: str, number: int) -> str:
    return "".join(made.choice(letters) for _ in range(number))


def _word(made: random.Random) -> str:
    return f"{made.choice(_WORD)}{made.choice(_WORD)}{made.randrange(10, 99)}"


def _prefixed(made: random.Random) -> str:
    prefix, letters, number = made.choice((
        ("ghp_", _LETTERS, 36), ("github_pat_", _LETTERS, 40), ("glpat-", _LETTERS, 20), ("hf_", _LETTERS, 34),
        ("npm_", _LETTERS, 36), ("pypi-", _LETTERS, 60), ("AKIA", string.ascii_uppercase + string.digits, 16),
        ("AIza", _LETTERS, 35), ("dckr_pat_", _LETTERS, 27), ("whsec_", _LETTERS, 32),
    ))  # fmt: skip
    return prefix + _of(made, letters, number)


KINDS: Mapping[str, Callable[[random.Random], str]] = {
    "prefixed": _prefixed,
    "payment": lambda r: r.choice(("sk_live_", "rk_live_", "sk_test_")) + _of(r, _LETTERS, 24),
    "google": lambda r: "ya29." + _of(r, _LETTERS + "-_", 60),
    "mail": lambda r: f"SG.{_of(r, _LETTERS, 22)}.{_of(r, _LETTERS, 43)}",
    "slack": lambda r: f"https://hooks.slack.com/services/T{_of(r, _LETTERS, 9)}/B12345678/{_of(r, _LETTERS, 24)}",
    "discord": lambda r: f"https://discord.com/api/webhooks/{_of(r, string.digits, 18)}/{_of(r, _LETTERS, 68)}",
    "random": lambda r: _of(r, _LETTERS, r.randrange(32, 64)),
    "hex": lambda r: _of(r, _HEX, r.choice((32, 40, 64))),
    "host": lambda r: f"{_word(r)}-{r.randrange(9)}.{r.choice(('corp', 'internal', 'lan', 'intranet'))}",
    "bucket": lambda r: f"s3://{_word(r)}-{_word(r)}/{_word(r)}.pt",
    "windows": lambda r: f"C:\\Users\\{_word(r)}\\{_word(r)}\\weights.pt",
    "mailbox": lambda r: f"{_word(r)}.{_word(r)}@{_word(r)}.io",
}  # fmt: skip


def secrets(number: int) -> list[tuple[str, str]]:
    """So many secrets, each with its kind; the same each time."""
    made = random.Random(19)
    names = list(KINDS)
    return [(names[n % len(names)], KINDS[names[n % len(names)]](made)) for n in range(number)]


def variables(number: int) -> dict[str, str]:
    """Variables of an environment, whose values are nobody's business."""
    made = random.Random(18)
    return {f"SETTING_{n}": f"{_word(made)} {_word(made)}" if n % 2 else _word(made) for n in range(number)}
