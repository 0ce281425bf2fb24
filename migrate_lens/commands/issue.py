"""The command behind ``issue``: the last diagnosis in; reproductions that were run, and issues, out."""

from __future__ import annotations

import json
import os
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
from migrate_lens.remedies.publish.causes import Cause, cause_in, statement, together
from migrate_lens.remedies.publish.cleanroom import CleanRoom
from migrate_lens.remedies.publish.machine import facts
from migrate_lens.remedies.publish.met import met, public_name
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
    COVERED = "covered"
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
        library: name and version that the library may be called by; empty where it is nobody's business.
    """

    state: Path
    names: tuple[str, ...] = ()
    emit: bool = False
    everything: bool = False
    language: str = "en"
    templates: Path | None = None
    output: Path = Path(kept.ISSUES)
    library: str = ""


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


@dataclass(frozen=True, slots=True)
class _Made:
    """A gap with its reproduction."""

    gap: Gap
    reproduction: Verified

    @property
    def source(self) -> str:
        """The file to run."""
        return self.reproduction.files[self.reproduction.main]

    @property
    def log(self) -> str:
        """What its first clean run under Paddle said."""
        return self.reproduction.verdict.paddle[0].output

    @property
    def cause(self) -> Cause | None:
        """The cause that its own run shows."""
        return cause_in(self.log, self.gap.api)

    @property
    def alone(self) -> bool:
        """Whether its reproduction is one file, which may stand beside those of others."""
        return len(self.reproduction.files) == 1


@dataclass(frozen=True, slots=True)
class _Topic:
    """What one issue is about: a gap, and others that were seen to have the same cause."""

    lead: _Made
    others: tuple[_Made, ...]
    scrubber: Scrubber

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """All its gaps."""
        return (self.lead.gap, *(one.gap for one in self.others))

    @property
    def also(self) -> tuple[bodies.Also, ...]:
        """The other gaps, as the issue names them."""
        clean = self.scrubber.text
        return tuple(
            bodies.Also(clean(one.gap.api), statement(one.source, one.log, one.reproduction.main), file_of(one.gap.api))
            for one in self.others
        )


def file_of(api: str) -> str:
    """The reproduction of one of several names in one folder."""
    return f"mre_{kept.slug(api.rpartition('.')[2])}.py"


class _Maker:
    def __init__(self, request: IssueRequest, diagnosis: kept.Diagnosis, room: CleanRoom, progress: Progress) -> None:
        self._request = request
        self._diagnosis = diagnosis
        self._progress = progress
        self._known = kept.emitted(request.output)
        torch, paddle = diagnosis.environments
        self._facts = facts(torch, paddle, diagnosis.report.platform)
        self._private = surroundings().beside(bodies.said_by_all(self._facts))
        self._named = request.library or public_name(diagnosis.library)
        self._reproducer = Reproducer(diagnosis, room, progress)
        self._records: Sequence[ProbeRecord] = ()

    def each(self, gaps: Sequence[Gap]) -> Iterator[Issued]:
        """What becomes of each gap; workers are started only when something has to be tried."""
        settled = [self._settled(gap) for gap in gaps]
        if None not in settled:
            yield from filter(None, settled)
            return
        self._progress("starting torch and paddle")
        done: dict[str, Issued] = {}
        with laboratory(self._diagnosis) as (lab, records):
            self._records = records
            for gap in gaps:
                if gap.id not in done:
                    issued = self._settled(gap)
                    open_ = [one for one in gaps if one.id not in done and self._settled(one) is None]
                    made = self._together(together(gap, open_), lab) if issued is None else (issued,)
                    done |= {one.gap: one for one in made}
                yield done[gap.id]

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

    def _together(self, gaps: Sequence[Gap], lab: BenchLab) -> Iterator[Issued]:
        """What becomes of gaps that seem to have one cause: each is reproduced, and its own run must show the cause."""
        private = () if self._named else self._diagnosis.private
        scrubber = Scrubber(private, self._private)
        made: list[_Made] = []
        for gap in gaps:
            self._progress(f"{gap.id}: synthesising and reducing")
            reproduction = self._reproducer.of(gap, lab, self._records, scrubber)
            if isinstance(reproduction, NotReproduced):
                kept.note_impossible(self._diagnosis, gap, reproduction.reason)
                yield Issued(gap.id, IssueOutcome.NOT_REPRODUCED, f"{reproduction.reason}; {_STAYS}")
            else:
                made.append(_Made(gap, reproduction))
        while made:
            lead, *rest = made
            others = [one for one in rest if one.alone and lead.cause is not None and one.cause == lead.cause]
            yield from self._published(_Topic(lead, tuple(others), scrubber))
            made = [one for one in rest if one not in others]

    # -- what is written ---------------------------------------------------------------------------------------------

    def _published(self, topic: _Topic) -> Iterator[Issued]:
        """Show or write what was verified, once all of it has been looked through."""
        try:
            issued = self._shown_or_written(topic)
        except Unpublishable as error:
            for gap in topic.gaps:
                kept.note_impossible(self._diagnosis, gap, error.message)
            yield from (Issued(gap.id, IssueOutcome.REFUSED, error.message) for gap in topic.gaps)
            return
        yield issued
        said = f"one cause with {topic.lead.gap.id}, in whose issue it is"
        yield from (Issued(one.gap.id, IssueOutcome.COVERED, said, issued.folder) for one in topic.others)

    def _shown_or_written(self, topic: _Topic) -> Issued:
        gap, reproduction, scrubber = topic.lead.gap, topic.lead.reproduction, topic.scrubber
        body = self._body(topic)
        texts = self._texts(topic, body)
        scrubber.refuse(texts)
        issued = Issued(
            gap=gap.id,
            outcome=IssueOutcome.SHOWN,
            said=reproduction.verdict.said,
            body=body,
            source=topic.lead.source,
            files=tuple(texts),
            replaced=tuple(f"{one.kind}: {one.stand_in}" for one in scrubber.replaced),
        )
        if not self._request.emit:
            return issued
        folder = self._request.output / kept.slug(scrubber.text(gap.id))
        for line in written(issued, folder):
            self._progress(line)
        self._write(folder, texts)
        self._keep(topic, folder)
        outcome = IssueOutcome.NOTE if gap.decision is Decision.NOTE else IssueOutcome.WRITTEN
        return replace(issued, outcome=outcome, folder=str(folder))

    def _keep(self, topic: _Topic, folder: Path) -> None:
        """Remember with the diagnosis where the reproductions are."""
        files = (topic.lead.reproduction.main, *(one.file for one in topic.also))
        reproduced = [
            replace(gap, mre=Reproduction(str(folder / file), verified=True))
            for gap, file in zip(topic.gaps, files, strict=True)
        ]
        kept.store(self._diagnosis, reproduced)
        self._known |= {gap.key: folder for gap in topic.gaps}

    def _body(self, topic: _Topic) -> str:
        gap, reproduction, clean = topic.lead.gap, topic.lead.reproduction, topic.scrubber.text
        shown = replace(gap, api=clean(gap.api), expected=clean(gap.expected), actual=clean(gap.actual))
        verdict, override = reproduction.verdict, self._request.templates
        paddle_log = clean(bodies.excerpt(verdict.paddle[0].output))
        if gap.decision is Decision.NOTE:
            values = {
                "gap": shown,
                "by": "policy" if gap.ruling is None else str(gap.ruling.by),
                "private": bodies.private_part(shown),
                "source": topic.lead.source,
                "run": verdict.paddle[0].command,
                "paddle_log": paddle_log,
            }
            return templates.render(f"note.{self._request.language}.md.j2", values, override)
        where, tests = bodies.places(gap)
        body = bodies.Body(
            gap=shown,
            facts=self._facts,
            files=reproduction.files,
            main=reproduction.main,
            run_torch=verdict.torch[0].command,
            run_paddle=verdict.paddle[0].command,
            build="",
            torch_log=clean(bodies.excerpt(verdict.torch[0].output, passed=True)),
            paddle_log=paddle_log,
            where=where,
            tests=tests,
            workaround=clean(bodies.changes(gap.workaround.patch)) if gap.workaround is not None else "",
            times=len(verdict.paddle),
            met=met(topic.gaps, self._records, self._named),
            also=topic.also,
            private=bodies.private_part(shown),
        )
        return bodies.render(body, self._request.language, override)

    def _texts(self, topic: _Topic, body: str) -> Mapping[str, str]:
        """The files of an issue, by name."""
        gap, reproduction, clean = topic.lead.gap, topic.lead.reproduction, topic.scrubber.text
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
            covers=tuple(one.gap.key for one in topic.others),
        )
        return {
            "note.md" if gap.decision is Decision.NOTE else "issue.md": body,
            **reproduction.files,
            **{file_of(one.gap.api): one.source for one in topic.others},
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
