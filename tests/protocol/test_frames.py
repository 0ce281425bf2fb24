"""Frames, in; what is read of a trace file by the names of their places, out."""

from __future__ import annotations

import typing
from pathlib import Path

import pytest

from migrate_lens.protocol import frames
from migrate_lens.protocol.journal import Journal, read

KINDS = [kind for kind in typing.get_args(frames.Frame) if kind is not tuple]


def example(kind: type) -> frames.Frame:
    """A frame of a kind with a place's number in each place."""
    tag = typing.get_args(typing.get_type_hints(kind)["kind"])[0]
    made: frames.Frame = kind(tag, *range(len(kind.__annotations__) - 1))
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_a_frame_is_read_back_as_its_kind(kind: type, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "t")
    journal.write(example(kind))
    journal.close()
    (frame,) = read(tmp_path / "t")[1]
    assert type(frame) is tuple
    again = frames.typed(frame)
    assert type(again) is kind
    assert again == example(kind)


def test_each_kind_has_a_tag_of_its_own() -> None:
    assert len({example(kind).kind for kind in KINDS}) == len(KINDS) == len(frames._TYPES)


@pytest.mark.parametrize("frame", [("?",), ("call", 1), ("handed", 1, 2, "", 3)])
def test_what_is_no_frame_is_refused(frame: tuple[object, ...]) -> None:
    with pytest.raises((KeyError, TypeError)):
        frames.typed(frame)


def test_the_flags_of_a_call_are_read_with_it() -> None:
    call = frames.Called("call", 1, 1, "", "torch.rand", [], None, [], [], "r@2;", "")
    assert call.facts.drew
    assert call.facts.layer == 2
