"""The path that the user named, in; what library or script is there, read and never run, out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from migrate_lens.discovery import build, declared, layout, probes, tree
from migrate_lens.discovery.layout import Layout
from migrate_lens.discovery.tree import Tree
from migrate_lens.model.errors import LibraryError, UsageError
from migrate_lens.model.report import BuildEntry, Library, Probe, ProbeKind

ARCHIVES = (".whl", ".zip", ".egg", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".conda")


def discover(path: Path, probes: Sequence[str] = (), configured: Sequence[str] = ()) -> Library:
    """Find packages, build entry, native sources and probes by reading; nothing is imported, run or written.

    Args:
        path: a folder (source tree, unpacked sdist, or an installed package) or a lone script.
        probes: what ``--probe`` named.
        configured: what the library's configuration names; used when ``probes`` is empty.

    Raises:
        UsageError: the path or a probe does not exist.
        LibraryError: there is nothing at the path that can be diagnosed.
    """
    place = Path(os.path.abspath(path.expanduser()))
    asked, source = (tuple(probes), "option") if probes else (tuple(configured), "config")
    if place.is_dir():
        return _folder(place, asked, source)
    if place.is_file():
        return _script(place, asked, source)
    raise UsageError(f"no such path: {path}", "name a library's folder or a .py file")


# --- a lone script ----------------------------------------------------------------------------------------------------


def _script(path: Path, asked: Sequence[str], source: str) -> Library:
    if path.name.lower().endswith(ARCHIVES):
        raise LibraryError(f"{path.name} is an archive", f"unpack it and name the folder: {_unpack(path)}")
    if path.suffix != ".py":
        raise UsageError(f"{path} is not a Python file", "name a library's folder or a .py file")
    data = tree.check(path)
    if isinstance(data, str):
        raise LibraryError(f"{path}: {data}", "correct the file; it is read with the Python that runs migrate-lens")
    facts = tree.gather(path, data)
    alone = Tree(path.parent, {path: facts}, (), ())
    names = (path.stem,) if asked and path.stem.isidentifier() else ()
    own = Probe(probes.kind_of(facts), path.name, path)
    return Library(
        root=path.parent,
        name=path.stem,
        script=path,
        import_root=path.parent,
        packages=names,
        modules=names,
        build=build.find_jit(alone),
        native_sources=(),
        probes=probes.given(asked, alone, Layout(path.parent, names, names)) or (own,),
        probes_from=source if asked else "found",
    )


def _unpack(path: Path) -> str:
    zipped = path.suffix.lower() in {".whl", ".zip", ".egg"}
    return f"python -m zipfile -e {path.name} DIR" if zipped else f"tar -xf {path.name}"


# --- a folder ---------------------------------------------------------------------------------------------------------


def _folder(root: Path, asked: Sequence[str], source: str) -> Library:
    contents = tree.scan(root)
    _check(contents)
    installed = (root / "__init__.py").is_file() and not layout.is_project(root)
    says = declared.Declared() if installed else declared.read(root)
    shape = layout.of_package(contents) if installed else layout.of_project(contents, says)
    run, origin = _probes(contents, shape, asked, source)
    return Library(
        root=root,
        name=says.name or next(iter(shape.packages), root.name),
        script=None,
        import_root=shape.import_root,
        packages=shape.packages,
        modules=shape.modules,
        build=_build(contents, says, installed),
        native_sources=contents.native,
        probes=run,
        probes_from=origin,
        tests=probes.tests(contents),
        skipped=contents.skipped,
    )


def _build(contents: Tree, says: declared.Declared, installed: bool) -> BuildEntry | None:
    """An installed package is built already; only what it compiles while it runs is left."""
    return build.find_jit(contents) if installed else build.find(contents, says)


def _probes(contents: Tree, shape: Layout, asked: Sequence[str], source: str) -> tuple[tuple[Probe, ...], str]:
    """Asked for, else found, else the import of every public module."""
    if asked:
        return probes.given(asked, contents, shape), source
    if run := probes.found(contents):
        return run, "found"
    if shape.modules:
        return (Probe(ProbeKind.IMPORTS, "imports", modules=shape.modules),), "imports"
    raise LibraryError(
        f"found no module and no program to run in {contents.root}", "name a program that uses it: --probe smoke.py"
    )


def _check(contents: Tree) -> None:
    """See that there is Python to diagnose.

    Raises:
        LibraryError: there is none, none that can be read, or it is one folder further down.
    """
    nested = _nested(contents)
    if contents.files and not nested:
        return
    if nested:
        names = " or ".join(str(path) for path in nested[:3])
        raise LibraryError(f"{contents.root} is not a project itself", f"name one that is in it: {names}")
    broken = [skipped for skipped in contents.skipped if skipped.path.endswith(".py") or skipped.path == "."]
    if broken:
        first = broken[0]
        raise LibraryError(
            f"no Python file in {contents.root} can be read ({first.path}: {first.reason})", "correct it"
        )
    raise LibraryError(f"no Python in {contents.root}", "name a library's folder or a .py file")


def _nested(contents: Tree) -> list[Path]:
    """The projects below a folder that is none, as unpacked archives leave it; empty where the folder itself is one."""
    root = contents.root
    if layout.is_project(root) or any(path.parent in (root, root / "src") for path in contents.files):
        return []
    tops = {root / path.relative_to(root).parts[0] for path in contents.files}
    if any((top / "__init__.py").is_file() for top in tops):
        return []
    return [top for top in sorted(tops) if layout.is_project(top)]
