"""Many gaps in one program: labelled cases in, whether one run of several of them finds the gaps of each and no other.

usage: python benchmarks/multi.py CASES.jsonl [--programs N] [--seed N] [--store FILE] [--only ID,ID...]
       python benchmarks/multi.py --faults FOLDER [--programs N] [--seed N] [--store FILE] [--only ID,ID]

Each program is 5 to 10 random cases, each as a function, called in turn; the outcome is the list of their results. Each
case is first diagnosed alone, in the same form. A labelled gap that is found alone must be found among the others, and
no gap may appear that none of the cases has alone. What torch itself does not run as one program (a case left gradients
off for the next one) is put aside. With ``--store`` what was done is kept and not done again.

With ``--faults`` each program is a pair of the lone scripts below a folder, whose labels are the gaps that each has by
itself: the pair has the gaps of both, each by the same name; it exits with 1 where one has not.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import json
import random
import sys
import tempfile
import time
import tokenize
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from corpus import attempted, verdict

from migrate_lens.model.report import Gap
from migrate_lens.runs.bench import Bench
from migrate_lens.runs.worker import Worker

Case = dict[str, Any]
# What a function's body cannot hold, or what ends the whole program rather than the case.
ALONE = ("__future__", "import *", "globals(", "locals(", "exit(", "__file__", "__main__")


def function(number: int, source: str) -> str:
    """A script as a function that returns its ``result``; by its tree, so that strings of many lines stay whole."""
    empty = ast.parse(f"def case{number}():\n    result = None\n    return result")
    body = empty.body[0]
    assert isinstance(body, ast.FunctionDef)
    body.body[1:1] = ast.parse(source).body
    return ast.unparse(ast.fix_missing_locations(empty))


def program(sources: Sequence[str]) -> str:
    """Several scripts as one, each called in turn."""
    functions = [function(i, source) for i, source in enumerate(sources)]
    calls = [f"results.append(case{i}())" for i in range(len(sources))]
    return "\n\n".join((*functions, "results = []", *calls, "result = results", ""))


def fits(source: str) -> bool:
    """Whether a script can be one function among others."""
    held = any(isinstance(n, ast.Global) for n in ast.walk(ast.parse(source)))
    return not held and not any(word in source for word in ALONE)


class Record:
    """What was done already, by name; a line of JSON each, appended as it is done."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        self._known = {row["name"]: row for row in map(json.loads, lines)}

    def get(self, name: str, make: Any) -> dict[str, Any]:
        """What is known under a name, made now if nothing is."""
        if name not in self._known:
            self._known[name] = {"name": name, **make()}
            if self._path is not None:
                with self._path.open("a") as file:
                    file.write(json.dumps(self._known[name]) + "\n")
        return dict(self._known[name])


@contextmanager
def opened_bench() -> Iterator[tuple[Bench, Path]]:
    """A warm pair of workers and a folder."""
    python = Path(sys.executable)
    with tempfile.TemporaryDirectory() as name, Worker(python, "torch") as torch, Worker(python, "paddle") as paddle:
        yield Bench(torch, paddle, Path(name)), Path(name)


def run(bench: Bench, folder: Path, cases: Sequence[Case], root: Path) -> dict[str, Any]:
    """Diagnose cases as one program: ids of its gaps, which labels were met, seconds."""
    path = folder / "program.py"
    path.write_text(program([(root / case["file"]).read_text() for case in cases]))
    start = time.monotonic()
    found = attempted(bench, path)
    gaps = found or ()
    return {
        "runs": found is not None, "gaps": [gap.id for gap in gaps], "seconds": time.monotonic() - start,
        "met": [case["id"] for case in cases if met(case, gaps)],
    }  # fmt: skip


def met(case: Case, gaps: tuple[Gap, ...]) -> bool:
    """Whether a case's labelled gap is among those found."""
    return case["symptom"] != "agrees" and verdict(case, gaps) in ("found", "wrong layer")


def picks(cases: Sequence[Case], programs: int, seed: int) -> Iterator[list[Case]]:
    """Random cases, 5 to 10 of them, the same for the same seed."""
    for number in range(programs):
        luck = random.Random(f"{seed} {number}")
        yield luck.sample(cases, luck.randint(5, 10))


# -- pairs of scripts without labels -----------------------------------------------------------------------------------


def scripts(folder: Path) -> list[Case]:
    """The scripts below a folder that are whole programs and can be functions among others."""
    paths = [path for path in sorted(folder.rglob("*.py")) if _is_alone(path)]
    return [{"id": path.relative_to(folder).as_posix(), "file": str(path), "symptom": "agrees"} for path in paths]


def _is_alone(path: Path) -> bool:
    """Whether a script leaves a result and imports none of its neighbours."""
    with tokenize.open(path) as file:
        source = file.read()
    imported = {n.module for n in ast.walk(ast.parse(source)) if isinstance(n, ast.ImportFrom)}
    imported |= {alias.name for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Import) for alias in n.names}
    beside = {other.stem for other in path.parent.iterdir()}
    return "result =" in source and fits(source) and not imported & beside


def pairs(cases: Sequence[Case], programs: int, seed: int) -> Iterator[list[Case]]:
    """Random pairs, the same for the same seed; all of them where there are no more."""
    every = list(itertools.permutations(cases, 2))
    luck = random.Random(seed)
    yield from (list(pair) for pair in luck.sample(every, min(programs, len(every))))


def same(alone: Sequence[dict[str, Any]], together: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Gaps that a pair misses, and those that it invents; the how-many-th of a name does not matter."""
    wanted = {name(gap) for one in alone for gap in one["gaps"]}
    found = {name(gap) for gap in together["gaps"]}
    return sorted(wanted - found), sorted(found - wanted)


def name(gap: str) -> str:
    """A gap's id without its number among those of the same name."""
    return ":".join(gap.split(":")[:2])


def in_company(options: argparse.Namespace) -> int:
    """Diagnose pairs, and tell where company changes a verdict."""
    cases, record = scripts(options.faults), Record(options.store)
    named = {case["id"]: case for case in cases}
    plan = (
        [[named[i] for i in options.only.split(",")]] if options.only else pairs(cases, options.programs, options.seed)
    )
    done = wrong = 0
    with opened_bench() as (bench, folder):
        for chosen in plan:
            ids = " ".join(case["id"] for case in chosen)
            alone = [record.get(c["id"], lambda c=c: run(bench, folder, [c], options.faults)) for c in chosen]
            together = record.get(f"together: {ids}", lambda some=chosen: run(bench, folder, some, options.faults))
            if not together["runs"]:
                print(f"torch does not run these as one: {ids}", flush=True)
                continue
            missed, invented = same(alone, together)
            done, wrong = done + 1, wrong + bool(missed or invented)
            for word, gaps in (("missed", missed), ("invented", invented)):
                print("".join(f"{word} {gap} in {ids}\n" for gap in gaps), end="", flush=True)
    print(f"{done - wrong}/{done} pairs have the gaps of both and no other")
    return int(wrong > 0)


def report(chosen: Sequence[Case], alone: Sequence[dict[str, Any]], together: dict[str, Any]) -> tuple[int, int, int]:
    """Print what one program missed and invented; labelled gaps, those found, gaps invented."""
    wanted = [case for case, one in zip(chosen, alone, strict=True) if case["id"] in one["met"]]
    missed = [f"{c['id']} ({c['api']}:{c['symptom']})" for c in wanted if c["id"] not in together["met"]]
    known = {gap for one in alone for gap in one["gaps"]}
    invented = [gap for gap in together["gaps"] if gap not in known]
    spent = sum(one["seconds"] for one in alone)
    ids = ",".join(case["id"] for case in chosen)
    print(
        f"{len(wanted) - len(missed)}/{len(wanted)} gaps of {len(chosen)} cases in {together['seconds']:.2f} s "
        f"(alone {spent:.2f} s)"
        + "".join(f"\n  missed {name}" for name in missed)
        + "".join(f"\n  invented {name}" for name in invented)
        + (f"\n  of {ids}" if missed or invented else ""),
        flush=True,
    )
    return len(wanted), len(wanted) - len(missed), len(invented)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", type=Path, nargs="?")
    parser.add_argument("--faults", type=Path, help="a folder of scripts to diagnose in pairs")
    parser.add_argument("--programs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--only", default="", help="ids of the cases of one program, comma separated")
    options = parser.parse_args()
    if options.faults is not None:
        return in_company(options)
    root = options.cases.parent
    cases = [json.loads(line) for line in options.cases.read_text().splitlines() if line.strip()]
    cases = [c for c in cases if fits((root / c["file"]).read_text())]
    record = Record(options.store)
    named = {case["id"]: case for case in cases}
    plan = (
        [[named[i] for i in options.only.split(",")]] if options.only else picks(cases, options.programs, options.seed)
    )
    wanted = found = invented = 0
    ratios = []
    with opened_bench() as (bench, folder):
        for chosen in plan:
            alone = [record.get(c["id"], lambda c=c: run(bench, folder, [c], root)) for c in chosen]
            name = " ".join(case["id"] for case in chosen)
            together = record.get(f"together: {name}", lambda some=chosen: run(bench, folder, some, root))
            if not together["runs"]:
                print(f"torch does not run these as one: {name}", flush=True)
                continue
            counted = report(chosen, alone, together)
            wanted, found, invented = wanted + counted[0], found + counted[1], invented + counted[2]
            ratios.append(together["seconds"] / sum(one["seconds"] for one in alone))
    ratios.sort()
    print(
        f"found {found}/{wanted} = {found / max(1, wanted):.1%} of the gaps found alone; invented {invented}; "
        f"a program takes {ratios[len(ratios) // 2]:.2f}x the sum of its cases (median)"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
