"""The judges of ``benchmarks/truth.py``: what is planted as false is judged false, and what is true, true."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.claims.judges import (
    Claimed,
    Ending,
    Patched,
    Played,
    Replay,
    Run,
    Seen,
    Truth,
    both,
    inner,
    judge_advice,
    judge_first,
    judge_first_patch,
    judge_gap,
    judge_issue,
    judge_keyword,
    judge_name,
    judge_patch,
    judge_replays,
    judge_reproduction,
    judge_unseen,
    judge_verdict,
)
from benchmarks.claims.patches import added, merged, pairs
from benchmarks.claims.runs import read_ending

PASSED = Ending()


def _at(line: int, error: str = "AttributeError", message: str = "") -> Ending:
    return Ending(error, message, (("<string>", 1), ("/x/mre.py", line), ("/site-packages/paddle/tensor.py", 9)))


# -- reproductions -----------------------------------------------------------------------------------------------------

NEW_TENSOR = Claimed("torch.Tensor.new_tensor:missing_api", "torch.Tensor.new_tensor", "missing_api")
PROGRAM = (
    "import torch\nx = torch.ones(2)\nopt = torch.optim.SGD([x], lr=1)\ny = x.new_tensor([1.0])\nassert y.sum() == 1\n"
)
WRITES = "y = torch.t(x)\ntry:\n    y.fill_(1)\nexcept RuntimeError:\n    pass\nelse:\n    raise AssertionError"
ABSENT = "'Tensor' object has no attribute 'new_tensor'"


def test_a_reproduction_that_fails_at_its_gap_is_true() -> None:
    judged = judge_reproduction(NEW_TENSOR, Played(PROGRAM, "mre.py", PASSED, _at(4, message=ABSENT), rest=PASSED))
    assert (judged.truth, judged.reason) == (Truth.TRUE, "")


@pytest.mark.parametrize(
    ("played", "why"),
    [
        (Played(PROGRAM, "mre.py", PASSED, _at(3, message="module 'paddle' has no attribute 'optim'")), "not about"),
        (Played(PROGRAM, "mre.py", PASSED, PASSED), "passes under Paddle"),
        (Played(PROGRAM, "mre.py", _at(4), _at(4, message=ABSENT)), "under torch"),
        (Played(PROGRAM, "mre.py", PASSED, _at(4, "TypeError", "takes no list")), "called missing"),
        (Played(PROGRAM, "mre.py", PASSED, _at(4, message=ABSENT), _at(5, "AssertionError")), "the rest fails"),
        (Played(PROGRAM, "mre.py", PASSED, Ending("SIGSEGV")), "no statement"),
    ],
)
def test_a_reproduction_of_another_gap_is_false(played: Played, why: str) -> None:
    judged = judge_reproduction(NEW_TENSOR, played)
    assert judged.truth is Truth.FALSE
    assert why in judged.reason


@pytest.mark.parametrize(
    ("api", "symptom", "program", "line", "truth"),
    [
        ("torch.Tensor.add", "value", "a = b + 1\nassert a.sum() == 2", 2, Truth.TRUE),
        ("torch.Tensor.__radd__", "exception", "a = 1 + b", 1, Truth.TRUE),
        ("torch.nn.Linear", "shape", "l = torch.nn.Linear(2, 3)\ny = l(x)\nassert y.shape == (2,)", 3, Truth.TRUE),
        ("torch.relu", "gradient", "y = torch.relu(x)\ny.sum().backward()\nassert x.grad.sum() == 1", 3, Truth.TRUE),
        ("torch.relu", "value", "y = torch.relu(x)\nz = torch.exp(x)\nassert z.sum() == 1", 3, Truth.FALSE),
        ("torch.relu", "gradient", "torch.relu(x).sum().backward()\nassert not x.grad.requires_grad", 2, Truth.FALSE),
        ("torch.relu", "value", "y = torch.relu(x)\nassert y.dtype == torch.float32", 2, Truth.FALSE),
        ("torch.relu", "exception", "y = torch.relu(x)\nassert y.sum() == 1", 2, Truth.FALSE),
        ("torch.t", "alias", WRITES, 7, Truth.TRUE),
        ("torch.t", "value", WRITES, 7, Truth.FALSE),
    ],
)  # fmt: skip
def test_an_assertion_is_about_what_its_gap_is_about(
    api: str, symptom: str, program: str, line: int, truth: Truth
) -> None:
    error = "AssertionError" if "assert" in program.lower() else "TypeError"
    judged = judge_reproduction(
        Claimed(f"{api}:{symptom}", api, symptom), Played(program, "mre.py", PASSED, _at(line, error))
    )
    assert judged.truth is truth, judged.reason


def test_a_crash_must_be_a_crash() -> None:
    gap = Claimed("torch.clone:crash", "torch.clone", "crash")
    died = judge_reproduction(gap, Played("x.clone()", "mre.py", PASSED, Ending("SIGABRT")))
    raised = judge_reproduction(gap, Played("x.clone()", "mre.py", PASSED, _at(1, "TypeError")))
    assert (died.truth, raised.truth) == (Truth.TRUE, Truth.FALSE)


def test_an_error_in_a_backward_is_read_out_of_the_engine_s_text() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "mre.py", line 14, in <module>\n    F.apply(x).backward()\n'
        '  File "/p/tensor_patch_methods.py", line 370, in backward\n    core.eager.run_backward(\n'
        "OSError: (External) \n{\n    ==== Error message in backward of GradNodePyLayer_F(0x1)====\n"
        "    AttributeError: 'F_backward' object has no attribute 'saved_tensors'\n    \n    At:\n"
        "      mre.py(12): backward\n      /p/py_layer.py(340): backward\n      mre.py(14): <module>\n    \n}\n"
    )
    ending = read_ending(1, text)
    assert (ending.error, ending.line_in("mre.py")) == ("AttributeError", 12)
    assert inner(_at(4, message=ABSENT)) == _at(4, message=ABSENT)


# -- patches -----------------------------------------------------------------------------------------------------------

BEFORE, AFTER = "def f(x):\n    return x.detach()\n", "def f(x):\n    return x.clone().detach()\n"
ONE = {"result.out": Seen("tensor", "float32", (1,), False, (1.0,))}
GAP = Claimed("torch.Tensor.detach:alias", "torch.Tensor.detach", "exception")
STOPPED = Run(
    Ending("TypeError", "no", (("/l/a.py", 2), ("/site-packages/paddle/t.py", 7))), frozenset({("/l/a.py", 2)}), {}
)
FINE = Run(PASSED, frozenset({("/l/a.py", 2)}), ONE)
GOOD = Patched(
    {"a.py": BEFORE}, {"a.py": AFTER}, True, (FINE, FINE), {}, STOPPED, FINE, frozenset({("/l/a.py", 2)}), "/l"
)


def _seen(**changed: object) -> Run:
    return replace(FINE, seen={"result.out": replace(ONE["result.out"], **changed)})  # type: ignore[arg-type]


def test_a_patch_that_changes_nothing_under_torch_and_gets_past_its_gap_is_true() -> None:
    assert judge_patch(GAP, GOOD).truth is Truth.TRUE


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        (replace(GOOD, torch=(FINE, _seen(requires_grad=True))), "requires_grad False -> True"),
        (replace(GOOD, torch=(FINE, _seen(grad=(1.0,)))), "grad None -> a number"),
        (replace(GOOD, torch=(FINE, _seen(dtype="float64"))), "dtype"),
        (replace(GOOD, torch=(FINE, _seen(values=(1.1,)))), "values differ"),
        (replace(GOOD, torch=(FINE, replace(FINE, seen={}))), "one side only"),
        (replace(GOOD, others={"float16": (FINE, _seen(dtype="float64"))}), "default dtype is float16"),
        (replace(GOOD, after={"a.py": "# nothing\n" + BEFORE}), "comments only"),
        (replace(GOOD, without=FINE), "changes nothing under Paddle"),
        (replace(GOOD, with_it=STOPPED), "does not get past"),
        (replace(GOOD, with_it=Run(Ending("E", "m", (("/l/b.py", 1),)), FINE.lines, ONE)), "said to pass"),
        (replace(GOOD, with_it=_seen(values=(2.0,))), "not torch's result"),
    ],
)
def test_a_patch_that_is_none_is_false(patch: Patched, why: str) -> None:
    judged = judge_patch(GAP, patch)
    assert judged.truth is Truth.FALSE
    assert why in judged.reason


def test_what_cannot_be_seen_of_a_patch_is_not_called_true() -> None:
    elsewhere = Run(Ending("KeyError", "k", (("/l/b.py", 1),)), frozenset(), {})
    assert judge_patch(GAP, replace(GOOD, whole=False, with_it=elsewhere)).truth is Truth.UNANSWERABLE
    other = replace(GOOD, whole=False, with_it=_seen(values=(2.0,)), silent=("torch.prod:value",))
    assert judge_patch(GAP, other).truth is Truth.UNANSWERABLE


def test_the_statement_alone_is_held_against_torch() -> None:
    good = Replay((FINE, FINE), (STOPPED, FINE))
    false = {
        "changes torch": replace(good, torch=(FINE, _seen(values=(3.0,)))),
        "with ties": replace(good, others={"ties": (FINE, _seen(values=(3.0,)))}),
        "fails under Paddle": replace(good, paddle=(STOPPED, STOPPED)),
        "under Paddle result.out": replace(good, paddle=(STOPPED, _seen(values=(3.0,)))),
        "what upstream's does": replace(good, paddle=(FINE, FINE)),
    }
    assert judge_replays(GAP, [good]).truth is Truth.TRUE
    for why, one in false.items():
        judged = judge_replays(GAP, [good, one] if why != "what upstream's does" else [one])
        assert judged.truth is Truth.FALSE, why
        assert why in judged.reason
    unable = judge_replays(GAP, [Replay(unable="a Module")])
    assert unable.truth is Truth.UNANSWERABLE
    assert both(unable, judge_replays(GAP, [good])).truth is Truth.TRUE
    assert both(judge_patch(GAP, replace(GOOD, with_it=STOPPED)), judge_replays(GAP, [good])).truth is Truth.FALSE


def test_statements_of_a_patch_are_paired_with_those_that_they_replace() -> None:
    after = "import copy\n" + BEFORE.replace("x.detach()", "copy.copy(x)")
    (pair,) = pairs("a.py", BEFORE, after)
    assert (pair.line, pair.old, pair.new, pair.prelude) == (
        2,
        "returned = x.detach()",
        "returned = copy.copy(x)",
        "import copy",
    )
    assert pair.wanted() == {"x": ["detach"], "copy": ["copy"]}
    assert added(BEFORE, after) == {1, 3}


def test_two_patches_of_one_file_are_put_together_unless_they_meet() -> None:
    base = "a\nb\nc\n"
    assert merged(base, "A\nb\nc\n", "a\nb\nC\n") == "A\nb\nC\n"
    assert merged(base, "A\nb\nc\n", "X\nb\nc\n") is None


# -- verdicts, gaps and the audit --------------------------------------------------------------------------------------


def test_no_gaps_is_false_where_a_plain_run_fails_or_differs() -> None:
    assert judge_verdict(True, FINE, FINE).truth is Truth.TRUE
    assert judge_verdict(True, FINE, STOPPED).truth is Truth.FALSE
    assert judge_verdict(True, FINE, _seen(values=(2.0,))).truth is Truth.FALSE
    assert judge_verdict(True, STOPPED, FINE).truth is Truth.UNANSWERABLE


def test_a_gap_that_nothing_meets_is_false() -> None:
    assert judge_gap(GAP, [("a.py", 2)], False, FINE).truth is Truth.FALSE
    assert judge_gap(GAP, [("a.py", 2)], False, STOPPED).truth is Truth.TRUE
    assert judge_gap(GAP, [("b.py", 9)], False, STOPPED).truth is Truth.UNANSWERABLE


def test_where_the_plain_program_fails_first_some_gap_must_stand() -> None:
    named, unnamed = judge_first([("a.py", 2)], STOPPED, "/l"), judge_first([("a.py", 3)], STOPPED, "/l")
    assert (named and named.truth, unnamed and unnamed.truth) == (Truth.TRUE, Truth.FALSE)
    beside = Run(
        Ending("TypeError", "no", (("/l/a.py", 2), ("/needs/other/b.py", 7), ("/site-packages/paddle/p.py", 1)))
    )
    assert judge_first([], FINE, "/l") is None
    assert judge_first([], beside, "/l") is None


@pytest.mark.parametrize(
    ("claim", "torch", "paddle", "truth"),
    [
        ("missing", "yes", "no", Truth.TRUE),
        ("missing", "yes", "yes", Truth.FALSE),
        ("missing", "no", "no", Truth.FALSE),
        ("present", "yes", "yes", Truth.TRUE),
        ("present", "yes", "no", Truth.FALSE),
    ],
)
def test_a_name_is_asked_again(claim: str, torch: str, paddle: str, truth: Truth) -> None:
    assert judge_name("torch.triu", claim, torch, paddle).truth is truth


@pytest.mark.parametrize(
    ("torch", "paddle", "truth"),
    [
        ("yes", "no", Truth.TRUE),
        ("yes", "yes", Truth.FALSE),
        ("no", "no", Truth.FALSE),
        ("yes", "?", Truth.UNANSWERABLE),
    ],
)
def test_a_keyword_is_asked_again(torch: str, paddle: str, truth: Truth) -> None:
    assert judge_keyword("torch.sum", "dim", torch, paddle).truth is truth


def test_advice_that_something_works_is_run() -> None:
    assert judge_advice("device_annotation", "annotations work", PASSED, _at(1, "TypeError")).truth is Truth.FALSE
    assert judge_advice("device_annotation", "annotations work", PASSED, PASSED).truth is Truth.TRUE
    assert judge_advice("device_annotation", "annotations work", None, None).truth is Truth.UNANSWERABLE


def test_the_plan_is_held_against_the_run() -> None:
    met = {
        "read.py": [Claimed("torch.fft:missing_api", "torch.fft", "missing_api")],
        "values.py": [Claimed("torch.prod:value", "torch.prod", "value")],
        "objects.py": [NEW_TENSOR],
    }
    judged = list(judge_unseen(["plain.py", *met], met))
    assert [one.truth for one in judged] == [Truth.TRUE, Truth.FALSE, Truth.TRUE, Truth.TRUE]
    right = judge_first_patch("a.py:2 (python_interface: torch.x)", STOPPED.ending, "/l")
    wrong = judge_first_patch("a.py:22 (python_interface: torch.x)", STOPPED.ending, "/l")
    assert (right and right.truth, wrong and wrong.truth) == (Truth.TRUE, Truth.FALSE)


@pytest.mark.parametrize(
    "body",
    [
        "# relu is wrong for nu...\n",
        "# relu is missing or inconsistent\n",
        "# relu\nFile /tmp/x/mre.py\n",
        "# relu\nDifference(aspect=)\n",
    ],
)
def test_an_issue_that_cannot_be_posted_is_false(body: str) -> None:
    assert judge_issue(GAP, body).truth is Truth.FALSE
    other_run = "# prod\n\n## Expected\n\ntensor[] int64 1000: as under PyTorch.\n\n## Actual\n\n"
    assert judge_issue(GAP, other_run, "x = torch.tensor([1], dtype=torch.int32)").truth is Truth.FALSE
    assert judge_issue(GAP, other_run, "x = torch.tensor([1000], dtype=torch.int32)").truth is Truth.TRUE
    assert judge_issue(GAP, "# `torch.relu` gives -0.0 under Paddle\n\nRun it.\n").truth is Truth.TRUE
