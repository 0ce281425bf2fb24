"""Scope: who answered each import of torch in a scoped run in, the modules that got the other framework out."""

from __future__ import annotations

from collections.abc import Iterator

from migrate_lens.compare.findings import site_of
from migrate_lens.model.report import Finding, Key, Library, Site, Stage, Symptom
from migrate_lens.model.trace import Place, Trace

_EXPECTED = {"torch": "Paddle's proxy answers", "proxy": "real torch answers, or none"}
_ACTUAL = {"torch": "real torch answered", "proxy": "Paddle's proxy answered"}


def leaks(trace: Trace, scope: tuple[str, ...], stage: Stage, library: Library) -> tuple[Finding, ...]:
    """A finding for each module in the scope that got real torch, and for each one outside it that got the proxy."""
    found: dict[tuple[str, str], list[Site]] = {}
    for place, who in _strays(trace, scope):
        found.setdefault((place.module, who), []).append(site_of(place.path, place.module, place.line, library))
    return tuple(_finding(module, who, sites, stage) for (module, who), sites in found.items())


def _strays(trace: Trace, scope: tuple[str, ...]) -> Iterator[tuple[Place, str]]:
    for place, who in trace.answers:
        inside = place.module in ("__main__", "__probe__") or any(
            place.module == name or place.module.startswith(f"{name}.") for name in scope
        )
        if inside is (who == "torch"):
            yield place, who


def _finding(module: str, who: str, sites: list[Site], stage: Stage) -> Finding:
    key = Key(Symptom.SCOPE, "paddle.enable_compat", f"{module} {who}")
    said = f"module {module} is {'in the scope' if who == 'torch' else 'outside the scope'}"
    actual = f"{_ACTUAL[who]} module {module}"
    return Finding(key, stage, tuple(dict.fromkeys(sites)), _EXPECTED[who], actual, {"scoped_only": True}, (said,))
