"""Each format, held against what a reader or another program expects of it."""

from __future__ import annotations

import json
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import sample_reports as samples
from hypothesis import given
from hypothesis import strategies as st

from migrate_lens.model import report as model
from migrate_lens.model.errors import StateError
from migrate_lens.model.reading import Fields
from migrate_lens.model.report import FirstDivergence, Gap, Outcome, Report, Runtime, Stage
from migrate_lens.model.ruling import Condition, DecidedBy, Decision, Ruling, Settled
from migrate_lens.reports import DIAGNOSIS, View, wording
from migrate_lens.reports.tables import table

SCHEMA: dict[str, Any] = json.loads((Path(__file__).parents[2] / "docs" / "report.schema.json").read_text())
ALL = pytest.mark.parametrize(
    "report", [samples.HEALTHY, samples.GAPS, samples.BASELINE_FAILED], ids=lambda r: r.verdict
)


def test_a_healthy_library_fits_one_screen() -> None:
    lines = DIAGNOSIS.render(samples.HEALTHY, "text").splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80


@ALL
@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_stay_within_the_width(report: Report, width: int) -> None:
    prose = [line for line in DIAGNOSIS.render(report, "text", View(width)).splitlines() if "migrate-lens" not in line]
    assert max(map(len, prose)) <= width


@ALL
@pytest.mark.parametrize("name", DIAGNOSIS.formats())
def test_a_format_is_a_function_of_the_report(name: str, report: Report) -> None:
    assert DIAGNOSIS.render(report, name) == DIAGNOSIS.render(report, name)
    assert DIAGNOSIS.render(report, name).endswith("\n")


@pytest.mark.parametrize("name", ["text", "markdown"])
def test_everything_found_is_shown(name: str) -> None:
    shown = DIAGNOSIS.render(samples.GAPS, name).replace("\\", "")
    for part in (
        "mylib",
        "torch.segment_reduce:missing_api",
        "src/mylib/ops.py:41, +2 more",
        "the name is public in torch",
        "+1 more line in the JSON report",
        "UNCLASSIFIED",
        "ran on both sides",
        "mre/torch.max.py (not verified)",
        "reached 143 of 150 calls",
        "old.py",
        "syntax error in line 3",
        "the scope was found in the baseline run",
        'paddle.enable_compat(scope={"mylib"})',
        "what was observed",
        "2 gaps: 1 issue, 1 narrow_scope.",
        "migrate-lens explain torch.segment_reduce:missing_api",
    ):
        assert part in " ".join(shown.split()), part


def test_a_failed_baseline_says_so_and_what_to_do() -> None:
    shown = DIAGNOSIS.render(samples.BASELINE_FAILED, "text")
    assert "torch baseline does not run" in shown
    assert "ImportError: numba" in shown
    assert "--torch-python" in shown
    assert "No gaps" not in shown


@pytest.mark.parametrize("name", ["text", "markdown"])
def test_next_steps_name_what_was_given(name: str) -> None:
    library = replace(samples.LIBRARY, probes_from="option")
    shown = DIAGNOSIS.render(replace(samples.GAPS, library=library), name, View(state="kept here"))
    steps = [line for line in shown.splitlines() if "migrate-lens " in line and "All sites" not in line]
    commands = [line for line in steps if not line.startswith("#")]
    assert commands
    assert all("--state 'kept here'" in line.replace("\\", "") for line in commands)
    assert "--probe smoke.py" in shown


def test_a_failure_that_is_the_same_with_global_compat_is_said_once() -> None:
    bad = samples.stage(Runtime.TARGET, Stage.RUN, Outcome.FAILED, "raises KeyError: k")
    stages = (*samples.HEALTHY.stages[:-1], bad, replace(bad, runtime=Runtime.TARGET_GLOBAL))
    shown = DIAGNOSIS.render(replace(samples.GAPS, stages=stages), "text")
    assert shown.count("raises KeyError: k") == 1
    assert shown.count("whole process") == 1


def test_imports_as_the_probe_are_said() -> None:
    probe = model.Probe(model.ProbeKind.IMPORTS, "imports", modules=("mylib", "mylib.ops"))
    library = replace(samples.LIBRARY, probes=(probe,), probes_from="imports")
    shown = DIAGNOSIS.render(replace(samples.HEALTHY, library=library), "text")
    assert "2 public modules imported instead" in shown
    assert "--probe PROGRAM" in shown


def test_many_passed_stages_share_a_row_and_failed_ones_do_not() -> None:
    runs = [samples.stage(Runtime.TARGET, Stage.RUN, probe=f"examples/e{i}.py") for i in range(40)]
    bad = samples.stage(Runtime.TARGET, Stage.RUN, Outcome.CRASHED, "signal 11", probe="examples/bad.py")
    lines = DIAGNOSIS.render(
        replace(samples.HEALTHY, stages=(*samples.HEALTHY.stages, *runs, bad)), "text"
    ).splitlines()
    assert len(lines) <= 24
    assert any("40 probes" in line or "41 probes" in line for line in lines)
    assert any("examples/bad.py" in line and "signal 11" in line for line in lines)


@pytest.mark.parametrize("name", ["text", "markdown"])
def test_long_lists_are_cut_and_counted(name: str) -> None:
    skipped = tuple(model.Skipped(f"f{i}.py", "bad") for i in range(30))
    whole = [model.TraceSummary(f"e{i}.py", 10, 10, 10, 10) for i in range(30)]
    cut = model.TraceSummary("cut.py", 9, 8, 7, 7)
    shown = DIAGNOSIS.render(replace(samples.HEALTHY, skipped=skipped, traces=(*whole, cut)), name).replace("\\", "")
    assert "f4.py" in shown
    assert "f5.py" not in shown
    assert "+25 more in the JSON report" in shown
    assert "30 probes: reached 300 of 300 calls" in shown
    assert "cut.py: reached 7 of 9 calls" in shown


def test_gaps_of_a_layer_stand_together() -> None:
    other = replace(samples.MISSING, id="torch.b:missing_api", layer=model.Layer.BUILD)
    grouped = wording.by_layer([samples.MISSING, other, replace(samples.MISSING, id="torch.c:missing_api")])
    assert [[gap.id.split(":")[0] for gap in gaps] for _, gaps in grouped] == [
        ["torch.b"],
        ["torch.segment_reduce", "torch.c"],
    ]


def test_every_layer_has_a_title() -> None:
    assert set(wording.LAYERS) == set(model.Layer)


@pytest.mark.parametrize("name", ["text", "markdown"])
def test_what_a_program_printed_cannot_drive_the_terminal(name: str) -> None:
    nasty = replace(samples.MISSING, actual="\x1b]0;title\x07\x1b[31mred\x1b[0m\r\nnext\x00", expected="a | b `c` <b>")
    shown = DIAGNOSIS.render(replace(samples.GAPS, gaps=(nasty,)), name)
    assert not {"\x1b", "\x07", "\x00", "\r"} & set(shown)
    assert "red next" in shown


def test_a_markdown_table_keeps_its_columns() -> None:
    first = FirstDivergence("torch.a | b", "`x`", "1 | 2", "no\nyes")
    rows = [
        line
        for line in DIAGNOSIS.render(replace(samples.GAPS, first=first), "markdown").splitlines()
        if "torch.a" in line
    ]
    assert [row.replace("\\|", "").count("|") for row in rows] == [5]


# --- JSON -------------------------------------------------------------------------------------------------------------


@ALL
def test_json_follows_its_schema(report: Report) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(json.loads(DIAGNOSIS.render(report, "json")), SCHEMA)


def test_json_has_the_keys_of_schema_1() -> None:
    document = json.loads(DIAGNOSIS.render(samples.GAPS, "json"))
    assert document["schema"] == 1
    assert document["verdict"] == "gaps"
    assert document["scope"] == ["mylib"]
    assert document["environment"]["paddle"]["version"] == "3.3.1"
    assert document["library"]["build"] == {"kind": "setuptools", "file": "setup.py", "native": True}
    gap = document["gaps"][0]
    assert gap["sites"][0] == {"path": "src/mylib/ops.py", "line": 12}
    assert gap["workaround"] is None
    assert document["gaps"][1]["workaround"]["verified"] is True
    assert document["first_divergence"]["torch_path"] == "torch.segment_reduce"


@pytest.mark.parametrize(
    ("where", "enum"),
    [
        (("$defs", "gap", "properties", "symptom"), model.Symptom),
        (("$defs", "gap", "properties", "layer"), model.Layer),
        (("$defs", "gap", "properties", "category"), model.Category),
        (("$defs", "gap", "properties", "decision"), model.Decision),
        (("$defs", "gap", "properties", "decided_by"), DecidedBy),
        (("$defs", "gap", "properties", "settled", "items", "properties", "condition"), Condition),
        (("properties", "stages", "items", "properties", "outcome"), model.Outcome),
        (("properties", "stages", "items", "properties", "runtime"), model.Runtime),
        (("properties", "stages", "items", "properties", "stage"), model.Stage),
    ],
)
def test_the_schema_knows_every_value(where: tuple[str, ...], enum: type[StrEnum]) -> None:
    node: Any = SCHEMA
    for key in where:
        node = node[key]
    assert node["enum"] == [member.value for member in enum]


def _read(document: str) -> Report:
    return Report.from_json(Fields.of(json.loads(document), "the report"))


@ALL
def test_a_report_that_is_read_back_says_the_same(report: Report) -> None:
    document = DIAGNOSIS.render(report, "json")
    assert DIAGNOSIS.render(_read(document), "json") == document


_RULINGS = st.none() | st.builds(
    Ruling,
    st.sampled_from(Decision),
    st.sampled_from(DecidedBy),
    st.lists(st.builds(Settled, st.sampled_from(Condition), st.booleans(), st.text()), max_size=4).map(tuple),
)
_GAPS = st.builds(
    replace,
    st.sampled_from(samples.GAPS.gaps),
    observed=st.lists(st.text(), max_size=3).map(tuple),
    sites=st.lists(st.builds(model.Site, st.text(), st.integers(1)), max_size=3).map(tuple),
    workaround=st.none() | st.builds(model.Remedy, st.text(), st.text(), st.booleans()),
    mre=st.none() | st.builds(model.Reproduction, st.text(), st.booleans()),
    detail=st.text(),
    exception=st.text(),
    raised_in=st.text(),
)


@given(_GAPS, _RULINGS)
def test_a_gap_that_is_read_back_is_the_same(gap: Gap, ruling: Ruling | None) -> None:
    gap = gap if ruling is None else gap.ruled(ruling)
    document = json.loads(json.dumps(gap.to_json()))
    back = Gap.from_json(Fields.of(document, "a gap"))
    assert back == gap
    assert json.loads(json.dumps(back.to_json())) == document
    jsonschema.validate(document, {**SCHEMA, "$ref": "#/$defs/gap", "type": "object", "required": []})


@pytest.mark.parametrize(("change", "said"), [
    ({"gaps": 3}, "the report has something else under 'gaps'"),
    ({"verdict": None}, "the report has something else under 'verdict'"),
    ({"gaps": [{"id": "a"}]}, "the report: gaps has no 'decision'"),
    ({"gaps": ["a"]}, "the report: gaps is no object"),
])  # fmt: skip
def test_a_report_that_is_none_is_said(change: dict[str, object], said: str) -> None:
    document = json.loads(DIAGNOSIS.render(samples.GAPS, "json")) | change
    with pytest.raises(StateError, match=said):
        Report.from_json(Fields.of(document, "the report"))


@given(st.text(), st.text(), st.lists(st.text(), max_size=4))
def test_any_text_gives_valid_documents(actual: str, api: str, evidence: list[str]) -> None:
    gap: Gap = replace(samples.MISSING, actual=actual, api=api, observed=tuple(evidence))
    report = replace(samples.GAPS, gaps=(gap,))
    assert json.loads(DIAGNOSIS.render(report, "json"))["gaps"][0]["actual"] == actual
    shown = DIAGNOSIS.render(report, "text")
    assert all(char.isprintable() or char == "\n" for char in shown)
    DIAGNOSIS.render(report, "markdown")


@given(st.lists(st.lists(st.text(st.characters(codec="ascii", categories=["L"])), min_size=3, max_size=3), min_size=1))
def test_a_table_never_goes_past_its_width(rows: list[list[str]]) -> None:
    assert all(len(line) <= 60 for line in table([["a", "b", "c"], *rows], 60))
