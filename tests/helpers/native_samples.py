"""Names, in; a torch that has just these, for tests that parse and never compile, out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from migrate_lens.model.report import BuildEntry, BuildKind, Library
from migrate_lens.native.torch_headers import NothingKnown

SAMPLES = Path(__file__).parents[1] / "native" / "samples"


class FakeTorch(NothingKnown):
    """A torch with the headers and macros of its prefixes, and the plain names it is given."""

    def __init__(self, names: Iterable[str] = (), tensors: Iterable[str] = ()) -> None:
        self._names = {name.rpartition("::")[2]: name for name in names}
        self._tensors = frozenset(tensors)

    def qualified(self, name: str) -> str:
        return self._names.get(name, "")

    def returns_tensor(self, api: str) -> bool:
        return api in self._tensors

    def parameters(self, macro: str) -> tuple[str, ...]:
        return ("TYPE", "NAME") if macro.startswith("AT_DISPATCH") else ()


def library(root: Path, kind: str = "setuptools", entry: str = "setup.py") -> Library:
    """A library with one package of the folder's name and something to compile."""
    return Library(
        root=root,
        name=root.name,
        script=None,
        import_root=root,
        packages=(root.name,),
        modules=(root.name,),
        build=BuildEntry(BuildKind(kind), root / entry, native=True),
        native_sources=(),
        probes=(),
        probes_from="found",
    )
