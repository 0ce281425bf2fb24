"""Two events of one place, in; how they differ, whether it counts by itself, and what a gap is made of, out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sample_events import call, ended, failed, failure, handed, place, tensor, trace

from migrate_lens.compare.blame import blame
from migrate_lens.compare.divergences import Divergence, divergences, diverges
from migrate_lens.compare.findings import collect, facts_of, first_divergence, node_name, private, site_of
from migrate_lens.compare.gradients import culprit
from migrate_lens.compare.outcome import disagreement, ending_said
from migrate_lens.model.report import Library, Site, Stage, Symptom
from migrate_lens.model.trace import Died, Ending, Event, Frame
from migrate_lens.model.value import Difference

LIBRARY = Library(Path("/lib"), "script", Path("/lib/script.py"), Path("/lib"), (), (), None, (), (), "found")
GUARD = place(1, caught=("AttributeError",))
HAS, GET = place(1, kind="c", text="hasattr(torch, 'f')"), place(1, kind="c", text="getattr(torch, 'f', None)")
T, U = tensor(1.0), tensor(2.0)


def of(want: Event, got: Event) -> Divergence:
    found = diverges(want, got)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("want", "got", "symptom", "detail", "hard"),
    [
        (call(1, T), call(1, U), "value", "value", True),
        (call(1, T), call(1, tensor(1.0, 2.0)), "shape", "shape", True),
        (call(1, T), call(1, tensor(1.0, dtype="float64")), "dtype", "dtype", True),
        (call(1, 1), call(1, 2), "value", "value", False),
        (call(1, T, api="torch.Tensor.grad"), call(1, U), "gradient", "value", True),
        (call(1, tensor(1.0, grad=True)), call(1, T), "gradient", "gradient", False),
        (call(1, ("n", "R", ("v",), [T])), call(1, ("t", [T])), "value", "type", False),
        (call(1, T), failed(1, kind="ValueError"), "exception", "ValueError", True),
        (call(1, T), failed(1, kind="TypeError", argument="dim"), "missing_argument", "dim", True),
        (call(1, T), failed(1, "absent", kind="AttributeError"), "missing_api", "", True),
        (call(1, T), failed(1, kind="AttributeError", missing="f"), "missing_api", "", True),
        (call(1, T), failed(1, kind="AttributeError", message="f"), "missing_api", "", True),
        (call(1, T), failed(1, kind="AttributeError", missing="g"), "exception", "AttributeError", True),
        (call(GUARD, T), failed(GUARD, "absent", kind="AttributeError"), "missing_api", "", False),
        (call(GUARD, T), failed(GUARD, kind="ValueError"), "exception", "ValueError", True),
        (failed(1, kind="ValueError"), call(1, T), "value", "not raised", False),
        (failed(1, kind="ValueError"), failed(1, kind="TypeError"), "exception", "TypeError", False),
        (failed(GUARD, kind="AttributeError"), failed(GUARD, kind="TypeError"), "exception", "TypeError", True),
        (call(HAS, True), call(HAS, False), "missing_api", "", False),
        (call(HAS, False), call(HAS, True), "value", "value", False),
        (call(GET, ("F", "f")), call(GET, None), "missing_api", "", False),
        (call(GET, 1), call(GET, None), "value", "value", False),
        (call(1, T, flags="=0;"), call(1, T), "alias", "in place", False),
        (call(1, T, flags="v"), call(1, T), "alias", "view", False),
        (call(1, None, written=((0, T),)), call(1, None, written=((0, U),)), "value", "value", True),
    ],
)
def test_how_two_events_differ(want: Event, got: Event, symptom: str, detail: str, hard: bool) -> None:
    found = of(want, got)
    assert (str(found.symptom), found.detail, found.hard) == (symptom, detail, hard)
    assert found.expected != found.actual


@pytest.mark.parametrize(
    ("want", "got"),
    [
        (call(1, T), call(1, T)),
        (call(1, T), handed(1)),
        (call(1, T), call(1, U, flags="i")),
        (call(1, T, flags="r"), call(1, U)),
        (call(1, T, flags="u"), call(1, U)),
        (failed(1, kind="ValueError"), failed(1, kind="ValueError", message="other")),
        (call(1, T), call(1, T, flags="v")),
        (call(1, T, flags="v"), call(1, T, flags="=0;")),
        (call(1, T, flags="v"), call(1, T, flags="v")),
        (call(1, ("O", "x")), call(1, ("O", "y"))),
        (call(1, T, flags="=0;", written=((0, T),)), call(1, T, flags="=0;", written=((0, T),))),
    ],
)
def test_what_is_no_divergence(want: Event, got: Event) -> None:
    assert diverges(want, got) is None


def test_a_hard_difference_comes_before_a_soft_one_of_the_same_event() -> None:
    found = of(call(1, 1, written=((0, T),)), call(1, 2, written=((0, U),)))
    assert found.hard


def test_the_same_key_at_several_places_is_one_finding() -> None:
    want = [call(1, T), call(2, T), call(2, T, visit=2), call(3, T, api="torch.g")]
    got = [call(1, U, healed="differs"), call(2, U), call(2, U, visit=2), call(3, U, api="torch.g")]
    findings = collect(divergences(trace(want), trace(got)), Stage.RUN, LIBRARY)
    assert [(f.key.api, f.sites) for f in findings] == [
        ("torch.f", (Site("script.py", 1), Site("script.py", 2))), ("torch.g", (Site("script.py", 3),)),
    ]  # fmt: skip
    assert "torch's recorded result was handed over (differs), 3 time(s)" in findings[0].evidence


def test_facts_that_rules_may_ask_for() -> None:
    at = place(1, kind="f")
    facts = facts_of(of(call(at, ("Z", (1,))), failed(at, "absent", kind="ImportError", argument="dim", proxied=True)))
    assert facts["kind"] == "from-import"
    assert facts["value"] == "size"
    assert (facts["exception"], facts["raised_in"], facts["guarded"], facts["proxied"]) == (
        "ImportError",
        "a/b.py:1 f",
        False,
        True,
    )
    assert facts_of(of(call(1, T, api="torch._C.f"), call(1, U)))["private"] is True


PYBIND = """run(): incompatible function arguments. The following argument types are supported:
    1. ({taken}) -> {given}

Invoked with: 3
"""


@pytest.mark.parametrize(
    ("taken", "given", "uncast"),
    [
        ("arg0: c10::ScalarType", "int", "c10::ScalarType"), ("arg0: int", "at::Tensor", "at::Tensor"),
        ("arg0: int, arg1: str", "int", ""), ("arg0: mine::Type", "int", ""),
    ],
)  # fmt: skip
def test_a_type_without_a_caster_is_read_from_the_signature(taken: str, given: str, uncast: str) -> None:
    message = PYBIND.format(taken=taken, given=given)
    assert facts_of(of(call(1, 3), failed(1, kind="TypeError", message=message)))["uncast"] == uncast


@pytest.mark.parametrize(
    ("name", "answer"),
    [("torch._C.f", True), ("torch.f", False), ("torch.__version__", False), ("torch.Tensor.__add__", False)],
)
def test_private_names(name: str, answer: bool) -> None:
    assert private(name) is answer


@pytest.mark.parametrize(
    ("path", "module", "shown"),
    [
        ("/lib/pkg/a.py", "pkg.a", "pkg/a.py"),
        ("/env/site-packages/dep/sub/b.py", "dep.sub.b", "dep/sub/b.py"),
        ("/elsewhere/c.py", "c", "c.py"),
        ("/elsewhere/c.py", "", "c.py"),
    ],
)
def test_a_place_is_named_as_its_user_knows_it(path: str, module: str, shown: str) -> None:
    assert site_of(path, module, 3, LIBRARY) == Site(shown, 3)


def test_calls_of_one_chain_have_names_of_their_own() -> None:
    first, second = place(1), place(1, text="x.f1().g()")
    assert node_name(first) == "__main__:1:0:1:10:m"
    assert node_name(first) == node_name(second)
    assert node_name(replace(first, end_column=20)) != node_name(first)


# -- outcomes --------------------------------------------------------------------------------------------------------

BOOM = ended("raised", failure("KeyError"))


@pytest.mark.parametrize(
    ("want", "got", "aspect"),
    [
        (ended(), Died(), "crash"),
        (ended(), BOOM, "exception"),
        (ended(value=T), ended(value=U), "value"),
        (ended(value=T), ended(value=tensor(1.0, 2.0)), "shape"),
        (ended("exited", 0), ended("exited", 1), "exception"),
        (ended("exited", None), ended("exited", "text"), "exception"),
        (ended("parts", {"a": "passed"}, has=True), ended("parts", {"a": "failed"}, has=True), "exception"),
        (ended("parts", {"a": "passed"}, has=True), ended("parts", {}, has=True), "exception"),
        (ended(), ended("exited", 0), "exception"),
    ],
)
def test_outcomes_that_differ(want: Ending, got: Ending, aspect: str) -> None:
    found = disagreement(want, got)
    assert found is not None
    assert found.aspect == aspect


@pytest.mark.parametrize(
    ("want", "got"),
    [
        (ended(), ended()),
        (ended(value=T), ended(value=T)),
        (ended("exited", None), ended("exited", 0)),
        (ended(value=tensor(1.0, grad=True)), ended(value=T)),
        (ended(value=("n", "R", ("v",), [T])), ended(value=("t", [T]))),
        (ended("parts", {"a": "failed", "b": "passed"}, has=True), ended("parts", {"a": "x", "b": "passed"}, has=True)),
    ],
)
def test_outcomes_that_agree(want: Ending, got: Ending) -> None:
    assert disagreement(want, got) is None


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        (BOOM, "raises KeyError: no"),
        (ended("raised", failure("KeyError", "\n\n  first \nsecond")), "raises KeyError: first"),
        (ended("raised", failure("KeyError", "")), "raises KeyError"),
        (ended("exited", 3), "exits with 3"),
        (ended(), "finishes"),
        (ended(value=1), "finishes with 1"),
        (ended("parts", {"a": "passed", "b": "failed"}), "b: failed"),
        (ended("parts", {"a": "passed"}), "finishes"),
        (Died(), "dies"),
    ],
)
def test_what_is_said_of_an_ending(ending: Ending, said: str) -> None:
    assert ending_said(ending) == said


# -- blame -----------------------------------------------------------------------------------------------------------

UNLIKE = Difference("value", True, "1", "2")


def test_an_exception_outside_any_call_names_what_the_statement_was_handling() -> None:
    frame = Frame("/lib/script.py", 2, 2, 0, 9, "__main__")
    got = trace(
        [call(1, T), call(2, ("D", "int64"), api="torch.Tensor.dtype"), call(3, T)],
        ended("raised", failure("TypeError"), frame),
    )
    (found,) = blame(trace([]), got, UNLIKE, Stage.RUN, LIBRARY)
    assert (found.key.api, str(found.key.symptom), found.sites) == ("torch.dtype", "exception", (Site("script.py", 2),))


@pytest.mark.parametrize(
    ("missing", "api", "symptom"),
    [("_schema", "torch._ops.OpOverload._schema", "missing_api"), ("other", "torch.g", "exception")],
)
def test_an_attribute_that_only_torchs_object_has_is_named(missing: str, api: str, symptom: str) -> None:
    frame = Frame("/lib/script.py", 2, 2, 0, 9, "__main__")
    want = trace([call(2, T, api="torch.g"), call(place(2, kind="a"), 1, api="torch._ops.OpOverload._schema")])
    got = trace([call(2, T, api="torch.g")], ended("raised", failure("AttributeError", missing=missing), frame))
    (found,) = blame(want, got, UNLIKE, Stage.RUN, LIBRARY)
    assert (found.key.api, str(found.key.symptom)) == (api, symptom)


def test_an_outcome_that_nothing_explains_names_the_last_call() -> None:
    got = trace([call(1, T), call(2, T, api="torch.g")], ended(value=2))
    (found,) = blame(trace([call(1, T), call(2, T, api="torch.g")]), got, UNLIKE, Stage.RUN, LIBRARY)
    assert (found.key.api, str(found.key.symptom), found.key.detail) == ("torch.g", "value", "outcome")


def test_a_death_outside_any_call_is_a_crash() -> None:
    got = trace([call(1, T)], Died())
    differs = disagreement(ended(), got.ending)
    assert differs is not None
    (found,) = blame(trace([call(1, T)]), got, differs, Stage.RUN, LIBRARY)
    assert found.key.symptom is Symptom.CRASH


def test_an_empty_trace_is_blamed_on_the_program() -> None:
    (found,) = blame(trace([]), trace([]), UNLIKE, Stage.RUN, LIBRARY)
    assert (found.key.api, found.sites) == ("the program's result", ())


def test_the_row_of_the_migration_guide() -> None:
    want, got = trace([call(1, 1), call(2, T)]), trace([call(1, 2), call(2, U)])
    found = list(divergences(want, got))
    row = first_divergence(got, found, "")
    assert row.torch_path == "torch.f (f2())"
    assert row.conclusion == "value in torch.f"
    dead = first_divergence(trace([], Died()), found, "f()")
    assert (dead.torch_path, dead.observed) == ("f()", "dies")


# -- gradients -------------------------------------------------------------------------------------------------------


def graph() -> list[Event]:
    leaf = tensor(1.0, grad=True)
    return [
        call(1, leaf, serials=((1, 0),)),
        call(2, leaf, inputs=(("#", 1, 0),), serials=((2, 0),), api="torch.prod"),
        call(3, leaf, inputs=(("#", 2, 0),), serials=((3, 0),), api="torch.sum"),
        call(4, inputs=(("#", 3, 0),), api="torch.Tensor.backward"),
        call(5, leaf, api="torch.Tensor.grad"),
    ]


def test_the_call_whose_backward_differs_is_the_one_reached_by_an_equal_gradient() -> None:
    events = graph()
    # A later backward pass, of another graph, has nothing to do with it.
    other = [call(6, inputs=(("#", 9, 0),), api="torch.Tensor.backward"), call(7, T, api="torch.Tensor.grad")]
    reached = {events[0].key: {0: U}, events[1].key: {0: tensor(1.0, grad=True)}, events[2].key: {0: T}}
    ours = trace([*events, *other], gradients={event.key: {0: T} for event in events[:3]})
    theirs = trace([*events, *other], gradients=reached)
    found = culprit(ours, theirs, events[4].key)
    assert found is not None
    assert found.api == "torch.prod"
    assert culprit(ours, theirs, other[1].key) is None


def test_equal_gradients_have_no_culprit() -> None:
    events = graph()
    ours = {event.key: {0: T} for event in events}
    theirs = {event.key: {0: tensor(1.0, grad=True)} for event in events}
    assert culprit(trace(events, gradients=ours), trace(events, gradients=theirs), events[4].key) is None
