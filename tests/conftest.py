"""A table of files, in; a folder with them, out; how property tests run, and what holds for every test.

Two things do: what a test leaves behind fails that test and no other, and a test does only what its marks say.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import marked
import pytest
from files import Write
from hypothesis import HealthCheck, settings

# A busy machine is no reason to fail: how long an example takes is not what the tests are about.
settings.register_profile("calm", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("calm")


marked.watch(pytest.fail)
_HELPERS = Path(__file__).parent / "helpers"


@pytest.fixture(scope="session", autouse=True)
def _watched_children(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Interpreters that tests start are watched as well; see ``helpers/sitecustomize.py``."""
    paths = [str(_HELPERS), os.environ.get("PYTHONPATH", "")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(marked.OFFENCES, str(tmp_path_factory.mktemp("marks") / "offences"))
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Before any fixture is set up: what this test may start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(marked.LACKING, marked.lacking(mark.name for mark in item.iter_markers()))
        return (yield)


@pytest.fixture(autouse=True)
def _its_marks_are_true() -> Iterator[None]:
    """A test without ``real`` starts no framework, and one without ``native`` no compiler."""
    yield
    if offences := marked.committed():
        pytest.fail("; ".join(offences))


@pytest.fixture(scope="session", autouse=True)
def _what_was_there_before() -> None:
    """What stays for the whole session need not be looked at after each test."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _its_leaks_are_its_own() -> Iterator[None]:
    """A file left open, or a process not waited for, is found now and not in the middle of another test."""
    yield
    gc.collect()


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing is taken from, or left in, the cache of the user who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MIGRATE_LENS_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write files below a fresh folder ``lib`` and give the folder."""

    def files(contents: dict[str, str | bytes]) -> Path:
        root = tmp_path / "lib"
        root.mkdir(exist_ok=True)
        for name, content in contents.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return root

    return files
