"""What is known of a call beyond its result: facts with names in, the letters by which they travel out, and back.

===========  ==========================================================================================
``u``        the result is uninitialised memory
``p``        the proxy handed out another object than the target's own package for torch's names has
``k``        a layer was made
``@N;``      the layer that was made or called
``=N;``      the result is tensor argument N
``v``        the result shares memory with an argument
``r``        the call drew random numbers
``b``        the result is the layer whose method was called
``c``        which changed that layer's tensors
``w``        the call may write without counting it
``s``        a tensor that is known was written by no recorded call
``i``        the call got other inputs than torch's
``n``        another call of the framework's was running
``h``        what was stored in a layer is hidden by a name of its base class
===========  ==========================================================================================
"""

from __future__ import annotations

import re

_LETTERS = {
    "uninitialised": "u",
    "other_object": "p",
    "made_layer": "k",
    "layer": "@",
    "argument": "=",
    "shares_memory": "v",
    "drew": "r",
    "own_layer": "b",
    "changed_layer": "c",
    "writes_unseen": "w",
    "moved": "s",
    "other_inputs": "i",
    "inner": "n",
    "hidden": "h",
}
_NAMES = {letter: name for name, letter in _LETTERS.items()}
_ONE = re.compile(r"(?P<letter>[@=])(?P<number>\d+);|(?P<fact>[a-z])")


class Flags:
    """What is known of a call beyond its result.

    What does not hold is the class's own value, and nothing is kept of it: most calls have no flag at all, and each
    call that is observed makes one of these.

    Attributes:
        uninitialised: the result is uninitialised memory, so that shape and dtype are all that it promises.
        other_object: the proxy handed out another object than the target's own package for torch's names has.
        made_layer: a layer was made.
        layer: the number of the layer that was made or called, from 1; 0 where it was none.
        argument: the how-many-th tensor argument the result is, from 0; None where it is none.
        shares_memory: the result lies in the memory of an argument.
        drew: random numbers were drawn.
        own_layer: the result is the layer whose method was called.
        changed_layer: and its tensors are others than before.
        writes_unseen: an argument may be written without that being counted.
        moved: a tensor that is known was written by no recorded call.
        other_inputs: the call got other inputs than torch's.
        inner: another call of the framework's was running, which ran the program's code.
        hidden: what was stored in a layer is not found there, since the layer's base class has that name too.
    """

    uninitialised: bool = False
    other_object: bool = False
    made_layer: bool = False
    layer: int = 0
    argument: int | None = None
    shares_memory: bool = False
    drew: bool = False
    own_layer: bool = False
    changed_layer: bool = False
    writes_unseen: bool = False
    moved: bool = False
    other_inputs: bool = False
    inner: bool = False
    hidden: bool = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Flags) and self.letters() == other.letters()

    def __hash__(self) -> int:
        return hash(self.letters())

    def __repr__(self) -> str:
        return f"Flags({self.letters()!r})"

    def letters(self) -> str:
        """As they travel."""
        facts = vars(self)
        if not facts:
            return ""
        if len(facts) > 1:
            facts = {name: facts[name] for name in _LETTERS if name in facts}  # in the order of the table
        return "".join([_written(_LETTERS[name], fact) for name, fact in facts.items()])


def _written(letter: str, fact: bool | int | None) -> str:
    if fact is None or fact is False:
        return ""
    return letter if fact is True else f"{letter}{fact};"


def parse(letters: str) -> Flags:
    """Read them back.

    Raises:
        ValueError: the text is none that ``Flags.letters`` writes.
    """
    flags = Flags()
    end = 0
    while end < len(letters):
        flag = _ONE.match(letters, end)
        name = _NAMES.get(flag["letter"] or flag["fact"]) if flag else None
        if flag is None or name is None:
            raise ValueError(f"{letters!r} holds no flags from {letters[end:]!r} on")
        setattr(flags, name, int(flag["number"]) if flag["letter"] else True)
        end = flag.end()
    return flags
