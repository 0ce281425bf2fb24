"""Nothing, in; reports made by hand, which the tests of the formats and of the command line show, out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from migrate_lens.model.report import (
    BuildEntry,
    BuildKind,
    Category,
    Decision,
    Environment,
    FirstDivergence,
    Gap,
    Layer,
    Library,
    Outcome,
    Probe,
    ProbeKind,
    Remedy,
    Report,
    Reproduction,
    Runtime,
    Site,
    Skipped,
    Stage,
    StageResult,
    Symptom,
    TraceSummary,
    Verdict,
)

ROOT = Path("/src/mylib")
LIBRARY = Library(
    root=ROOT,
    name="mylib",
    script=None,
    import_root=ROOT / "src",
    packages=("mylib",),
    modules=("mylib", "mylib.ops"),
    build=BuildEntry(BuildKind.SETUPTOOLS, ROOT / "setup.py", native=True),
    native_sources=(ROOT / "csrc" / "ops.cc",),
    probes=(Probe(ProbeKind.SCRIPT, "smoke.py", ROOT / "smoke.py"),),
    probes_from="found",
)
TORCH = Environment("3.11.9", "/envs/torch/bin/python", "torch", "2.13.0")
PADDLE = Environment("3.11.9", "/envs/paddle/bin/python", "paddle", "3.3.1", commit="0123456789abcdef")


def stage(
    runtime: Runtime, rung: Stage, outcome: Outcome = Outcome.PASSED, detail: str = "", probe: str = "smoke.py"
) -> StageResult:
    return StageResult(runtime, rung, probe, outcome, 1.25, detail)


HEALTHY = Report(
    library=LIBRARY,
    torch=TORCH,
    target=PADDLE,
    platform="Linux x86_64",
    scope=("mylib",),
    stages=tuple(
        stage(runtime, rung)
        for runtime in (Runtime.TORCH, Runtime.TARGET)
        for rung in (Stage.BUILD, Stage.IMPORT, Stage.RUN)
    ),
    traces=(TraceSummary("smoke.py", 150, 150, 150, 150),),
    first=None,
    gaps=(),
    skipped=(),
    verdict=Verdict.NO_GAPS,
)

MISSING = Gap(
    id="torch.segment_reduce:missing_api",
    api="torch.segment_reduce",
    symptom=Symptom.MISSING_API,
    layer=Layer.PYTHON_INTERFACE,
    category=Category.A,
    decision=Decision.ISSUE,
    rule="missing-function",
    stage=Stage.RUN,
    sites=tuple(Site("src/mylib/ops.py", line) for line in (12, 40, 41, 90, 91)),
    expected="tensor of shape [3], float32",
    actual="AttributeError: module 'paddle' has no attribute 'segment_reduce'",
    observed=("the name is public in torch", "five call sites in one file", "no private API helps", "a fourth line"),
)
UNKNOWN = replace(
    MISSING,
    id="torch.max:value",
    api="torch.max",
    symptom=Symptom.VALUE,
    layer=Layer.UNCLASSIFIED,
    category=Category.NONE,
    decision=Decision.NARROW_SCOPE,
    rule="",
    sites=(),
    observed=(),
    workaround=Remedy("codemod", "--- a\n+++ b\n", verified=True),
    mre=Reproduction("mre/torch.max.py", verified=False),
)


def gap(api: str, symptom: str, **changes: Any) -> Gap:
    """A gap of a name; what a test does not ask for is that of ``MISSING``."""
    return replace(MISSING, id=f"{api}:{symptom}", api=api, symptom=Symptom(symptom), **changes)


GAPS = replace(
    HEALTHY,
    stages=(
        *HEALTHY.stages[:-1],
        stage(Runtime.TARGET, Stage.RUN, Outcome.FAILED, "AttributeError in src/mylib/ops.py:12"),
    ),
    traces=(TraceSummary("smoke.py", 150, 145, 143, 143, note="a crash ended it"),),
    first=FirstDivergence(
        "torch.segment_reduce", "paddle (no such name)", "AttributeError at ops.py:12", "missing API"
    ),
    gaps=(MISSING, UNKNOWN),
    skipped=(Skipped("old.py", "syntax error in line 3: invalid syntax"),),
    verdict=Verdict.GAPS,
    notes=("the scope was found in the baseline run",),
)

BASELINE_FAILED = replace(
    HEALTHY,
    target=None,
    stages=(
        stage(Runtime.TORCH, Stage.BUILD),
        stage(Runtime.TORCH, Stage.IMPORT, Outcome.FAILED, "ImportError: numba"),
    ),
    traces=(),
    verdict=Verdict.BASELINE_FAILED,
)
