"""Facts about calls, in; the letters by which they travel, and the facts read back, out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate_lens.protocol.flags import Flags, parse

FACTS = sorted(name for name, kind in Flags.__annotations__.items() if kind == "bool")
VALUES: dict[str, st.SearchStrategy[Any]] = {
    **{fact: st.booleans() for fact in FACTS},
    "layer": st.integers(1, 1 << 40),
    "argument": st.none() | st.integers(0, 300),
}


def flags_of(facts: dict[str, Any]) -> Flags:
    flags = Flags()
    for name, value in facts.items():
        setattr(flags, name, value)
    return flags


@given(st.fixed_dictionaries({}, optional=VALUES))
def test_what_is_written_is_read_back(facts: dict[str, Any]) -> None:
    flags = flags_of(facts)
    again = parse(flags.letters())
    assert again == flags
    assert again.letters() == flags.letters()
    assert {name: getattr(again, name) for name in VALUES} == {name: getattr(flags, name) for name in VALUES}


LETTERS: dict[str, dict[str, Any]] = {
    "": {},
    "r": {"drew": True},
    "k@3;": {"made_layer": True, "layer": 3},
    "@12;v": {"layer": 12, "shares_memory": True},
    "=0;w": {"argument": 0, "writes_unseen": True},
    "bc": {"own_layer": True, "changed_layer": True},
    "upsi": {"uninitialised": True, "other_object": True, "moved": True, "other_inputs": True},
}


@pytest.mark.parametrize("letters", LETTERS)
def test_the_letters_of_the_wire(letters: str) -> None:
    assert flags_of(LETTERS[letters]).letters() == letters
    assert parse(letters) == flags_of(LETTERS[letters])


@pytest.mark.parametrize("letters", ["x", "=;", "@", "=1", "r?", "3"])
def test_what_is_no_flag_is_refused(letters: str) -> None:
    with pytest.raises(ValueError, match="holds no flags"):
        parse(letters)


def test_every_letter_stands_for_one_fact() -> None:
    alone = [flags_of({name: 1 if name in ("layer", "argument") else True}).letters() for name in VALUES]
    assert len({letters[0] for letters in alone}) == len(Flags.__annotations__) == len(VALUES)
