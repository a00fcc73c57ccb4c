"""What a run writes down about hooks that pile up on one module."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import Hooks

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_LISTS = {
    "register_forward_hook": "_forward_hooks",
    "register_forward_pre_hook": "_forward_pre_hooks",
    "register_full_backward_hook": "_backward_hooks",
    "register_full_backward_pre_hook": "_backward_pre_hooks",
}
_FIRST = 8  # hooks of one line on one module when it is first written down, then at twice as many
_LINES = 256  # pairs of a line and a module that are followed


def hooks(job: Job) -> None:
    """Hooks that one line puts on one module, or one parameter, turn after turn, and that stay there."""
    import torch

    watch = _Piles(job)
    for name, kept in _LISTS.items():
        job.wrap(torch.nn.Module, name, watch.registering(kept))
    job.wrap(torch.Tensor, "register_hook", watch.registering("_backward_hooks"))


class _Piles:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.piles: dict[tuple[int, str, tuple[str, int]], _Pile] = {}

    def registering(self, kept: str) -> Any:
        def make(original: Any) -> Any:
            def register(owner: Any, *args: Any, **kwargs: Any) -> Any:
                handle = original(owner, *args, **kwargs)
                hooked = getattr(owner, kept, None)
                if hooked and getattr(owner, "is_leaf", True):  # hooks on activations go with them
                    self.registered(owner, kept, len(hooked))
                return handle

            return register

        return make

    def registered(self, owner: Any, kept: str, number: int) -> None:
        where = self.job.caller()
        key = (id(owner), kept, where)
        pile = self.piles.get(key)
        if pile is None or pile.owner() is not owner:
            if len(self.piles) < _LINES:
                self.piles[key] = _Pile(owner, number)
            return
        turn = self.job.clock.count("forwards")
        pile.turns += pile.turn != turn
        pile.turn = turn
        alive = number - pile.first + 1
        if alive >= pile.told and pile.turns >= pile.told:
            pile.told *= 2
            kind, module = type(owner).__name__, self.job.module_name(owner)
            event = Hooks(class_=kind, path=where[0], line=where[1], alive=alive, list=kept.strip("_"), module=module)
            self.job.record(event)


class _Pile:
    """The hooks that one line has put on one owner."""

    def __init__(self, owner: Any, number: int) -> None:
        self.owner = weakref.ref(owner)
        self.first, self.turns, self.turn = number, 1, -1
        self.told = _FIRST
