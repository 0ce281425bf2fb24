"""A small surface made by hand, the real one asked once, and a whole audit of files given as a table."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from migrate_lens.audit import report, surface, tree
from migrate_lens.audit.surface import Surface
from migrate_lens.audit_model import AuditGap, LibraryAudit

Audit = Callable[..., LibraryAudit]

DOCUMENT: dict[str, Any] = {
    "schema": surface.SCHEMA,
    "torch": ["2.0", "aaa"],
    "paddle": ["3.0", "bbb"],
    "names": {
        "torch": ["module", "module", [], False, False],
        "torch.Tensor": ["class", "class", [], False, False],
        "torch.Tensor.view": ["function", "function", [], False, False],
        "torch.Tensor.cauchy_": ["function", None, [], False, False],
        "torch.Tensor.max": ["function", "function", ["dim"], False, False],
        "torch.sort": ["function", "function", [], False, True],
        "torch.add": ["function", "function", [], False, False],
        "torch.ones": ["function", "function", ["layout"], False, False],
        "torch.frombuffer": ["function", None, [], False, False],
        "torch.device": ["class", "module", [], False, False],
        "torch.finfo": ["class", "function", [], False, False],
        "torch.nn": ["module", "module", [], False, False],
        "torch.nn.Module": ["class", "class", [], False, False],
        "torch.nn.Linear": ["class", "class", [], False, False],
        "torch.nn.functional": ["module", "module", [], False, False],
        "torch.nn.functional.gelu": ["function", "function", [], False, False],
        "torch.optim": ["module", None, [], False, False],
        "torch.optim.SGD": ["class", None, [], False, False],
        "torch.autograd": ["module", "module", [], False, False],
        "torch.autograd.Function": ["class", "class", [], False, False],
        "torch.profiler": ["module", "module", [], False, False],
        "torch.profiler.profile": ["class", "class", [], True, False],
        "torch._C": ["module", "module", [], False, False],
        "torch._C._log": ["function", None, [], False, False],
    },
    "native": {
        "torch": {
            "names": ["Tensor", "tensor", "cumsum", "empty"],
            "macros": ["TORCH_WARN", "TORCH_CHECK", "AT_ERROR"],
            "headers": ["torch/extension.h", "torch/script.h"],
            "methods": {"Tensor": ["narrow", "view"], "Library": ["def", "impl_abstract_pystub"]},
        },
        "paddle": {
            "names": ["Tensor", "empty"],
            "macros": ["TORCH_CHECK"],
            "headers": ["torch/extension.h"],
            "methods": {"Tensor": ["view"], "Library": ["def"]},
        },
    },
}


@pytest.fixture(scope="session")
def small() -> Surface:
    """A surface whose answers are known by heart."""
    return Surface(DOCUMENT)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder for the whole session."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def real(cache: Path) -> Surface:
    """What the frameworks installed here have: asked once for all tests."""
    python = Path(sys.executable)
    return surface.installed(python, python, cache, lambda line: None)


@pytest.fixture
def audit(write: Callable[[dict[str, str | bytes]], Path], small: Surface) -> Audit:
    """Audit a table of files against the small surface."""

    def run(contents: dict[str, str | bytes], **options: Any) -> LibraryAudit:
        with tree.opened(str(write(contents))) as found:
            return report.audit_tree(found, options.pop("surface", small), options.pop("cache", None), **options)

    return run


def by_id(library: LibraryAudit) -> dict[str, AuditGap]:
    """The gaps of a library by their id."""
    return {one.gap.id: one for one in library.gaps}


def lines(library: LibraryAudit, gap: str) -> list[tuple[str, int]]:
    """Where a gap stands."""
    found = by_id(library).get(gap)
    return sorted((site.path, site.line) for site in found.gap.sites) if found else []
