"""Names of headers that Paddle lacks go in; stand-in headers come out, to see the errors behind a missing header."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from migrate_lens.native.torch_headers import Known

NATIVE = (".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hh", ".hpp", ".hxx", ".inl", ".inc", ".ipp", ".hip")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)
# What a header of torch's would have brought along, as far as the compat layer has it.
_UMBRELLAS = {"torch": ("torch/all.h", "torch/library.h"), "": ("ATen/ATen.h", "torch/library.h")}


def included(files: Iterable[Path]) -> frozenset[str]:
    """All headers that the files include, whatever condition they stand under."""
    names: set[str] = set()
    for path in files:
        try:
            names.update(_INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace")))
        except OSError:
            continue
    return frozenset(names)


def native_files(root: Path) -> list[Path]:
    """The C++ and CUDA files below a folder, headers as well."""
    return sorted(path for path in root.rglob("*") if path.suffix in NATIVE and path.is_file())


def missing(names: Iterable[str], known: Known, folders: Iterable[Path]) -> list[str]:
    """The headers that torch ships and that none of the include ``folders`` has."""
    places = tuple(folders)
    return sorted(name for name in names if known.header(name) and not any((place / name).exists() for place in places))


def write(folder: Path, names: Iterable[str]) -> None:
    """Writes a stand-in for each name: it says that it was reached, and forwards to what the compat layer has."""
    write_files(folder, {name: _text(name) for name in names})


def write_files(folder: Path, texts: Mapping[str, str]) -> None:
    """Writes headers under their include names; a name that leads out of the folder is left out."""
    for name, text in texts.items():
        path = folder / name
        if ".." in Path(name).parts or Path(name).is_absolute():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = path.with_name(f"{path.name}.{threading.get_ident()}")
        whole.write_text(text, encoding="utf-8")
        os.replace(whole, path)  # another unit may be reading it just now


def _text(name: str) -> str:
    guard = "MIGRATE_LENS_STAND_IN_" + re.sub(r"\W", "_", name)
    umbrellas = _UMBRELLAS["torch" if name.startswith("torch/") else ""]
    forwards = [f"#if __has_include(<{header}>)\n#include <{header}>\n#endif\n" for header in umbrellas]
    return f"#warning migrate-lens stand-in for {name}\n#ifndef {guard}\n#define {guard}\n{''.join(forwards)}#endif\n"
