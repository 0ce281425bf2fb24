"""The command behind ``issue``: the last diagnosis in; reproductions that were run, and issues, out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path

from migrate_lens import media, state
from migrate_lens.model.errors import StateError, UsageError
from migrate_lens.model.progress import Progress
from migrate_lens.model.report import Gap, Reproduction, Runtime
from migrate_lens.model.ruling import Decision, exception
from migrate_lens.programs.synthesis import ProbeRecord
from migrate_lens.remedies import kept, templates
from migrate_lens.remedies.bench_lab import BenchLab, laboratory
from migrate_lens.remedies.publish import issue as bodies
from migrate_lens.remedies.publish.cleanroom import CleanRoom
from migrate_lens.remedies.publish.machine import facts
from migrate_lens.remedies.publish.reproductions import Reproducer, Verified
from migrate_lens.remedies.publish.scrub import Scrubber, Unpublishable
from migrate_lens.remedies.publish.surroundings import surroundings
from migrate_lens.remedies.publish.verify import CleanRun
from migrate_lens.remedies.reproduce.reproduce import NotReproduced

_STAYS = f"the evidence stays in {state.REPORT}"


class IssueOutcome(StrEnum):
    """What became of a gap."""

    WRITTEN = "written"
    SHOWN = "shown"
    KNOWN = "already emitted"
    NOTE = "note"
    NOT_REPRODUCED = "not reproduced"
    REFUSED = "refused"


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
        files: the names of its files, in the order in which they are written.
        replaced: what was taken out of them, as its kind and what stands for it.
    """

    gap: str
    outcome: IssueOutcome
    said: str
    folder: str = ""
    body: str = ""
    source: str = ""
    files: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()


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


class _Maker:
    def __init__(self, request: IssueRequest, diagnosis: kept.Diagnosis, room: CleanRoom, progress: Progress) -> None:
        self._request = request
        self._diagnosis = diagnosis
        self._progress = progress
        self._known = kept.emitted(request.output)
        self._private = surroundings()
        self._reproducer = Reproducer(diagnosis, room, progress)

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
        return None

    def _made(self, gap: Gap, lab: BenchLab, records: Sequence[ProbeRecord]) -> Issued:
        scrubber = Scrubber(self._diagnosis.private, self._private)
        reproduction = self._reproducer.of(gap, lab, records, scrubber)
        if isinstance(reproduction, NotReproduced):
            kept.note_impossible(self._diagnosis, gap, reproduction.reason)
            return Issued(gap.id, IssueOutcome.NOT_REPRODUCED, f"{reproduction.reason}; {_STAYS}")
        try:
            return self._published(gap, reproduction, scrubber)
        except Unpublishable as error:
            return Issued(gap.id, IssueOutcome.REFUSED, error.message)

    # -- what is written ---------------------------------------------------------------------------------------------

    def _published(self, gap: Gap, reproduction: Verified, scrubber: Scrubber) -> Issued:
        """Show or write what was verified, once all of it has been looked through."""
        body = self._body(gap, reproduction, scrubber)
        texts = self._texts(gap, reproduction, body, scrubber)
        scrubber.refuse(texts)
        issued = Issued(
            gap=gap.id,
            outcome=IssueOutcome.SHOWN,
            said=reproduction.verdict.said,
            body=body,
            source=reproduction.files[reproduction.main],
            files=tuple(texts),
            replaced=tuple(f"{one.kind}: {one.stand_in}" for one in scrubber.replaced),
        )
        if not self._request.emit:
            return issued
        folder = self._request.output / kept.slug(scrubber.text(gap.id))
        for line in written(issued, folder):
            self._progress(line)
        self._write(folder, texts)
        path = str(folder / reproduction.main)
        kept.store(self._diagnosis, [replace(gap, mre=Reproduction(path, verified=True))])
        self._known[gap.key] = folder
        outcome = IssueOutcome.NOTE if gap.decision is Decision.NOTE else IssueOutcome.WRITTEN
        return replace(issued, outcome=outcome, folder=str(folder))

    def _body(self, gap: Gap, reproduction: Verified, scrubber: Scrubber) -> str:
        clean = scrubber.text
        shown = replace(gap, api=clean(gap.api), expected=clean(gap.expected), actual=clean(gap.actual))
        verdict, files, main = reproduction.verdict, reproduction.files, reproduction.main
        if gap.decision is Decision.NOTE:
            values = {"gap": shown, "why": why_no_issue(gap), "source": files[main], "run": verdict.paddle[0].command}
            return templates.render("note.md.j2", values, self._request.templates)
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
            torch_log=clean(bodies.excerpt(verdict.torch[0].output, passed=True)),
            paddle_log=clean(bodies.excerpt(verdict.paddle[0].output)),
            where=where,
            tests=tests,
            workaround=clean(gap.workaround.patch) if gap.workaround is not None else "",
            times=len(verdict.paddle),
        )
        return bodies.render(body, self._request.language, self._request.templates)

    def _texts(self, gap: Gap, reproduction: Verified, body: str, scrubber: Scrubber) -> Mapping[str, str]:
        """The files of an issue, by name."""
        clean = scrubber.text
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
            "torch.log": clean(log(reproduction.verdict.torch)),
            "paddle.log": clean(log(reproduction.verdict.paddle)),
            kept.RECORD: json.dumps(record.to_json(), indent=2) + "\n",
        }

    def _write(self, folder: Path, texts: Mapping[str, str]) -> None:
        try:
            for name, text in texts.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                state.write(folder / name, text)
        except OSError as error:
            raise StateError(f"cannot write {folder}: {error.strerror}", "name another folder: --output DIR") from error


def log(runs: Sequence[CleanRun]) -> str:
    """Each run; those that said the same as the first are counted."""
    first, *others = runs
    same = [run for run in others if _said(run) == _said(first)]
    shown = [first, *(run for run in others if run not in same)]
    parts = [f"$ {run.command}\n{run.output.rstrip()}\n[exit {run.code}]\n" for run in shown]
    if same:
        parts.append(f"{len(same)} more runs, each the same\n")
    return "\n".join(parts)


def written(one: Issued, folder: Path) -> Iterator[str]:
    """What is written of a gap, and what was taken out of it."""
    if one.files:
        yield media.line(f"files: {', '.join(str(folder / name) for name in one.files)}")
    if one.replaced:
        yield media.line(f"taken out, and what stands for it: {', '.join(one.replaced)}")


def _said(run: CleanRun) -> tuple[int | None, str]:
    """What tells a run from another: how it ended, and what it said beside what a build says."""
    return run.code, bodies.without_build(bodies.without_warnings(run.output)).strip()


def why_no_issue(gap: Gap) -> str:
    """Why a note suffices."""
    why = "" if gap.ruling is None else exception(gap.ruling)
    return why or "the policy asks for a note only"


# -- documents ---------------------------------------------------------------------------------------------------------


def as_json(issues: Sequence[Issued]) -> str:
    """What became of each gap, for scripts."""
    document = {"schema": 1, "issues": [asdict(one) for one in issues]}
    return json.dumps(document, indent=2, ensure_ascii=True) + "\n"


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
        yield f"{media.line(f'{one.gap}: {one.outcome}{where}')}\n  {media.line(one.said)}\n"
        yield from (f"  {line}\n" for line in written(one, Path(one.folder)))
        if one.body and not emitted:
            yield "\n" + one.body.rstrip() + "\n\n"
    if not emitted and any(one.body for one in issues):
        yield "Nothing was written; --emit writes it.\n"
