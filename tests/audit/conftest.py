"""A small surface made by hand, the real one asked once, and a whole audit of files given as a table."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from audit_samples import DOCUMENT, Audit

from migrate_lens.audit import report, surface, tree
from migrate_lens.audit.surface import Surface
from migrate_lens.model.audit import LibraryAudit


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
