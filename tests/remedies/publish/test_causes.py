"""One cause, one issue: which gaps are one, how their issue is called, and who may be named as having met them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from sample_reports import LIBRARY, gap

from migrate_lens.model.report import Category, Gap, Key, Symptom
from migrate_lens.remedies import kept
from migrate_lens.remedies.publish.causes import cause, cause_in, statement, together
from migrate_lens.remedies.publish.issue import changes, private_part, title
from migrate_lens.remedies.publish.met import public_name

_PROMOTION = (
    "raises TypeError: (InvalidType) Type promotion only support calculations between floating-point numbers. "
    "But got different data type x: {}, y: {}. (at /paddle/paddle/phi/common/type_promotion.h:220)"
)


def _raises(api: str, said: str, symptom: str = "exception") -> Gap:
    return gap(api, symptom, expected="returns tensor[2] int64", actual=said)


_PROMOTED = [
    _raises("torch.Tensor.sub", _PROMOTION.format("int64", "int32")),
    _raises("torch.Tensor.mul", _PROMOTION.format("float32", "int32")),
    _raises("torch.floor_divide", _PROMOTION.format("uint8", "int64")),
]


def test_the_same_refusal_of_dtypes_at_many_operators_is_one_cause() -> None:
    assert together(_PROMOTED[0], _PROMOTED) == _PROMOTED
    assert together(_PROMOTED[2], _PROMOTED) == [_PROMOTED[2], *_PROMOTED[:2]]


@pytest.mark.parametrize(("one", "other"), [
    (_raises("torch.a.x", "raises ModuleNotFoundError: No module named 'paddle.a'", "missing_api"),
     _raises("torch.a.y", "raises ModuleNotFoundError: No module named 'paddle.a'", "missing_api")),
    (_raises("torch.f", "raises RuntimeError: (PreconditionNotMet) The meta data must be valid. (at /paddle/x.cc:3)"),
     _raises("torch.g", "raises RuntimeError: (PreconditionNotMet) The meta data must be valid. (at /paddle/x.cc:3)")),
    (_raises("torch.f", "raises ValueError: (InvalidArgument) Expected [2, 3], got 7 of int64. (at /paddle/y.h:1)"),
     _raises("torch.g", "raises ValueError: (InvalidArgument) Expected [4], got 12 of float32. (at /paddle/y.h:9)")),
])  # fmt: skip
def test_what_is_said_from_below_the_operators_is_one_cause(one: Gap, other: Gap) -> None:
    assert cause(one) is not None
    assert cause(one) == cause(other)


@pytest.mark.parametrize(("one", "other"), [
    (_raises("torch.f", "raises AttributeError: module 'paddle' has no attribute 'f'", "missing_api"),
     _raises("torch.g", "raises AttributeError: module 'paddle' has no attribute 'g'", "missing_api")),
    (_raises("torch.f", "raises TypeError: f() got an unexpected keyword argument 'out'", "missing_argument"),
     _raises("torch.g", "raises TypeError: g() got an unexpected keyword argument 'out'", "missing_argument")),
    (_raises("torch.f", "raises NotImplementedError"), _raises("torch.g", "raises NotImplementedError")),
    (_raises("torch.f", "raises AssertionError: x"), _raises("torch.g", "raises AssertionError: x")),
    (gap("torch.f", "value", actual="tensor[2] float32 (1.0, 2.0)"),
     gap("torch.g", "value", actual="tensor[2] float32 (1.0, 2.0)")),
    (_PROMOTED[0], _raises("torch.Tensor.sub", "raises ValueError: (InvalidArgument) else (at /paddle/z.h:1)")),
])  # fmt: skip
def test_what_is_said_of_each_name_by_itself_is_not(one: Gap, other: Gap) -> None:
    assert together(one, [one, other]) == [one]


def test_a_reproduction_shows_the_cause_by_its_own_run() -> None:
    said = _PROMOTION.format("int64", "int32").removeprefix("raises ")
    log = f'Traceback (most recent call last):\n  File "mre.py", line 4, in <module>\n    out = x - y\n{said}\n'
    assert cause_in(log, "torch.Tensor.sub") == cause(_PROMOTED[1])
    assert cause_in("Traceback:\nAssertionError: tensor\n", "torch.Tensor.sub") is None
    assert statement("import torch\n\nx = 1\nout = x - y\n", log, "mre.py") == "out = x - y"


def test_the_title_of_one_cause_names_all_and_is_a_sentence() -> None:
    also = [one.api for one in _PROMOTED[1:]]
    assert title(_PROMOTED[0], "en", also).endswith(
        " torch.Tensor.sub, .mul and torch.floor_divide raise TypeError where PyTorch returns"
    )
    assert title(_PROMOTED[0], "zh", also).endswith(
        " torch.Tensor.sub, .mul 和 torch.floor_divide 都抛出 TypeError,而 PyTorch 正常返回"
    )


def test_the_title_says_who_raises() -> None:
    raises = _raises("torch.f", "raises paddle.Oops: no")
    assert title(raises).endswith(" torch.f raises Oops where PyTorch returns")
    accepts = replace(raises, expected="raises RuntimeError: no", actual="returns 3")
    assert title(accepts).endswith(" torch.f returns where PyTorch raises RuntimeError")


def test_an_emitted_issue_answers_for_all_its_gaps(tmp_path: Path) -> None:
    record = kept.Emitted(
        "a", "torch.a", "exception", "mre.py", "TypeError", covers=(Key(Symptom.EXCEPTION, "torch.b"),)
    )
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / kept.RECORD).write_text(json.dumps(record.to_json()))
    assert set(kept.emitted(tmp_path)) == {Key(Symptom.EXCEPTION, "torch.a"), Key(Symptom.EXCEPTION, "torch.b")}
    assert kept.reread(tmp_path / "a" / kept.RECORD) == record


@pytest.mark.parametrize(("metadata", "name"), [
    ("License: MIT License\nProject-URL: Repository, https://github.com/a/b\n", "My-Lib 1.2"),
    ("Classifier: License :: OSI Approved :: BSD License\nHome-page: https://gitlab.com/a/b\n", "My-Lib 1.2"),
    ("License: Proprietary\nProject-URL: Repository, https://github.com/a/b\n", ""),
    ("License: MIT\nProject-URL: Repository, https://git.corp/a/b\n", ""),
    ("License: MIT\nProject-URL: R, https://github.com/a/b\nClassifier: Private :: Do Not Upload\n", ""),
    ("", ""),
])  # fmt: skip
def test_a_library_is_named_only_where_it_says_itself_that_it_is_public(
    tmp_path: Path, metadata: str, name: str
) -> None:
    folder = tmp_path / "my_lib-1.2.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: My-Lib\nVersion: 1.2\n{metadata}")
    library = replace(LIBRARY, root=tmp_path, import_root=tmp_path, name="my_lib", packages=("my_lib",))
    assert public_name(library) == name
    assert public_name(replace(library, name="other", packages=("other",))) == ""


@pytest.mark.parametrize(("api", "category", "private"), [
    ("torch.utils._pytree.tree_map", Category.B, "torch.utils._pytree"),
    ("torch._C._log", Category.B, "torch._C"),
    ("torch.Tensor.__init_subclass__", Category.B, "torch.Tensor.__init_subclass__"),
    ("torch.utils._pytree.tree_map", Category.A, ""),
])  # fmt: skip
def test_what_is_private_is_said(api: str, category: Category, private: str) -> None:
    assert private_part(gap(api, "missing_api", category=category)) == private


def test_a_workaround_shows_no_line_that_it_leaves_alone() -> None:
    patch = "--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@\n secret = 1\n-a\n+b\n # by jane\n"
    assert "secret" not in changes(patch)
    assert "jane" not in changes(patch)
    assert "-a\n+b" in changes(patch)
