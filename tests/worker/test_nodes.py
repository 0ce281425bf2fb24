"""Programs, in; rewritten, they must do what they do as they stand: results, output, exceptions and their lines."""

from __future__ import annotations

import ast
import importlib.util
import sysconfig
from pathlib import Path

import pytest
from fake_backend import FOLDER, expected_of, plain, programs, rewritten
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from migrate_lens.worker.observe import nodes

ENDINGS = expected_of("python.txt")
PROGRAMS = programs("python.txt")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_rewritten_program_behaves_like_the_program(name: str, tmp_path: Path) -> None:
    source, (ending,) = ENDINGS[name]
    want = plain(source)
    assert want.ending == (ending or "finished"), want.detail
    assert rewritten(source, tmp_path).behaviour == want


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_place_is_one_of_a_kind_and_names_its_source(name: str) -> None:
    done = nodes.rewrite(PROGRAMS[name], "<program>", 1)
    keys = [node[:5] for node in done.nodes]
    assert len(set(keys)) == len(keys)
    lines = PROGRAMS[name].split("\n")
    for node in done.nodes:
        assert 1 <= node.line <= node.end_line <= len(lines)


def test_the_text_of_a_place_is_its_source() -> None:
    source = "x = 'é'\n\x0c\ny = x.upper().lower()\nz = y[0:1]\nz += y\n"
    texts = {(n.kind, n.text) for n in nodes.rewrite(source, "<program>", 1).nodes}
    assert texts == {("m", "x.upper()"), ("m", "x.upper().lower()"), ("o", "y[0:1]"), ("i", "z += y")}


LIBRARY = (
    "argparse",
    "dataclasses",
    "enum",
    "functools",
    "typing",
    "inspect",
    "ast",
    "asyncio/tasks",
    "unittest/mock",
    "turtle",
    "pickle",
    "tarfile",
)


@pytest.mark.parametrize("name", LIBRARY)
def test_real_modules_are_rewritten_and_compile(name: str) -> None:
    path = Path(sysconfig.get_path("stdlib")) / f"{name}.py"
    if not path.is_file():  # an interpreter without this module has nothing to show
        path = Path(ast.__file__)
    done = nodes.rewrite(importlib.util.decode_source(path.read_bytes()), str(path), 1)
    compile(done.tree, str(path), "exec", dont_inherit=True)
    keys = [node[:5] for node in done.nodes]
    assert len(keys) > 50
    assert len(set(keys)) == len(keys)


# -- programs made at random ---------------------------------------------------------------------------------------

SPY = (FOLDER / "spy.txt").read_text()
BINARY = st.sampled_from(("+ - * / // % ** @ << >> & | ^ < <= > >= == != and or").split(" "))  # noqa: SIM905


def _expressions() -> SearchStrategy[str]:
    names = st.sampled_from(["a", "b", "c", "1", "'s'"])
    return st.recursive(names, _larger, max_leaves=8)


def _larger(e: SearchStrategy[str]) -> SearchStrategy[str]:
    index = st.one_of(
        e, st.builds("{}:{}".format, e, e), st.builds("{}:{}:{}".format, e, e, e), st.builds("{}, {}:".format, e, e),
        st.builds("*a, {}".format, e),
    )  # fmt: skip
    shown = st.sampled_from(["shown(a.x)", "shown(b[c])", "1"])
    return st.one_of(
        st.builds("({} {} {})".format, e, BINARY, e),
        st.builds("({} < {} <= {})".format, e, e, e),
        st.builds("({}{})".format, st.sampled_from(["-", "+", "~", "not "]), e),
        st.builds("a.f({}, *{}, k={})".format, e, e, e),
        st.builds("{}.m({}, {})".format, st.sampled_from(["a", "b.x", "c.f(a)", "a[b]"]), e, e),
        st.builds("b({}, **a, z={})".format, e, e),
        st.builds("c.{}".format, st.sampled_from(["x", "y.z", "absent", "x.absent"])),
        st.builds("a[{}]".format, index),
        st.builds("({} if {} else {})".format, e, e, e),
        st.builds("[{} for i in {} if {}]".format, e, st.sampled_from(["a", "b.x"]), e),
        st.builds("(lambda q, r={}: {})({})".format, e, e, e),
        st.builds("(w := {})".format, e),
        st.builds("f'{{{}}}{{({})!r}}'".format, shown, shown),
        st.builds("[{}, *{}]".format, e, st.sampled_from(["a", "b.x", "[c]"])),
    )  # fmt: skip


def _statements() -> SearchStrategy[str]:
    e = _expressions()
    augmented = st.sampled_from(["+", "-", "*", "/", "//", "%", "**", "@", "<<", ">>", "&", "|", "^"])
    target = st.one_of(
        st.sampled_from(["a", "b", "a.x", "b.x.y", "c.f(a).x"]),
        st.builds("a[{}]".format, e),
        st.builds("b.x[{}:{}]".format, e, e),
        st.builds("c[{}, ...]".format, e),
    )
    return st.one_of(
        st.builds("{} {}= {}".format, target, augmented, e),
        st.builds("{} = {}".format, target, e),
        st.builds("a[{}] = b.x = {}".format, e, e),
        st.builds("{}".format, e),
        st.builds("for a.i in [{}]: {}".format, e, e),
        st.builds(
            "try:\n    {}\nexcept (AttributeError, TypeError) as error:\n    log.append(type(error).__name__)".format, e
        ),
    )


@given(st.lists(_statements(), min_size=1, max_size=4))
def test_any_program_does_the_same_things_in_the_same_order(
    tmp_path_factory: pytest.TempPathFactory, body: list[str]
) -> None:
    source = SPY + "\n".join(body) + "\nresult = log\n"
    assert rewritten(source, tmp_path_factory.mktemp("traces")).behaviour == plain(source)
