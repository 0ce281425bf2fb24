"""Replacements at a call site: every other byte is kept, and the file still means what it meant."""

from __future__ import annotations

import ast
import builtins
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import sample_reports as samples
from hypothesis import given
from hypothesis import strategies as st

from migrate_lens.model.trace import Event, EventKind, Place, PlaceKind
from migrate_lens.programs.sources import unchanged
from migrate_lens.remedies.fix.patches import Comment, diff, patched
from migrate_lens.remedies.fix.slots import Edit, Form, Site, apply, edit, fill, site_of
from migrate_lens.remedies.fix.strategies import Candidate, Kind
from migrate_lens.remedies.fix.trials import Replacement
from migrate_lens.remedies.fix.workarounds import Workarounds
from migrate_lens.rulebook import recipes

_COMMENT = Comment("me", "torch.add", "it raises", "the operator takes numbers", "put it back")


def _event(api: str) -> Event:
    place = Place("m", "m.py", 1, 0, 1, 1, PlaceKind.CALL, (), "")
    return Event(EventKind.CALL, place, 1, "", api, ())


def _site(source: bytes, api: str = "torch.add") -> Site:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            site = site_of(_event(api), node)
            assert site is not None
            return site
    raise AssertionError("no call")


def _replaced(source: bytes, template: str, api: str = "torch.add") -> bytes:
    return apply(source, [edit(source, _site(source, api), template)])


@pytest.mark.parametrize(("before", "template", "after"), [
    ("y = torch.add(x, 1)\n", "({0} + {1})", "y = (x + 1)\n"),
    ("y = torch.add(a if b else c, -1)\n", "({0} + {1})", "y = ((a if b else c) + (-1))\n"),
    ("y = torch.add(f(x), 1)\n", "({0} + {0} * {1})", "y = (lambda v0: (v0 + v0 * 1))(f(x))\n"),
    ("y = torch.add(x,  1 , )  # kept\n", "torch.sub({0}, {1})", "y = torch.sub(x, 1)  # kept\n"),
    ("é = torch.add(x, 1); z = 2\n", "({0} + {1})", "é = (x + 1); z = 2\n"),
])  # fmt: skip
def test_before_and_after(before: str, template: str, after: str) -> None:
    assert _replaced(before.encode(), template).decode() == after


def test_a_method_has_its_receiver_first() -> None:
    site = _site(b"x.add_(1, alpha=2)", "torch.Tensor.add_")
    assert (site.form, site.keywords) == (Form.METHOD, ("", "", "alpha"))


def test_star_arguments_are_left_alone() -> None:
    call = ast.parse("torch.add(*a)", mode="eval").body
    assert site_of(_event("torch.add"), call) is None


_LINES = st.lists(st.sampled_from(["a = 1", "# ünï", "s = '''x", "'''", "", "    ", "b = 'q'\t# t"]), max_size=6)


@given(_LINES, _LINES, st.sampled_from(["\n", "\r\n"]), st.booleans(), st.booleans())
def test_untouched_bytes_are_kept(before: list[str], after: list[str], newline: str, bom: bool, last: bool) -> None:
    head, tail = newline.join([*before, ""]), newline + newline.join(after) + (newline if last else "")
    source = (b"\xef\xbb\xbf" if bom else b"") + (head + "y = torch.add(x, 1)" + tail).encode()
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    if not any(isinstance(node, ast.Call) for node in ast.walk(tree)):
        return
    changed = _replaced(source, "({0} + {1})")
    assert changed == source.replace(b"torch.add(x, 1)", b"(x + 1)", 1)


def _replacement(path: Path, source: bytes, template: str = "({0} + {1})") -> Replacement:
    return Replacement(path, edit(source, _site(source), template), Candidate(Kind.OPERATOR, template, "why"), 1)


@pytest.mark.parametrize("source", [
    b"import torch\ndef f(x):\n    if x:\n        return torch.add(x, 1)\n",
    b"import torch\r\ny = torch.add(x, 1)\r\nz = 2",
    b"import torch\ny = [\n    torch.add(x, 1),\n    2,\n]",
    b"if x: y = torch.add(x, 1)\n",
    b"\xef\xbb\xbfy = torch.add(x, 1)\n",
], ids=["indented", "crlf", "inside", "one-line", "bom"])  # fmt: skip
def test_git_takes_the_patch(source: bytes, tmp_path: Path) -> None:
    file = tmp_path / "m.py"
    file.write_bytes(source)
    changed = patched(source, [([_replacement(file, source)], _COMMENT)])
    ast.parse(changed)
    text = diff({"m.py": source}, {"m.py": changed})
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "apply", "-"], input=text.encode("utf-8", "surrogateescape"), cwd=tmp_path, check=True)
    assert file.read_bytes() == changed


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_comments_inside_a_replaced_call_are_kept_above_it(newline: str, tmp_path: Path) -> None:
    lines = [
        "def f(x):",
        "    return torch.add(",
        "        x,  # rows",
        "        # one '#' more",
        "        1,",
        "    )",
        "",
    ]
    source = newline.join(lines).encode()
    text = patched(source, [([_replacement(tmp_path / "m.py", source)], _COMMENT)]).decode()
    assert text.endswith(newline.join(["    # rows", "    # one '#' more", "    return (x + 1)", ""]))
    ast.parse(text)


def test_neighbouring_patches_come_out_again_to_the_last_byte(tmp_path: Path) -> None:
    """Each upon the one before it: one by one, the last first, and all in one."""
    file = tmp_path / "m.py"
    source = b"import torch\r\ndef f(x):\r\n    a = torch.add(x, 1)\r\n    b = torch.add(x, 2)\r\n    return a + b"
    file.write_bytes(source)
    calls = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call)]
    workarounds = Workarounds(tmp_path, "me")
    gaps = [replace(samples.GAPS.gaps[0], id=f"gap{number}") for number in range(len(calls))]
    for gap, call in zip(gaps, calls, strict=True):
        site = site_of(_event("torch.add"), call)
        assert site is not None
        made = edit(source, site, "({0} + {1})")
        workarounds.made[gap.id] = (Replacement(file, made, Candidate(Kind.OPERATOR, "({0} + {1})", "why"), 1),)
    old, new = workarounds.changed(gaps)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    series = list(workarounds.series(gaps).values())
    for patches in ([diff(old, new)], series[::-1]):
        file.write_bytes(new["m.py"])
        for patch in patches:
            subprocess.run(["git", "apply", "-R", "-"], input=patch.encode(), cwd=tmp_path, check=True)
        assert file.read_bytes() == source


def test_the_comment_is_complete_and_stands_above_at_the_same_depth(tmp_path: Path) -> None:
    source = b"def f(x):\n    return torch.add(x, 1)\n"
    text = patched(source, [([_replacement(tmp_path / "m.py", source)], _COMMENT)]).decode()
    lines = text.splitlines()
    assert lines[1] == "    # TODO(me): remove this workaround after Paddle compat supports torch.add"
    assert [line.split(":")[0].strip() for line in lines[2:5]] == ["# What", "# Why now", "# Delete"]
    assert lines[-1] == "    return (x + 1)"


def test_an_edit_inside_another_is_made_in_it(tmp_path: Path) -> None:
    source = b"y = torch.add(torch.add(x, 1), 2)\n"
    outer, inner = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call)]
    sites = [site_of(_event("torch.add"), node) for node in (outer, inner)]
    edits = [edit(source, site, "({0} + {1})") for site in sites if site is not None]
    assert apply(source, edits) == b"y = ((x + 1) + 2)\n"


@pytest.mark.parametrize("indent", ["", "    "])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_two_names_are_taken_out_of_one_import(indent: str, newline: str) -> None:
    source = f"{'if 1:' + newline if indent else ''}{indent}from m import a, b as c, d  # kept{newline}".encode()
    start, end = source.index(b"from"), source.index(b"  # kept")
    guard = newline.join(["try:", f"{indent}    from m import a", f"{indent}except ImportError:", f"{indent}    a = 1",
                          f"{indent}from m import b as c, d"])  # fmt: skip
    edits = [Edit(start, end, guard), Edit(start, end, "from m import a, d; from pkg.shim import b as c")]
    for order in (edits, edits[::-1]):
        text = apply(source, order).decode()
        tree = ast.parse(text)
        imports = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
        found = sorted((n.module, a.name, a.asname) for n in imports for a in n.names)
        assert found == [("m", "a", None), ("m", "d", None), ("pkg.shim", "b", "c")]
        assert len([n for n in ast.walk(tree) if isinstance(n, ast.Try)]) == 1
        assert text.count("\n") == text.count(newline)


# -- recipes -----------------------------------------------------------------------------------------------------------


def test_recipes_name_nothing_that_is_not_there() -> None:
    """A replacement uses torch, builtins, its own lambdas' parameters and loop variables, and nothing else."""
    for recipe in recipes.load().recipes:
        filled = recipes.SLOT.sub("slot", recipe.replace)
        tree = ast.parse(filled.strip(), mode="eval")
        bound = {a.arg for n in ast.walk(tree) if isinstance(n, ast.Lambda) for a in n.args.args}
        names = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
        bound |= {n.id for n in names if isinstance(n.ctx, ast.Store)}
        used = {n.id for n in names} - bound - set(dir(builtins))
        assert used <= {"torch", "slot"}, (recipe.apis, used)


def test_a_signature_says_names_and_defaults() -> None:
    assert recipes.signature("input; dim=-1; keepdim=False") == {"input": None, "dim": "-1", "keepdim": "False"}


def test_slots_are_filled_by_number() -> None:
    assert fill("{1}.f({0}, {{x}})".replace("{{x}}", "{0}"), ["a", "b"]) == "b.f(a, a)"


def test_a_file_that_changed_since_is_not_touched(tmp_path: Path) -> None:
    place = Place("m", str(tmp_path / "m.py"), 2, 4, 2, 19, PlaceKind.METHOD, (), "torch.add(x, 1)")
    assert unchanged(place, b"import torch\ny = torch.add(x, 1)\n")
    assert not unchanged(place, b"import torch\n# new\ny = torch.add(x, 1)\n")
    assert not unchanged(place, b"import torch\n")


def test_a_comment_stands_above_a_statement_that_begins_with_the_edit(tmp_path: Path) -> None:
    source = b"import torch\ntorch.add(x, 1)\n"
    text = patched(source, [([_replacement(tmp_path / "m.py", source)], _COMMENT)]).decode()
    assert text.splitlines()[1].startswith("# TODO(me)")
    assert text.splitlines()[-1] == "(x + 1)"
