"""One function per command; no printing."""

from __future__ import annotations

from dataclasses import replace

from migrate_lens.investigate import baseline, investigate
from migrate_lens.model import Finding, Probe, Stage, StageResult
from migrate_lens.trace.bench import Bench, Run, Setting


def scope_of(setting: Setting, base: Run) -> tuple[str, ...]:
    """The compat scope: the library's own packages, and the packages that were seen to import torch."""
    seen = {module.partition(".")[0] for module in base.trace.users} - {"__main__"}
    return tuple(sorted(seen | set(setting.library.packages)))


def examine_probe(bench: Bench, setting: Setting, probe: Probe) -> tuple[tuple[Finding, ...], tuple[StageResult, ...]]:
    base, result, observed = baseline(bench, setting, Stage.RUN, probe)
    if result.outcome != "passed":
        return (), (result,)
    setting = replace(setting, scope=setting.scope or scope_of(setting, base))
    done = investigate(bench, setting, Stage.RUN, probe, base, observed, lambda _: None, stop_at_first=False)
    return done.findings, (result, *done.stages)
