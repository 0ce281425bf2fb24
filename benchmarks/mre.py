"""Make reproductions of labelled cases with one warm pair of workers: cases in, the share that is reproduced out.

usage: python benchmarks/mre.py CASES.jsonl [--fix | --cpp WORK [--checked N]] [--only PATTERN] [--every N] [--verbose]

With --fix, workarounds are sought instead, and the case is run with them on both sides. With --cpp, the cases are
folders of extensions, which are taken through the command line (see ``mre_native``).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import mre_native

from migrate_lens.classify import classify
from migrate_lens.investigate import baseline, investigate
from migrate_lens.library import discover
from migrate_lens.model import Gap, Outcome, Runtime, Stage
from migrate_lens.remedies.fixing import NoReplacement, Replacement, agrees, find
from migrate_lens.remedies.patches import Comment, patched
from migrate_lens.remedies.reproduce import Case, NotReproduced, Reproduced, reproduce
from migrate_lens.remedies.synthesis import Recording, recording
from migrate_lens.remedy_lab import BenchLab
from migrate_lens.trace.bench import Bench, Setting
from migrate_lens.trace.worker import Worker


def diagnose(bench: Bench, path: Path) -> tuple[tuple[Gap, ...], tuple[Recording, ...]]:
    library = discover(path)
    setting = Setting(library, dict.fromkeys(Runtime, ()), (), 60.0)
    probe = library.probes[0]
    base, result, observed = baseline(bench, setting, Stage.RUN, probe)
    if result.outcome is not Outcome.PASSED:
        return (), ()
    users = {module.partition(".")[0] for module in base.trace.users} - {"__main__"}
    setting = replace(setting, scope=tuple(sorted(users)))
    done = investigate(bench, setting, Stage.RUN, probe, base, observed, lambda _: None, stop_at_first=False)
    return classify(done.findings), (recording(base.trace),)


def one(bench: Bench, lab: BenchLab, path: Path) -> list[tuple[Gap, Reproduced | NotReproduced, float]]:
    gaps, heard = diagnose(bench, path)
    made = []
    for gap in gaps:
        case = Case(gap.id, gap.api, str(gap.symptom), gap.sites, gap.actual)
        start = time.monotonic()
        made.append((gap, reproduce(case, heard, [path.read_text()], lab), time.monotonic() - start))
    return made


def fixed(bench: Bench, lab: BenchLab, path: Path) -> tuple[bool, bool, str]:
    """Whether a workaround is offered, whether the case then gives torch's result on both sides, and what was found."""
    gaps, heard = diagnose(bench, path)
    groups: list[tuple[tuple[Replacement, ...], Comment]] = []
    said: list[str] = []
    for gap in gaps:
        before = [one for made, _ in groups for one in made]
        found = find(Case(gap.id, gap.api, str(gap.symptom), gap.sites, gap.actual), heard, lab, before)
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
        return mre_native.measure(options.cases, options.only, options.every, options.cpp, options.checked)
    cases = [json.loads(line) for line in options.cases.read_text().splitlines() if line.strip()]
    cases = [c for c in cases if options.only in c["id"] and c["symptom"] != "agrees"][:: options.every]
    good, lengths, seconds = 0, [], []
    python = Path(sys.executable)
    with tempfile.TemporaryDirectory() as folder, Worker(python, "torch") as torch, Worker(python, "paddle") as paddle:
        bench = Bench(torch, paddle, Path(folder))
        with BenchLab(bench, Path(folder)) as lab:
            if options.fix:
                return fixes(bench, lab, options.cases.parent, cases)
            for case in cases:
                made = one(bench, lab, options.cases.parent / case["file"])
                done = [m for _, m, _ in made if isinstance(m, Reproduced)]
                good += bool(done)
                lengths += [len([x for x in m.source.splitlines() if x.strip()]) for m in done]
                seconds += [s for _, m, s in made]
                for gap, m, s in made:
                    if options.verbose or not isinstance(m, Reproduced):
                        print(f"--- {case['id']}: {gap.id} {s:.1f} s", m.reason if isinstance(m, NotReproduced) else "")
                        print(m.source if isinstance(m, Reproduced) else "", flush=True)
                if not made:
                    print(f"--- {case['id']}: no gap found", flush=True)
    print(f"reproduced {good}/{len(cases)}; lines: median {statistics.median(lengths or [0])}, longest "
          f"{max(lengths or [0])}; median {statistics.median(seconds or [0]):.1f} s")  # fmt: skip
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
