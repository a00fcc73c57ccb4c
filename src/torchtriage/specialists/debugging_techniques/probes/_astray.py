"""Which of several optimizers was given the parameters of another network: the one that has its turn after backward
passes that reach parameters without a home.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchtriage.examine.run.job.job import Job

_TURNS = 12  # of optimizers, that are followed


class Astray:
    """Follows the first turns of the optimizers once a parameter without a home was met. HOMELESS tells one.

    A discriminator's step comes after a backward that reaches the discriminator. Where its optimizer was given the
    generator, that backward reached none of the optimizer's own parameters; where the generator's optimizer was given
    the discriminator, no other optimizer has its turn after a backward that reaches the generator.
    """

    def __init__(self, job: Job, homeless: Callable[[Any], bool]) -> None:
        self.job, self.homeless, self.probe = job, homeless, f"{job.placing}.turns"
        self.reached: list[Any] = []  # leaves of the backward passes since the last turn
        self.turns: weakref.WeakKeyDictionary[Any, _Turns] = weakref.WeakKeyDictionary()
        self.left = _TURNS
        self.begun = False

    def follow(self) -> None:
        if not self.begun and len(list(self.job.built)) > 1:
            self.begun = True
            self.job.place(self.probe, lambda job: job.listen(self.backwarded, self.stepping))

    def backwarded(self, roots: Any) -> None:
        self.reached += self.job.leaves(roots)

    def stepping(self, optimizer: Any) -> None:
        reached, self.reached = {id(each): each for each in self.reached}, []
        turns = self.turns.setdefault(optimizer, _Turns())
        turns.all += 1
        if any(self.homeless(each) for each in reached.values()):
            turns.astray += 1
            turns.unreached += not any(id(p) in reached for group in optimizer.param_groups for p in group["params"])
        self.left -= 1
        if self.left <= 0:
            self.job.withdraw(self.probe)

    def suspect(self) -> Any:
        """The one optimizer that was given the wrong parameters; None where no turn tells it from the others."""
        known = [(optimizer, turns) for optimizer, turns in self.turns.items() if turns.all > 1]
        if len(known) < 2:
            return None
        unreached = [optimizer for optimizer, turns in known if turns.unreached == turns.all]
        always = [optimizer for optimizer, turns in known if turns.astray == turns.all]
        found = unreached or ([] if len(always) == len(known) else always)
        return found[0] if len(found) == 1 else None


class _Turns:
    all = astray = unreached = 0
