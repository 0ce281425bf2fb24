"""Hold the diagnosis of extensions against labelled cases: the corpus in, a line a case and a table out.

usage: python benchmarks/corpus_cpp.py CASES.jsonl [--only SUBSTRING] [--keep FILE]

A case is one ``migrate-lens diagnose`` of its folder, as a user would type it. A gap is found when its name shares a
word with the expected construct and it stands at the expected stage. With ``--keep`` each verdict is written as it
comes, and a later call goes on where this one was stopped.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

COMMON = frozenset(("at", "torch", "c10", "tensor", "std", "the", "a"))
STAGES = {"values": "run"}
SECONDS = 600.0
NO_BASELINE = 3

Row = dict[str, Any]


def words(text: str) -> frozenset[str]:
    """The words of a name that say something."""
    return frozenset(w.lower().strip("_") for w in re.findall(r"[A-Za-z_]\w+", text or "")) - COMMON


def verdict(case: Row, code: int, gaps: list[Row]) -> str:
    """What became of one case."""
    if case["stage"] == "agrees":
        return "false alarm" if gaps else "clean"
    if case["stage"] == "baseline":
        return "baseline seen" if code == NO_BASELINE else "baseline missed"
    want = words(case["construct"])
    named = [g for g in gaps if want & (words(g["api"]) | words(g["id"]))]
    hits = [g for g in named if g["stage"] == STAGES.get(case["stage"], case["stage"])]
    if not hits:
        return "wrong stage" if named else "missed"
    return "found" if any(g["layer"] == case["layer"] for g in hits) else "wrong layer"


def diagnose(case: Row, root: Path) -> Row:
    """One case, diagnosed and judged."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [Path(sys.executable).with_name("migrate-lens"), "diagnose", root / case["dir"], "--format", "json"]
        ran = subprocess.run(
            [*map(str, command), "--output", str(report)], cwd=folder, capture_output=True, text=True, timeout=SECONDS
        )
        gaps = json.loads(report.read_text())["gaps"] if report.exists() else []
    got = [[g["stage"], g["api"], g["symptom"], g["layer"]] for g in gaps]
    took = round(time.monotonic() - start, 1)
    return {"id": case["id"], "verdict": verdict(case, ran.returncode, gaps), "code": ran.returncode, "got": got,
            "seconds": took}  # fmt: skip


def say(case: Row, row: Row) -> None:
    """One line: the name, what was expected, what was found, and how long it took."""
    want = f"{case['stage']} {case['construct']} {case['layer']}"
    print(f"{row['verdict']:15} {row['seconds']:6.1f} s  {case['id']:28} want {want}  got {row['got']}", flush=True)


def table(rows: Iterable[Row]) -> str:
    """The figures of all rows."""
    tally = Counter(row["verdict"] for row in rows)
    gapped = sum(tally[k] for k in ("found", "wrong layer", "wrong stage", "missed"))
    found = tally["found"] + tally["wrong layer"]
    agreeing = tally["clean"] + tally["false alarm"]
    bases = tally["baseline seen"] + tally["baseline missed"]
    seconds = sorted(row["seconds"] for row in rows) or [0.0]
    return (
        f"found {found}/{gapped} = {found / max(1, gapped):.1%}; layer right {tally['found'] / max(1, found):.1%} of "
        f"found; false alarms {tally['false alarm']}/{agreeing}; baseline seen {tally['baseline seen']}/{bases}; "
        f"median {seconds[len(seconds) // 2]:.0f} s a case, longest {seconds[-1]:.0f} s"
    )


def run(cases: list[Row], root: Path, keep: Path | None) -> int:
    """Diagnose the cases that are not judged yet, and print the table of all."""
    kept = keep.read_text().splitlines() if keep is not None and keep.exists() else []
    done = {row["id"]: row for row in map(json.loads, kept)}
    for case in cases:
        if case["id"] not in done:
            done[case["id"]] = diagnose(case, root)
            if keep is not None:
                with keep.open("a") as file:
                    file.write(json.dumps(done[case["id"]]) + "\n")
        say(case, done[case["id"]])
    print(table([done[case["id"]] for case in cases]))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    cases = [json.loads(line) for line in options.cases.read_text().splitlines() if line.strip()]
    return run([c for c in cases if options.only in c["id"]], options.cases.resolve().parent, options.keep)


if __name__ == "__main__":
    raise SystemExit(main())
