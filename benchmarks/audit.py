"""Measures the audit: a folder of wheels and sdists in; speed, soundness and, if asked, a race with a converter, out.

pip download --no-deps --no-build-isolation -d ARCHIVES -r benchmarks/requirements.txt
python benchmarks/audit.py speed ARCHIVES        timm and transformers, cold and again
python benchmarks/audit.py sound ARCHIVES        every missing verdict on all of them, asked a second way
python benchmarks/audit.py race ARCHIVES         PaConvert on the same files, in the same run (needs paconvert)
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

RUN = """
import sys
from pathlib import Path
from migrate_lens.commands.audit import AuditOptions, run
say = lambda line: print(line, flush=True)
run(AuditOptions((sys.argv[1],), format="json", output=Path(sys.argv[2])), say)
"""

# The second way: statements as a program writes them, in a process where only one framework answers.
ASK = """
import importlib, json, sys
side, names = sys.argv[1], json.load(open(sys.argv[2]))
if side == "paddle":
    import paddle
    class Hide:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] == "torch":
                raise ModuleNotFoundError(name)
    sys.meta_path.insert(0, Hide())
    paddle.enable_compat()
import torch
HELD = {"torch.Tensor": lambda: torch.ones([2, 2]), "torch.nn.Module": lambda: torch.nn.Linear(1, 1),
        "torch.dtype": lambda: torch.ones([1]).dtype, "torch.device": lambda: torch.ones([1]).device,
        "torch.Size": lambda: torch.ones([1]).shape}
def has(name):
    owner, _, last = name.rpartition(".")
    if owner in HELD:
        return hasattr(HELD[owner](), last) or name == "torch.Tensor.grad_fn"
    for text in (f"import torch; {name}", f"from {owner} import {last}", f"import {name}", f"import {owner}; {name}"):
        try:
            exec(text, {})
            return True
        except Exception:
            continue
    return False
def named(name):
    parts, size = name.split("."), 1
    value = torch
    for part in parts[1:]:
        size += 1
        try:
            value = getattr(value, part)
        except AttributeError:
            value = importlib.import_module(".".join(parts[:size]))
    return value
def takes(name, keyword):
    owner, _, last = name.rpartition(".")
    called = getattr(HELD[owner](), last) if owner in HELD else named(name)
    try:
        called(**{keyword: None})
    except TypeError as error:
        return "unexpected keyword" not in str(error) or keyword not in str(error)
    except Exception:
        pass
    return True
json.dump({name: takes(*name.split("=")) if "=" in name else has(name) for name in names}, open(sys.argv[3], "w"))
"""


def measured(arguments: list[str], cache: Path) -> tuple[float, float, float]:
    """CPU-seconds, seconds to the first line, and peak MB of one run in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    env = os.environ | {"MIGRATE_LENS_CACHE": str(cache)}
    tail = "\nimport resource\nprint('peak', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)\n"
    process = subprocess.Popen(
        [sys.executable, "-c", RUN + tail, *arguments], stdout=subprocess.PIPE, text=True, env=env
    )
    assert process.stdout is not None
    process.stdout.readline()
    first = time.perf_counter() - start
    peak = float(process.stdout.read().split()[-1])
    if process.wait():
        raise SystemExit("the audit failed")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, first, peak


def unpacked(archives: Path, name: str, folder: Path) -> Path:
    """The sources of one wheel."""
    wheel = next(archives.glob(f"{name}-*.whl"))
    root = folder / name
    with zipfile.ZipFile(wheel) as members:
        members.extractall(root)
    return root


def lines_of(root: Path) -> int:
    """Lines of Python below a folder."""
    return sum(path.read_bytes().count(b"\n") for path in root.rglob("*.py"))


def warm_surface(cache: Path, folder: Path) -> None:
    """Ask the frameworks before anything is timed: that is done once per version, not once per library."""
    (folder / "empty.py").write_text("import torch\n")
    measured([str(folder / "empty.py"), str(folder / "empty.json")], cache)


def speed(archives: Path) -> int:
    """timm and transformers, cold and unchanged again, against the budget."""
    failed = 0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        warm_surface(folder / "cache", folder)
        for name, most, memory in (("timm", 4.0, 400.0), ("transformers", 30.0, 400.0)):
            root = unpacked(archives, name, folder)
            cold = measured([str(root), str(folder / "o.json")], folder / "cache")
            again = measured([str(root), str(folder / "o.json")], folder / "cache")
            good = cold[0] <= most and again[0] <= most / 10 and cold[2] <= memory and max(cold[1], again[1]) <= 1
            failed += not good
            print(
                f"{name}: {lines_of(root):,} lines; cold {cold[0]:.2f} CPU-s, again {again[0]:.2f} CPU-s, "
                f"first line {cold[1]:.2f} s, peak {cold[2]:.0f} MB: {'within' if good else 'OVER'} budget"
            )
    return failed


def audited(archive: Path, folder: Path) -> dict[str, object]:
    """The JSON report of one archive."""
    out = folder / f"{archive.name}.json"
    subprocess.run([sys.executable, "-c", RUN, str(archive), str(out)], check=True, stdout=subprocess.DEVNULL)
    document: dict[str, object] = json.loads(out.read_bytes())
    return document


def sound(archives: Path) -> int:
    """Ask for every missing name a second way, in fresh processes; a name that Paddle has, or torch lacks, is wrong."""
    names: dict[str, set[str]] = {}
    native: set[str] = set()
    keywords: set[str] = set()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for archive in sorted(archives.iterdir()):
            if archive.suffix not in (".whl", ".gz"):
                continue
            gaps: list[dict[str, str]] = audited(archive, folder)["gaps"]  # type: ignore[assignment]
            for gap in gaps:
                if gap["rule"] == "asked_name":
                    names.setdefault(gap["api"], set()).add(archive.name)
                elif gap["rule"] == "asked_keyword":
                    keywords.add(f"{gap['api']}={gap['id'].rpartition(':')[2]}")
                elif gap["rule"] == "asked_native" and gap["symptom"] == "missing_api":
                    native.add(gap["api"])
            print(f"{archive.name}: {len(gaps)} gaps")
        (folder / "names.json").write_text(json.dumps(sorted({*names, *keywords})))
        answers = {}
        for side in ("torch", "paddle"):
            out = folder / f"{side}.json"
            subprocess.run(
                [sys.executable, "-c", ASK, side, str(folder / "names.json"), str(out)], check=True, capture_output=True
            )
            answers[side] = json.loads(out.read_bytes())
        wrong = [name for name in names if answers["paddle"][name] or not answers["torch"][name]]
        wrong_keywords = [name for name in keywords if answers["paddle"][name] or not answers["torch"][name]]
        wrong_native = compiled(native, folder)
    print(f"{len(names)} Python names called missing, {len(wrong)} wrong: {wrong}")
    print(f"{len(keywords)} keywords called missing, {len(wrong_keywords)} wrong: {wrong_keywords}")
    print(f"{len(native)} C++ names called missing, {len(wrong_native)} that a compiler finds: {wrong_native}")
    return len(wrong) + len(wrong_keywords) + len(wrong_native)


def compiled(native: set[str], folder: Path) -> list[str]:
    """Names that the compiler finds in Paddle's compat headers after all; methods are members of at::Tensor."""
    rows = sorted(name for name in native if "::" in name and "cuda" not in name)
    where = "import paddle; print(paddle.sysconfig.get_include())"
    said = subprocess.check_output([sys.executable, "-c", where], text=True, stderr=subprocess.DEVNULL)
    include = Path(said.split()[-1])
    compat = include / "paddle/phi/api/include/compat"
    text = ["#include <ATen/ATen.h>", "#include <torch/all.h>", "#include <torch/library.h>"]
    for index, name in enumerate(rows):
        owner, _, last = name.rpartition("::")
        member = {"Tensor": "at::Tensor", "Library": "torch::Library"}.get(owner)
        text.append(f"auto v{index} = &{member}::{last};" if member else f"using {name};")
    unit = folder / "names.cc"
    unit.write_text("\n".join(text) + "\n")
    flags = ["-std=c++17", "-fsyntax-only", "-w", "-fmax-errors=0", f"-I{include}", f"-I{include}/third_party"]
    flags += [f"-I{compat}", f"-I{compat}/torch/csrc/api/include"]
    done = subprocess.run(["g++", *flags, str(unit)], capture_output=True, text=True, env=os.environ | {"LC_ALL": "C"})
    absent = "is not a member of|has not been declared|not declared|does not name"
    lines = {int(m[1]) for m in re.finditer(rf"names\.cc:(\d+):\d+: error: .*(?:{absent})", done.stderr)}
    return [name for index, name in enumerate(rows) if index + 4 not in lines]


def race(archives: Path) -> int:
    """PaConvert and the audit on the same files of timm, one after the other."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        root = unpacked(archives, "timm", folder)
        warm_surface(folder / "cache", folder)
        ours = measured([str(root), str(folder / "o.json")], folder / "cache")[0]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [
            "paconvert",
            "--in_dir",
            str(root / "timm"),
            "--out_dir",
            str(folder / "out"),
            "--exclude_packages",
            "",
        ]
        subprocess.run(command, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        theirs = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        written = len(list((folder / "out").rglob("*.py")))
    print(f"timm: audit {ours:.2f} CPU-s, PaConvert {theirs:.1f} CPU-s ({written} files written): {theirs / ours:.0f}x")
    return int(theirs / ours < 20)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("speed", "sound", "race"):
        raise SystemExit(__doc__)
    sys.exit({"speed": speed, "sound": sound, "race": race}[sys.argv[1]](Path(sys.argv[2])) > 0)
