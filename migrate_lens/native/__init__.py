"""A library and an interpreter go in; how its build ends, and every gap behind its build and import, come out."""

from migrate_lens.native.build import BuildRun, build_library
from migrate_lens.native.comparing import NativeReport, compare_builds, diagnose_build
from migrate_lens.native.compiler import CompilerCall
from migrate_lens.native.copying import without_libraries
from migrate_lens.native.imports import link_finding, link_findings
from migrate_lens.native.jit import LOADERS, JustInTime
from migrate_lens.native.shelf import Shelf
from migrate_lens.native.units import UnitCheck

__all__ = [
    "LOADERS",
    "BuildRun",
    "CompilerCall",
    "JustInTime",
    "NativeReport",
    "Shelf",
    "UnitCheck",
    "build_library",
    "compare_builds",
    "diagnose_build",
    "link_finding",
    "link_findings",
    "without_libraries",
]
