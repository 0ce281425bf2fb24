"""Scope: who answered each import of torch in a scoped run in, the modules that got the other framework out."""

from __future__ import annotations

from collections.abc import Iterator

from migrate_lens.compare.findings import site_at
from migrate_lens.model.report import Finding, Key, Library, Site, Stage, Symptom
from migrate_lens.model.target import TARGET
from migrate_lens.model.trace import Answer, Answerer, Trace

_EXPECTED = {
    Answerer.TORCH: f"{TARGET.title}'s proxy answers",
    Answerer.PROXY: "real torch answers, or none",
}
_ACTUAL = {
    Answerer.TORCH: "real torch answered",
    Answerer.PROXY: f"{TARGET.title}'s proxy answered",
}


def leaks(trace: Trace, scope: tuple[str, ...], stage: Stage, library: Library) -> tuple[Finding, ...]:
    """A finding for each module in the scope that got real torch, and for each one outside it that got the proxy."""
    sites: dict[tuple[str, Answerer], list[Site]] = {}
    for stray in _strays(trace, scope):
        sites.setdefault((stray.place.module, stray.who), []).append(site_at(stray.place, library))
    return tuple(_finding(module, who, where, stage) for (module, who), where in sites.items())


def _strays(trace: Trace, scope: tuple[str, ...]) -> Iterator[Answer]:
    for answer in trace.answers:
        if _is_inside(answer.place.module, scope) is (answer.who is Answerer.TORCH):
            yield answer


def _is_inside(module: str, scope: tuple[str, ...]) -> bool:
    """Whether a module is one that the target is to answer in; the program itself always is."""
    if module in ("__main__", "__probe__"):
        return True
    return any(module == name or module.startswith(f"{name}.") for name in scope)


def _finding(module: str, who: Answerer, sites: list[Site], stage: Stage) -> Finding:
    key = Key(Symptom.SCOPE, f"{TARGET.package}.{TARGET.switch}", f"{module} {who}")
    said = f"module {module} is {'in the scope' if who is Answerer.TORCH else 'outside the scope'}"
    actual = f"{_ACTUAL[who]} module {module}"
    return Finding(key, stage, tuple(dict.fromkeys(sites)), _EXPECTED[who], actual, {"scoped_only": True}, (said,))
