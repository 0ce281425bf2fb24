"""The base of a program's own optimizers where the target has none: what its documentation promises, and nothing more.

A library's optimizer is code of the library's, and it is run. It stands on ``param_groups``, ``state`` and a few
methods (https://docs.pytorch.org/docs/stable/optim.html#base-class); what they give is no word of the target's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from migrate_lens.worker.heal.standins import Object

NAMES = frozenset(("torch.optim.Optimizer", "torch.optim.optimizer.Optimizer"))
PARAMETERS = "params"


class Optimizer(Object):
    """Parameters in groups, each with its options, and what an algorithm keeps for each parameter.

    Args:
        params: parameters, or dictionaries with ``params`` and options of their own.
        defaults: options of groups that do not give them.
    """

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        super().__init__()
        self.defaults = defaults
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        given = list(params)
        if not given:
            raise ValueError("optimizer got an empty parameter list")
        for group in given if isinstance(given[0], dict) else [{PARAMETERS: given}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Take parameters with options of their own."""
        params = param_group[PARAMETERS]
        several = isinstance(params, Iterable) and not hasattr(params, "dtype")
        param_group[PARAMETERS] = list(params) if several else [params]
        for name, value in self.defaults.items():
            param_group.setdefault(name, value)
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters; zeros, which ``set_to_none=False`` leaves, are handed over later."""
        for group in self.param_groups:
            for parameter in group[PARAMETERS]:
                parameter.grad = None

    def step(self, closure: Any = None) -> Any:
        """What the program's class must do."""
        raise NotImplementedError

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
