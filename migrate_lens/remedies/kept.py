"""A state folder in; the last diagnosis, its probes, and the reproductions that were emitted since, out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from migrate_lens import state
from migrate_lens.model.errors import StateError, UsageError
from migrate_lens.model.reading import Fields, Json
from migrate_lens.model.report import Environment, Gap, Key, Library, ProbeKind, Report, Runtime, Symptom, Verdict
from migrate_lens.model.ruling import Decision
from migrate_lens.protocol.journal import is_sound, is_trace

ISSUES, RECORD = "issues", "mre.json"
_NEED_AN_ISSUE = frozenset((Decision.ISSUE, Decision.BOTH, Decision.NARROW_SCOPE))
_AGAIN = "run migrate-lens diagnose again"
SCHEMA = 1  # of the report
_NEAR = 6  # most gaps that a misspelt name is answered with


@dataclass(frozen=True, slots=True)
class KeptProbe:
    """A probe of the last diagnosis.

    Attributes:
        trace: the name of torch's trace of it.
        kind: what it is.
        spec: what the user typed, or the path relative to the library.
        path: the file to run; None for callables and imports.
    """

    trace: str
    kind: ProbeKind
    spec: str
    path: Path | None

    @classmethod
    def from_json(cls, fields: Fields) -> KeptProbe:
        """The probe, as the index has it."""
        path = fields.text("path")
        kind = fields.member("kind", ProbeKind)
        return cls(fields.text("trace"), kind, fields.text("spec"), Path(path) if path else None)


@dataclass(frozen=True, slots=True)
class Index:
    """What the traces of the last diagnosis are of, and how it was asked for.

    Attributes:
        torch_python, paddle_python: the interpreters.
        keep_torch: whether real torch stayed visible beside the target.
        timeout: seconds that a probe may take.
        probes: what was traced.
    """

    torch_python: Path
    paddle_python: Path
    keep_torch: bool
    timeout: float
    probes: tuple[KeptProbe, ...]

    @classmethod
    def from_json(cls, fields: Fields) -> Index:
        """The index, as its file has it.

        Raises:
            StateError: something is missing or of another type.
        """
        return cls(
            torch_python=Path(fields.text("torch_python")),
            paddle_python=Path(fields.text("paddle_python")),
            keep_torch=fields.flag("keep_torch"),
            timeout=fields.number("timeout"),
            probes=tuple(KeptProbe.from_json(probe) for probe in fields.parts("probes")),
        )


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The last diagnosis.

    Attributes:
        folder: the state folder.
        report: what it found.
        index: what its traces are of.
    """

    folder: Path
    report: Report
    index: Index

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """Its gaps."""
        return self.report.gaps

    @property
    def library(self) -> Library:
        """The library that was diagnosed."""
        return self.report.library

    @property
    def probes(self) -> tuple[KeptProbe, ...]:
        """The programs that exercised it."""
        return self.index.probes

    @property
    def traces(self) -> Iterator[Path]:
        """Torch's trace of each probe.

        Raises:
            StateError: one is gone or damaged.
        """
        for probe in self.probes:
            trace = self.folder / state.TRACES / probe.trace
            _check_trace(trace)
            yield trace

    @property
    def private(self) -> tuple[str, ...]:
        """Names that are the library's own."""
        library = self.library
        return () if library.script is not None else tuple({library.name, *library.packages})

    @property
    def native(self) -> bool:
        """Whether the library has C++ of its own."""
        return self.library.build is not None and self.library.build.native

    @property
    def environments(self) -> tuple[Environment, Environment]:
        """Torch's side and Paddle's, as they said themselves.

        Raises:
            StateError: the diagnosis stopped before it had both.
        """
        if self.report.torch is None or self.report.target is None:
            raise StateError("the last diagnosis has no environments", "run migrate-lens diagnose again")
        return self.report.torch, self.report.target

    def python(self, runtime: Runtime) -> Path:
        """The interpreter of a runtime."""
        return self.index.torch_python if runtime is Runtime.TORCH else self.index.paddle_python


def load(folder: Path) -> Diagnosis:
    """Read the last diagnosis.

    Raises:
        StateError: there is none, it cannot be read, or it ended before anything could be said.
    """
    report, index = state.read(folder / state.REPORT), state.read(folder / state.TRACES / state.INDEX)
    if report is None or index is None:
        raise StateError(
            f"no diagnosis in {folder}", "run migrate-lens diagnose PATH first, or name its folder: --state DIR"
        )
    read = _report(report, folder)
    lacking = nothing_said(read)
    if lacking:
        raise StateError(lacking, f"make it run under torch, then: migrate-lens diagnose {_path(read)}")
    return Diagnosis(folder, read, Index.from_json(Fields(index, str(folder / state.TRACES / state.INDEX))))


def _check_trace(trace: Path) -> None:
    """See that a kept trace is there and whole.

    Raises:
        StateError: it is not.
    """
    try:
        if is_trace(trace) and is_sound(trace):
            return
    except OSError as error:
        raise StateError(f"cannot read {trace}: {error.strerror}", _AGAIN) from error
    raise StateError(f"{trace} is damaged", _AGAIN)


def _report(document: Json, folder: Path) -> Report:
    """A report, as its file has it.

    Raises:
        StateError: something is missing, of another type, or of another version.
    """
    fields = Fields(document, str(folder / state.REPORT))
    if fields.has("schema") and fields.whole("schema") != SCHEMA:
        raise StateError(f"{fields.name} is of another version of migrate-lens", _AGAIN)
    return Report.from_json(fields)


def nothing_said(report: Report) -> str:
    """Why a diagnosis says nothing about Paddle; empty where it does."""
    match report.verdict:
        case Verdict.BASELINE_FAILED if not report.gaps:
            return f"the last diagnosis, of {_path(report)}, ended under torch: it says nothing about Paddle"
        case Verdict.NOT_EXERCISED:
            return f"the last diagnosis, of {_path(report)}, made no torch call: it says nothing about Paddle"
        case _:
            return ""


def what_is_missing(folder: Path, path: Path) -> str:
    """What keeps the last diagnosis from speaking for a tree; empty where nothing does.

    Raises:
        StateError: it cannot be read.
    """
    document = state.read(folder / state.REPORT)
    if document is None:
        return f"{path} was never diagnosed: there is no diagnosis in {folder}"
    report = _report(document, folder)
    root, place = report.library.root.resolve(), path.resolve()
    if not (root.is_relative_to(place) or place.is_relative_to(root)):
        return f"{path} was not diagnosed: the last diagnosis in {folder} is of {_path(report)}"
    if report.verdict is Verdict.BASELINE_FAILED and report.gaps:
        return f"the last diagnosis, of {_path(report)}, ended under torch"
    return nothing_said(report)


def _path(report: Report) -> Path:
    return report.library.script or report.library.root


def note_impossible(diagnosis: Diagnosis, gap: Gap, reason: str) -> None:
    """Remember with the diagnosis that a gap could not be reproduced.

    Raises:
        OSError: it cannot be written.
    """
    store(diagnosis, [replace(gap, no_mre=reason)])


def gaps_of(folder: Path) -> tuple[Gap, ...]:
    """The gaps of the last diagnosis; none where there was no diagnosis.

    Raises:
        StateError: it cannot be read.
    """
    report = state.read(folder / state.REPORT)
    if report is None:
        return ()
    return tuple(Gap.from_json(gap) for gap in Fields(report, str(folder / state.REPORT)).parts("gaps", ()))


def chosen(diagnosis: Diagnosis, names: Sequence[str], everything: bool) -> list[Gap]:
    """The gaps that were named; without a name those that need an issue, or all of them.

    Raises:
        UsageError: there is no such gap.
    """
    known = {gap.id: gap for gap in diagnosis.gaps}
    for name in names:
        if name not in known:
            near = [gap_id for gap_id in known if name in gap_id] or list(known)
            raise UsageError(
                f"no gap {name!r} in the last diagnosis", f"one of {', '.join(near[:_NEAR]) or 'none: no gaps'}"
            )
    if names:
        return [known[name] for name in dict.fromkeys(names)]
    return [gap for gap in known.values() if everything or gap.decision in _NEED_AN_ISSUE]


def slug(gap_id: str) -> str:
    """A gap's id as a folder name."""
    return re.sub(r"[^\w.+-]+", "-", gap_id).strip("-.") or "gap"


def programs(diagnosis: Diagnosis) -> list[str]:
    """Text of each diagnosed program that is one file, with the call that a probe makes."""
    texts = (_program(probe, diagnosis.library) for probe in diagnosis.probes)
    return [text for text in texts if text]


def _program(probe: KeptProbe, library: Library) -> str:
    """The text of a probe; empty where it is not one file that can be read."""
    if probe.kind is ProbeKind.SCRIPT and probe.path is not None:
        return _read(probe.path)
    if probe.kind is ProbeKind.CALLABLE:
        module, _, function = probe.spec.partition(":")
        text = _read(library.import_root / (module.replace(".", "/") + ".py"))
        return text and f"{text.rstrip()}\n{_called(function)}\n"
    return ""


def _called(function: str) -> str:
    """What a probe does with its callable: a pair of a layer and its inputs is called."""
    return (
        f"made = {function}()\n"
        "if isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], torch.nn.Module):\n"
        "    inputs = made[1] if isinstance(made[1], (tuple, list)) else (made[1],)\n"
        "    made = made[0](*inputs)\n"
        "result = made"
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def store(diagnosis: Diagnosis, gaps: Iterable[Gap]) -> None:
    """Put gaps that have changed since into the report; all else in it stays as it stands there.

    Raises:
        OSError: it cannot be written.
        StateError: it cannot be read.
    """
    file = diagnosis.folder / state.REPORT
    document = dict(state.read(file) or {})
    changed = {gap.id: gap for gap in gaps}
    known = [Gap.from_json(gap) for gap in Fields(document, str(file)).parts("gaps")]
    document["gaps"] = [changed.get(gap.id, gap).to_json() for gap in known]
    state.write(file, json.dumps(document, indent=2) + "\n")


# -- what was emitted --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Emitted:
    """A reproduction that was emitted, as ``mre.json`` beside it has it.

    Attributes:
        id, api, symptom: of its gap.
        file: the file to run.
        failure: exception type, signal or aspect under Paddle.
        how: what kind of failure that is.
        files: all its files; older records name none, and then it is one file.
        switch: how compat is switched on; empty: for the whole process.
        needle: what the failure must name; empty: nothing.
        paddle: the version that it was seen with.
        covers: keys of other gaps that have the same cause.
    """

    id: str
    api: str
    symptom: str
    file: str
    failure: str
    how: str = ""
    files: tuple[str, ...] = ()
    switch: str = ""
    needle: str = ""
    paddle: str = ""
    covers: tuple[Key, ...] = ()

    @classmethod
    def from_json(cls, fields: Fields) -> Emitted:
        """The record, as its file has it.

        Raises:
            StateError: something is missing or of another type.
        """
        return cls(
            id=fields.text("id"),
            api=fields.text("api"),
            symptom=fields.text("symptom"),
            file=fields.text("file"),
            failure=fields.text("failure"),
            how=fields.text("how", ""),
            files=fields.texts("files", ()),
            switch=fields.text("switch", ""),
            needle=fields.text("needle", ""),
            paddle=fields.text("paddle", ""),
            covers=tuple(_key(one) for one in fields.parts("covers", ())),
        )

    def to_json(self) -> Json:
        """The record, as its file has it."""
        return {**asdict(self), "files": sorted(self.files)}


def emitted(root: Path) -> dict[Key, Path]:
    """Reproductions that were emitted before: their folder by the key of their gap."""
    folders: dict[Key, Path] = {}
    for record in sorted(root.glob(f"*/{RECORD}")):
        try:
            fields = Fields(state.read(record) or {}, str(record))
            folders |= dict.fromkeys((_key(fields), *map(_key, fields.parts("covers", ()))), record.parent)
        except StateError:
            continue
    return folders


def _key(fields: Fields) -> Key:
    """The key of a record's gap, which is all that its being there says."""
    return Key(fields.member("symptom", Symptom), fields.text("api"))


def reread(record: Path) -> Emitted:
    """A record, read from its file.

    Raises:
        StateError: it is no record.
        OSError: it cannot be read.
    """
    return Emitted.from_json(Fields(state.read(record) or {}, str(record)))
