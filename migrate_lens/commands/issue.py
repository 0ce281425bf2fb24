"""The command behind ``issue``: the last diagnosis in; reproductions that were run, and issues, out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from migrate_lens import state
from migrate_lens.model.errors import StateError, UsageError
from migrate_lens.model.progress import Progress
from migrate_lens.programs.synthesis import Recording
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
from migrate_lens.remedies.reproduce.reproduce import LONGEST, NotReproduced, Reproduced, length, reproduce

WRITTEN, SHOWN, KNOWN, NOTE, FAILED = "written", "shown", "already emitted", "note", "not reproduced"


@dataclass(frozen=True, slots=True)
class Asked:
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
class Done:
    """What became of one gap.

    Attributes:
        gap: its id.
        outcome: ``written``, ``shown``, ``already emitted``, ``note`` or ``not reproduced``.
        said: why, in a line.
        folder: where its files are; empty where there are none.
        body: the issue; empty where there is none.
        source: the reproduction.
    """

    gap: str
    outcome: str
    said: str
    folder: str = ""
    body: str = ""
    source: str = ""


def issue(asked: Asked, progress: Progress) -> tuple[Done, ...]:
    """Make, verify and write the reproductions and the issues of gaps.

    Raises:
        LensError: there is no diagnosis, no such gap, no such language, or an interpreter is gone.
    """
    if asked.language not in bodies.LANGUAGES:
        raise UsageError(f"--lang {asked.language}: no such language", f"one of {', '.join(bodies.LANGUAGES)}")
    diagnosis = kept.load(asked.state)
    gaps = kept.chosen(diagnosis, asked.names, asked.everything)
    with CleanRoom(diagnosis.python("torch"), diagnosis.python("paddle")) as room:
        return tuple(_Maker(asked, diagnosis, room, progress).each(gaps))


class _Maker:
    def __init__(self, asked: Asked, diagnosis: kept.Diagnosis, room: CleanRoom, progress: Progress) -> None:
        self._asked = asked
        self._room = room
        self._diagnosis = diagnosis
        self._progress = progress
        self._known = kept.emitted(asked.output)

    def each(self, gaps: Sequence[Mapping[str, Any]]) -> Iterator[Done]:
        """What becomes of each gap; workers are started only when something has to be tried."""
        waiting = [g for g in gaps if self._settled(g) is None]
        if not waiting:
            yield from (done for g in gaps if (done := self._settled(g)) is not None)
            return
        self._progress("starting torch and paddle")
        with laboratory(self._diagnosis) as (lab, heard):
            for gap in gaps:
                done = self._settled(gap)
                if done is None:
                    self._progress(f"{gap['id']}: synthesising and reducing")
                    done = self._made(gap, lab, heard)
                yield done

    def _settled(self, gap: Mapping[str, Any]) -> Done | None:
        """What needs no trial."""
        folder = self._known.get((gap["api"], gap["symptom"]))
        if folder is not None:
            return Done(gap["id"], KNOWN, "the same key was emitted before", str(folder))
        if gap["decision"] == "note" and not self._asked.everything:
            return Done(gap["id"], NOTE, why_no_issue(gap))
        return None

    def _made(self, gap: Mapping[str, Any], lab: BenchLab, heard: Sequence[Recording]) -> Done:
        if self._diagnosis.native and gap["layer"] in NATIVE_LAYERS:
            return self._built(gap, heard)
        if gap["symptom"] == "scope":
            return self._scoped(gap)
        done = self._called(gap, lab, heard)
        return self._built(gap, heard) if done.outcome == FAILED and self._diagnosis.native else done

    def _scoped(self, gap: Mapping[str, Any]) -> Done:
        """A module that compat's scope names, and the program that imports it."""
        texts = [text for text in kept.programs(self._diagnosis) if length(text) <= LONGEST]
        root = Path(self._diagnosis.report["library"]["root"])
        for files in (*scoping.packages(gap, root), *scoping.programs(texts, self._diagnosis.private)):
            self._progress(f"{gap['id']}: verifying a package in clean processes")
            verdict = self._room.verify(files, NAME, switch=IN_SCOPE)
            failure = verdict.paddle[0].failure
            if failure and verdict.holds(failure):
                return self._kept(gap, files, NAME, verdict, failure, "raises", IN_SCOPE)
        return Done(gap["id"], FAILED, f"no small package shows it; the evidence stays in {kept.REPORT}")

    def _built(self, gap: Mapping[str, Any], heard: Sequence[Recording]) -> Done:
        """A project that is compiled; the smallest that shows the failure."""
        root = Path(self._diagnosis.report["library"]["root"])
        probe = next((Path(p["path"]) for p in self._diagnosis.index["probes"] if p["kind"] == "script"), None)
        ending = heard[-1].trace.ending if heard else None
        value, has = (ending.value, ending.has_value) if ending is not None else (None, False)
        for project in projects(gap, root, probe, value, has):
            self._progress(f"{gap['id']}: compiling a reproduction on both sides")
            files = {name: scrub(text) for name, text in project.files.items()}
            found = verified(replace(project, files=files), *map(self._diagnosis.python, ("torch", "paddle")))
            if found is not None:
                return self._kept(gap, files, MAIN, found.verdict, found.failure, "raises", needle=project.needle)
        return Done(gap["id"], FAILED, f"no small project fails in the same way; the evidence stays in {kept.REPORT}")

    def _called(self, gap: Mapping[str, Any], lab: BenchLab, heard: Sequence[Recording]) -> Done:
        made = reproduce(kept.case_of(gap), heard, kept.programs(self._diagnosis), lab)
        if isinstance(made, NotReproduced):
            return Done(gap["id"], FAILED, f"{made.reason}; the evidence stays in {kept.REPORT}")
        return self._verified(gap, made)

    def _verified(self, gap: Mapping[str, Any], made: Reproduced) -> Done:
        self._progress(f"{gap['id']}: verifying in clean processes")
        source = scrub(made.source, self._diagnosis.private)
        verdict = self._room.verify({NAME: source}, NAME)
        if not verdict.holds(made.sign.what):
            return Done(gap["id"], FAILED, f"in clean processes: {verdict.said}; the evidence stays in {kept.REPORT}")
        return self._kept(gap, {NAME: source}, NAME, verdict, made.sign.what, made.sign.how)

    def _kept(self, gap: Mapping[str, Any], files: Mapping[str, str], main: str, verdict: Verdict, failure: str,
              how: str, switch: str = UNDER_PADDLE, needle: str = "") -> Done:  # fmt: skip
        """Show or write what was verified."""
        body = self._body(gap, files, main, verdict)
        if not self._asked.emit:
            return Done(gap["id"], SHOWN, verdict.said, "", body, files[main])
        folder = self._asked.output / kept.slug(gap["id"])
        version = self._diagnosis.report["environment"]["paddle"]["version"]
        record = {
            "id": gap["id"], "api": gap["api"], "symptom": gap["symptom"], "file": main, "failure": failure, "how": how,
            "files": sorted(files), "switch": switch, "needle": needle, "paddle": version,
        }  # fmt: skip
        self._write(folder, gap, files, record, verdict, body)
        kept.note_reproduction(self._diagnosis, gap["id"], str(folder / main))
        self._known[gap["api"], gap["symptom"]] = folder
        outcome = NOTE if gap["decision"] == "note" else WRITTEN
        return Done(gap["id"], outcome, verdict.said, str(folder), body, files[main])

    def _body(self, gap: Mapping[str, Any], files: Mapping[str, str], main: str, verdict: Verdict) -> str:
        clean = partial(scrub, private=self._diagnosis.private)
        shown = {**gap, "expected": clean(gap["expected"]), "actual": clean(gap["actual"])}
        if gap["decision"] == "note":
            values = {"gap": shown, "why": why_no_issue(gap), "source": files[main], "run": verdict.paddle[0].command}
            return bodies.render_template("note.md.j2", values, self._asked.templates)
        where, tests = bodies.places(gap, raised_in(gap))
        workaround = gap["workaround"]["patch"] if gap.get("workaround") else ""
        body = bodies.Body(
            gap=shown, facts=facts(self._diagnosis.report["environment"]), files=files, main=main,
            run_torch=verdict.torch[0].command, run_paddle=verdict.paddle[0].command, build="",
            torch_log=clean(bodies.excerpt(verdict.torch[0].output, passed=True)), where=where, tests=tests,
            paddle_log=clean(bodies.excerpt(verdict.paddle[0].output)), workaround=clean(workaround),
            times=len(verdict.paddle),
        )  # fmt: skip
        return bodies.render(body, self._asked.language, self._asked.templates)

    def _write(self, folder: Path, gap: Mapping[str, Any], files: Mapping[str, str], record: Mapping[str, object],
               verdict: Verdict, body: str) -> None:  # fmt: skip
        clean = partial(scrub, private=self._diagnosis.private)
        texts = {
            "note.md" if gap["decision"] == "note" else "issue.md": body, **files,
            "torch.log": clean(_log(verdict.torch)), "paddle.log": clean(_log(verdict.paddle)),
            kept.RECORD: json.dumps(record, indent=2) + "\n",
        }  # fmt: skip
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
    return "\n".join([*parts, *([f"{len(same)} more runs, each the same\n"] if same else [])])


def why_no_issue(gap: Mapping[str, Any]) -> str:
    """Why a note suffices: the last line of evidence is the reason that the policy gave."""
    reasons = [line for line in gap["evidence"] if line.startswith(("category", "the rule", "scoped"))]
    return reasons[-1] if reasons else "the policy asks for a note only"


def raised_in(gap: Mapping[str, Any]) -> str:
    """The file of Paddle that raised, as its repository has it."""
    for line in gap["evidence"]:
        _, found, place = line.partition("raised in ")
        if found and place.startswith("paddle/"):
            return f"python/{place.split(':')[0]}"
    return ""


def as_json(done: Sequence[Done]) -> str:
    """What became of each gap, for scripts."""
    return json.dumps({"schema": 1, "issues": [asdict(d) for d in done]}, indent=2, ensure_ascii=False) + "\n"
