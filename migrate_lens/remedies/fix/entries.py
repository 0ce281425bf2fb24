"""A diagnosis in; the lines that switch compat on at a port's entries, tried as a user runs them, out.

The diagnosis switches compat on from outside. A port that stands by itself needs two lines of its own: one at the top
of its build script, and one in the program that imports it, with the smallest scope that does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from migrate_lens.compare.outcome import disagreement, ending_said
from migrate_lens.compare.scope import leaks
from migrate_lens.model.report import Category, Decision, Gap, Layer, Probe, ProbeKind, Runtime, Symptom
from migrate_lens.model.report import Stage as Rung
from migrate_lens.programs.synthesis import ProbeRecord
from migrate_lens.remedies import kept
from migrate_lens.remedies.bench_lab import BenchLab
from migrate_lens.remedies.fix.entry import build_switch, scope_line, switched_on
from migrate_lens.remedies.fix.fixing import NoReplacement
from migrate_lens.remedies.fix.patches import patched_alone, relative
from migrate_lens.remedies.fix.stage import Stage
from migrate_lens.remedies.fix.trials import Replacement
from migrate_lens.remedies.publish.verify import CleanRun, run_in, without
from migrate_lens.runs.bench import Run, Setting

# What is wrong with a port that does not stand by itself, as gaps: nothing that a diagnosis sees, which switches compat
# on from outside.
SCOPE = Gap(
    id="entry:scope",
    api="import torch without a switch in the program",
    symptom=Symptom.SCOPE,
    layer=Layer.UNCLASSIFIED,
    category=Category.NONE,
    decision=Decision.WORKAROUND,
    rule="",
    stage=Rung.RUN,
    sites=(),
    expected="answers import torch",
    actual="answers import torch only after enable_compat",
)
BUILD = replace(SCOPE, id="entry:build", api="import torch without a switch in a build script", stage=Rung.BUILD)
ENTRIES = (SCOPE, BUILD)
_LINE = 300  # characters of a reason that are shown
_OUTSIDE = frozenset(("__main__", "__probe__"))
_SCRIPT = (
    "import sys, runpy; sys.path.pop(0); sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
)


class Entry:
    """The entries of a library.

    Args:
        diagnosis: the last diagnosis.
        lab: where probes are run.
        records: what torch did, one for each probe.
        stage: makes copies of the library.
    """

    def __init__(self, diagnosis: kept.Diagnosis, lab: BenchLab, records: Sequence[ProbeRecord], stage: Stage) -> None:
        self._diagnosis = diagnosis
        self._lab = lab
        self._records = records
        self._stage = stage
        self._root = diagnosis.library.root

    def scope_line(self, files: Mapping[str, bytes]) -> Replacement | NoReplacement:
        """The line with the smallest scope, at the top of the first probe that is a file of the library."""
        scripts = [(p, p.path) for p in self._diagnosis.probes if p.kind is ProbeKind.SCRIPT and p.path is not None]
        own = [(probe, path) for probe, path in scripts if self._is_ours(path)]
        if not scripts:
            return NoReplacement("no probe is a program that could switch compat on")
        probe, path = (own or scripts)[0]
        scope = self._smallest(files, probe)
        if isinstance(scope, NoReplacement):
            return scope
        names = ", ".join(f'"{name}"' for name in scope)
        if switched_on(path):
            return NoReplacement(f"it switches compat on already; the smallest scope that serves is {{{names}}}")
        if not own:
            return NoReplacement(f"not the library's own: put paddle.enable_compat(scope={{{names}}}) at its top")
        line = scope_line(path, scope)
        failure = self._stands_alone(files, line, [relative(line.path, self._root)])
        return NoReplacement(failure) if failure else line

    def build_switch(self, files: Mapping[str, bytes]) -> Replacement | NoReplacement:
        """The line at the top of setup.py; tried by asking the script for the library's name, which runs all of it."""
        script = self._root / "setup.py"
        if not self._diagnosis.native or not script.is_file():
            return NoReplacement("there is no setup.py that builds anything")
        if switched_on(script):
            return NoReplacement("setup.py switches compat on already")
        line = build_switch(script)
        failure = self._stands_alone(files, line, ["setup.py", "--name"])
        return NoReplacement(failure) if failure else line

    def _is_ours(self, path: Path) -> bool:
        return path.resolve().is_relative_to(self._root.resolve())

    # -- the smallest scope ------------------------------------------------------------------------------------------

    def _smallest(self, files: Mapping[str, bytes], probe: kept.KeptProbe) -> list[str] | NoReplacement:
        """Packages are taken out one by one, as long as the program does the same and no module gets the other one."""
        setting, again = self._stage.copied(files, probe)
        want = self._lab.watch(setting, Runtime.TARGET_GLOBAL, again)
        scope = sorted(set(self._diagnosis.report.scope) | self._users())
        if not self._serves(setting, again, scope, want):
            return NoReplacement(f"not even {', '.join(scope)} together do as global compat does")
        for name in list(scope):
            fewer = [other for other in scope if other != name]
            if fewer and self._serves(setting, again, fewer, want):
                scope = fewer
        return scope

    def _users(self) -> set[str]:
        """Packages that were seen to import torch; a program cannot be in the scope that it opens itself."""
        seen = {module.partition(".")[0] for record in self._records for module in record.trace.users}
        return seen - _OUTSIDE

    def _serves(self, setting: Setting, probe: Probe, scope: Sequence[str], want: Run) -> bool:
        setting = replace(setting, scope=tuple(scope))
        run = self._lab.watch(setting, Runtime.TARGET, probe)
        strays = leaks(run.trace, setting.scope, Rung.RUN, setting.library)
        return not strays and _same(want, run)

    # -- as a user runs it -------------------------------------------------------------------------------------------

    def _stands_alone(self, files: Mapping[str, bytes], line: Replacement, arguments: Sequence[str]) -> str:
        """Run the changed program on both sides with nothing of ours; empty, or what fails.

        Where other gaps stop the program under Paddle, it must get as far as to fail at something else.
        """
        name = relative(line.path, self._root)
        data = files.get(name, line.path.read_bytes())
        changed = {**files, name: patched_alone(data, line)}
        torch = self._clean(changed, Runtime.TORCH, arguments)
        if not torch.passed:
            return f"{name} with it fails under torch: {torch.failure}"
        paddle = self._clean(changed, Runtime.TARGET, arguments)
        if paddle.passed:
            return ""
        if paddle.missing.partition(".")[0] == "torch":
            return f"{name} imports torch itself, and a scope cannot hold the program that opens it"
        unswitched = self._clean(files, Runtime.TARGET, arguments)
        if paddle.missing == "paddle" or paddle.output == unswitched.output:
            return f"{name} with it fails under paddle: {paddle.output.strip().splitlines()[-1]}"[:_LINE]
        return ""

    def _clean(self, files: Mapping[str, bytes], runtime: Runtime, arguments: Sequence[str]) -> CleanRun:
        """A process of its own; in Paddle's torch is hidden, as in the environment that Paddle's guide asks for."""
        code = _SCRIPT if runtime is Runtime.TORCH else f"{without('torch')}\n{_SCRIPT}"
        python, folder = str(self._diagnosis.python(runtime)), self._stage.copy(files)
        built = () if arguments[0] == "setup.py" else self._stage.targets(runtime, files)
        paths = [*built, folder / self._import_root(), (folder / arguments[0]).parent]
        return run_in(folder, [python, "-c", code, *arguments], self._diagnosis.index.timeout, paths)

    def _import_root(self) -> Path:
        """The folder from which the library's packages are imported, as it is called in a copy."""
        folder = self._diagnosis.library.import_root
        return folder.relative_to(self._root) if folder.is_relative_to(self._root) else folder


def _same(want: Run, got: Run) -> bool:
    """Whether two runs end in the same way."""
    one, other = want.trace.ending, got.trace.ending
    if disagreement(one, other) is not None:
        return False
    return one.how != "raised" or ending_said(one) == ending_said(other)
