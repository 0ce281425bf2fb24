"""The nouns of migrate-lens: frozen types and enums that every other module may import; no I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from migrate_lens.model import target
from migrate_lens.model.reading import Fields, Json
from migrate_lens.model.ruling import Decision as Decision
from migrate_lens.model.ruling import Ruling, said


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
    NOT_EXERCISED = "not_exercised"  # it ran, and no torch call was made on both sides


@dataclass(frozen=True, slots=True, order=True)
class Site:
    """A place in the library's own sources; ``path`` is relative to the library, ``line`` starts at 1."""

    path: str
    line: int

    @classmethod
    def from_json(cls, fields: Fields) -> Site:
        """The place, as a report has it."""
        return cls(fields.text("path"), fields.whole("line"))


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that could not be read or run, and why: a result, which every report shows."""

    path: str
    reason: str

    @classmethod
    def from_json(cls, fields: Fields) -> Skipped:
        """What was skipped, as a report has it."""
        return cls(fields.text("path"), fields.text("reason"))


@dataclass(frozen=True, slots=True)
class Probe:
    """A program that exercises the library.

    Attributes:
        kind: what it is.
        spec: what the user typed, or the path relative to the library; shown in reports.
        path: the file to run for scripts and pytest files, None for callables and imports.
        modules: the modules to import for ``IMPORTS``.
        tests: pytest files or nodes of a whole suite, named from the library's folder.
        select: pytest's ``-k`` expression, which chooses among them.
    """

    kind: ProbeKind
    spec: str
    path: Path | None = None
    modules: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    select: str = ""

    @classmethod
    def from_json(cls, fields: Fields) -> Probe:
        """The probe, as a report has it: without its file, which stays in the index of the traces."""
        return cls(fields.member("kind", ProbeKind), fields.text("spec"), None, fields.texts("modules"))

    def to_json(self) -> Json:
        """The probe, as a report has it."""
        return {"kind": self.kind, "spec": self.spec, "modules": list(self.modules)}


class BuildKind(StrEnum):
    """What a library is built with."""

    SETUPTOOLS = "setuptools"
    SCIKIT_BUILD_CORE = "scikit-build-core"
    CMAKE = "cmake"
    JIT = "jit"  # torch.utils.cpp_extension.load or load_inline, when it runs
    PYPROJECT = "pyproject"  # another build backend that pyproject.toml names


@dataclass(frozen=True, slots=True)
class BuildEntry:
    """How the library is built.

    Attributes:
        kind: what it is built with.
        file: the file that says so, absolute.
        native: whether there is C++ or CUDA to compile.
    """

    kind: BuildKind
    file: Path
    native: bool

    @classmethod
    def from_json(cls, fields: Fields, root: Path) -> BuildEntry:
        """The build entry, as a report has it."""
        return cls(fields.member("kind", BuildKind), root / fields.text("file"), fields.flag("native"))

    def to_json(self, root: Path) -> Json:
        """The build entry, as a report has it."""
        return {"kind": self.kind, "file": _shown(self.file, root), "native": self.native}


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

    @classmethod
    def from_json(cls, fields: Fields) -> Library:
        """The library, as a report has it; what was skipped in it the report has for itself."""
        root = Path(fields.text("root"))
        script, build = fields.maybe_text("script"), fields.maybe("build")
        return cls(
            root=root,
            name=fields.text("name"),
            script=None if script is None else root / script,
            import_root=root / fields.text("import_root"),
            packages=fields.texts("packages"),
            modules=fields.texts("modules"),
            build=None if build is None else BuildEntry.from_json(build, root),
            native_sources=tuple(root / name for name in fields.texts("native_sources")),
            probes=tuple(Probe.from_json(probe) for probe in fields.parts("probes")),
            probes_from=fields.text("probes_from"),
            tests=tuple(root / name for name in fields.texts("tests")),
        )

    def to_json(self) -> Json:
        """The library, as a report has it; paths are relative to its root where they are in it."""
        root = self.root
        return {
            "name": self.name,
            "root": str(root),
            "script": None if self.script is None else _shown(self.script, root),
            "import_root": _shown(self.import_root, root),
            "packages": list(self.packages),
            "modules": list(self.modules),
            "build": None if self.build is None else self.build.to_json(root),
            "native_sources": [_shown(path, root) for path in self.native_sources],
            "probes": [probe.to_json() for probe in self.probes],
            "probes_from": self.probes_from,
            "tests": [_shown(path, root) for path in self.tests],
        }


def _shown(path: Path, root: Path) -> str:
    """Relative to the library where it is in it (``.`` for the root itself), absolute where it is not."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of the tests of a probe, counted."""

    passed: int
    failed: int
    skipped: int

    @property
    def all(self) -> int:
        """How many there are."""
        return self.passed + self.failed + self.skipped

    @classmethod
    def from_json(cls, fields: Fields) -> Tally:
        """The tally, as a report has it."""
        return cls(fields.whole("passed"), fields.whole("failed"), fields.whole("skipped"))


@dataclass(frozen=True, slots=True)
class SuiteRow:
    """What became of one test of a suite; outcomes are pytest's words, or how the process ended in it.

    Attributes:
        node: as pytest names it, from the library's folder.
        torch: its outcome under torch.
        target: its outcome under the target as it is.
        healed: its outcome in the run that goes on past each gap; empty where it does not pass under torch.
        gaps: ids of the gaps that it meets.
        reason: why it does not pass, where it does not.
    """

    node: str
    torch: str
    target: str
    healed: str
    gaps: tuple[str, ...] = ()
    reason: str = ""

    @property
    def counts(self) -> bool:
        """Whether it passes under torch, without which it says nothing about the target."""
        return self.torch == Outcome.PASSED

    @property
    def held_back(self) -> bool:
        """Whether it passes under torch and not under the target as it is."""
        return self.counts and self.target != Outcome.PASSED

    @property
    def unexplained(self) -> bool:
        """Whether it still fails where every gap is closed, or is held back by none that is known."""
        return self.counts and (self.healed != Outcome.PASSED or (self.held_back and not self.gaps))

    @classmethod
    def from_json(cls, fields: Fields) -> SuiteRow:
        """The row, as a report has it."""
        return cls(
            fields.text("node"),
            fields.text("torch"),
            fields.text(target.TARGET.name),
            fields.text("healed"),
            fields.texts("gaps"),
            fields.text("reason"),
        )

    def to_json(self) -> Json:
        """The row, as a report has it."""
        return {
            "node": self.node,
            "torch": self.torch,
            target.TARGET.name: self.target,
            "healed": self.healed,
            "gaps": list(self.gaps),
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class SuiteTable:
    """What became of each test of a suite."""

    rows: tuple[SuiteRow, ...]

    @property
    def under_torch(self) -> int:
        """How many tests pass under torch."""
        return sum(row.counts for row in self.rows)

    @property
    def as_it_is(self) -> int:
        """How many of them pass under the target as it is."""
        return sum(row.counts and not row.held_back for row in self.rows)

    @property
    def with_gaps_closed(self) -> int:
        """How many of them pass in the run that goes on past each gap."""
        return sum(row.counts and row.healed == Outcome.PASSED for row in self.rows)

    @property
    def unexplained(self) -> tuple[SuiteRow, ...]:
        """Those that no gap explains."""
        return tuple(row for row in self.rows if row.unexplained)

    @property
    def held_back(self) -> Mapping[str, int]:
        """By the id of a gap, how many tests it holds back."""
        return Counter(gap for row in self.rows if row.held_back for gap in row.gaps)

    @classmethod
    def from_json(cls, fields: Fields) -> SuiteTable:
        """The table, as a report has it."""
        return cls(tuple(SuiteRow.from_json(row) for row in fields.parts("rows")))

    def to_json(self) -> Json:
        """The table, as a report has it, and what follows from it."""
        return {
            "pass": {
                "torch": self.under_torch,
                target.TARGET.name: self.as_it_is,
                "healed": self.with_gaps_closed,
            },
            "held_back": dict(self.held_back),
            "unexplained": [row.node for row in self.unexplained],
            "rows": [row.to_json() for row in self.rows],
        }


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Something that could have been exercised and was not, or not in whole.

    Attributes:
        probe: what: a probe, a module, a test.
        reason: why.
        flag: what to type so that more is reached; empty where no flag helps.
    """

    probe: str
    reason: str
    flag: str = ""

    @classmethod
    def from_json(cls, fields: Fields) -> Shortfall:
        """The shortfall, as a report has it."""
        return cls(fields.text("probe"), fields.text("reason"), fields.text("flag"))


@dataclass(frozen=True, slots=True)
class StageResult:
    """One rung of the ladder in one runtime.

    Attributes:
        runtime, stage, probe: which.
        outcome: how it ended.
        seconds: wall time.
        detail: one line for a person.
        tests: what became of its tests; None where it has none.
    """

    runtime: Runtime
    stage: Stage
    probe: str
    outcome: Outcome
    seconds: float
    detail: str = ""
    tests: Tally | None = None

    @classmethod
    def from_json(cls, fields: Fields) -> StageResult:
        """The rung, as a report has it."""
        return cls(
            fields.member("runtime", Runtime),
            fields.member("stage", Stage),
            fields.text("probe"),
            fields.member("outcome", Outcome),
            fields.number("seconds"),
            fields.text("detail"),
            None if (tests := fields.maybe("tests")) is None else Tally.from_json(tests),
        )

    def to_json(self) -> Json:
        """The rung, as a report has it; tests are counted only where there are some."""
        document = asdict(self)
        if self.tests is None:
            del document["tests"]
        return document


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """How far a pair of traces went: calls on each side, aligned pairs, and torch calls that the target reached.

    ``within`` counts those not reached that lie in code of the program's which torch runs from within its own, where
    the target, which came to the end, never runs it.
    """

    probe: str
    torch_calls: int
    target_calls: int
    aligned: int
    reached: int
    note: str = ""
    within: int = 0

    @classmethod
    def from_json(cls, fields: Fields) -> TraceSummary:
        """The summary, as a report has it."""
        return cls(
            fields.text("probe"),
            fields.whole("torch_calls"),
            fields.whole(f"{target.TARGET.name}_calls"),
            fields.whole("aligned"),
            fields.whole("reached"),
            fields.text("note"),
            fields.whole("within") if fields.has("within") else 0,
        )

    def to_json(self) -> dict[str, object]:
        """The summary, as a report has it."""
        return {
            "probe": self.probe,
            "torch_calls": self.torch_calls,
            f"{target.TARGET.name}_calls": self.target_calls,
            "aligned": self.aligned,
            "reached": self.reached,
            "within": self.within,
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
        parts: the parts of a suite (see ``protocol.parts``) in which it was met: tests, fixtures, modules.
    """

    key: Key
    stage: Stage
    sites: tuple[Site, ...]
    expected: str
    actual: str
    facts: Mapping[str, Fact] = field(default_factory=dict)
    evidence: tuple[str, ...] = ()
    parts: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Remedy:
    """A workaround that was tried: its kind, its unified diff, and whether it ran on both sides."""

    kind: str
    patch: str
    verified: bool

    @classmethod
    def from_json(cls, fields: Fields) -> Remedy:
        """The workaround, as a report has it."""
        return cls(fields.text("kind"), fields.text("patch"), fields.flag("verified"))


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A minimal reproduction: its path, and whether it ran on both sides."""

    path: str
    verified: bool

    @classmethod
    def from_json(cls, fields: Fields) -> Reproduction:
        """The reproduction, as a report has it."""
        return cls(fields.text("path"), fields.flag("verified"))


@dataclass(frozen=True, slots=True)
class Gap:
    """A diagnosed incompatibility.

    Attributes:
        id: readable, and the same in every run.
        api: the torch name as documented.
        symptom, layer, category, decision: what it is, and what to do about it.
        rule: the rule that says most about it; empty if none claims it.
        stage: the rung where it showed.
        sites: where in the library, nearest first.
        expected: what torch did.
        actual: what the target did.
        observed: lines for a person, each one a thing that was observed.
        workaround, mre: what was tried since.
        ruling: how the decision was made; None where nothing was settled, as in an audit.
        detail: exception type, aspect, signal or keyword; never prose.
        exception: class of what the target raised; empty where it raised nothing.
        raised_in: where the target raised, for what no observed call did.
        no_mre: why no reproduction could be made, where that was tried; a reproduction overrules it.
    """

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
    observed: tuple[str, ...] = ()
    workaround: Remedy | None = None
    mre: Reproduction | None = None
    ruling: Ruling | None = None
    detail: str = ""
    exception: str = ""
    raised_in: str = ""
    no_mre: str = ""

    @property
    def evidence(self) -> tuple[str, ...]:
        """All lines that a report shows for it: what was observed, then how it was decided."""
        return (*self.observed, *said(self.ruling))

    @property
    def key(self) -> Key:
        """What makes it the same gap in another diagnosis, which may see it at another place."""
        return Key(self.symptom, self.api)

    def ruled(self, ruling: Ruling) -> Gap:
        """The gap with another decision."""
        return replace(self, decision=ruling.decision, ruling=ruling)

    @classmethod
    def from_json(cls, fields: Fields) -> Gap:
        """The gap, as a report has it.

        Raises:
            StateError: something is missing or of another type.
        """
        decision = fields.member("decision", Decision)
        ruling = Ruling.from_json(fields, decision) if fields.has("decided_by") else None
        evidence = fields.texts("evidence")
        workaround, mre = fields.maybe("workaround"), fields.maybe("mre")
        return cls(
            id=fields.text("id"),
            api=fields.text("api"),
            symptom=fields.member("symptom", Symptom),
            layer=fields.member("layer", Layer),
            category=fields.member("category", Category),
            decision=decision,
            rule=fields.text("rule"),
            stage=fields.member("stage", Stage),
            sites=tuple(Site.from_json(site) for site in fields.parts("sites")),
            expected=fields.text("expected"),
            actual=fields.text("actual"),
            observed=evidence[: len(evidence) - len(said(ruling))],
            workaround=None if workaround is None else Remedy.from_json(workaround),
            mre=None if mre is None else Reproduction.from_json(mre),
            ruling=ruling,
            detail=fields.text("detail", ""),
            exception=fields.text("exception", ""),
            raised_in=fields.text("raised_in", ""),
            no_mre=fields.text("no_mre", ""),
        )

    def to_json(self) -> Json:
        """The gap, as a report has it; the last keys are there only where there is something to say."""
        document: dict[str, object] = {
            "id": self.id,
            "api": self.api,
            "symptom": self.symptom,
            "layer": self.layer,
            "category": self.category,
            "decision": self.decision,
            "rule": self.rule,
            "stage": self.stage,
            "sites": [asdict(site) for site in self.sites],
            "expected": self.expected,
            "actual": self.actual,
            "evidence": list(self.evidence),
            "workaround": None if self.workaround is None else asdict(self.workaround),
            "mre": None if self.mre is None else asdict(self.mre),
        }
        if self.ruling is not None:
            document["decided_by"] = self.ruling.by
            document["settled"] = [asdict(one) for one in self.ruling.settled]
        no_mre = "" if self.mre is not None else self.no_mre
        facts = {"detail": self.detail, "exception": self.exception, "raised_in": self.raised_in, "no_mre": no_mre}
        return {**document, **{name: fact for name, fact in facts.items() if fact}}


@dataclass(frozen=True, slots=True)
class FirstDivergence:
    """The row that the migration guide asks for: torch path, target path, what was observed, conclusion."""

    torch_path: str
    target_path: str
    observed: str
    conclusion: str

    @classmethod
    def from_json(cls, fields: Fields) -> FirstDivergence:
        """The row, as a report has it."""
        return cls(
            fields.text("torch_path"),
            fields.text(f"{target.TARGET.name}_path"),
            fields.text("observed"),
            fields.text("conclusion"),
        )

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

    @classmethod
    def from_json(cls, fields: Fields) -> Environment:
        """The environment, as a report has it."""
        return cls(
            fields.text("python"),
            fields.text("executable"),
            fields.text("framework"),
            fields.text("version"),
            fields.text("commit"),
            fields.text("device"),
        )


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
    shortfalls: tuple[Shortfall, ...] = ()
    tests: SuiteTable | None = None

    @classmethod
    def from_json(cls, fields: Fields) -> Report:
        """The report, as its JSON has it.

        Raises:
            StateError: something is missing or of another type.
        """
        environment = fields.part("environment")
        torch, answering = environment.maybe("torch"), environment.maybe(target.TARGET.name)
        first = fields.maybe("first_divergence")
        return cls(
            library=Library.from_json(fields.part("library")),
            torch=None if torch is None else Environment.from_json(torch),
            target=None if answering is None else Environment.from_json(answering),
            platform=environment.text("platform"),
            scope=fields.texts("scope"),
            stages=tuple(StageResult.from_json(stage) for stage in fields.parts("stages")),
            traces=tuple(TraceSummary.from_json(trace) for trace in fields.parts("traces")),
            first=None if first is None else FirstDivergence.from_json(first),
            gaps=tuple(Gap.from_json(gap) for gap in fields.parts("gaps")),
            skipped=tuple(Skipped.from_json(skipped) for skipped in fields.parts("skipped")),
            verdict=Verdict(fields.text("verdict")),
            notes=fields.texts("notes"),
            shortfalls=tuple(Shortfall.from_json(one) for one in fields.parts("not_exercised", ())),
            tests=None if (tests := fields.maybe("tests")) is None else SuiteTable.from_json(tests),
        )

    def to_json(self) -> Json:
        """All that it says, in the order of the JSON report; what program made it the format adds."""
        suite = {} if self.tests is None else {"tests": self.tests.to_json()}
        return {
            "library": self.library.to_json(),
            "environment": {
                "torch": None if self.torch is None else asdict(self.torch),
                target.TARGET.name: None if self.target is None else asdict(self.target),
                "platform": self.platform,
            },
            "scope": list(self.scope),
            "stages": [stage.to_json() for stage in self.stages],
            "traces": [trace.to_json() for trace in self.traces],
            "first_divergence": None if self.first is None else self.first.to_json(),
            "gaps": [gap.to_json() for gap in self.gaps],
            "skipped": [asdict(skipped) for skipped in self.skipped],
            "notes": list(self.notes),
            "not_exercised": [asdict(one) for one in self.shortfalls],
            **suite,
            "verdict": self.verdict,
        }
