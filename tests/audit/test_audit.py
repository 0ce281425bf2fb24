"""Whole libraries, in; gaps with reach and rank, plans, baselines and caches, out."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from audit_samples import Audit, by_id, lines

from migrate_lens.audit import baseline, report, tree
from migrate_lens.audit.surface import Surface
from migrate_lens.model.errors import LibraryError, StateError, UsageError
from migrate_lens.model.report import Decision

Files = dict[str, str | bytes]
LIBRARY: Files = {
    "lib/__init__.py": "from lib.core import run\n",
    "lib/core.py": "import torch\nX = torch.frombuffer(b'')\ndef run(x: torch.Tensor):\n    return x.cauchy_()\n",
    "lib/extra.py": "import torch\ntorch.frombuffer(b'')\n",
    "tests/test_core.py": "import torch\ntorch.frombuffer(b'')\nimport torch.optim\n",
    "setup.py": "from setuptools import setup\nsetup()\n",
}


def test_one_key_at_many_sites_is_one_gap_with_its_spread(audit: Audit) -> None:
    library = audit(LIBRARY)
    assert lines(library, "torch.frombuffer:missing_api") == [
        ("lib/core.py", 2),
        ("lib/extra.py", 2),
        ("tests/test_core.py", 2),
    ]
    assert len(by_id(library)["torch.frombuffer:missing_api"].files) == 3


def test_what_the_import_runs_comes_before_what_only_tests_use(audit: Audit) -> None:
    order = [one.gap.id for one in audit(LIBRARY).gaps if one.basis == "asked"]
    assert order == ["torch.frombuffer:missing_api", "torch.Tensor.cauchy_:missing_api", "torch.optim:missing_api"]


def test_reach_is_told_site_by_site(audit: Audit) -> None:
    found = by_id(audit(LIBRARY))
    reach = {spot.site.path: spot.reach for spot in found["torch.frombuffer:missing_api"].spots}
    assert reach == {"lib/core.py": "import", "lib/extra.py": "module", "tests/test_core.py": "test"}
    assert found["torch.Tensor.cauchy_:missing_api"].reach == "api"


def test_a_guarded_site_is_reported_and_ranked_lower(audit: Audit) -> None:
    guarded = "import torch\ntry:\n    torch.frombuffer(b'')\nexcept AttributeError:\n    pass\n"
    library = audit({"lib/__init__.py": guarded, "lib/b.py": ""})
    plain = audit({"lib/__init__.py": "import torch\ntorch.frombuffer(b'')\n"})
    one, other = by_id(library)["torch.frombuffer:missing_api"], by_id(plain)["torch.frombuffer:missing_api"]
    assert one.guarded
    assert not other.guarded
    assert one.score < other.score


def test_a_name_of_the_library_itself_is_no_gap(audit: Audit) -> None:
    files: Files = {
        "lib/__init__.py": "",
        "lib/torch_like.py": "def frombuffer(x): ...\n",
        "lib/use.py": "from lib import torch_like as torch\ntorch.frombuffer(1)\n",
    }
    assert audit(files).gaps == ()


def test_a_re_export_is_followed_through_modules(audit: Audit) -> None:
    files: Files = {
        "lib/__init__.py": "",
        "lib/backend.py": "import torch as th\nfrom torch import frombuffer\n",
        "lib/middle.py": "from .backend import th as engine, frombuffer\n",
        "lib/use.py": "from lib.middle import engine, frombuffer as fb\nengine.ones(2, layout=1)\nfb(b'')\n",
    }
    library = audit(files)
    assert ("lib/use.py", 3) in lines(library, "torch.frombuffer:missing_api")
    assert lines(library, "torch.ones:missing_argument:layout") == [("lib/use.py", 2)]


def test_refused_keyword_other_kind_and_fake_are_told_apart(audit: Audit) -> None:
    source = "import torch\nd = torch.device('cpu')\ntorch.ones(1, layout=2)\ntorch.profiler.profile()\n"
    found = {one.gap.id: one.gap.rule for one in audit({"lib/__init__.py": source}).gaps if one.basis == "asked"}
    assert found == {
        "torch.device:exception": "asked_kind",
        "torch.ones:missing_argument:layout": "asked_keyword",
        "torch.profiler.profile:exception": "asked_kind",
    }


def test_a_class_that_is_a_function_matters_only_as_a_type(audit: Audit) -> None:
    assert not by_id(audit({"lib/a.py": "import torch\ntorch.finfo(1)\n"}))
    assert by_id(audit({"lib/a.py": "import torch\nisinstance(1, torch.finfo)\n"}))


def test_the_same_gap_in_many_files_is_an_issue(audit: Audit) -> None:
    many: Files = {f"lib/m{n}.py": "import torch\ntorch.frombuffer(b'')\n" for n in range(5)}
    assert by_id(audit(many))["torch.frombuffer:missing_api"].gap.decision is Decision.ISSUE


def test_a_comment_ignores_a_rule_on_its_line(audit: Audit) -> None:
    source = (
        "import torch\ntorch.frombuffer(b'')  # migrate-lens: ignore[asked_name]\n"
        "torch.frombuffer(b'')  # migrate-lens: ignore[other_rule]\n"
    )
    library = audit({"lib/a.py": source})
    assert lines(library, "torch.frombuffer:missing_api") == [("lib/a.py", 3)]
    assert library.suppressed == 1


def test_the_plan_says_what_changes_and_what_does_not(audit: Audit) -> None:
    plan = audit({**LIBRARY, "lib/plain.py": "x = 1\n"}).plan
    assert "lib/plain.py" in plan.unchanged
    assert "lib/core.py" not in plan.unchanged
    assert dict(plan.changed)["python_interface"] == ("lib/core.py", "lib/extra.py")
    assert plan.first_patch.startswith("lib/core.py:2 ")
    assert any("import lib" in step for step in plan.validation)


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ({"csrc/a.cpp": "at::Tensor f();", "setup.py": ""}, "plain extension"),
        ({"lib/k.py": "import triton\nimport torch\ntorch.add(1, 2)\n"}, "kernel DSL"),
        ({"lib/m.py": "from torch import nn\nclass A(nn.Module): ...\nclass B(nn.Module): ...\n"}, "plain models"),
        ({"lib/g.py": "import torch\ntorch.add(1, 2)\n"}, "Python glue"),
    ],
)
def test_the_kind_of_a_library(audit: Audit, files: Files, kind: str) -> None:
    assert audit(files).plan.kind == kind


def test_nothing_of_the_library_is_run(audit: Audit, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    source = f"import pathlib, torch\npathlib.Path({str(mark)!r}).touch()\ntorch.frombuffer(b'')\n"
    files: Files = dict.fromkeys(("lib/__init__.py", "setup.py", "conftest.py", "lib/sitecustomize.py"), source)
    assert audit(files).gaps
    assert not mark.exists()


def test_a_baseline_knows_gaps_and_not_new_sites(audit: Audit, tmp_path: Path) -> None:
    first = audit(LIBRARY)
    file = tmp_path / "baseline.json"
    file.write_text(baseline.text([first]))
    known = baseline.load(file)
    assert audit(LIBRARY, known=known).gaps == ()
    more = {**LIBRARY, "lib/new.py": "import torch\ntorch.frombuffer(b'')\n"}
    assert [one.gap.id for one in audit(more, known=known).gaps] == ["torch.frombuffer:missing_api"]


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 9, "gaps": {}}', '{"schema": 1, "gaps": 3}'])
def test_a_damaged_baseline_is_an_error(text: str, tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    file.write_text(text)
    with pytest.raises(StateError):
        baseline.load(file)


def test_only_what_changed_since_a_revision(write: Callable[[Files], Path], small: Surface) -> None:
    root = write(LIBRARY)
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *command], check=True)
    write({"lib/extra.py": "import torch\n\ntorch.frombuffer(b'')\n"})
    only = baseline.changed_since(root, "HEAD")
    assert only == {"lib/extra.py"}
    with tree.opened(str(root)) as found:
        library = report.audit_tree(found, small, None, only=only)
    assert lines(library, "torch.frombuffer:missing_api") == [("lib/extra.py", 3)]
    with pytest.raises(UsageError):
        baseline.changed_since(root, "no-such-revision")


def test_unchanged_files_are_not_read_again(audit: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cold = audit(LIBRARY, cache=tmp_path / "cache")
    opened: list[str] = []
    real_read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: opened.append(path.name) or real_read(path))  # type: ignore[func-returns-value]
    for name in LIBRARY:
        os.utime(tmp_path / "lib" / name, ns=(1, 1))
    moved = audit({}, cache=tmp_path / "cache")
    assert {"core.py", "extra.py"} <= set(opened)
    opened.clear()
    again = audit({}, cache=tmp_path / "cache")
    assert not {"core.py", "extra.py"} & set(opened)
    assert cold.gaps == moved.gaps == again.gaps


def test_a_damaged_cache_is_only_slower(audit: Audit, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cold = audit(LIBRARY, cache=cache)
    for file in cache.iterdir():
        file.write_bytes(b"\x00not a cache")
    assert audit({}, cache=cache).gaps == cold.gaps


def test_a_changed_file_is_read_again(audit: Audit, tmp_path: Path) -> None:
    audit(LIBRARY, cache=tmp_path / "cache")
    library = audit({"lib/core.py": "import torch\n"}, cache=tmp_path / "cache")
    assert ("lib/core.py", 2) not in lines(library, "torch.frombuffer:missing_api")


def test_a_wheel_an_sdist_and_a_file_read_like_a_folder(tmp_path: Path, small: Surface) -> None:
    wheel, sdist, file = tmp_path / "lib-1.0-py3-none-any.whl", tmp_path / "lib-1.0.tar.gz", tmp_path / "core.py"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in LIBRARY.items():
            archive.writestr(name, text)
    with tarfile.open(sdist, "w:gz") as members:
        for name, text in LIBRARY.items():
            data = str(text).encode()
            info = tarfile.TarInfo(f"lib-1.0/{name}")
            info.size = len(data)
            members.addfile(info, io.BytesIO(data))
    file.write_text(str(LIBRARY["lib/core.py"]))
    for path, where in ((wheel, "lib/core.py"), (sdist, "lib/core.py"), (file, "core.py")):
        with tree.opened(str(path)) as found:
            library = report.audit_tree(found, small, None)
        assert (where, 2) in lines(library, "torch.frombuffer:missing_api"), path


@pytest.mark.parametrize(
    ("start", "first", "packages"),
    [
        ("", "outer/__init__.py", ("outer",)),
        ("outer", "outer/__init__.py", ("outer",)),
        ("outer/inner", "outer/__init__.py", ("outer",)),
    ],
)
def test_a_folder_that_is_a_package_is_named_from_above(
    write: Callable[[Files], Path], small: Surface, start: str, first: str, packages: tuple[str, ...]
) -> None:
    root = write(
        {
            "outer/__init__.py": "import torch\nfrom outer.inner import core\n",
            "outer/inner/__init__.py": "import torch\n",
            "outer/inner/core.py": "import torch\ntorch.frombuffer\n",
        }
    )
    with tree.opened(str(root / start)) as found:
        library = report.audit_tree(found, small, None)
    assert library.root == str(root.resolve())
    assert (found.sources[0].path, library.packages) == (first, packages)
    assert lines(library, "torch.frombuffer:missing_api") == [("outer/inner/core.py", 2)]


def test_a_project_is_no_package_though_it_has_an_init(write: Callable[[Files], Path], small: Surface) -> None:
    root = write({"__init__.py": "", "setup.py": "import setuptools\n", "lib/__init__.py": "import torch\n"})
    with tree.opened(str(root)) as found:
        assert report.audit_tree(found, small, None).packages == ("lib",)


def test_an_installed_distribution_is_found_by_name(small: Surface) -> None:
    with tree.opened("opt-einsum") as found:
        library = report.audit_tree(found, small, None)
    assert library.torch_files > 0
    assert any(name.api.startswith("torch") for name in library.apis)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("torch-scatter", "torch-scatter"),
        ("torch-scatter-2.1.2.tar.gz", "torch-scatter"),
        ("lib_x-1.0-py3-none-any.whl", "lib_x"),
        ("lib.zip", "lib"),
    ],
)
def test_a_library_is_named_without_its_version(path: str, name: str) -> None:
    assert tree.name_of(path) == name


@pytest.mark.parametrize("name", ["no-such-library-anywhere", "./no/such/folder"])
def test_what_is_not_there_is_an_error_with_a_remedy(name: str) -> None:
    with pytest.raises(LibraryError) as caught, tree.opened(name):
        pass
    assert caught.value.remedy


def test_missing_names_of_several_libraries_are_counted(audit: Audit, small: Surface) -> None:
    one, two = audit({"a.py": "import torch.optim\n"}), audit({"a.py": "import torch.optim\ntorch.frombuffer(1)\n"})
    from dataclasses import replace

    assembled = report.assemble(small, (replace(one, name="one"), replace(two, name="two")))
    assert assembled.holding == (("torch.optim", ("one", "two")),)
