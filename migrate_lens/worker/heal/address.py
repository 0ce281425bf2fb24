"""Addresses of memory: the target's and torch's in; a number out that compares as torch's and leads to the target's."""

from __future__ import annotations

from typing import Any, Final

ADDRESSES: Final = frozenset(("data_ptr", "const_data_ptr", "mutable_data_ptr"))  # what answers with an address


class Address(int):
    """An address of the target's memory that stands for one of torch's.

    What the program decides by it (which tensors share memory, whether one begins its storage) goes torch's way; what
    reads the memory reads the target's, since C sees the number itself.
    """

    theirs: int

    def __new__(cls, own: int, theirs: int) -> Address:
        made = super().__new__(cls, own)
        made.theirs = theirs
        return made

    def __eq__(self, other: object) -> bool:
        return bool(self.theirs == _theirs(other))

    def __ne__(self, other: object) -> bool:
        return bool(self.theirs != _theirs(other))

    def __lt__(self, other: Any) -> bool:
        return bool(self.theirs < _theirs(other))

    def __le__(self, other: Any) -> bool:
        return bool(self.theirs <= _theirs(other))

    def __gt__(self, other: Any) -> bool:
        return bool(self.theirs > _theirs(other))

    def __ge__(self, other: Any) -> bool:
        return bool(self.theirs >= _theirs(other))

    def __hash__(self) -> int:
        return hash(self.theirs)

    def __bool__(self) -> bool:
        return self.theirs != 0

    def __add__(self, other: Any) -> Any:
        return Address(int.__add__(self, other), self.theirs + other) if type(other) is int else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, Address):
            return self.theirs - other.theirs
        return Address(int.__sub__(self, other), self.theirs - other) if type(other) is int else NotImplemented

    def __mod__(self, other: Any) -> Any:
        return self.theirs % other


def _theirs(value: Any) -> Any:
    return value.theirs if isinstance(value, Address) else value
