"""A made-up program, in; a bench that runs it in made-up runtimes, within microseconds and without a framework, out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sample_events import ended, failure, handed_at, trace

from migrate_lens.compare.divergences import guarded
from migrate_lens.compare.findings import node_name
from migrate_lens.model.report import Environment, Runtime
from migrate_lens.model.trace import Died, Ending, Event, Trace
from migrate_lens.runs.bench import Bench, NameKind, Run, RunRequest, Setting
from migrate_lens.runs.worker import Fate, Worker


@dataclass(frozen=True)
class Step:
    """What one place does in each runtime; ``dies`` is the signal that ends Paddle's process there, 0 for a hang."""

    torch: Event
    paddle: Event | None = None
    dies: int | None = None


@dataclass
class World:
    """A program of steps, and how its outcome follows from the differences that were left in.

    Attributes:
        steps: what it does.
        outcome: torch names of the differences left in, in; a result, or an exception's name to raise, out.
        torch_ends: how it ends under torch.
        everywhere: whether the global runtime behaves.
        kinds: what each runtime answers about names.
        runs: what was asked for: runtime, heal, spare, skip.
    """

    steps: list[Step]
    outcome: Callable[[frozenset[str]], Any] = lambda left: 0
    torch_ends: Ending | None = None
    everywhere: bool = False
    kinds: dict[str, str] = field(default_factory=dict)
    runs: list[tuple[str, str, tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)

    def torch(self) -> tuple[Trace, Fate]:
        """The run under torch."""
        events = [step.torch for step in self.steps]
        ending = self.torch_ends or ended(value=self.outcome(frozenset()), has=True)
        return trace(events, ending), Fate(0, False, 0.01, 1000)

    def paddle(self, heal: str, spare: Sequence[str], skip: Sequence[str]) -> tuple[Trace, Fate]:
        """A run under Paddle."""
        events: list[Event] = []
        left: set[str] = set()
        for step in self.steps:
            name = node_name(step.torch.place)
            if name in skip:
                events.append(handed_at(step.torch.place))
                continue
            if step.dies is not None:
                fate = Fate(-(step.dies or 9), step.dies == 0, 0.01, 1000)
                return trace(events, Died(), in_flight=step.torch.place), fate
            if step.paddle is None:
                events.append(step.torch)
                continue
            healed = "differs" if heal == "all" and name not in spare else ""
            events.append(replace(step.paddle, healed=healed))
            if not healed and step.paddle.failure is not None and not guarded(step.paddle):
                return trace(events, ended("raised", step.paddle.failure)), Fate(0, False, 0.01, 1000)
            if not healed:
                left.add(step.torch.api)
        value = self.outcome(frozenset(left))
        ending = ended("raised", failure(value)) if isinstance(value, str) else ended(value=value, has=True)
        return trace(events, ending), Fate(0, False, 0.01, 1000)


class FakeBench(Bench):
    """A bench over a world."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world = world
        self._folder = folder

    def run(self, request: RunRequest) -> Run:
        """Run the program in a made-up runtime."""
        runtime, healing = request.runtime, request.healing
        heal, spare, skip = (healing.heal, healing.spare, healing.skip) if healing else ("none", (), ())
        self.world.runs.append((str(runtime), heal, spare, skip))
        same = runtime is Runtime.TORCH or (runtime is Runtime.TARGET_GLOBAL and self.world.everywhere)
        done, fate = self.world.torch() if same else self.world.paddle(heal, spare, skip)
        file = self._folder / "empty.trace"
        file.touch()
        return Run(runtime, done, file, fate, "")

    def replay(self, setting: Setting, runtime: Runtime, calls: Sequence[tuple[Any, ...]], *, zoom: bool) -> Run:
        """Nothing becomes of calls that are made alone in a made-up runtime."""
        file = self._folder / "empty.trace"
        file.touch()
        return Run(runtime, trace([], Died()), file, Fate(1, False, 0.01, 1000), "")

    def ask(self, setting: Setting, runtime: Runtime, names: Sequence[str]) -> dict[str, NameKind]:
        """What the world knows about names: all of it under torch, nothing under Paddle."""
        kinds = self.world.kinds if runtime is Runtime.TORCH else dict.fromkeys(names, "")
        return {name: NameKind(kinds.get(name, "function")) for name in names}


class FakeWorker(Worker):
    """A worker that is no process."""

    def __init__(self, python: Path, family: str, *, keep_torch: bool = False) -> None:
        self.python = python
        self.family = family

    def environment(self) -> Environment:
        """What it says of itself."""
        return Environment("3.11", str(self.python), self.family, "1.0")

    def close(self) -> None:
        """Nothing to end."""
