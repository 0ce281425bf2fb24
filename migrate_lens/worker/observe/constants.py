"""Objects of ours in the program's code: names in; expressions that stand for objects, and code that holds them, out.

Held by the code itself they are no names of the program's: it neither sees nor shadows nor changes them.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from types import CodeType
from typing import Any

_MARK = "\0migrate-lens "
_NAME = "\0migrate-lens: "


class Constant(ast.IfExp):
    """Stands for an object of ours until the code is made; the compiler makes one constant of it.

    A constant that is called as it stands would be warned of.
    """


def constant(name: str) -> Constant:
    """The expression that stands for an object of ours."""
    return Constant(ast.Constant(True), ast.Constant(_MARK + name), ast.Constant(None))


def name(attribute: str) -> ast.Constant:
    """The name of an attribute, or a dotted chain of them, that one of ours looks up: the code keeps it as a name."""
    return ast.Constant(_NAME + attribute)


def fill(code: CodeType, objects: Mapping[str, Any]) -> CodeType:
    """Put the objects into code in which expressions stand for them; its names are those that it had."""
    consts: list[Any] = []
    names = dict.fromkeys(code.co_names)
    for const in code.co_consts:
        if isinstance(const, CodeType):
            consts.append(fill(const, objects))
        elif type(const) is str and const.startswith(_MARK):
            consts.append(objects[const.removeprefix(_MARK)])
        elif type(const) is str and const.startswith(_NAME):
            consts.append(sys.intern(const.removeprefix(_NAME)))
            names.update(dict.fromkeys(consts[-1].split(".")))
        else:
            consts.append(const)
    return code.replace(co_consts=tuple(consts), co_names=tuple(names))
