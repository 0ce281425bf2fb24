"""A table of files, in; a folder with them, out; and how property tests run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from files import Write
from hypothesis import HealthCheck, settings

# A busy machine is no reason to fail: how long an example takes is not what the tests are about.
settings.register_profile("calm", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("calm")


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
