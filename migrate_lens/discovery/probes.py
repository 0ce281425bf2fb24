"""What the user asked to run, or what a tree offers to run, in; probes that exist, out."""

from __future__ import annotations

import ast
import difflib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from migrate_lens.discovery.layout import TESTS, Layout
from migrate_lens.discovery.tree import Facts, Tree, check, gather, names, parse
from migrate_lens.model.errors import UsageError
from migrate_lens.model.report import Probe, ProbeKind

_FORMS = "a probe is a script, package.module:callable, or a pytest file or node"


def given(specs: Sequence[str], tree: Tree, layout: Layout) -> tuple[Probe, ...]:
    """The probes that the user named.

    Raises:
        UsageError: one of them does not exist or does not parse.
    """
    return tuple(_given(spec, tree, layout) for spec in dict.fromkeys(specs))


def _given(spec: str, tree: Tree, layout: Layout) -> Probe:
    file, nodes, _ = spec.partition("::")
    if nodes:
        return Probe(ProbeKind.PYTEST, spec, _file(spec, file, tree)[0])
    if spec.endswith(".py"):
        path, facts = _file(spec, spec, tree)
        return Probe(kind_of(facts), spec, path)
    module, colon, name = spec.partition(":")
    if colon and all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        return _callable(spec, module, name, tree, layout)
    raise UsageError(f"--probe {spec}: not a probe", _FORMS)


def kind_of(facts: Facts) -> ProbeKind:
    """A pytest file is one by its name and by what is in it; ``test_speed.py`` may well be a script."""
    return ProbeKind.PYTEST if facts.tests else ProbeKind.SCRIPT


def _file(spec: str, name: str, tree: Tree) -> tuple[Path, Facts]:
    """The file, looked for in the library and then in the working folder, and its facts."""
    places = [Path(os.path.abspath(base / Path(name).expanduser())) for base in (tree.root, Path.cwd())]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        near = _near(name, (_relative(file, tree.root) for file in tree.files))
        raise UsageError(f"--probe {spec}: no such file in {tree.root}", near or _FORMS)
    data = check(path)
    if isinstance(data, str):
        raise UsageError(
            f"--probe {spec}: {data}", "correct the file; it is read with the Python that runs migrate-lens"
        )
    return path, gather(path, data)


def _callable(spec: str, module: str, name: str, tree: Tree, layout: Layout) -> Probe:
    """A callable in a module of the library; one in another installed package is taken on trust."""
    path = next((place for place in _places(module, tree, layout) if place.is_file()), None)
    if path is None:
        if module.partition(".")[0] in {*layout.packages} or not layout.packages:
            raise UsageError(
                f"--probe {spec}: no module {module} in {tree.root}", _near(module, layout.modules) or _FORMS
            )
        return Probe(ProbeKind.CALLABLE, spec)
    read = parse(path)
    if isinstance(read, str):
        raise UsageError(f"--probe {spec}: {path.name}: {read}", "correct the file")
    bound, first = names(read), name.partition(".")[0]
    if first not in bound and not {"*", "__getattr__"} & bound:
        near = _near(first, (known for known in bound if not known.startswith("_")))
        raise UsageError(f"--probe {spec}: nothing called {first} in {path.name}", near or _callables(read))
    return Probe(ProbeKind.CALLABLE, spec)


def _places(module: str, tree: Tree, layout: Layout) -> Iterable[Path]:
    for root in dict.fromkeys((layout.import_root, tree.root)):
        base = root.joinpath(*module.split("."))
        yield base.with_suffix(".py")
        yield base / "__init__.py"


def _near(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]}?" if near else ""


def _callables(module: ast.Module) -> str:
    names = [node.name for node in module.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    return "it has " + ", ".join(names[:5]) if names else _FORMS


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


# --- found ------------------------------------------------------------------------------------------------------------


def tests(tree: Tree) -> tuple[Path, ...]:
    """Pytest files in the root and below any folder for tests, a package's own ones included."""
    relative = {path: path.relative_to(tree.root) for path, facts in tree.files.items() if facts.tests}
    return tuple(path for path, name in relative.items() if len(name.parts) == 1 or TESTS & set(name.parts[:-1]))


def _beside(tree: Tree) -> list[Path]:
    """Tests beside the packages; those inside one are for its own developers."""
    return [path for path in tests(tree) if path.parent == tree.root or path.relative_to(tree.root).parts[0] in TESTS]


def found(tree: Tree) -> tuple[Probe, ...]:
    """Programs that look made for trying the library; its pytest files only if there is none."""
    root = tree.root
    here = [path for path in (root / "smoke.py", root / "test.py") if path in tree.files]
    examples = [path for path in tree.files if path.parent == root / "examples" and path.name != "__init__.py"]
    smoke = [path for path in tree.files if path.parent == root / "tests" and path.stem.startswith("smoke")]
    programs = dict.fromkeys([*here, *examples, *smoke]) or dict.fromkeys(_beside(tree))
    return tuple(Probe(kind_of(tree.files[path]), _relative(path, root), path) for path in programs)
