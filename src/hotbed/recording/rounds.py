"""Rounds of optimizer steps: one round is over when every optimizer that steps regularly has stepped once more."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

PATIENCE = 10
"""An optimizer that has not stepped when another has stepped this often is not waited for."""


@dataclass
class _Stepper:
    """One optimizer, or several that share parameters: a wrapper and what it wraps."""

    optimizer: weakref.ref[Any]
    steps: int = 0


class Rounds:
    """Counts the steps of each optimizer."""

    def __init__(self) -> None:
        self._steppers: list[_Stepper] = []
        self._owners: dict[int, int] = {}
        """id of a parameter → index of its stepper"""
        self._running: list[tuple[int, int]] = []
        """(id of the optimizer, index of its stepper), outermost first"""
        self.log: list[int] = []
        """indices of the steppers in the order of their steps"""

    def expect(self, optimizers: Iterable[Any]) -> None:
        """Makes optimizers known that may not have stepped yet."""
        for optimizer in optimizers:
            self._index(optimizer)

    def begins(self, optimizer: Any) -> None:
        """`optimizer` is about to step."""
        running = [optimizer_id for optimizer_id, _ in self._running]
        if id(optimizer) in running:
            # Its last step raised.
            del self._running[running.index(id(optimizer)) :]
        self._running.append((id(optimizer), self._index(optimizer)))

    def ends(self, optimizer: Any) -> bool:
        """`optimizer` has stepped; False if that was a part of a wrapper's step, which is still going on."""
        while self._running and self._running.pop()[0] != id(optimizer):
            pass
        index = self._index(optimizer)
        if index in [outer for _, outer in self._running]:
            return False
        self.again(index)
        return True

    def again(self, index: int) -> None:
        """The optimizers of the stepper `index` have stepped once more without saying so."""
        self._steppers[index].steps += 1
        self.log.append(index)

    @property
    def complete(self) -> int:
        """Rounds so far."""
        return min((self._steppers[index].steps for index in self.regular()), default=0)

    def ends_of_rounds(self) -> list[int]:
        """Indices into `log` of the steps that completed a round."""
        counts = dict.fromkeys(self.regular(), 0)
        ends: list[int] = []
        for position, index in enumerate(self.log):
            if index in counts:
                counts[index] += 1
                if min(counts.values()) > len(ends):
                    ends.append(position)
        return ends

    def regular(self) -> list[int]:
        """Indices of the steppers that a round waits for."""
        most = max((stepper.steps for stepper in self._steppers), default=0)
        return [
            index
            for index, stepper in enumerate(self._steppers)
            if stepper.steps or (most < PATIENCE and stepper.optimizer() is not None)
        ]

    def _index(self, optimizer: Any) -> int:
        parameters = [id(parameter) for group in optimizer.param_groups for parameter in group["params"]]
        known = [self._owners[parameter] for parameter in parameters if parameter in self._owners]
        if known:
            index = known[0]
        else:
            index = len(self._steppers)
            self._steppers.append(_Stepper(weakref.ref(optimizer)))
        self._owners.update(dict.fromkeys(parameters, index))
        return index
