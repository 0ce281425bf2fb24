"""Make reproductions of labelled cases with one warm pair of workers: cases in, the share that is reproduced out.

usage: python benchmarks/mre.py CASES.jsonl [--fix | --cpp WORK [--checked N]] [--only PATTERN] [--every N] [--verbose]

With --fix, workarounds are sought instead, and the case is run with them on both sides. With --cpp, the cases are
folders of extensions, which are taken through the command line (see ``mre_native``).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import mre_native

from migrate_lens.classify import classify
from migrate_lens.diagnosis.investigate import baseline, investigate
from migrate_lens.diagnosis.subject import Subject
from migrate_lens.discovery.discover import discover
from migrate_lens.model.report import Gap, Outcome, Runtime, Stage
from migrate_lens.programs.synthesis import ProbeRecord, probe_record
from migrate_lens.remedies.bench_lab import BenchLab
from migrate_lens.remedies.fix.examination import agrees
from migrate_lens.remedies.fix.fixing import NoReplacement, find
from migrate_lens.remedies.fix.patches import Comment, patched
from migrate_lens.remedies.fix.trials import Replacement
from migrate_lens.remedies.publish.cleanroom import CleanRoom
from migrate_lens.remedies.reproduce.reproduce import NotReproduced, Reproduced, reproduce
from migrate_lens.runs.bench import Bench, Setting
from migrate_lens.runs.worker import Worker


def diagnose(bench: Bench, path: Path) -> tuple[tuple[Gap, ...], tuple[ProbeRecord, ...]]:
    library = discover(path)
    setting = Setting(library, dict.fromkeys(Runtime, ()), (), 60.0)
    probe = library.probes[0]
    base = baseline(Subject(bench, setting, Stage.RUN, probe))
    if base.result.outcome is not Outcome.PASSED:
        return (), ()
    users = {module.partition(".")[0] for module in base.run.trace.users} - {"__main__"}
    setting = replace(setting, scope=tuple(sorted(users)))
    subject = Subject(bench, setting, Stage.RUN, probe)
    done = investigate(subject, base, lambda _: None, stop_at_first=False)
    return classify(done.findings), (probe_record(base.run.trace),)


@dataclass(frozen=True)
class Made:
    """What became of one gap: its reproduction, the wall and processor seconds to reduce and verify it, its verdict."""

    gap: Gap
    found: Reproduced | NotReproduced
    seconds: float
    busy: float
    holds: bool


def one(bench: Bench, lab: BenchLab, room: CleanRoom, path: Path) -> list[Made]:
    gaps, heard = diagnose(bench, path)
    made = []
    for gap in gaps:
        start, used = time.monotonic(), busy()
        found = reproduce(gap, heard, [path.read_text()], lab)
        holds = False
        if isinstance(found, Reproduced):
            holds = room.verify({"mre.py": found.source}, "mre.py").holds(found.sign.what)
        made.append(Made(gap, found, time.monotonic() - start, busy() - used, holds))
    return made


def busy() -> float:
    """Processor seconds of all that was started so far: the workers with their forks, and the clean processes."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = spent.ru_utime + spent.ru_stime
    for children in Path("/proc/self/task").glob("*/children"):
        for pid in children.read_text().split():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
            total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return total


def fixed(bench: Bench, lab: BenchLab, path: Path) -> tuple[bool, bool, str]:
    """Whether a workaround is offered, whether the case then gives torch's result on both sides, and what was found."""
    gaps, heard = diagnose(bench, path)
    groups: list[tuple[tuple[Replacement, ...], Comment]] = []
    said: list[str] = []
    for gap in gaps:
        before = [one for made, _ in groups for one in made]
        found = find(gap, heard, lab, before)
        if isinstance(found, NoReplacement):
            said.append(f"{gap.id}: {found.reason}")
        else:
            groups.append((found, Comment("me", gap.api, "s", "w", "d")))
    if not groups:
        return False, False, "; ".join(said) or "no gaps"
    text = patched(path.read_bytes(), groups).decode()
    trial, want = lab.both(text), lab.torch(path.read_text())
    sides = (trial.torch, trial.paddle)
    good = all(side.finished and agrees(want.ending.value, side.ending.value) for side in sides)
    code = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    return True, good, "; ".join(said) + "\n" + code + (f"\n{trial.paddle.ending.value}" if not good else "")


def fixes(bench: Bench, lab: BenchLab, root: Path, cases: list[dict[str, str]]) -> int:
    offered = working = 0
    for case in cases:
        start = time.monotonic()
        some, good, said = fixed(bench, lab, root / case["file"])
        offered, working = offered + some, working + good
        how = "works" if good else "partial" if some else "none"
        print(f"--- {case['id']}: {how} {time.monotonic() - start:.1f} s {said}", flush=True)
    print(f"workarounds: {working} of {len(cases)} cases work with them, {offered} have some")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("--cpp", type=Path, metavar="WORK")
    parser.add_argument("--checked", type=int, default=1)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    if options.cpp:
        return mre_native.measure(
            options.cases.resolve(), options.only, options.every, options.cpp.resolve(), options.checked
        )
    cases = [json.loads(line) for line in options.cases.read_text().splitlines() if line.strip()]
    cases = [c for c in cases if options.only in c["id"] and c["symptom"] != "agrees"][:: options.every]
    python = Path(sys.executable)
    with tempfile.TemporaryDirectory() as folder, Worker(python, "torch") as torch, Worker(python, "paddle") as paddle:
        bench = Bench(torch, paddle, Path(folder))
        with BenchLab(bench, Path(folder)) as lab, CleanRoom(python, python) as room:
            if options.fix:
                return fixes(bench, lab, options.cases.parent, cases)
            made = []
            for case in cases:
                each = one(bench, lab, room, options.cases.parent / case["file"])
                made.append((case, each))
                for m in each:
                    said = "" if m.holds else "fails otherwise in clean processes"
                    said = m.found.reason if isinstance(m.found, NotReproduced) else said
                    print(
                        f"--- {case['id']}: {m.gap.id} {m.seconds:.1f} s, {m.busy:.1f} processor s {said}", flush=True
                    )
                    if isinstance(m.found, Reproduced) and (options.verbose or not m.holds):
                        print(m.found.source, flush=True)
                if not each:
                    print(f"--- {case['id']}: no gap found", flush=True)
    done = [m for _, each in made for m in each if isinstance(m.found, Reproduced) and m.holds]
    lengths = [
        len([x for x in m.found.source.splitlines() if x.strip()]) for m in done if isinstance(m.found, Reproduced)
    ]
    good = sum(any(m.holds for m in each) for _, each in made)
    line, longest = statistics.median(lengths or [0]), max(lengths or [0])
    seconds, used = ([getattr(m, name) for m in done] or [0.0] for name in ("seconds", "busy"))
    wall, spent = statistics.median(seconds), statistics.median(used)
    print(f"reproduced {good}/{len(cases)}; lines: median {line}, longest {longest}")
    print(f"to reduce and verify: median {wall:.1f} s, {spent:.1f} processor seconds")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
