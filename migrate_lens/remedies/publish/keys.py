"""A text in; where something that opens a door stands in it, out: keys by their known prefixes, and by their entropy.

The prefixes are those that the issuers document, so that leaked keys can be found. What has none is known by looking
like nothing that a person would write.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

_PREFIXED = (
    r"gh[pousr]_[A-Za-z0-9]{16,}", r"github_pat_\w{20,}",
    r"gl(?:pat|dt|rt|ft|cbt|ptt|oas|soat|imt|agent)-[\w.-]{16,}", r"hf_[A-Za-z0-9]{16,}", r"api_org_[A-Za-z0-9]{20,}",
    r"pypi-[\w-]{16,}", r"npm_[A-Za-z0-9]{16,}", r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{8,}",
    r"whsec_[\w+/=-]{16,}", r"sk-[A-Za-z0-9_-]{16,}", r"r8_[A-Za-z0-9]{20,}", r"xox[abeoprs]-[\w.-]{10,}",
    r"xapp-[\w-]{10,}", r"(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA|AGPA)[A-Z0-9]{12,}", r"AIza[\w-]{30,}",
    r"ya29\.[\w.-]{10,}", r"1//0[\w-]{20,}", r"GOCSPX-[\w-]{16,}", r"SG\.[\w-]{10,}\.[\w-]{10,}",
    r"key-[0-9a-f]{32}\b", r"AC[0-9a-f]{32}\b", r"SK[0-9a-f]{32}\b", r"dckr_(?:pat|oat)_[\w-]{16,}",
    r"do[opr]_v1_[0-9a-f]{32,}", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{16,}", r"sq0[a-z]{3}-[\w-]{16,}",
    r"lin_api_\w{16,}", r"NRAK-[A-Z0-9]{16,}", r"sntry[su]_[\w+/=.-]{16,}", r"dapi[0-9a-f]{32}\b", r"hvs\.[\w-]{16,}",
    r"AGE-SECRET-KEY-1[A-Z0-9]{16,}", r"rubygems_[0-9a-f]{32,}", r"crates?\.?io[\w-]{20,}", r"PMAK-[0-9a-f-]{24,}",
    r"figd_[\w-]{16,}", r"ntn_[A-Za-z0-9]{20,}", r"secret_[A-Za-z0-9]{24,}", r"wandb_v1_[\w-]{16,}",
    r"\d{8,10}:AA[\w-]{30,}", r"eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]{4,})?",
    r"-----BEGIN [A-Z ]+-----.*?-----END [A-Z ]+-----", r"https?://hooks\.slack(?:-gov)?\.com/[\w/-]+",
    r"https?://(?:\w+\.)?discord(?:app)?\.com/api/(?:v\d+/)?webhooks/[\w/-]+",
    r"https?://[\w.-]+\.webhook\.office\.com/[\w/@-]+", r"https?://[\w.-]*ingest[\w.-]*sentry\.io/\d+",
    r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b",
)  # fmt: skip
_KEY = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(_PREFIXED)})", re.DOTALL)
_LONG = re.compile(r"(?<![\w+/-])[\w+/-]{20,}={0,2}")
_NOT_A_KEY = re.compile(r"commit $|\b0x$")
_WORD = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{4,}")
_PIECE, _HEX, _DIGIT_RUNS, _BITS = 16, 32, 4, 3.2


def keys(text: str) -> Iterator[tuple[int, int]]:
    """Where keys stand, from the left; none overlaps another."""
    end = 0
    for found in sorted((*_by_prefix(text), *_by_entropy(text))):
        if found[0] >= end:
            yield found
            end = found[1]


def _by_prefix(text: str) -> Iterator[tuple[int, int]]:
    return (match.span() for match in _KEY.finditer(text))


def _by_entropy(text: str) -> Iterator[tuple[int, int]]:
    for match in _LONG.finditer(text):
        said_before = text[max(0, match.start() - 8) : match.start()]
        if not _NOT_A_KEY.search(said_before) and "_Z" not in match[0] and _is_random(match[0]):
            yield match.span()


def _is_random(word: str) -> bool:
    """Whether a word is none that a person made up: neither words put together nor a number."""
    piece = max(re.split(r"[^A-Za-z0-9]", word), key=len)
    if len(piece) < _PIECE or piece.isdigit() or piece.isalpha():
        return False
    if re.fullmatch(r"[0-9a-f]+|[0-9A-F]+", piece):
        return len(piece) >= _HEX
    in_words = sum(map(len, _WORD.findall(piece)))
    runs = len(re.findall(r"\d+", piece))
    return _entropy(piece) >= _BITS and (runs >= _DIGIT_RUNS or 2 * in_words < len(piece))


def _entropy(word: str) -> float:
    """Bits per character."""
    return -sum(n / len(word) * math.log2(n / len(word)) for n in Counter(word).values())
