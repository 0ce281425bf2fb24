"""A state folder, a trace or a kept build that is damaged in any way, in; one line that says what to do, out."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from fake_world import FakeBench, FakeWorker, Step, World
from sample_events import call, place, tensor

from migrate_lens import state
from migrate_lens.audit import surface
from migrate_lens.cli.app import main
from migrate_lens.commands import diagnose as pipeline
from migrate_lens.native import reuse
from migrate_lens.native.shelf import Shelf
from migrate_lens.protocol import frames
from migrate_lens.protocol.journal import Journal, is_sound, seal
from migrate_lens.remedies import kept

Capture = pytest.CaptureFixture[str]
WORLD = World([
    Step(call(1, tensor(1.0), api="torch.full"), call(1, tensor(2.0), api="torch.full")),
    Step(call(place(2), tensor(1.0), api="torch.add"), call(place(2), tensor(3.0), api="torch.add")),
])  # fmt: skip
OTHERS: tuple[object, ...] = (None, True, 7, -1.5, "x", "", [], {}, [[]], [{"a": 1}], "\x00", 10**400)


def recorded(file: Path) -> None:
    """A trace with an outcome, sealed as kept ones are."""
    journal = Journal(file)
    journal.write(frames.About("about", {"runtime": "torch"}))
    journal.write(frames.Outcome("outcome", "finished", ("T", "float32", (2,), b"\0" * 8, "cpu", False), True))
    journal.close()
    seal(file)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder after a diagnosis with gaps, a trace, and an issue that was emitted."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setattr(pipeline, "Worker", FakeWorker)
    monkeypatch.setattr(pipeline, "Bench", lambda torch, target, folder: FakeBench(WORLD, folder))
    Path("prog.py").write_text("import torch\nresult = torch.ones(1)\n")
    assert main(["diagnose", "prog.py"]) == 1
    recorded(Path(".migrate-lens/traces/0.trace"))
    recorded(Path("a.trace"))
    record = kept.Emitted("torch.full:value", "torch.full", "value", "mre.py", "value")
    Path("issues/torch.full").mkdir(parents=True)
    Path("issues/torch.full/mre.json").write_text(json.dumps(record.to_json()))
    Path("issues/torch.full/mre.py").write_text("import sys; sys.exit(1)\n")
    shutil.copytree(work, tmp_path / "whole", symlinks=True)
    return work


COMMANDS = [
    ["issue", "nothing:here"],
    ["fix", "nothing:here"],
    ["explain", "torch.full:value"],
    ["check", "."],
    ["recheck", ".", "--paddle-python", "/bin/false"],
    ["trace", "a.trace"],
    ["diff", "a.trace", "a.trace"],
]
FILES = [
    ".migrate-lens/report.json", ".migrate-lens/traces/index.json", ".migrate-lens/traces/0.trace", "a.trace",
    "issues/torch.full/mre.json", "issues/torch.full/mre.py",
]  # fmt: skip


def _cut(path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: chance.randrange(len(data))])


def _flip(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(chance.randrange(1, 6)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(bytes(data))


def _other(path: Path, chance: random.Random) -> None:
    """Another value in some place of a JSON document."""
    if path.suffix != ".json":
        return _flip(path, chance)
    document = json.loads(path.read_text())
    at, key = document, chance.choice(list(document))
    while isinstance(at[key], dict | list) and at[key] and chance.random() < 0.7:
        at = at[key]
        key = chance.choice(list(at)) if isinstance(at, dict) else chance.randrange(len(at))
    if chance.random() < 0.3:
        del at[key]
    else:
        at[key] = chance.choice(OTHERS)
    path.write_text(json.dumps(document))
    return None


def _whole(path: Path, chance: random.Random) -> None:
    path.write_text(json.dumps(chance.choice(OTHERS)))


def _deep(path: Path, chance: random.Random) -> None:
    path.write_text("[" * 100_000)


def _pipe(path: Path, chance: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder(path: Path, chance: random.Random) -> None:
    path.unlink()
    path.mkdir()


def _loop(path: Path, chance: random.Random) -> None:
    path.unlink()
    path.symlink_to(path.name)


def _gone(path: Path, chance: random.Random) -> None:
    path.unlink()


DAMAGE: list[Callable[[Path, random.Random], None]] = [
    _cut, _flip, _other, _other, _other, _whole, _deep, _pipe, _folder, _loop, _gone,
]  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_damage_is_never_a_fault_of_ours(seed: int, folder: Path, tmp_path: Path, capsys: Capture) -> None:
    chance = random.Random(seed)
    for _ in range(30):
        name, damage, argv = chance.choice(FILES), chance.choice(DAMAGE), chance.choice(COMMANDS)
        damage(folder / name, chance)
        capsys.readouterr()
        code = main(argv)
        said = capsys.readouterr().err
        case = f"{damage.__name__} of {name}, then {argv}: {said}"
        assert "Traceback" not in said, case
        assert code in (0, 1, 2), case
        assert code != 2 or (said.startswith("error: ") and len(said.splitlines()) <= 2), case
        for path in (".migrate-lens", "issues"):
            shutil.rmtree(folder / path)
            shutil.copytree(tmp_path / "whole" / path, folder / path, symlinks=True)
        if (folder / "a.trace").is_dir():
            (folder / "a.trace").rmdir()
        else:
            (folder / "a.trace").unlink(missing_ok=True)
        shutil.copy(tmp_path / "whole" / "a.trace", folder / "a.trace")


def test_a_report_of_another_version_is_not_read(folder: Path, capsys: Capture) -> None:
    report = Path(".migrate-lens/report.json")
    report.write_text(json.dumps(json.loads(report.read_text()) | {"schema": 2}))
    assert main(["issue", "torch.full:value"]) == 2
    assert "another version" in capsys.readouterr().err


@pytest.mark.parametrize("damage", [_cut, _flip])
def test_a_kept_trace_that_was_damaged_is_seen(damage: Callable[..., None], tmp_path: Path) -> None:
    for seed in range(50):
        file = tmp_path / f"{seed}.trace"
        recorded(file)
        assert is_sound(file)
        damage(file, random.Random(seed))
        header_hit = file.read_bytes()[12:16] != b"KEPT"
        assert header_hit or not is_sound(file)


@pytest.mark.parametrize("value", [("T", "float32", (3,), b"\0" * 8, "cpu", False), ("T", "nodtype", (2,), b"\0" * 8)])
def test_values_that_do_not_fit_their_shape_are_damage(value: tuple[object, ...], tmp_path: Path) -> None:
    file = tmp_path / "t.trace"
    called: Any = ("call", 1, 1, "0", "torch.ones", [], value, [], [], "", "")
    journal = Journal(file)
    journal.write(frames.Module("module", "m", "m.py", 1, [(1, 0, 1, 5, "c", 0, False, "torch.ones(2)")]))
    journal.write(called)
    journal.close()
    assert main(["trace", str(file)]) == 2
    assert main(["diff", str(file), str(file)]) == 2


# -- caches ------------------------------------------------------------------------------------------------------------


def test_a_kept_build_writes_nothing_outside_of_its_folder(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "builds")
    for number, member in enumerate((tarfile.TarInfo("../evil"), tarfile.TarInfo(str(tmp_path / "evil")), _link())):
        shelf.put(f"build-{number}", partial(_archived, member))
        place = tmp_path / f"place{number}" / "in"
        place.mkdir(parents=True)
        basis = reuse.Basis(str(number), "", {})
        assert reuse.restore(shelf, basis, _Place(place)) is None  # type: ignore[arg-type]
    assert not list(Path("/etc").glob("fine"))
    assert {path.parts[len(tmp_path.parts)] for path in tmp_path.rglob("*")} == {"builds", "place0", "place1", "place2"}
    assert not (tmp_path / "place0" / "evil").exists()


class _Place:
    def __init__(self, root: Path) -> None:
        self.root = root


def _link() -> tarfile.TarInfo:
    member = tarfile.TarInfo("link")
    member.type, member.linkname = tarfile.SYMTYPE, "/etc"
    return member


def _archived(member: tarfile.TarInfo, file: BinaryIO) -> None:
    with tarfile.open(fileobj=file, mode="w") as archive:
        first = tarfile.TarInfo("fine")
        archive.addfile(first, io.BytesIO(b""))
        archive.addfile(member, io.BytesIO(b""))


def test_an_entry_stands_under_its_own_key_in_a_folder_of_ours(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        shelf = Shelf(tmp_path / "builds")
        assert shelf.put("a", lambda file: file.write(b"x")) == ""
    finally:
        os.umask(before)
    assert shelf.folder.stat().st_mode & 0o777 == 0o700
    shutil.copy(shelf.folder / "a.kept", shelf.folder / "b.kept")
    assert shelf.take("b") is None
    os.mkfifo(shelf.folder / "c.kept")
    assert shelf.take("c") is None
    shelf.folder.chmod(0o777)
    assert shelf.take("a") is None


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schema": 1}', "[" * 100_000])
def test_a_damaged_surface_is_made_anew(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"version": "1", "commit": "c"}
    document = {"schema": surface.SCHEMA, "names": {}, "torch": said, "paddle": said, "native": {}}
    monkeypatch.setattr(surface, "identity_of", lambda python, version: "one")
    monkeypatch.setattr(surface, "ask_both", lambda torch, paddle: document)
    surface.installed(Path("t"), Path("p"), tmp_path, lambda line: None)
    (kept,) = tmp_path.iterdir()
    whole = kept.read_bytes()
    kept.write_text(text)
    surface.installed(Path("t"), Path("p"), tmp_path, lambda line: None)
    assert kept.read_bytes() == whole


def test_text_is_read_from_files_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="no regular file"):
        state.text_of(tmp_path / "pipe")
