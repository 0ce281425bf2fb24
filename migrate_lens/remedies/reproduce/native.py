"""A native source and a line in it, or a library, in; the text of a tiny project out.

What is left out first is what can be seen to be needed by nothing: comments, declarations and files that nothing kept
refers to. What is needed by nothing after all is found by leaving it out and building what is left (``reduce``).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from migrate_lens.cpp.comments import in_strings
from migrate_lens.cpp.declarations import Declaration, Declarations, closure
from migrate_lens.remedies import templates
from migrate_lens.remedies.publish.sources import without_comments
from migrate_lens.remedies.reproduce.live import imported, live, sliced, words
from migrate_lens.remedies.reproduce.reduce import fewer_statements

MAIN, SETUP = "mre.py", "setup.py"
UNIT = "csrc/mre.cc"
# Most lines of a library that is taken as its own reproduction, once what it does not need is left out.
SMALL = 200
_NATIVE = frozenset((".cc", ".cpp", ".cxx", ".cu", ".h", ".hpp", ".cuh"))
_COMPILED = (".cc", ".cpp", ".cxx", ".cu")
_NOT_SOURCES = frozenset(("build", "__pycache__", "issues"))
_ENTRY = re.compile(r"\bPyInit_\w+|\bPYBIND11_MODULE\b")
_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
_MEANT = re.compile(r"[(){}%<>;=]|\\n")  # a schema, a format, code
_EXTENSION = re.compile(r"(?:CppExtension|CUDAExtension|Extension)$")
# What setup() is told about what it builds; all else is about who made it.
_BUILDS = frozenset(("name", "packages", "package_dir", "py_modules", "ext_modules", "cmdclass", "zip_safe"))


@dataclass(frozen=True, slots=True)
class Project:
    """Sources by name, and a program that builds them and uses them, under torch and under Paddle alike.

    Attributes:
        sources: text by name; among them ``setup.py``.
        program: what is done with what was built.
        needle: what the failure must name.
    """

    sources: Mapping[str, str]
    program: str
    needle: str

    @property
    def files(self) -> dict[str, str]:
        """All its files."""
        return {**self.sources, MAIN: templates.render("mre_ext/mre.py.j2", {"lines": self.program.splitlines()})}

    @property
    def length(self) -> int:
        """Lines of all its sources, and of what it does with them."""
        return sum(text.count("\n") for text in (*self.sources.values(), self.program))


# -- one unit ----------------------------------------------------------------------------------------------------------


def cuts(text: str, line: int) -> Iterator[str]:
    """A unit cut to its includes and what stands at a line, then with what that needs, then whole; entry points go.

    Args:
        text: the unit.
        line: what it is cut to stands there.
    """
    unit = Declarations(text)
    at = unit.at_line(line)
    plain = [one for one in unit.items if one is at or not _is_entry(one)]
    if at is not None:
        heads = [one for one in plain if one.directive or one.text.startswith(("using", "typedef"))]
        yield from dict.fromkeys((unit.only([at, *heads]), unit.only(closure([at], plain))))
    yield unit.only(plain)


def _is_entry(one: Declaration) -> bool:
    return _ENTRY.search(one.inside or one.text) is not None


def unit_project(unit: str, needle: str, *, own_entry: bool) -> Project:
    """A project of one unit.

    Args:
        unit: its text.
        needle: what the failure must name.
        own_entry: whether the unit has an entry point of its own.
    """
    text = _plain(unit.strip("\n") + "\n")
    if not own_entry:
        head = "" if "#include <Python.h>" in text else "#include <Python.h>\n"
        text = head + text + "\n" + templates.render("mre_ext/entry.cc.j2", {"name": "mre"})
    setup = templates.render("mre_ext/setup.py.j2", {"name": "mre", "sources": [UNIT], "packages": []})
    return Project({SETUP: setup, UNIT: text}, "import mre\n", needle)


# -- a library ---------------------------------------------------------------------------------------------------------


def library_projects(root: Path, probe: Path | None, needle: str, check: str) -> Iterator[Project]:
    """A library with its probe and a check of the result, the narrowest first; none where it is not small even then."""
    sources = {name: text for path in sorted(root.rglob("*")) if path != probe for name, text in _source(path, root)}
    if SETUP not in sources:
        return
    program = f"import {_package(sources)}\n" if probe is None else without_comments(MAIN, _read(probe))
    whole = Project(sources, program + (check and f"{check}\n"), needle)
    narrow = narrowed(whole)
    least = narrowed(replace(whole, program=sliced(whole.program, own_packages(sources))))
    for project in (with_own_setup(least), with_own_setup(narrow), narrow, whole):
        if project is not None and project.length <= SMALL:
            yield project


def set_up(root: Path, needle: str) -> Iterator[Project]:
    """A library's setup.py with nothing to build: what fails before anything is compiled needs no more."""
    if (root / SETUP).is_file():
        setup = _told(without_comments(SETUP, _read(root / SETUP)), _BUILDS - {"packages", "package_dir", "py_modules"})
        named = [path for path in root.rglob("*") if path.suffix in _COMPILED and path.is_file()]
        sources = {path.relative_to(root).as_posix(): "#include <Python.h>\n" for path in sorted(named)}
        yield Project({SETUP: setup, **{name: text for name, text in sources.items() if name in setup}}, "", needle)


def _source(path: Path, root: Path) -> Iterator[tuple[str, str]]:
    if _belongs(path, root):
        name = path.relative_to(root).as_posix()
        yield name, without_comments(name, _read(path))


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _belongs(path: Path, root: Path) -> bool:
    """Whether a file is a source of the library itself: nothing that tools put there, and no test."""
    parts = path.relative_to(root).parts
    if any(part.startswith(".") or part in _NOT_SOURCES for part in parts) or "test" in path.name:
        return False
    return path.is_file() and (path.suffix == ".py" or path.suffix in _NATIVE)


def _package(sources: Mapping[str, str]) -> str:
    return next((name.partition("/")[0] for name in sources if name.endswith("/__init__.py")), "mre")


def own_packages(sources: Mapping[str, str]) -> frozenset[str]:
    """The packages and modules of a library."""
    return frozenset(name.partition("/")[0].removesuffix(".py") for name in sources if name.endswith(".py"))


def narrowed(project: Project) -> Project:
    """A project without what its program does not reach: modules, their parts, files and declarations."""
    own = own_packages(project.sources)
    program = live(project.program, frozenset(), own)
    modules = {name for name in imported(program, project.sources) if name != SETUP}
    said = {name: words(project.sources[name]) for name in modules}
    kept = {}
    for name in modules:
        of_others = words(program).union(*(said[other] for other in modules if other != name))
        kept[name] = live(project.sources[name], of_others, own)
    used = words(program).union(*map(words, kept.values()))
    native = {name: text for name, text in project.sources.items() if not name.endswith(".py")}
    sources = {SETUP: _told(project.sources[SETUP]), **dict(sorted(kept.items())), **_reached(native, used)}
    return replace(project, sources=sources, program=program)


def _reached(files: Mapping[str, str], used: frozenset[str]) -> dict[str, str]:
    """Native files with what the registrations of some names need; all that is registered where none is named."""
    read = {name: Declarations(text) for name, text in files.items()}
    items = [one for file in read.values() for one in file.items]
    registered = [one for one in items if one.inside]
    named = [one for one in registered if one.quoted & used] or registered
    kept = closure([*named, *(one for one in items if _is_entry(one) and not one.inside)], items)
    own = {id(one) for one in kept}
    left = {name: [one for one in file.items if id(one) in own] for name, file in read.items()}
    said = {name: some for name, some in left.items() if any(not one.directive for one in some)}
    texts = {name: _plain(read[name].only(some)) for name, some in said.items()}
    headers = {name: read[name].only(some) for name, some in left.items() if name not in texts}
    return {**texts, **{name: text for name, text in headers.items() if _is_included(name, texts)}}


def _is_included(name: str, texts: Mapping[str, str]) -> bool:
    last = name.rpartition("/")[2]
    return any(header.rpartition("/")[2] == last for text in texts.values() for header in includes(text))


def _told(setup: str, kept: frozenset[str] = _BUILDS) -> str:
    """A setup.py without what it says about its makers."""
    tree = ast.parse(setup)
    for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call)]:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name == "setup" and all(keyword.arg for keyword in call.keywords):
            call.keywords = [keyword for keyword in call.keywords if keyword.arg in kept]
    return ast.unparse(tree) + "\n"


def with_own_setup(project: Project) -> Project | None:
    """A project that is built as plainly as can be; None where its setup.py has not one extension with a name."""
    calls = [node for node in ast.walk(ast.parse(project.sources[SETUP])) if isinstance(node, ast.Call)]
    names = [name for call in calls if _EXTENSION.search(ast.unparse(call.func)) for name in _names(call)]
    compiled = [name for name in project.sources if name.endswith(_COMPILED)]
    if len(names) != 1 or not compiled or any(name.endswith(".cu") for name in compiled):
        return None
    packages = sorted(
        {name.rpartition("/")[0].replace("/", ".") for name in project.sources if name.endswith("/__init__.py")}
    )
    values = {"name": names[0], "sources": compiled, "packages": packages}
    return replace(project, sources={**project.sources, SETUP: templates.render("mre_ext/setup.py.j2", values)})


def _names(call: ast.Call) -> Iterator[str]:
    """The name that an extension is given, where it is written there."""
    given = [keyword.value for keyword in call.keywords if keyword.arg == "name"] or call.args[:1]
    yield from (one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str))


def _plain(text: str) -> str:
    """A native source in which what is said to a person is left out: messages, which no compiler asks for."""
    return in_strings(text, _unsaid, _unsaid)


def _unsaid(text: str) -> str:
    return "text" if " " in text.strip() and not _MEANT.search(text) else text


def includes(text: str) -> list[str]:
    """Headers that a unit names."""
    return [include[1] for include in map(_INCLUDE.match, text.splitlines()) if include]


# -- what may be left out ----------------------------------------------------------------------------------------------


def fewer_parts(project: Project) -> Iterator[Project]:
    """Leave a part of the program or of a native file out."""
    yield from _fewer_declarations(project)
    if project.program.count("\n") > 1:
        for program in fewer_statements(project.program):
            yield replace(project, program=program)


def _fewer_declarations(project: Project) -> Iterator[Project]:
    """Leave a declaration or a directive of a native file out, the last ones first."""
    for name, text in project.sources.items():
        if not name.endswith(".py"):
            file = Declarations(text)
            for one in reversed(file.items):
                if one.removable and not _ENTRY.search(one.text):
                    rest = file.only([other for other in file.items if other is not one])
                    yield replace(project, sources=_without_lost_headers({**project.sources, name: rest}))


def _without_lost_headers(sources: Mapping[str, str]) -> dict[str, str]:
    """Sources without the headers that none of them includes any more."""
    units = {name: text for name, text in sources.items() if name.endswith((".py", *_COMPILED))}
    return {name: text for name, text in sources.items() if name in units or _is_included(name, sources)}
