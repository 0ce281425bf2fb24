"""The nouns of migrate-lens: frozen types and enums that every other module may import; no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from migrate_lens.model import target


class Symptom(StrEnum):
    """How a gap shows. The list is closed: a report never holds another one."""

    MISSING_API = "missing_api"
    MISSING_ARGUMENT = "missing_argument"
    EXCEPTION = "exception"
    CRASH = "crash"
    TIMEOUT = "timeout"
    SHAPE = "shape"
    DTYPE = "dtype"
    DEVICE = "device"
    LAYOUT = "layout"
    ALIAS = "alias"
    VALUE = "value"
    GRADIENT = "gradient"
    STATE = "state"
    SCOPE = "scope"
    MISSING_HEADER = "missing_header"
    COMPILE_ERROR = "compile_error"
    LINK_ERROR = "link_error"
    IMPORT_ERROR = "import_error"
    OP_NOT_FOUND = "op_not_found"
    SCHEMA = "schema"
    DISPATCH = "dispatch"


class Layer(StrEnum):
    """The part of the compat layer that a gap belongs to."""

    CPP_API = "cpp_api"
    OP_REGISTRY = "op_registry"
    PYTHON_INTERFACE = "python_interface"
    PYTHON_PROXY = "python_proxy"
    BUILD = "build"
    UNCLASSIFIED = "unclassified"


class Category(StrEnum):
    """A: Paddle coverage gap in a public API. B: upstream relies on private PyTorch behaviour."""

    A = "A"
    B = "B"
    NONE = "none"


class Decision(StrEnum):
    """What to do about a gap."""

    WORKAROUND = "workaround"
    ISSUE = "issue"
    BOTH = "workaround+issue"
    NOTE = "note"
    NARROW_SCOPE = "narrow_scope"


class Runtime(StrEnum):
    """A way of answering ``import torch``: real torch, or the target by scoped or by global compat."""

    TORCH = "torch"
    TARGET = target.TARGET.name
    TARGET_GLOBAL = f"{target.TARGET.name}-global"


class Level(StrEnum):
    """How much of what calls return a trace keeps.

    ``structure``: names, shapes, dtypes. ``digests``: small results whole, of larger ones a sample, which is enough to
    see that two differ. ``values``: results whole, so that a call can be made again from its inputs.
    """

    STRUCTURE = "structure"
    DIGESTS = "digests"
    VALUES = "values"


class Stage(StrEnum):
    """A rung of the ladder, cheapest first."""

    BUILD = "build"
    IMPORT = "import"
    RUN = "run"
    TEST = "test"


class Outcome(StrEnum):
    """How a stage ended."""

    PASSED = "passed"
    FAILED = "failed"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    SKIPPED = "skipped"


class ProbeKind(StrEnum):
    """What a probe is: a script, ``package.module:callable``, a pytest file or node, or all public imports."""

    SCRIPT = "script"
    CALLABLE = "callable"
    PYTEST = "pytest"
    IMPORTS = "imports"


class Verdict(StrEnum):
    """The last word of a diagnosis."""

    NO_GAPS = "no_gaps"
    GAPS = "gaps"
    BASELINE_FAILED = "baseline_failed"


@dataclass(frozen=True, slots=True, order=True)
class Site:
    """A place in the library's own sources; ``path`` is relative to the library, ``line`` starts at 1."""

    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that could not be read or run, and why: a result, which every report shows."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Probe:
    """A program that exercises the library.

    Attributes:
        kind: what it is.
        spec: what the user typed, or the path relative to the library; shown in reports.
        path: the file to run for scripts and pytest files, None for callables and imports.
        modules: the modules to import for ``IMPORTS``.
    """

    kind: ProbeKind
    spec: str
    path: Path | None = None
    modules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BuildEntry:
    """How the library is built.

    Attributes:
        kind: ``setuptools``, ``scikit-build-core``, ``cmake``, ``jit`` (``load``/``load_inline``) or ``pyproject``.
        file: the file that says so, absolute.
        native: whether there is C++ or CUDA to compile.
    """

    kind: str
    file: Path
    native: bool


@dataclass(frozen=True, slots=True)
class Library:
    """What is in the path that the user named; made by reading only.

    Attributes:
        root: the folder (absolute); for a lone script, the script's folder.
        name: the distribution's or package's name, or the script's stem.
        script: the lone script, if that is what was given.
        import_root: the folder to put on ``sys.path`` (``root`` or ``root/src``).
        packages: top-level import names of the library's own packages and modules.
        modules: dotted names of its public modules, packages first.
        build: its build entry, None if there is nothing to build.
        native_sources: C++ and CUDA sources, absolute.
        probes: what to run.
        probes_from: ``option``, ``config``, ``found`` or ``imports``.
        tests: pytest files, for the ``test`` stage.
        skipped: what could not be read.
    """

    root: Path
    name: str
    script: Path | None
    import_root: Path
    packages: tuple[str, ...]
    modules: tuple[str, ...]
    build: BuildEntry | None
    native_sources: tuple[Path, ...]
    probes: tuple[Probe, ...]
    probes_from: str
    tests: tuple[Path, ...] = ()
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True)
class StageResult:
    """One rung of the ladder in one runtime; ``seconds`` is wall time, ``detail`` one line for a person."""

    runtime: Runtime
    stage: Stage
    probe: str
    outcome: Outcome
    seconds: float
    detail: str = ""


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """How far a pair of traces went: calls on each side, aligned pairs, and torch calls that the target reached."""

    probe: str
    torch_calls: int
    target_calls: int
    aligned: int
    reached: int
    note: str = ""

    def to_json(self) -> dict[str, object]:
        """The summary, as a report has it."""
        return {
            "probe": self.probe,
            "torch_calls": self.torch_calls,
            f"{target.TARGET.name}_calls": self.target_calls,
            "aligned": self.aligned,
            "reached": self.reached,
            "note": self.note,
        }


Fact = str | int | bool


@dataclass(frozen=True, slots=True)
class Key:
    """What makes two failures the same, however the program around them is cut down.

    Attributes:
        symptom: how it shows.
        api: the torch name as documented.
        detail: exception type, aspect, signal or keyword; never prose.
    """

    symptom: Symptom
    api: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One observed incompatibility, before the rules say what layer it is in.

    Attributes:
        key: its identity.
        stage: the rung where it showed.
        sites: where in the library, nearest first.
        expected: what torch did.
        actual: what Paddle did.
        facts: what the rules may ask about it; the names are listed in ``classify.rules.FACTS``.
        evidence: lines for a person, each one a thing that was observed.
    """

    key: Key
    stage: Stage
    sites: tuple[Site, ...]
    expected: str
    actual: str
    facts: Mapping[str, Fact] = field(default_factory=dict)
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Remedy:
    """A workaround that was tried: its kind, its unified diff, and whether it ran on both sides."""

    kind: str
    patch: str
    verified: bool


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A minimal reproduction: its path, and whether it ran on both sides."""

    path: str
    verified: bool


@dataclass(frozen=True, slots=True)
class Gap:
    """A diagnosed incompatibility, as it stands in the report."""

    id: str
    api: str
    symptom: Symptom
    layer: Layer
    category: Category
    decision: Decision
    rule: str
    stage: Stage
    sites: tuple[Site, ...]
    expected: str
    actual: str
    evidence: tuple[str, ...] = ()
    workaround: Remedy | None = None
    mre: Reproduction | None = None


@dataclass(frozen=True, slots=True)
class FirstDivergence:
    """The row that the migration guide asks for: torch path, target path, what was observed, conclusion."""

    torch_path: str
    target_path: str
    observed: str
    conclusion: str

    def to_json(self) -> dict[str, object]:
        """The row, as a report has it."""
        return {
            "torch_path": self.torch_path,
            f"{target.TARGET.name}_path": self.target_path,
            "observed": self.observed,
            "conclusion": self.conclusion,
        }


@dataclass(frozen=True, slots=True)
class Environment:
    """One side's interpreter and framework, as it said itself."""

    python: str
    executable: str
    framework: str
    version: str
    commit: str = ""
    device: str = "cpu"


@dataclass(frozen=True, slots=True)
class Report:
    """All that a diagnosis found; every format is a function of this and nothing else."""

    library: Library
    torch: Environment | None
    target: Environment | None
    platform: str
    scope: tuple[str, ...]
    stages: tuple[StageResult, ...]
    traces: tuple[TraceSummary, ...]
    first: FirstDivergence | None
    gaps: tuple[Gap, ...]
    skipped: tuple[Skipped, ...]
    verdict: Verdict
    notes: tuple[str, ...] = ()
