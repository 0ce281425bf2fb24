"""pyproject.toml, setup.cfg, setup.py and PKG-INFO of a project, in; what they declare, out. setup.py is not run."""

from __future__ import annotations

import ast
import configparser
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from migrate_lens.discovery.tree import parse

EXTENSION_NAMES = frozenset(
    {
        "CppExtension",
        "CUDAExtension",
        "SyclExtension",
        "BuildExtension",
        "Extension",
        "CMakeExtension",
        "Pybind11Extension",
    }
)


@dataclass(frozen=True, slots=True)
class Declared:
    """What a project says of itself; empty where it says nothing that can be read without running it.

    Attributes:
        name: the distribution's name.
        where: the folder of its packages, relative to the project.
        packages: top-level import names of its packages.
        modules: its top-level single-file modules.
        backend: the build backend of pyproject.toml.
        extensions: setup.py or pyproject.toml declares compiled extensions.
    """

    name: str = ""
    where: str = ""
    packages: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    backend: str = ""
    extensions: bool = False

    def over(self, other: Declared) -> Declared:
        """This one's values where it has some, else the other's."""
        return Declared(*(getattr(self, item.name) or getattr(other, item.name) for item in fields(self)))


def read(root: Path) -> Declared:
    """All four files, the more explicit one first; a file that cannot be read declares nothing."""
    return _pyproject(root).over(_setup_cfg(root)).over(_setup_py(root)).over(_pkg_info(root))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    except OSError:
        return ""


def _tops(names: object) -> tuple[str, ...]:
    """Top-level names of a list of dotted ones, in order, each once."""
    dotted = [name for name in names if isinstance(name, str)] if isinstance(names, list | tuple) else []
    return tuple(dict.fromkeys(name.partition(".")[0] for name in dotted if name))


def _folder_of(package_dir: object) -> str:
    """Where packages are, from ``package_dir``: the root entry, else the parent of a package's own folder."""
    if not isinstance(package_dir, Mapping):
        return ""
    for package, folder in package_dir.items():
        path = Path(str(folder))
        if not package:
            return str(path)
        if path.name == package and str(path.parent) != ".":
            return str(path.parent)
    return ""


def _only(names: object) -> str:
    """The single folder of a ``where = ["src"]`` list; several of them say nothing about one."""
    return str(names[0]) if isinstance(names, list) and len(names) == 1 else ""


# --- pyproject.toml ---------------------------------------------------------------------------------------------------


def _table(value: object, *keys: str) -> Mapping[str, object]:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _pyproject(root: Path) -> Declared:
    try:
        data = tomllib.loads(_text(root / "pyproject.toml"))
    except tomllib.TOMLDecodeError:
        return Declared()
    setuptools = _table(data, "tool", "setuptools")
    find = _table(setuptools, "packages", "find")
    hatch = [Path(str(path)) for path in _list(_table(data, "tool", "hatch", "build", "targets", "wheel"), "packages")]
    return Declared(
        name=str(_table(data, "project").get("name") or _table(data, "tool", "poetry").get("name") or ""),
        where=_only(find.get("where")) or _folder_of(setuptools.get("package-dir")) or _parent(hatch),
        packages=_tops(setuptools.get("packages")) or tuple(path.name for path in hatch),
        modules=_tops(setuptools.get("py-modules")),
        backend=str(_table(data, "build-system").get("build-backend") or ""),
        extensions="ext-modules" in setuptools,
    )


def _list(table: Mapping[str, object], key: str) -> list[object]:
    value = table.get(key)
    return value if isinstance(value, list) else []


def _parent(paths: list[Path]) -> str:
    parents = {str(path.parent) for path in paths}
    return parents.pop() if len(parents) == 1 and "." not in parents else ""


# --- setup.cfg and PKG-INFO -------------------------------------------------------------------------------------------


def _setup_cfg(root: Path) -> Declared:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(_text(root / "setup.cfg"))
    except configparser.Error:
        return Declared()

    def lines(section: str, key: str) -> list[str]:
        return parser.get(section, key, fallback="").replace(",", "\n").split()

    pairs = "".join(parser.get("options", "package_dir", fallback="").split(" ")).splitlines()
    packages = [name for name in lines("options", "packages") if not name.startswith("find")]
    return Declared(
        name=parser.get("metadata", "name", fallback=""),
        where=_only(lines("options.packages.find", "where")) or _folder_of(dict(_pair(pair) for pair in pairs if pair)),
        packages=_tops([name.rstrip(":") for name in packages]),
        modules=_tops(lines("options", "py_modules")),
    )


def _pair(text: str) -> tuple[str, str]:
    key, _, value = text.partition("=")
    return key, value


def _pkg_info(root: Path) -> Declared:
    for line in _text(root / "PKG-INFO").splitlines():
        if line.startswith("Name: "):
            return Declared(name=line.removeprefix("Name: ").strip())
    return Declared()


# --- setup.py ---------------------------------------------------------------------------------------------------------


def _setup_py(root: Path) -> Declared:
    module = parse(root / "setup.py") if (root / "setup.py").is_file() else None
    if not isinstance(module, ast.Module):
        return Declared()
    constants = _constants(module)
    keywords = {keyword.arg: keyword.value for keyword in _setup_keywords(module) if keyword.arg}

    def value(key: str) -> object:
        return _literal(keywords[key], constants) if key in keywords else None

    return Declared(
        name=str(value("name") or ""),
        where=_folder_of(value("package_dir")) or _found_in(keywords.get("packages"), constants),
        packages=_tops(value("packages")),
        modules=_tops(value("py_modules")),
        extensions=any(_is_extension(node) for node in ast.walk(module)),
    )


def _setup_keywords(module: ast.Module) -> list[ast.keyword]:
    calls = [node for node in ast.walk(module) if isinstance(node, ast.Call) and _last_name(node.func) == "setup"]
    return [keyword for call in calls for keyword in call.keywords]


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _constants(module: ast.Module) -> dict[str, object]:
    """Module-level names that are bound to a literal: ``NAME = "mylib"``."""
    found: dict[str, object] = {}
    for node in module.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found[name] = _literal(value, found)
    return found


def _literal(node: ast.expr, constants: Mapping[str, object]) -> object:
    """The value of a literal or of a name bound to one; None for anything that would have to be run."""
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    try:
        value: object = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError):
        return None
    return value


def _found_in(node: ast.expr | None, constants: Mapping[str, object]) -> str:
    """The folder of ``find_packages("src")`` or ``find_packages(where="src")``."""
    if not isinstance(node, ast.Call) or not _last_name(node.func).startswith("find_"):
        return ""
    named = [keyword.value for keyword in node.keywords if keyword.arg == "where"]
    folder = next((_literal(value, constants) for value in [*named, *node.args[:1]]), None)
    return folder if isinstance(folder, str) and folder != "." else ""


def _is_extension(node: ast.AST) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in EXTENSION_NAMES:
            return True
        case ast.keyword(arg="ext_modules") | ast.Constant(value="ext_modules"):
            return True
    return False
