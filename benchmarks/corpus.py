"""Hold the diagnosis against labelled cases: the corpus in, a table of hits and misses out.

usage: python benchmarks/corpus.py CASES.jsonl [--only SUBSTRING] [--verbose]
       python benchmarks/corpus.py --cpp CASES.jsonl [--only SUBSTRING] [--keep FILE]   (see corpus_cpp.py)

Goes through the tool's own pipeline with a warm pair of workers, so that a corpus takes minutes; the verdicts are those
of one command a case.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import corpus_cpp

from migrate_lens.classify import classify
from migrate_lens.diagnosis.investigate import baseline, investigate
from migrate_lens.diagnosis.subject import Subject
from migrate_lens.discovery.discover import discover
from migrate_lens.model.report import Gap, Outcome, Runtime, Stage
from migrate_lens.runs.bench import Bench, Setting
from migrate_lens.runs.worker import Worker

NEAR = {
    "missing_argument": {"missing_argument", "exception", "schema"},
    "exception": {"exception", "missing_argument", "crash"},
    "gradient": {"gradient", "exception", "value"},
    "value": {"value", "state", "gradient"},
    "alias": {"alias", "value"},
    "state": {"state", "value", "missing_api", "shape"},
    "dtype": {"dtype", "value"},
    "shape": {"shape", "value"},
    "missing_api": {"missing_api", "import_error", "scope"},
}


def last(name: str) -> str:
    return name.replace("::", ".").rsplit(".", 1)[-1].strip("_")


def verdict(case: dict[str, Any], gaps: tuple[Gap, ...]) -> str:
    if case["symptom"] == "agrees":
        return "false alarm" if gaps else "clean"
    near = NEAR.get(case["symptom"], set()) | {case["symptom"]}
    hits = [g for g in gaps if g.symptom in near and last(g.api) == last(case["api"])]
    if not hits:
        return "missed"
    return "found" if any(g.layer == case["layer"] for g in hits) else "wrong layer"


def diagnose(bench: Bench, path: Path) -> tuple[Gap, ...]:
    """The gaps of a script; none where torch itself does not run it."""
    return attempted(bench, path) or ()


def attempted(bench: Bench, path: Path) -> tuple[Gap, ...] | None:
    """The gaps of a script; None where torch itself does not run it."""
    library = discover(path)
    paths = dict.fromkeys(Runtime, ())
    setting = Setting(library, paths, (), 60.0)
    probe = library.probes[0]
    base = baseline(Subject(bench, setting, Stage.RUN, probe))
    if base.result.outcome is not Outcome.PASSED:
        return None
    users = {module.partition(".")[0] for module in base.run.trace.users} - {"__main__"}
    setting = replace(setting, scope=tuple(sorted(users)))
    subject = Subject(bench, setting, Stage.RUN, probe)
    done = investigate(subject, base, lambda _: None, stop_at_first=False)
    return classify(done.findings)


def run(cases: list[dict[str, Any]], root: Path) -> Iterator[tuple[dict[str, Any], str, tuple[Gap, ...], float]]:
    python = Path(sys.executable)
    with tempfile.TemporaryDirectory() as folder, Worker(python, "torch") as torch, Worker(python, "paddle") as paddle:
        bench = Bench(torch, paddle, Path(folder))
        for case in cases:
            start = time.monotonic()
            gaps = diagnose(bench, root / case["file"])
            yield case, verdict(case, gaps), gaps, time.monotonic() - start


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", type=Path)
    parser.add_argument("--cpp", action="store_true")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    cases = [json.loads(line) for line in options.cases.read_text().splitlines() if line.strip()]
    cases = [c for c in cases if options.only in c["id"]]
    if options.cpp:
        return corpus_cpp.run(cases, options.cases.resolve().parent, options.keep)
    tally: Counter[str] = Counter()
    seconds = []
    for case, what, gaps, took in run(cases, options.cases.parent):
        tally[what] += 1
        seconds.append(took)
        if options.verbose or what not in ("found", "clean"):
            got = [(g.symptom.value, g.api, g.layer.value, g.category.value) for g in gaps]
            print(
                f"{what:12} {case['id']:28} want {case['symptom']} {case['api']} {case['layer']}  got {got}", flush=True
            )
    gapped = sum(tally[k] for k in ("found", "wrong layer", "missed"))
    found = tally["found"] + tally["wrong layer"]
    clean = tally["clean"] + tally["false alarm"]
    print(
        f"found {found}/{gapped} = {found / max(1, gapped):.1%}; "
        f"layer right {tally['found'] / max(1, found):.1%} of found; "
        f"false alarms {tally['false alarm']}/{clean}; median {sorted(seconds)[len(seconds) // 2]:.2f} s a case"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
