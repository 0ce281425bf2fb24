"""Scope leaks: who answered an import of torch, with made-up traces and once for real."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from migrate_lens import config
from migrate_lens.commands import diagnose as pipeline
from migrate_lens.compare.scope import leaks
from migrate_lens.discovery.discover import discover
from migrate_lens.model.report import Decision, Stage, Symptom
from migrate_lens.model.trace import Answer, Answerer, Finished, Place, PlaceKind, Trace

pytestmark = pytest.mark.real


def _trace(*answers: tuple[str, str]) -> Trace:
    places = [
        Answer(Place(module, f"/lib/{module}.py", 3, 0, 3, 12, PlaceKind.IMPORT, (), "import torch"), Answerer(who))
        for module, who in answers
    ]
    return Trace((), Finished(), None, (), {}, (), (), tuple(places), (), {})


@pytest.mark.parametrize(
    ("answers", "named"),
    [
        ([("mylib.ops", "proxy"), ("__main__", "proxy"), ("other", "torch")], []),
        ([("mylib.ops", "torch")], ["real torch answered module mylib.ops"]),
        ([("mylibrary", "proxy")], ["Paddle's proxy answered module mylibrary"]),
        ([("mylib", "torch"), ("mylib", "torch"), ("__main__", "torch")], [
            "real torch answered module mylib", "real torch answered module __main__",
        ]),
    ],
)  # fmt: skip
def test_a_module_that_got_the_other_framework_is_named(
    tmp_path: Path, answers: list[tuple[str, str]], named: list[str]
) -> None:
    (tmp_path / "one.py").write_text("result = 1\n")
    library = discover(tmp_path / "one.py")
    found = leaks(_trace(*answers), ("mylib",), Stage.RUN, library)
    assert [f.actual for f in found] == named


def test_a_leak_out_of_the_scope_is_found_although_the_outcome_agrees(tmp_path: Path) -> None:
    package = tmp_path / "lib" / "lazylib"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("def ones(n):\n    import torch\n    return torch.ones(n)\n")
    (tmp_path / "lib" / "smoke.py").write_text("import torch\nimport lazylib\nresult = lazylib.ones(2)\n")
    (tmp_path / "state").mkdir()
    given = config.Given(
        torch_python=sys.executable, paddle_python=sys.executable, scope=["elsewhere"], keep_torch=True,
        state=tmp_path / "state",
    )  # fmt: skip
    options = config.load(tmp_path / "lib", given)
    report = pipeline.diagnose(options, lambda line: None)
    assert [(g.symptom, g.decision) for g in report.gaps] == [(Symptom.SCOPE, Decision.NARROW_SCOPE)]
    assert [(s.path, s.line) for s in report.gaps[0].sites] == [("lazylib/__init__.py", 2)]
