"""A library and an interpreter go in; how its build ends, and every gap behind its build and import, come out."""

from migrate_lens.ladder.build import BuildRun, build_library
from migrate_lens.ladder.compiler import CompilerCall
from migrate_lens.ladder.copying import without_libraries
from migrate_lens.ladder.imports import link_finding, link_findings
from migrate_lens.ladder.jit import LOADERS, JustInTime
from migrate_lens.ladder.native import NativeReport, compare_builds, diagnose_build
from migrate_lens.ladder.shelf import Shelf
from migrate_lens.ladder.units import UnitCheck

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
