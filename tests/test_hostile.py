"""Hostile strings at every place of every document: the terminal, Markdown and SARIF take them for text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import hostile
import pytest
import sample_reports as samples

from migrate_lens import media
from migrate_lens.cli import terminal
from migrate_lens.commands import explain
from migrate_lens.commands import issue as issuing
from migrate_lens.model.audit import (
    AuditGap,
    AuditReport,
    Basis,
    FrameworkVersion,
    Grading,
    Holding,
    LayerFiles,
    LibraryAudit,
    Plan,
    Reach,
    Spot,
)
from migrate_lens.model.report import FirstDivergence, Gap, Outcome, Report, Runtime, Shortfall, Site, Skipped, Stage
from migrate_lens.model.uses import Certainty, Guard
from migrate_lens.remedies import templates
from migrate_lens.remedies.publish.issue import Also, Body, Facts, render
from migrate_lens.remedies.publish.met import Met
from migrate_lens.reports import AUDIT, DIAGNOSIS

_EACH = pytest.mark.parametrize("said", hostile.STRINGS, ids=[f"{n}" for n in range(len(hostile.STRINGS))])
_PLAIN = "word"
Document = Callable[[str], str]


def _in_a_path(said: str) -> str:
    """A string without what no file's name can hold."""
    return said.replace("\0", "").replace("\ud800", "")


def _gap(said: str) -> Gap:
    return replace(
        samples.MISSING,
        id=f"torch.{said}:missing_api",
        api=f"torch.{said}",
        sites=(Site(f"src/{_in_a_path(said)}.py", 3),),
        expected=said,
        actual=said,
        observed=(said, f"x {said}"),
    )


def _report(said: str) -> Report:
    library = replace(
        samples.LIBRARY,
        name=said,
        root=Path("/src") / _in_a_path(said),
        probes=(replace(samples.LIBRARY.probes[0], spec=f"{said}.py"),),
    )
    return replace(
        samples.GAPS,
        library=library,
        scope=(said,),
        platform=said,
        torch=replace(samples.TORCH, executable=f"/envs/{said}"),
        stages=(samples.stage(Runtime.TARGET, Stage.RUN, Outcome.FAILED, said, said),),
        traces=(replace(samples.GAPS.traces[0], probe=said, note=said),),
        first=FirstDivergence(said, said, said, said),
        gaps=(_gap(said),),
        skipped=(Skipped(_in_a_path(said), said),),
        notes=(said,),
        shortfalls=(Shortfall(said, said),),
    )


def _audit(said: str) -> AuditReport:
    spot = Spot(Site(f"src/{_in_a_path(said)}.py", 3), Certainty.CERTAIN, Guard.NONE, Reach.IMPORT)
    plan = Plan(said, said, said, (said,), (LayerFiles(said, (said,)),), (f"pytest {said}",), (said,))
    library = LibraryAudit(
        name=said,
        root=f"/src/{said}",
        grading=Grading(0, 1, 1),
        files=1,
        torch_files=1,
        uses=1,
        apis=(),
        gaps=(AuditGap(_gap(said), 3.0, Basis.ASKED, (spot,)),),
        skipped=(Skipped(_in_a_path(said), said),),
        plan=plan,
    )
    versions = FrameworkVersion("2.0", said), FrameworkVersion("3.0", said)
    return AuditReport(*versions, (library, library), (Holding(said, (said, said)),))


def _issue(language: str) -> Document:
    def written(said: str) -> str:
        source = f"import torch\n\nresult = {said!r}\n"
        body = Body(
            gap=_gap(said),
            facts=Facts(said, said, said, said, said, said, said, said),
            files={"mre.py": source, f"csrc/{said}.cc": f"// {said}\n"},
            main="mre.py",
            run_torch=f"python {said}",
            run_paddle=f"python {said}",
            build=said,
            torch_log=said,
            paddle_log=f"KeyError: {said}",
            where=(said,),
            tests=(said,),
            workaround=f"--- a/{said}\n+++ b/{said}\n",
            met=Met(said, 3, 4),
            also=(Also(said, said, said),),
            private=said,
        )
        return render(body, language)

    return written


def _note(name: str, by: str) -> Document:
    def written(said: str) -> str:
        values = {"gap": _gap(said), "by": by, "private": said, "source": said, "run": said, "paddle_log": said}
        return templates.render(name, values)

    return written


def _explained(said: str) -> str:
    lines = explain._about(_gap(said), Path("/src"), Path(_in_a_path(said)))
    return "".join(f"{explain._indent(line)}{media.line(line)}\n" for line in lines)


def _issued(said: str) -> str:
    one = issuing.Issued(f"torch.{said}", issuing.IssueOutcome.NOTE, said, said, files=(said,), replaced=(said,))
    return "".join(issuing.lines([one], emitted=True))


MARKDOWN: Mapping[str, Document] = {
    "report": lambda said: DIAGNOSIS.render(_report(said), "markdown"),
    "audit": lambda said: AUDIT.render(_audit(said), "markdown"),
    "issue en": _issue("en"),
    "issue zh": _issue("zh"),
    "note en": _note("note.en.md.j2", "category"),
    "note zh": _note("note.zh.md.j2", "category"),
}
TEXT: Mapping[str, Document] = {
    "report": lambda said: DIAGNOSIS.render(_report(said), "text"),
    "audit": lambda said: AUDIT.render(_audit(said), "text"),
    "explain": _explained,
    "issue": _issued,
}
DATA: Mapping[str, Document] = {
    "report": lambda said: DIAGNOSIS.render(_report(said), "json"),
    "report sarif": lambda said: DIAGNOSIS.render(_report(said), "sarif"),
    "audit": lambda said: AUDIT.render(_audit(said), "json"),
    "audit sarif": lambda said: AUDIT.render(_audit(said), "sarif"),
}


@cache
def _harmless(name: str) -> str:
    return MARKDOWN[name](_PLAIN)


def test_the_table_has_a_hundred() -> None:
    assert len(set(hostile.STRINGS)) >= 100


@_EACH
@pytest.mark.parametrize("name", MARKDOWN)
def test_markdown_has_nothing_active(name: str, said: str) -> None:
    shown = MARKDOWN[name](said)
    assert list(hostile.active(shown)) == list(hostile.active(_harmless(name)))
    assert hostile.driving(shown) == []


@_EACH
@pytest.mark.parametrize("name", MARKDOWN)
def test_markdown_keeps_its_skeleton(name: str, said: str) -> None:
    visible = said if media.line(said) else f"{said}{_PLAIN}"  # what shows nothing leaves a list's item empty
    assert hostile.blocks(MARKDOWN[name](visible)) == hostile.blocks(_harmless(name))


@_EACH
@pytest.mark.parametrize("name", TEXT)
def test_a_terminal_is_not_driven(name: str, said: str) -> None:
    shown = TEXT[name](said)
    assert hostile.driving(shown) == []


@_EACH
@pytest.mark.parametrize("name", DATA)
def test_documents_for_programs_are_ascii(name: str, said: str) -> None:
    shown = DATA[name](said)
    assert hostile.driving(shown) == []
    assert shown.isascii()
    assert json.loads(shown)


@_EACH
def test_sarif_has_no_links(said: str) -> None:
    for result in json.loads(DATA["report sarif"](said))["runs"][0]["results"]:
        assert not re.search(r"(?<!\\)\[[^\]]*\]\(", result["message"]["text"])


@_EACH
def test_whatever_is_printed_is_text(said: str, capsys: pytest.CaptureFixture[str]) -> None:
    terminal.show(f"{said}\n")
    terminal.say(f"{said}")
    out, err = capsys.readouterr()
    assert hostile.driving(out) == []
    assert hostile.driving(err) == []
