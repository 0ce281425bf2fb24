"""Holds every claim about ten PyPI libraries against plain interpreters: true, false or unanswerable, in one table.

usage: python benchmarks/truth.py CACHE WORK [--only NAME] [--again] [--judge-again] [--limit SECONDS] [--json FILE]

For each library of ``truth.toml``: ``diagnose``, ``issue --emit --all``, ``fix`` and ``audit`` are run through the
command line; then each reproduction is run by a fresh interpreter, each patch is applied to a copy and a program with
gradients is run on both sides, and each name, keyword and advice of the audit is asked again (``claims.plain``), and
judged (``claims.judges``). CACHE keeps what was downloaded, WORK what was done: a second run goes on from it. Each
library has a process and a time limit of its own. Exit code 1 if any claim is false.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from claims.judges import (
    Claimed,
    Ending,
    Judged,
    Played,
    Truth,
    judge_advice,
    judge_first,
    judge_first_patch,
    judge_gap,
    judge_issue,
    judge_keyword,
    judge_name,
    judge_reproduction,
    judge_unseen,
    judge_verdict,
    unsteady,
)
from claims.patches import Patches, Tree, at_sites
from claims.runs import Plain, ending_of
from pypi import Distribution, needed, unpacked

HERE = Path(__file__).resolve().parent
PADDLE = "import runpy, sys, paddle; paddle.enable_compat(); runpy.run_path(sys.argv[1], run_name='__main__')"
PROMISES = re.compile(r"\bworks?\b", re.IGNORECASE)
SIDES = ("torch", "paddle")


def say(line: str) -> None:
    """Progress, with the time."""
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


# -- libraries ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Library:
    """One library of truth.toml.

    Attributes:
        name: on PyPI.
        version: pinned.
        imports: the package to import.
        probe: a program that exercises it.
        needs: pinned packages that it imports, torch and numpy aside.
    """

    name: str
    version: str
    imports: str
    probe: str
    needs: tuple[str, ...] = ()

    @property
    def distribution(self) -> Distribution:
        """Where it comes from."""
        return Distribution(self.name, self.version, self.needs)


@dataclass(frozen=True, slots=True)
class Advice:
    """A program that must pass on both sides if a piece of advice is true.

    Attributes:
        rule: of the audit.
        says: words of the advice.
        program: what they come to.
    """

    rule: str
    says: str
    program: str


def libraries(text: str) -> list[Library]:
    """The libraries that a TOML text names."""
    rows = tomllib.loads(text)["library"]
    return [Library(**{**row, "needs": tuple(row.get("needs", ()))}) for row in rows]


# -- the product -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Claims:
    """What the commands said of one library, as JSON."""

    report: Mapping[str, Any]
    issues: Sequence[Mapping[str, Any]]
    fixes: Sequence[Mapping[str, Any]]
    audit: Mapping[str, Any]
    advice: Mapping[str, str]

    def gaps(self) -> dict[str, Claimed]:
        """The gaps of the diagnosis, by id."""
        return {gap["id"]: Claimed(gap["id"], gap["api"], gap["symptom"]) for gap in self.report["gaps"]}

    def sites(self, gap: str) -> list[tuple[str, int]]:
        """Where a gap was found."""
        return next([(s["path"], s["line"]) for s in g["sites"]] for g in self.report["gaps"] if g["id"] == gap)


class Product:
    """The commands, run once each through the command line in this process; what they print is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "said").mkdir(parents=True, exist_ok=True)

    def said(self, name: str, *argv: str) -> str:
        """What a command prints on stdout; kept under a name."""
        kept = self.folder / "said" / name
        if not kept.exists():
            from migrate_lens.cli import main

            out, start = io.StringIO(), time.monotonic()
            with contextlib.redirect_stdout(out):
                code = main(list(argv))
            say(f"  {' '.join(argv[:1])}: exit {code}, {time.monotonic() - start:.0f} s")
            (self.folder / "said" / f"{name}.code").write_text(f"{code}\n")
            kept.write_text(out.getvalue())
        return kept.read_text()

    def claims(self, library: Path, probe: Path) -> Claims:
        """Everything that is claimed of a library."""
        state = str(self.folder / "state")
        where, of = str(self.folder / "issues"), ("--probe", str(probe), "--state", state, "--format", "json")
        report = document(self.said("diagnose", "diagnose", str(library), *of))
        issues = self.said(
            "issue", "issue", "--emit", "--all", "--state", state, "--output", where, *self.as_json("issue")
        )
        fixes = self.said("fix", "fix", "--state", state, *self.as_json("fix"))
        audit = document(self.said("audit", "audit", str(library), "--format", "json"))
        ruled = {gap["rule"] for gap in audit["gaps"] if gap["basis"] == "rule"}
        rules = sorted(rule for rule in ruled if not rule.startswith("asked_"))
        advice = {rule: self.said(f"explain-{rule}", "audit", "--explain", rule) for rule in rules}
        said = (document(issues).get("issues", []), document(fixes).get("fixes", []))
        return Claims(report, *said, audit, advice)

    def as_json(self, command: str) -> tuple[str, ...]:
        """How a command is asked for JSON."""
        return ("--format", "json") if "--format" in self.said(f"help-{command}", command, "--help") else ("--json",)

    def exits(self) -> Iterator[Judged]:
        """Commands that ended in an error of the product or of its use."""
        for kept in sorted((self.folder / "said").glob("*.code")):
            code = kept.read_text().strip()
            if code not in ("0", "1"):
                yield Judged("command", kept.stem, Truth.FALSE, f"exit status {code}")


def document(text: str) -> dict[str, Any]:
    """A command's JSON; nothing where it gave none."""
    try:
        found = json.loads(text)
    except ValueError:
        return {"gaps": [], "verdict": "none", "libraries": []}
    return found if isinstance(found, dict) else {}


# -- reproductions -----------------------------------------------------------------------------------------------------


def reproductions(claims: Claims, plain: Plain, folder: Path) -> Iterator[Judged]:
    """Run each reproduction that was written, and read its issue."""
    for issue in claims.issues:
        gap = claims.gaps().get(issue["gap"]) or claimed(issue["gap"])
        if issue["outcome"] == "not reproduced":
            yield Judged("reproduction", gap.id, Truth.UNANSWERABLE, f"none was claimed: {issue['said'][:80]}")
        if issue["outcome"] == "covered":
            yield Judged("reproduction", gap.id, Truth.UNANSWERABLE, f"none of its own: {issue['said'][:80]}")
            continue
        if not issue["folder"]:
            continue
        yield judge_issue(gap, issue["body"], issue["source"])
        where = Path(issue["folder"])
        record = json.loads((where / "mre.json").read_text())
        if all(name.endswith(".py") for name in record["files"]):
            yield judge_reproduction(gap, played(where, record, plain, folder))
        else:
            yield Judged("reproduction", gap.id, Truth.UNANSWERABLE, "a native project")


def claimed(name: str) -> Claimed:
    """A gap of which only the id is known."""
    api, _, rest = name.partition(":")
    return Claimed(name, api, rest.partition(":")[0])


def played(where: Path, record: Mapping[str, Any], plain: Plain, folder: Path) -> Played:
    """A reproduction, run in an empty folder on both sides, then without the statement that fails."""
    endings = []
    for switch in ((), ("-c", record.get("switch") or PADDLE)):
        shutil.rmtree(folder / "mre", ignore_errors=True)
        for name in record["files"]:
            target = folder / "mre" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(where / name, target)
        command = [sys.executable, "-X", "faulthandler", *switch, record["file"]]
        endings.append(plain.started(command, folder / "mre"))
    source = (where / record["file"]).read_text()
    rest = without_failing(source, endings[1].line_in(record["file"]), plain) if endings[0].passed else None
    return Played(source, record["file"], endings[0], endings[1], rest)


def without_failing(source: str, line: int, plain: Plain) -> Ending | None:
    """How the rest of a reproduction ends under Paddle with torch's values for the statement that failed."""
    body = ast.parse(source).body
    if not line or not body or line >= body[-1].lineno:  # nothing stands behind it
        return None
    made = plain.job("torch", heal=source, line=line)
    if isinstance(made, Ending) or not made["rest"] or not made["whole"]:
        return None
    answer = plain.job("paddle", heal=source, line=line, made=made["made"])
    return answer if isinstance(answer, Ending) else ending_of(answer["ending"])


# -- gaps, verdicts, the audit -----------------------------------------------------------------------------------------


def diagnosis(claims: Claims, patches: Patches, reproduced: frozenset[str]) -> Iterator[Judged]:
    """The verdict and the gaps, against plain runs of the program."""
    torch, paddle = patches.run("torch", {}), patches.run("paddle", {})
    random = unsteady(torch, patches.run("torch", {}, seed=1))
    yield judge_verdict(claims.report["verdict"] == "no_gaps", torch, paddle, random)
    sites = [site for gap in claims.gaps() for site in claims.sites(gap)]
    first = judge_first(sites, paddle, str(patches.tree.place))
    if first is not None:
        yield first
    for gap in claims.gaps().values():
        sites, shown = claims.sites(gap.id), gap.id in reproduced
        alone = [] if shown else at_sites(sites[:3], patches.tree, patches.plain, patches.probe)
        yield judge_gap(gap, sites, shown, paddle, alone)


def audited(claims: Claims, plain: Plain, upstream: Path, imports: str, programs: Sequence[Advice]) -> Iterator[Judged]:
    """Every name, keyword, advice and promise of the audit."""
    words = {(api, verdict) for library in claims.audit["libraries"] for api, verdict in said_of(library)}
    names = sorted((api, v) for api, v in words if v in ("present", "missing") and re.fullmatch(r"torch(\.\w+)*", api))
    refused = [gap for gap in claims.audit["gaps"] if gap["rule"] == "asked_keyword"]
    keywords = sorted({(gap["api"], gap["id"].rpartition(":")[2]) for gap in refused})
    answers = {side: plain.job(side, names=[n for n, _ in names], keywords=keywords) for side in SIDES}
    torch, paddle = (one if isinstance(one, dict) else {"names": {}, "keywords": {}} for one in answers.values())
    for name, verdict in names:
        yield judge_name(name, verdict, torch["names"].get(name, "?"), paddle["names"].get(name, "?"))
    for name, word in keywords:
        key = f"{name}({word}=)"
        yield judge_keyword(name, word, torch["keywords"].get(key, "?"), paddle["keywords"].get(key, "?"))
    yield from advised(claims, plain, programs)
    yield from planned(claims, plain, upstream, imports)


def said_of(library: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and verdict of everything that was looked up."""
    for row in library["apis"]:
        yield row["api"], row["verdict"]


def advised(claims: Claims, plain: Plain, programs: Sequence[Advice]) -> Iterator[Judged]:
    """Advice that says that something works, run once on each side."""
    for rule, text in claims.advice.items():
        gap = next(gap for gap in claims.audit["gaps"] if gap["rule"] == rule)
        texts = [text, *(value for value in gap.values() if isinstance(value, str))]
        promise = next((line.strip() for t in texts for line in t.splitlines() if PROMISES.search(line)), "")
        if not promise:
            continue
        known = next((one.program for one in programs if one.rule == rule and one.says in promise), "")
        program = plain.folder / "advice.py"
        program.write_text(known)
        endings = [plain.run(side, program).ending if known else None for side in SIDES]
        yield judge_advice(rule, promise, endings[0], endings[1])


def planned(claims: Claims, plain: Plain, upstream: Path, imports: str) -> Iterator[Judged]:
    """The plan: files without change, and the first patch."""
    if not claims.audit["libraries"]:
        return
    plan = claims.audit["libraries"][0]["plan"]
    met: dict[str, list[Claimed]] = {}
    for gap in claims.gaps().values():
        for path, _ in claims.sites(gap.id):
            met.setdefault(path, []).append(gap)
    yield from judge_unseen(plan.get("unchanged", ()), met)
    program = plain.folder / "import.py"
    program.write_text(f"import {imports}\n")
    fresh = Plain(plain.folder, [upstream, *map(Path, plain.paths[1:])])
    first = judge_first_patch(plan.get("first_patch", ""), fresh.run("paddle", program).ending, str(upstream))
    if first is not None:
        yield first


# -- one library, and all ----------------------------------------------------------------------------------------------


def one_library(one: Library, programs: Sequence[Advice], cache: Path, folder: Path) -> list[Judged]:
    """Everything about one library, in this process."""
    needs = needed(one.distribution, cache)
    upstream, probe = unpacked(one.distribution, cache, folder / one.name), folder / "probe.py"
    probe.write_text(one.probe)
    os.environ["PYTHONPATH"] = os.pathsep.join([*map(str, needs), os.environ.get("PYTHONPATH", "")])
    product = Product(folder)
    claims = product.claims(upstream, probe)
    trial = folder / "trial" / one.name
    plain = Plain(folder / "jobs", [trial, *needs])
    judged = [*said(product.exits()), *said(reproductions(claims, plain, folder))]
    patches = Patches(Tree(upstream, trial), plain, probe)
    judged += said(patches.judged(claims.gaps(), [fix for fix in claims.fixes if fix["patch"]]))
    reproduced = frozenset(j.subject for j in judged if j.kind == "reproduction" and j.truth is Truth.TRUE)
    judged += said(diagnosis(claims, patches, reproduced))
    judged += said(audited(claims, plain, upstream, one.imports, programs))
    return judged


def said(judged: Iterator[Judged]) -> Iterator[Judged]:
    """The same, told as it comes."""
    for one in judged:
        say(f"  {one.kind}: {one.subject}: {one.truth}{f': {one.reason}' if one.reason else ''}")
        yield one


def separately(one: Library, options: argparse.Namespace) -> list[Judged]:
    """One library in a process of its own; what it judged is kept."""
    folder = options.work / one.name
    kept = folder / "judged.json"
    if options.again:
        shutil.rmtree(folder, ignore_errors=True)
    if options.judge_again:
        kept.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    if not kept.exists():
        say(one.name)
        command = [
            sys.executable,
            str(Path(__file__).resolve()),
            str(options.cache),
            str(options.work),
            "--child",
            one.name,
        ]
        with subprocess.Popen([*command, "--libraries", str(options.libraries)], start_new_session=True) as process:
            try:
                code = process.wait(options.limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return [Judged("library", one.name, Truth.UNANSWERABLE, f"not done in {options.limit:.0f} s")]
        if code or not kept.exists():
            return [Judged("library", one.name, Truth.FALSE, f"the benchmark ended with status {code}")]
    return [Judged(j["kind"], j["subject"], Truth(j["truth"]), j["reason"]) for j in json.loads(kept.read_text())]


def table(done: Mapping[str, Sequence[Judged]]) -> Iterator[str]:
    """Claims by library and kind; then what is false, and what cannot be said."""
    kinds = list(dict.fromkeys(j.kind for judged in done.values() for j in judged))
    yield f"{'claims: true/false/unanswerable':34}" + "".join(f"{kind:>15}" for kind in kinds)
    everything = [j for judged in done.values() for j in judged]
    for name, some in [*done.items(), ("all", everything)]:
        counts = Counter((j.kind, j.truth) for j in some)
        yield f"{name:34}" + "".join(f"{'/'.join(str(counts[kind, truth]) for truth in Truth):>15}" for kind in kinds)
    for truth in (Truth.FALSE, Truth.UNANSWERABLE):
        for name, judged in done.items():
            for one in judged:
                if one.truth is truth:
                    yield f"{truth}: {name}: {one.kind}: {one.subject}: {one.reason}"


def main() -> int:
    """Read the command line, and judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cache", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--again", action="store_true", help="forget what was done")
    parser.add_argument("--judge-again", action="store_true", help="keep what the commands said, judge it anew")
    parser.add_argument("--limit", type=float, default=3600.0, metavar="SECONDS", help="for one library")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--libraries", type=Path, default=HERE / "truth.toml")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.cache, options.work = options.cache.resolve(), options.work.resolve()
    text = options.libraries.read_text()
    wanted = [options.child] if options.child else options.only
    some = [one for one in libraries(text) if not wanted or one.name in wanted]
    if options.child:
        programs = [Advice(**row) for row in tomllib.loads(text).get("advice", [])]
        judged = one_library(some[0], programs, options.cache, options.work / some[0].name)
        (options.work / some[0].name / "judged.json").write_text(json.dumps([asdict(j) for j in judged], indent=1))
        return 0
    for folder in (options.cache, options.work):
        folder.mkdir(parents=True, exist_ok=True)
    done = {one.name: separately(one, options) for one in some}
    print("\n".join(table(done)))
    if options.json:
        rows = {name: [asdict(j) for j in judged] for name, judged in done.items()}
        options.json.write_text(json.dumps(rows, indent=1))
    return int(any(j.truth is Truth.FALSE for judged in done.values() for j in judged))


if __name__ == "__main__":
    raise SystemExit(main())
