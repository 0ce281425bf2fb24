"""Frames, in; a trace file that a crash may cut off anywhere, and what is read back of it, out."""

from __future__ import annotations

import itertools
import marshal
import os
import signal
import struct
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate_lens.protocol.journal import HEADER, Journal, give_back, read

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.complex_numbers(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"])) | st.binary()
)  # fmt: skip
VALUES = st.recursive(
    SCALARS, lambda v: st.lists(v) | st.tuples(v, v) | st.dictionaries(st.text("ab"), v), max_leaves=12
)
FRAMES = st.lists(st.tuples(st.text("abc", max_size=3), VALUES), max_size=8)


def written(path: Path, frames: list[Any], node: int = 0) -> bytes:
    journal = Journal(path)
    for frame in frames:
        journal.write(frame)
    journal.enter(node)
    journal.close()
    return path.read_bytes()


@given(FRAMES)
def test_what_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, frames: list[Any]) -> None:
    path = tmp_path_factory.mktemp("wire") / "t"
    written(path, frames, node=7)
    node, found = read(path)
    assert (node, list(found)) == (7, frames)


@given(FRAMES, st.floats(0, 1))
def test_a_file_that_is_cut_off_yields_whole_frames_only(
    tmp_path_factory: pytest.TempPathFactory, frames: list[Any], part: float
) -> None:
    path = tmp_path_factory.mktemp("wire") / "t"
    data = written(path, frames)
    path.write_bytes(data[: int(len(data) * part)])
    found = list(read(path)[1])
    assert found == frames[: len(found)]
    whole = HEADER
    for frame in found:
        whole += 4 + len(marshal.dumps(frame, 4))
    missing = len(data) * part - whole
    if len(found) < len(frames):
        assert missing < 4 + len(marshal.dumps(frames[len(found)], 4))


@pytest.mark.parametrize("size", [0, 1, HEADER - 1, HEADER, HEADER + 3])
def test_a_file_without_a_frame(tmp_path: Path, size: int) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"\0" * size)
    assert (read(path)[0], list(read(path)[1])) == (0, [])


def test_a_process_that_is_killed_leaves_all_that_it_wrote_and_the_node_in_flight(tmp_path: Path) -> None:
    path = tmp_path / "t"
    child = os.fork()
    if child == 0:
        journal = Journal(path)
        for number in range(1000):
            journal.write(("call", number, b"x" * 2000))
        journal.enter(42)
        os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    node, frames = read(path)
    assert node == 42
    assert [frame[1] for frame in frames] == list(range(1000))


def test_a_frame_is_in_the_file_before_the_next_step(tmp_path: Path) -> None:
    path = tmp_path / "t"
    journal = Journal(path)
    journal.write(("first",))
    assert list(read(path)[1]) == [("first",)]
    journal.write(("second", b"y" * (3 << 20)))
    assert [frame[0] for frame in read(path)[1]] == ["first", "second"]
    assert journal.written == 2
    assert journal.size == HEADER + sum(
        4 + len(marshal.dumps(f, 4)) for f in (("first",), ("second", b"y" * (3 << 20)))
    )
    journal.close()
    journal.close()


class Worth(int):
    """A subclass of int, which does not travel by itself."""


class Symbolic:
    """A value that is worth nothing known."""

    def __int__(self) -> int:
        raise RuntimeError("not now")


def test_what_does_not_travel_goes_as_what_it_is_worth(tmp_path: Path) -> None:
    path = tmp_path / "t"
    written(path, [("a", Worth(3), [Worth(4)], {"k": (Worth(5),)}), ("b", Symbolic())])
    first, second = read(path)[1]
    assert first == ("a", 3, [4], {"k": (5,)})
    assert second[0] == "b"
    assert "Symbolic" in second[1]


def test_a_new_journal_forgets_what_was_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t"
    written(path, [("old",)] * 100)
    Journal(path).close()
    assert list(read(path)[1]) == []


def test_a_planted_length_that_is_too_long_ends_the_reading(tmp_path: Path) -> None:
    path = tmp_path / "t"
    data = bytearray(written(path, [("a",), ("b",)]))
    struct.pack_into("<I", data, HEADER, 1 << 30)
    path.write_bytes(bytes(data))
    assert list(read(path)[1]) == []


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="missing"):
        read(tmp_path / "missing")


LARGE = np.arange(3 << 16, dtype="float32").reshape(256, -1)


def test_large_data_is_written_once_and_read_with_the_frame_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "t"
    journal = Journal(path)
    small, turned = np.arange(3, dtype="int64"), LARGE.T[:, ::2]
    frames = [("call", [("T", journal.put(a))], {"k": journal.put(LARGE)}) for a in (small, LARGE, turned)]
    for frame in frames:
        journal.write(frame)
    journal.write(("last",))
    journal.close()
    *found, last = read(path)[1]
    assert found == [("call", [("T", a.tobytes())], {"k": LARGE.tobytes()}) for a in (small, LARGE, turned)]
    assert last == ("last",)
    assert path.stat().st_size < 5 * LARGE.nbytes  # the three of k, one whole and one half: nothing twice


def test_data_of_numbers_that_are_not_floats(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "t")
    values = [np.ones(1 << 17, dtype=kind) for kind in ("bool", "int8", "float16", "complex128", "uint64")]
    journal.write(("all", [journal.put(v) for v in values]))
    journal.close()
    assert list(read(tmp_path / "t")[1]) == [("all", [v.tobytes() for v in values])]


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_large_data_that_is_cut_off_ends_the_reading(tmp_path: Path, part: float) -> None:
    path = tmp_path / "t"
    journal = Journal(path)
    journal.write(("before",))
    first = journal.size
    journal.write(("after", journal.put(LARGE)))
    journal.close()
    data = path.read_bytes()
    path.write_bytes(data[: first + int((len(data) - first) * part)])
    assert list(read(path)[1]) == [("before",)]
    path.write_bytes(data[: first + 6])
    assert list(read(path)[1]) == [("before",)]


def test_threads_that_write_large_frames_at_once_lose_none(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "t")

    def work(name: int) -> None:
        for number in range(100):
            journal.write((name, number, bytes([name]) * 200_000))
            journal.write((name, number, journal.put(np.full(100_000, name, "uint8"))))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()
    found = list(read(tmp_path / "t")[1])
    assert len(found) == journal.written == 800
    assert all(set(data) == {name} for name, _, data in found)
    for name in range(4):
        assert [number for who, number, _ in found if who == name] == [n for n in range(100) for _ in range(2)]


def test_a_signal_that_comes_while_a_frame_is_written_may_write_too(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "t")
    numbers, came = itertools.count(), list[int]()

    def handler(*_: object) -> None:  # on a busy machine the next signal may come within it
        number = next(numbers)
        came.append(number)
        journal.write(("signal", number))

    old = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0005)
    try:
        while len(came) < 40:
            journal.write(("program", bytes(100_000)))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    journal.close()
    found = [frame[1] for frame in read(tmp_path / "t")[1] if frame[0] == "signal"]
    assert sorted(found) == sorted(came)


def test_a_journal_that_is_muted_keeps_no_data(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "t")
    journal.mute()
    journal.write(("call", journal.put(LARGE)))
    journal.close()
    assert list(read(tmp_path / "t")[1]) == []


def test_data_that_was_written_before_is_mentioned_and_pages_that_were_given_back_come_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "t")
    values = np.arange(50_000, dtype="f4")
    place = journal.put(values)
    journal.write(("first", place))
    journal.write(("between", "no data"))
    journal.mention()
    journal.write(("again", place))
    journal.close()
    frames = list(read(tmp_path / "t")[1])
    give_back()
    assert [frame[0] for frame in frames] == ["first", "between", "again"]
    assert frames[1][1] == "no data"
    assert bytes(frames[0][1]) == bytes(frames[2][1]) == values.tobytes()
