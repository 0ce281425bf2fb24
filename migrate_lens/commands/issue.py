"""The command behind ``issue``: the last diagnosis in; reproductions that were run, and issues, out."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path

from migrate_lens import state
from migrate_lens.model.errors import StateError, UsageError
from migrate_lens.model.progress import Progress
from migrate_lens.model.report import Gap, ProbeKind, Reproduction, Runtime, Symptom
from migrate_lens.model.ruling import Decision, exception
from migrate_lens.programs.synthesis import ProbeRecord
from migrate_lens.remedies import kept
from migrate_lens.remedies.bench_lab import NAME, BenchLab, laboratory
from migrate_lens.remedies.publish import issue as bodies
from migrate_lens.remedies.publish.cleanroom import CleanRoom
from migrate_lens.remedies.publish.machine import facts
from migrate_lens.remedies.publish.scrub import scrub
from migrate_lens.remedies.publish.verify import IN_SCOPE, UNDER_PADDLE, CleanRun, Verdict
from migrate_lens.remedies.reproduce import scoping
from migrate_lens.remedies.reproduce.native import MAIN
from migrate_lens.remedies.reproduce.native_reproduce import NATIVE_LAYERS, projects, verified
from migrate_lens.remedies.reproduce.outcomes import How
from migrate_lens.remedies.reproduce.reproduce import LONGEST, NotReproduced, Reproduced, length, reproduce

_STAYS = f"the evidence stays in {state.REPORT}"


class IssueOutcome(StrEnum):
    """What became of a gap."""

    WRITTEN = "written"
    SHOWN = "shown"
    KNOWN = "already emitted"
    NOTE = "note"
    NOT_REPRODUCED = "not reproduced"


@dataclass(frozen=True, slots=True)
class IssueRequest:
    """What ``issue`` was asked to do.

    Attributes:
        state: where the last diagnosis is.
        names: gaps; empty means those that need an issue.
        emit: write files.
        everything: all gaps, not only those that need an issue.
        language: of the issue body.
        templates: a folder with templates of the user's own.
        output: where the folders of the issues go.
    """

    state: Path
    names: tuple[str, ...] = ()
    emit: bool = False
    everything: bool = False
    language: str = "en"
    templates: Path | None = None
    output: Path = Path(kept.ISSUES)


@dataclass(frozen=True, slots=True)
class Issued:
    """What became of one gap.

    Attributes:
        gap: its id.
        outcome: what became of it.
        said: why, in a line.
        folder: where its files are; empty where there are none.
        body: the issue; empty where there is none.
        source: the reproduction.
    """

    gap: str
    outcome: IssueOutcome
    said: str
    folder: str = ""
    body: str = ""
    source: str = ""


def issue(request: IssueRequest, progress: Progress) -> tuple[Issued, ...]:
    """Make, verify and write the reproductions and the issues of gaps.

    Raises:
        LensError: there is no diagnosis, no such gap, no such language, or an interpreter is gone.
    """
    if request.language not in bodies.LANGUAGES:
        raise UsageError(f"--lang {request.language}: no such language", f"one of {', '.join(bodies.LANGUAGES)}")
    diagnosis = kept.load(request.state)
    gaps = kept.chosen(diagnosis, request.names, request.everything)
    with CleanRoom(diagnosis.python(Runtime.TORCH), diagnosis.python(Runtime.TARGET)) as room:
        return tuple(_Maker(request, diagnosis, room, progress).each(gaps))


@dataclass(frozen=True, slots=True)
class _Verified:
    """A reproduction that was seen to hold.

    Attributes:
        files: its files, by name.
        main: the one to run.
        verdict: its clean runs.
        failure: exception type, signal or aspect under Paddle.
        how: what kind of failure that is.
        switch: how compat is switched on.
        needle: what the failure must name; empty: nothing.
    """

    files: Mapping[str, str]
    main: str
    verdict: Verdict
    failure: str
    how: How = How.RAISES
    switch: str = UNDER_PADDLE
    needle: str = ""


class _Maker:
    def __init__(self, request: IssueRequest, diagnosis: kept.Diagnosis, room: CleanRoom, progress: Progress) -> None:
        self._request = request
        self._room = room
        self._diagnosis = diagnosis
        self._progress = progress
        self._known = kept.emitted(request.output)
        self._clean = partial(scrub, private=diagnosis.private)

    def each(self, gaps: Sequence[Gap]) -> Iterator[Issued]:
        """What becomes of each gap; workers are started only when something has to be tried."""
        settled = [self._settled(gap) for gap in gaps]
        if None not in settled:
            yield from filter(None, settled)
            return
        self._progress("starting torch and paddle")
        with laboratory(self._diagnosis) as (lab, records):
            for gap in gaps:
                issued = self._settled(gap)
                if issued is None:
                    self._progress(f"{gap.id}: synthesising and reducing")
                    issued = self._made(gap, lab, records)
                yield issued

    def _settled(self, gap: Gap) -> Issued | None:
        """What needs no trial."""
        folder = self._known.get(gap.key)
        if folder is not None:
            return Issued(gap.id, IssueOutcome.KNOWN, "the same key was emitted before", str(folder))
        if gap.decision is Decision.NOTE and not self._request.everything:
            return Issued(gap.id, IssueOutcome.NOTE, why_no_issue(gap))
        self._check_free(self._request.output / kept.slug(gap.id))
        return None

    def _check_free(self, folder: Path) -> None:
        """See that nothing but an issue of ours is overwritten."""
        if not self._request.emit or not os.path.lexists(folder) or (folder / kept.RECORD).is_file():
            return
        if not folder.is_dir() or any(folder.iterdir()):
            raise StateError(f"{folder} is no issue of migrate-lens: it is left as it is", "name another: --output DIR")

    # -- reproductions -----------------------------------------------------------------------------------------------

    def _made(self, gap: Gap, lab: BenchLab, records: Sequence[ProbeRecord]) -> Issued:
        reproduction = self._reproduced(gap, lab, records)
        if isinstance(reproduction, NotReproduced):
            kept.note_impossible(self._diagnosis, gap, reproduction.reason)
            return Issued(gap.id, IssueOutcome.NOT_REPRODUCED, f"{reproduction.reason}; {_STAYS}")
        return self._published(gap, reproduction)

    def _reproduced(self, gap: Gap, lab: BenchLab, records: Sequence[ProbeRecord]) -> _Verified | NotReproduced:
        native = self._diagnosis.native
        if native and gap.layer in NATIVE_LAYERS:
            return self._built(gap, records)
        if gap.symptom is Symptom.SCOPE:
            return self._scoped(gap)
        called = self._called(gap, lab, records)
        return self._built(gap, records) if native and isinstance(called, NotReproduced) else called

    def _scoped(self, gap: Gap) -> _Verified | NotReproduced:
        """A module that compat's scope names, and the program that imports it."""
        texts = [text for text in kept.programs(self._diagnosis) if length(text) <= LONGEST]
        packages = scoping.packages(gap, self._diagnosis.library.root)
        for files in (*packages, *scoping.programs(texts, self._diagnosis.private)):
            self._progress(f"{gap.id}: verifying a package in clean processes")
            verdict = self._room.verify(files, NAME, switch=IN_SCOPE)
            failure = verdict.paddle[0].failure
            if failure and verdict.holds(failure):
                return _Verified(files, NAME, verdict, failure, switch=IN_SCOPE)
        return NotReproduced("no small package shows it")

    def _built(self, gap: Gap, records: Sequence[ProbeRecord]) -> _Verified | NotReproduced:
        """A project that is compiled; the smallest that shows the failure."""
        scripts = (probe.path for probe in self._diagnosis.probes if probe.kind is ProbeKind.SCRIPT)
        ending = records[-1].trace.ending if records else None
        torch, paddle = self._diagnosis.python(Runtime.TORCH), self._diagnosis.python(Runtime.TARGET)
        for project in projects(gap, self._diagnosis.library.root, next(scripts, None), ending):
            self._progress(f"{gap.id}: compiling a reproduction on both sides")
            files = {name: scrub(text) for name, text in project.files.items()}
            native = verified(replace(project, files=files), torch, paddle)
            if native is not None:
                return _Verified(files, MAIN, native.verdict, native.failure, needle=project.needle)
        return NotReproduced("no small project fails in the same way")

    def _called(self, gap: Gap, lab: BenchLab, records: Sequence[ProbeRecord]) -> _Verified | NotReproduced:
        """A program that makes the one call, or what is left of the program that showed the gap."""
        made = reproduce(gap, records, kept.programs(self._diagnosis), lab)
        return made if isinstance(made, NotReproduced) else self._verified(gap, made)

    def _verified(self, gap: Gap, made: Reproduced) -> _Verified | NotReproduced:
        self._progress(f"{gap.id}: verifying in clean processes")
        files = {NAME: self._clean(made.source)}
        verdict = self._room.verify(files, NAME)
        if not verdict.holds(made.sign.what):
            return NotReproduced(f"in clean processes: {verdict.said}")
        return _Verified(files, NAME, verdict, made.sign.what, made.sign.how)

    # -- what is written ---------------------------------------------------------------------------------------------

    def _published(self, gap: Gap, reproduction: _Verified) -> Issued:
        """Show or write what was verified."""
        body = self._body(gap, reproduction)
        said, source = reproduction.verdict.said, reproduction.files[reproduction.main]
        if not self._request.emit:
            return Issued(gap.id, IssueOutcome.SHOWN, said, "", body, source)
        folder = self._request.output / kept.slug(gap.id)
        self._write(folder, self._texts(gap, reproduction, body))
        path = str(folder / reproduction.main)
        kept.store(self._diagnosis, [replace(gap, mre=Reproduction(path, verified=True))])
        self._known[gap.key] = folder
        outcome = IssueOutcome.NOTE if gap.decision is Decision.NOTE else IssueOutcome.WRITTEN
        return Issued(gap.id, outcome, said, str(folder), body, source)

    def _body(self, gap: Gap, reproduction: _Verified) -> str:
        shown = replace(gap, expected=self._clean(gap.expected), actual=self._clean(gap.actual))
        verdict, files, main = reproduction.verdict, reproduction.files, reproduction.main
        if gap.decision is Decision.NOTE:
            values = {"gap": shown, "why": why_no_issue(gap), "source": files[main], "run": verdict.paddle[0].command}
            return bodies.render_template("note.md.j2", values, self._request.templates)
        where, tests = bodies.places(gap)
        torch, paddle = self._diagnosis.environments
        body = bodies.Body(
            gap=shown,
            facts=facts(torch, paddle, self._diagnosis.report.platform),
            files=files,
            main=main,
            run_torch=verdict.torch[0].command,
            run_paddle=verdict.paddle[0].command,
            build="",
            torch_log=self._clean(bodies.excerpt(verdict.torch[0].output, passed=True)),
            paddle_log=self._clean(bodies.excerpt(verdict.paddle[0].output)),
            where=where,
            tests=tests,
            workaround=self._clean(gap.workaround.patch) if gap.workaround is not None else "",
            times=len(verdict.paddle),
        )
        return bodies.render(body, self._request.language, self._request.templates)

    def _texts(self, gap: Gap, reproduction: _Verified, body: str) -> Mapping[str, str]:
        """The files of an issue, by name."""
        _, paddle = self._diagnosis.environments
        record = kept.Emitted(
            id=gap.id,
            api=gap.api,
            symptom=gap.symptom,
            file=reproduction.main,
            failure=reproduction.failure,
            how=reproduction.how,
            files=tuple(reproduction.files),
            switch=reproduction.switch,
            needle=reproduction.needle,
            paddle=paddle.version,
        )
        return {
            "note.md" if gap.decision is Decision.NOTE else "issue.md": body,
            **reproduction.files,
            "torch.log": self._clean(_log(reproduction.verdict.torch)),
            "paddle.log": self._clean(_log(reproduction.verdict.paddle)),
            kept.RECORD: json.dumps(record.to_json(), indent=2) + "\n",
        }

    def _write(self, folder: Path, texts: Mapping[str, str]) -> None:
        try:
            for name, text in texts.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                state.write(folder / name, text)
        except OSError as error:
            raise StateError(f"cannot write {folder}: {error.strerror}", "name another folder: --output DIR") from error


def _log(runs: Sequence[CleanRun]) -> str:
    """Each run; those that said the same as the first are counted."""
    first, *others = runs
    same = [run for run in others if (run.code, run.output) == (first.code, first.output)]
    shown = [first, *(run for run in others if run not in same)]
    parts = [f"$ {run.command}\n{run.output.rstrip()}\n[exit {run.code}]\n" for run in shown]
    if same:
        parts.append(f"{len(same)} more runs, each the same\n")
    return "\n".join(parts)


def why_no_issue(gap: Gap) -> str:
    """Why a note suffices."""
    why = "" if gap.ruling is None else exception(gap.ruling)
    return why or "the policy asks for a note only"


# -- documents ---------------------------------------------------------------------------------------------------------


def as_json(issues: Sequence[Issued]) -> str:
    """What became of each gap, for scripts."""
    document = {"schema": 1, "issues": [asdict(one) for one in issues]}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def lines(issues: Sequence[Issued], *, emitted: bool) -> Iterator[str]:
    """What became of each gap, for a person.

    Args:
        issues: what became of them.
        emitted: whether the files were asked for; otherwise the issues themselves are shown.
    """
    if not issues:
        yield "Nothing to report: no gap of the last diagnosis needs an issue (--all takes the others too).\n"
    for one in issues:
        where = f" -> {one.folder}" if one.folder else ""
        yield f"{one.gap}: {one.outcome}{where}\n  {one.said}\n"
        if one.body and not emitted:
            yield "\n" + one.body.rstrip() + "\n\n"
    if not emitted and any(one.body for one in issues):
        yield "Nothing was written; --emit writes it.\n"
