"""Commands under faults: a signal at any moment, limits, damage, a hostile environment in; what was lost or left, out.

usage: python benchmarks/faults.py [--runs N] [--seed N] [--real SHARE]

Each run has a home and a tree of its own, with files of the user's and the state of a diagnosis. Afterwards the files
of the user are held against what they were, byte by byte; the state is whole; nothing is left in the temporary folder;
no process lives; the exit code is a documented one and there is no traceback. Most runs are made in made-up runtimes
(``tests/helpers/fake_world``); a share of them starts the real ones. Exits 1 where a run is wrong.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 300.0
ENDED = (129, 130, 143)
REAL = "import sys\nfrom migrate_lens.cli import main\nsys.exit(main(sys.argv[1:]))\n"
FAKE = """
import sys, time
import migrate_lens.cli
from migrate_lens import interrupts
with interrupts.heard():
    try:
        from fake_world import FakeBench, FakeWorker, Step, World
        from sample_events import call, tensor
        from migrate_lens.commands import diagnose as pipeline
        world = World([Step(call(1, tensor(1.0), api="torch.full"), call(1, tensor(2.0), api="torch.full"))])
        pipeline.Worker = FakeWorker
        pipeline.Bench = lambda torch, target, folder: FakeBench(world, folder)
    except KeyboardInterrupt:
        sys.exit(interrupts.exit_code())
sys.exit(migrate_lens.cli.main(sys.argv[1:]))
"""
MINE = {"prog.py": "import torch\nresult = torch.full((1,), 1.0)\n", "notes.txt": "mine\n", "traces/old": "mine\n"}
COMMANDS = {
    "diagnose": ["diagnose", "prog.py"],
    "diagnose into new state": ["diagnose", "prog.py", "--state", "other"],
    "diagnose to a file": ["diagnose", "prog.py", "--format", "json", "--output", "made.json"],
    "diagnose over the program": ["diagnose", "prog.py", "--output", "prog.py"],
    "diagnose into the tree": ["diagnose", "prog.py", "--state", "."],
    "explain": ["explain", "torch.full:value"],
    "check": ["check", "."],
    "audit over the program": ["audit", ".", "--output", "notes.txt"],
    "diff": ["diff", ".migrate-lens/traces/0.trace", ".migrate-lens/traces/0.trace"],
}
HOSTILE: list[dict[str, str]] = [
    {"HOME": "/no/such/home"}, {"HOME": "/dev/null"}, {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0"},
    {"PYTHONIOENCODING": "ascii"}, {"PYTHONUNBUFFERED": "1"}, {"PYTHONWARNINGS": "error"}, {"PYTHONOPTIMIZE": "2"},
    {"MIGRATE_LENS_CACHE": "/dev/null/x"}, {"COLUMNS": "0"}, {"TERM": ""}, {"PYTHONDEVMODE": "0"},
]  # fmt: skip
OURS = {"made.json", "other", ".migrate-lens"}


@dataclass(frozen=True)
class Fault:
    """What is done to a command.

    Attributes:
        kind: for the tally.
        signals: sent after a delay in seconds, one after the other.
        limits: of the process.
        environ: variables that differ.
        damage: done to the state before.
    """

    kind: str
    signals: tuple[tuple[float, int], ...] = ()
    limits: Mapping[int, int] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    damage: str = ""


def faults(chance: random.Random, longest: float) -> Fault:
    """A fault of some kind."""
    kind = chance.choice(("signal", "signal", "signals", "disk", "descriptors", "memory", "environment", "damage"))
    number = chance.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    first = (chance.uniform(0.05, longest), int(number))
    match kind:
        case "signal":
            return Fault(kind, (first,))
        case "signals":
            return Fault(kind, (first, (0.0, int(number)), (chance.uniform(0, 0.1), int(number))))
        case "disk":
            return Fault(kind, limits={resource.RLIMIT_FSIZE: chance.choice((0, 1, 100, 4096, 1 << 16, 1 << 20))})
        case "descriptors":
            return Fault(kind, limits={resource.RLIMIT_NOFILE: chance.randrange(4, 40)})
        case "memory":
            return Fault(kind, limits={resource.RLIMIT_AS: chance.randrange(60, 600) << 20})
        case "environment":
            return Fault(kind, environ=chance.choice(HOSTILE))
        case _:
            return Fault(kind, damage=chance.choice(("report.json", "traces/index.json", "traces/0.trace")))


def fingerprint(folder: Path) -> dict[str, str]:
    """The user's files in a tree: mode and content of each."""
    seen = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if name.parts[0] not in OURS:
            content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            seen[str(name)] = f"{path.lstat().st_mode:o} {content}"
    return seen


def complaints(folder: Path, before: Mapping[str, str], fault: Fault) -> Iterator[str]:
    """What is wrong with what a run has left."""
    if fingerprint(folder / "tree") != before:
        yield "the user's files differ"
    left = [path.name for path in (folder / "tmp").iterdir() if path.name.startswith("migrate-lens-")]
    if left:
        yield f"left behind: {', '.join(left)}"
    for state in (folder / "tree" / ".migrate-lens", folder / "tree" / "other"):
        yield from _state_is_whole(state, fault)


def _state_is_whole(state: Path, fault: Fault) -> Iterator[str]:
    if not state.exists() or fault.damage:
        return
    for path in state.rglob("*.json"):
        try:
            json.loads(path.read_text())
        except ValueError:
            yield f"{path.name} is half written"
    others = {path.name for path in state.iterdir()} - {".gitignore", ".migrate-lens-state", "report.json", "traces"}
    if others:
        yield f"left in {state.name}: {', '.join(sorted(others))}"
    if (state / "report.json").exists() != (state / "traces" / "index.json").exists():
        yield f"{state.name} has half of a diagnosis"


def alive(mark: str) -> list[int]:
    """Processes that bear a mark in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def _before(limits: Mapping[int, int]) -> Callable[[], None]:
    def limit() -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        for kind, most in limits.items():
            resource.setrlimit(kind, (most, most))

    return limit


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes:
        code: its exit code.
        error: what it said.
        heard: whether it lived when the first signal was sent.
        unheeded: signals that were sent while nothing of ours listened: before our first line, or behind the last.
    """

    code: int
    error: str
    heard: bool
    unheeded: tuple[int, ...] = ()


def run(folder: Path, argv: list[str], fault: Fault, driver: str, mark: str) -> Ended:
    """Run a command in a tree, and do to it what the fault says."""
    paths = os.pathsep.join((str(ROOT), str(ROOT / "tests" / "helpers")))
    environ = {
        **os.environ, "PYTHONPATH": paths, "HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"),
        "PYTHONDONTWRITEBYTECODE": "1", "FAULT": mark, **fault.environ,
    }  # fmt: skip
    command = [sys.executable, "-c", driver, *argv]
    with subprocess.Popen(
        command, cwd=folder / "tree", env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        errors="replace", stdin=subprocess.DEVNULL, preexec_fn=_before(fault.limits), start_new_session=True,
    ) as process:  # fmt: skip
        heard, unheeded = False, []
        for delay, number in fault.signals:
            time.sleep(delay)
            heard = heard or process.poll() is None
            if not _listens(process.pid):
                unheeded.append(number)
            process.send_signal(number)
        _, error = process.communicate(timeout=PATIENCE)
    return Ended(process.returncode, error, heard, tuple(unheeded))


def _listens(pid: int) -> bool:
    """Whether a process takes SIGTERM itself, which Python leaves to those who ask for it."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False  # it has ended
    caught = next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigCgt:")), 0)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


def verdict(ended: Ended, fault: Fault) -> Iterator[str]:
    """What is wrong with how a command ended.

    Death by a signal that was sent while nothing of ours listened, and an interpreter that cannot start within its
    limits, are Python's own affair.
    """
    if ended.code in (-number for number in ended.unheeded):
        return
    if (fault.limits or fault.environ) and "Traceback" in ended.error and "migrate_lens" not in ended.error:
        return
    if ended.code not in (0, 1, 2, 3, *ENDED):
        yield f"exit code {ended.code}"
    if "Traceback" in ended.error:
        yield f"a traceback: {ended.error.strip().splitlines()[-1]}"


def prepared(folder: Path) -> None:
    """A home, a temporary folder, and a tree with the state of a diagnosis."""
    for name in ("home", "tmp", "tree"):
        (folder / name).mkdir(parents=True)
    for name, text in MINE.items():
        (folder / "tree" / name).parent.mkdir(exist_ok=True)
        (folder / "tree" / name).write_text(text)


def one(template: Path, chance: random.Random, real: bool, longest: float) -> tuple[str, list[str]]:
    """One run; its kind, and what was wrong."""
    fault = faults(chance, longest)
    name = chance.choice(list(COMMANDS))
    mark = uuid.uuid4().hex
    with tempfile.TemporaryDirectory(prefix="faults-") as place:
        folder = Path(place) / "run"
        shutil.copytree(template, folder, symlinks=True)
        if fault.damage:
            file = folder / "tree" / ".migrate-lens" / fault.damage
            file.write_bytes(file.read_bytes()[: chance.randrange(60)] + chance.randbytes(9))
        before = fingerprint(folder / "tree")
        ended = run(folder, COMMANDS[name], fault, REAL if real else FAKE, mark)
        wrong = [*verdict(ended, fault), *complaints(folder, before, fault)]
        end = time.monotonic() + 5.0
        while alive(mark) and time.monotonic() < end:
            time.sleep(0.05)
        wrong += [f"process {pid} lives" for pid in alive(mark)]
    return f"{fault.kind}{' (real)' if real else ''}", [f"{name}, {fault}: {what}" for what in wrong]


def main() -> int:
    """Make the runs, and say what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--real", type=float, default=0.05, help="the share of runs that start the frameworks")
    asked = parser.parse_args()
    done, wrong = made(asked.runs, asked.seed, asked.real)
    for kind, number in sorted(done.items()):
        print(f"{number:5}  {kind}")
    print(f"{len(wrong)} things wrong in {sum(done.values())} runs")
    return 1 if wrong else 0


def made(runs: int, seed: int, share: float) -> tuple[Counter[str], list[str]]:
    """So many runs: how many of each kind there were, and what was wrong."""
    chance = random.Random(seed)
    done: Counter[str] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="faults-") as place:
        template = Path(place) / "template"
        prepared(template)
        start = time.monotonic()
        first = run(template, COMMANDS["diagnose"], Fault("none"), FAKE, "none")
        assert first.code == 1, first.error
        longest = time.monotonic() - start
        for _ in range(runs):
            real = chance.random() < share
            kind, said = one(template, chance, real, longest * (8 if real else 1.1))
            done[kind] += 1
            wrong += said
            for line in said:
                print(line, flush=True)
    return done, wrong


if __name__ == "__main__":
    sys.exit(main())
