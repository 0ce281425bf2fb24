"""A state folder: what is kept of a diagnosis is read back typed, and what was found out since is put beside it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import sample_reports as samples
from hypothesis import given
from hypothesis import strategies as st

from migrate_lens import state
from migrate_lens.classify.decide import decide
from migrate_lens.commands.issue import why_no_issue
from migrate_lens.model.errors import StateError
from migrate_lens.model.reading import Fields
from migrate_lens.model.report import Category, Finding, Key, ProbeKind, Reproduction, Runtime, Site, Stage, Symptom
from migrate_lens.remedies import kept
from migrate_lens.remedies.fix.attempts import why_refused
from migrate_lens.reports.diagnosis.json import render

_INDEX = {
    "path": "/src/mylib", "torch_python": "/envs/torch/bin/python", "paddle_python": "/envs/paddle/bin/python",
    "keep_torch": False, "timeout": 60, "asked": [],
    "probes": [
        {"trace": "0.trace", "kind": "script", "spec": "smoke.py", "path": "/src/mylib/smoke.py"},
        {"trace": "1.trace", "kind": "callable", "spec": "mylib:f", "path": ""},
    ],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A state folder with a diagnosis."""
    (tmp_path / state.TRACES).mkdir()
    (tmp_path / state.TRACES / state.INDEX).write_text(json.dumps(_INDEX))
    (tmp_path / state.REPORT).write_text(render(samples.GAPS))
    return tmp_path


def test_a_diagnosis_is_read_back(folder: Path) -> None:
    diagnosis = kept.load(folder)
    assert diagnosis.gaps == samples.GAPS.gaps
    assert diagnosis.native
    assert set(diagnosis.private) == {"mylib"}
    assert diagnosis.python(Runtime.TORCH) == Path("/envs/torch/bin/python")
    assert diagnosis.python(Runtime.TARGET_GLOBAL) == Path("/envs/paddle/bin/python")
    assert [(probe.kind, probe.path) for probe in diagnosis.probes] == [
        (ProbeKind.SCRIPT, Path("/src/mylib/smoke.py")),
        (ProbeKind.CALLABLE, None),
    ]


def test_a_report_of_another_kind_is_said(folder: Path) -> None:
    (folder / state.REPORT).write_text("{}")
    with pytest.raises(StateError, match="has no 'environment'"):
        kept.load(folder)


def test_what_was_found_out_is_stored_and_all_else_stays(folder: Path) -> None:
    before = state.read(folder / state.REPORT)
    assert before is not None
    before["of another version"] = 1
    state.write(folder / state.REPORT, json.dumps(before))
    changed = replace(samples.MISSING, mre=Reproduction("issues/a/mre.py", verified=True))
    kept.store(kept.load(folder), [changed])
    after = state.read(folder / state.REPORT)
    assert after is not None
    assert kept.load(folder).gaps == (changed, samples.UNKNOWN)
    assert {**after, "gaps": before["gaps"]} == before


@given(st.lists(st.text(), max_size=3), st.text(), st.text())
def test_a_record_that_is_read_back_is_the_same(files: list[str], switch: str, needle: str) -> None:
    record = kept.Emitted(
        "torch.f:value", "torch.f", "value", "mre.py", "AssertionError", "differs", tuple(sorted(files)), switch, needle
    )
    assert kept.Emitted.from_json(Fields.of(json.loads(json.dumps(record.to_json())), "a record")) == record


def test_records_are_known_by_the_key_of_their_gap(tmp_path: Path) -> None:
    for name, text in (("a", '{"api": "torch.f", "symptom": "value"}'), ("b", "{"), ("c", '{"api": "torch.f"}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / kept.RECORD).write_text(text)
    assert kept.emitted(tmp_path) == {Key(Symptom.VALUE, "torch.f"): tmp_path / "a"}


def _finding(*sites: Site) -> Finding:
    return Finding(Key(Symptom.MISSING_API, "torch.f"), Stage.RUN, sites, "exists", "does not")


def test_a_refusal_names_the_conditions_and_signals_that_settled_it() -> None:
    ruling = decide(_finding(Site("a.py", 1), Site("b.py", 1)), Category.A)
    assert why_refused(samples.MISSING.ruled(ruling)) == (
        "an issue instead: it wraps one incompatibility point (2 site(s) in 2 file(s)); "
        "the same pattern stands in several files (2 file(s)); the cause is public compat behaviour (category A)"
    )
    assert why_refused(samples.MISSING) == "an issue instead: the policy asks for one"
    assert why_refused(samples.UNKNOWN) == ""


def test_a_note_says_what_decided() -> None:
    category = "category B: the library relies on private behaviour that a thin shim covers"
    assert why_no_issue(samples.MISSING.ruled(decide(_finding(), Category.B))) == category
    assert why_no_issue(samples.MISSING.ruled(decide(_finding(), Category.A, "note"))) == "the rule prescribes note"
    assert why_no_issue(samples.MISSING) == "the policy asks for a note only"
