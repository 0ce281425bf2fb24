"""A test run: pytest's files and nodes in; what became of each test, as soon as it is known, and its calls, out.

Calls are counted anew for each test, each fixture that outlives one and each module, and each test draws from the same
seed: a test is the same alone as in company, and two runs align whatever tests each of them ended early.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from migrate_lens.protocol import frames
from migrate_lens.protocol.journal import Journal
from migrate_lens.protocol.parts import number_of
from migrate_lens.worker.observe.recorder import Recorder

_USAGE_ERROR, _RAN = 4, (0, 1)
# What is not for this run: a cache in the user's tree, other processes, another order of the tests.
_OPTIONS = ("-q", "--assert=plain", "--continue-on-collection-errors", "-p", "no:cacheprovider", "-p", "no:xdist",
            "-p", "no:randomly", "-p", "no:random_order")  # fmt: skip
_RANKS = {"passed": 0, "skipped": 1, "failed": 2}
FailureOf = Callable[[str, BaseException], None]


@dataclass(frozen=True, slots=True)
class Selection:
    """What is run of a suite.

    Attributes:
        root: the library's folder, from which tests are named and run.
        wanted: nodes as pytest names them from there, or the beginnings of such names: a file, or a class in one.
        only: pytest's ``-k`` expression; empty for all.
        enough: bytes of trace after which no other test is begun; 0 for no end.
    """

    root: str
    wanted: Sequence[str]
    only: str = ""
    enough: int = 0

    def of(self, items: Sequence[Any]) -> list[Any]:
        """Those of the collected tests that are wanted."""
        exact = frozenset(self.wanted)
        begins = tuple(f"{name}{more}" for name in self.wanted for more in ("::", "["))
        return [item for item in items if item.nodeid in exact or item.nodeid.startswith(begins)]

    @property
    def files(self) -> list[str]:
        """The files that the nodes are in."""
        return list(dict.fromkeys(os.path.join(self.root, name.partition("::")[0]) for name in self.wanted))


@dataclass
class Watch:
    """A plugin of pytest's that writes what becomes of each test, and counts its calls for themselves.

    Attributes:
        selection: the tests.
        journal: where it is written.
        recorder: what counts calls.
        reseed: sets all generators of random numbers to where they were at the start.
        failed: is told of each failure.
    """

    selection: Selection
    journal: Journal
    recorder: Recorder
    reseed: Callable[[], None]
    failed: FailureOf
    outcomes: dict[str, str] = field(default_factory=dict)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave out what is not wanted; what is left is written, so that it is known should the process end."""
        items[:] = self.selection.of(items)
        self.journal.write(frames.Collected("collected", [item.nodeid for item in items]))

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep the worst of what is reported of a test and its parts."""
        if report.when == "call" or report.outcome != "passed":
            known = self.outcomes.get(report.nodeid, "passed")
            self.outcomes[report.nodeid] = max(known, report.outcome, key=_RANKS.__getitem__)

    def pytest_exception_interact(self, node: Any, call: Any) -> None:
        """Keep why a test, or a file of them, failed."""
        error = call.excinfo.value
        if type(error).__name__ == "CollectError" and error.__cause__ is not None:
            error = error.__cause__  # what the file itself raised
        self.failed(node.nodeid, error)

    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        """Around a test with all that is set up for it."""
        number, began = number_of(item.nodeid), time.monotonic()
        self.journal.write(frames.TestBegan("test", number, item.nodeid))
        self.reseed()
        with self.recorder.counting(number):
            result = yield
        outcome = self.outcomes.get(item.nodeid, "")
        self.journal.write(frames.TestEnded("tested", number, outcome, time.monotonic() - began))
        if 0 < self.selection.enough < self.journal.size:
            item.session.shouldstop = "there is enough for one run"
        return result

    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[None]:
        """Around what is made for several tests: it is not the first one's."""
        if request.scope == "function":
            return (yield)
        name = f"{fixturedef.baseid}::{fixturedef.argname}[{getattr(request, 'param_index', 0)}]"
        with self.recorder.counting(number_of(name)):
            return (yield)


def run(watch: Watch) -> dict[str, str]:
    """Run tests; what became of each.

    Raises:
        SystemExit: pytest came to no test; its status.
    """
    pytest = importlib.import_module("pytest")
    _mark(pytest)
    selection = watch.selection
    wishes = ["-k", selection.only] if selection.only else []
    arguments = [*_OPTIONS, f"--rootdir={selection.root}", *wishes, *selection.files]
    code = int(pytest.main(arguments, plugins=[watch]))
    if code == _USAGE_ERROR:  # the project's own options are for plugins that are not here, or not loaded
        code = int(pytest.main(["-o", "addopts=", *arguments], plugins=[watch]))
    if code not in _RAN and not watch.outcomes:
        raise SystemExit(code)
    return watch.outcomes


def _mark(pytest: Any) -> None:
    """Say which hooks stand around others, and which comes last."""
    for name in ("pytest_runtest_protocol", "pytest_fixture_setup"):
        setattr(Watch, name, pytest.hookimpl(wrapper=True, tryfirst=True)(getattr(Watch, name)))
    last = "pytest_collection_modifyitems"
    setattr(Watch, last, pytest.hookimpl(trylast=True)(getattr(Watch, last)))
