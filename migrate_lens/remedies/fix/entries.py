"""A diagnosis in; the lines that switch compat on at a port's entries, tried as a user runs them, out.

The diagnosis switches compat on from outside. A port that stands by itself needs two lines of its own: one at the top
of its build script, and one in the program that imports it, with the smallest scope that does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from migrate_lens.compare.outcome import disagreement, ending_said
from migrate_lens.compare.scope import leaks
from migrate_lens.model.report import Probe, Runtime
from migrate_lens.model.report import Stage as Rung
from migrate_lens.programs.synthesis import Recording
from migrate_lens.remedies import kept
from migrate_lens.remedies.bench_lab import BenchLab
from migrate_lens.remedies.fix.entry import build_switch, scope_line, switched_on
from migrate_lens.remedies.fix.fixing import NoReplacement, Replacement
from migrate_lens.remedies.fix.patches import patched_alone, relative
from migrate_lens.remedies.fix.stage import Stage
from migrate_lens.remedies.publish.verify import CleanRun, run_in, without
from migrate_lens.runs.bench import Run, Setting

SCOPE: Mapping[str, Any] = {
    "id": "entry:scope", "api": "import torch without a switch in the program", "symptom": "scope", "layer": "",
    "actual": "answers import torch only after enable_compat", "decision": "workaround", "sites": (), "evidence": (),
}  # fmt: skip
BUILD: Mapping[str, Any] = {
    **SCOPE, "id": "entry:build", "api": "import torch without a switch in a build script",
}  # fmt: skip
_OUTSIDE = frozenset(("__main__", "__probe__"))
_SCRIPT = (
    "import sys, runpy; sys.path.pop(0); sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
)


class Entry:
    """The entries of a library.

    Args:
        diagnosis: the last diagnosis.
        lab: where probes are run.
        heard: torch's traces, one for each probe.
        stage: makes copies of the library.
    """

    def __init__(self, diagnosis: kept.Diagnosis, lab: BenchLab, heard: Sequence[Recording], stage: Stage) -> None:
        self._diagnosis = diagnosis
        self._lab = lab
        self._heard = heard
        self._stage = stage
        self._root = Path(diagnosis.report["library"]["root"])

    def scope_line(self, files: Mapping[str, bytes]) -> Replacement | NoReplacement:
        """The line with the smallest scope, at the top of the first probe that is a file of the library."""
        scripts = [p for p in self._diagnosis.index["probes"] if p["kind"] == "script"]
        probes = [p for p in scripts if self._is_ours(p["path"])] or scripts
        if not probes:
            return NoReplacement("no probe is a program that could switch compat on")
        scope = self._smallest(files, probes[0])
        if isinstance(scope, NoReplacement):
            return scope
        names = ", ".join(f'"{name}"' for name in scope)
        if switched_on(Path(probes[0]["path"])):
            return NoReplacement(f"it switches compat on already; the smallest scope that serves is {{{names}}}")
        if not self._is_ours(probes[0]["path"]):
            return NoReplacement(f"not the library's own: put paddle.enable_compat(scope={{{names}}}) at its top")
        one = scope_line(Path(probes[0]["path"]), scope)
        said = self._stands_alone(files, one, [relative(one.path, self._root)])
        return NoReplacement(said) if said else one

    def build_switch(self, files: Mapping[str, bytes]) -> Replacement | NoReplacement:
        """The line at the top of setup.py; tried by asking the script for the library's name, which runs all of it."""
        script = self._root / "setup.py"
        if not self._diagnosis.native or not script.is_file():
            return NoReplacement("there is no setup.py that builds anything")
        if switched_on(script):
            return NoReplacement("setup.py switches compat on already")
        one = build_switch(script)
        said = self._stands_alone(files, one, ["setup.py", "--name"])
        return NoReplacement(said) if said else one

    def _is_ours(self, path: str) -> bool:
        return bool(path) and Path(path).resolve().is_relative_to(self._root.resolve())

    # -- the smallest scope ------------------------------------------------------------------------------------------

    def _smallest(self, files: Mapping[str, bytes], probe: Mapping[str, Any]) -> list[str] | NoReplacement:
        """Packages are taken out one by one, as long as the program does the same and no module gets the other one."""
        setting, again = self._stage.copied(files, probe)
        want = self._lab.watch(setting, Runtime.TARGET_GLOBAL, again)
        scope = sorted(set(self._diagnosis.report["scope"]) | self._users())
        if not self._serves(setting, again, scope, want):
            return NoReplacement(f"not even {', '.join(scope)} together do as global compat does")
        for name in list(scope):
            fewer = [other for other in scope if other != name]
            if fewer and self._serves(setting, again, fewer, want):
                scope = fewer
        return scope

    def _users(self) -> set[str]:
        """Packages that were seen to import torch; a program cannot be in the scope that it opens itself."""
        seen = {module.partition(".")[0] for recorded in self._heard for module in recorded.trace.users}
        return seen - _OUTSIDE

    def _serves(self, setting: Setting, probe: Probe, scope: Sequence[str], want: Run) -> bool:
        setting = replace(setting, scope=tuple(scope))
        run = self._lab.watch(setting, Runtime.TARGET, probe)
        strays = leaks(run.trace, setting.scope, Rung.RUN, setting.library)
        return not strays and _same(want, run)

    # -- as a user runs it -------------------------------------------------------------------------------------------

    def _stands_alone(self, files: Mapping[str, bytes], one: Replacement, arguments: Sequence[str]) -> str:
        """Run the changed program on both sides with nothing of ours; empty, or what fails.

        Where other gaps stop the program under Paddle, it must get as far as to fail at something else.
        """
        name = relative(one.path, self._root)
        data = files.get(name, one.path.read_bytes())
        changed = {**files, name: patched_alone(data, one)}
        ours = self._clean(changed, "torch", arguments)
        if not ours.passed:
            return f"{name} with it fails under torch: {ours.failure}"
        theirs = self._clean(changed, "paddle", arguments)
        if theirs.passed:
            return ""
        if theirs.missing.partition(".")[0] == "torch":
            return f"{name} imports torch itself, and a scope cannot hold the program that opens it"
        unswitched = self._clean(files, "paddle", arguments)
        if theirs.missing == "paddle" or theirs.output == unswitched.output:
            return f"{name} with it fails under paddle: {theirs.output.strip().splitlines()[-1]}"[:300]
        return ""

    def _clean(self, files: Mapping[str, bytes], family: str, arguments: Sequence[str]) -> CleanRun:
        """A process of its own; in Paddle's torch is hidden, as in the environment that Paddle's guide asks for."""
        code = _SCRIPT if family == "torch" else f"{without('torch')}\n{_SCRIPT}"
        python, folder = str(self._diagnosis.python(family)), self._stage.copy(files)
        runtime = Runtime.TORCH if family == "torch" else Runtime.TARGET
        paths = [] if arguments[0] == "setup.py" else [*self._stage.targets(runtime, files)]
        paths += [folder / (self._diagnosis.report["library"]["import_root"] or "."), (folder / arguments[0]).parent]
        return run_in(folder, [python, "-c", code, *arguments], self._diagnosis.index["timeout"], paths)


def _same(want: Run, got: Run) -> bool:
    """Whether two runs end in the same way."""
    one, other = want.trace.ending, got.trace.ending
    return disagreement(one, other) is None and (one.how != "raised" or ending_said(one) == ending_said(other))
