"""What a run writes down about the memory that parameters, gradients and optimizer states take up."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from .events import Residents

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_TURN = 2  # of an optimizer's steps, the one that is measured: its state is made in the first
_STEPS = 4  # after which no optimizer is waited for


def residents(job: Job) -> None:
    """Bytes of parameters, buffers, gradients and optimizer states on this process's device, once."""
    probe = job.placing
    watch = _Residents(job)
    job.listen(watch.stepped)

    def iterated(step: int) -> None:
        if step >= _STEPS:
            watch.tell()
            job.withdraw(probe)

    job.listen(iterated)


class _Residents:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.turns: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.gradients: dict[int, int] = {}  # bytes by address
        self.states: dict[int, int] = {}

    def stepped(self, optimizer: Any) -> None:
        turn = self.turns[optimizer] = self.turns.get(optimizer, 0) + 1
        if turn == _TURN:
            for group in optimizer.param_groups:
                self.gradients.update(self.bytes(each.grad for each in group["params"]))
            for state in list(optimizer.state.values()):
                self.states.update(self.bytes(state.values() if isinstance(state, dict) else ()))

    def tell(self) -> None:
        if not self.gradients:
            return
        roots = list(self.job.roots)
        told = Residents(
            parameters=sum(self.bytes(each for root in roots for each in root.parameters()).values()),
            buffers=sum(self.bytes(each for root in roots for each in root.buffers()).values()),
            gradients=sum(self.gradients.values()),
            states=sum(self.states.values()),
        )
        self.job.record(told)

    def bytes(self, values: Any) -> dict[int, int]:
        """By address, of tensors on the device in use, or else the CPU; of a sharded one the part that is here."""
        import torch

        wanted = self.job.accelerator.kind or "cpu"
        tensors = [getattr(each, "_local_tensor", each) for each in values if isinstance(each, torch.Tensor)]
        dense = [each for each in tensors if each.layout is torch.strided]
        # a tensor within torch.func has no memory of its own
        inside = torch._C._functorch.is_functorch_wrapped_tensor  # pyright: ignore[reportAttributeAccessIssue]
        return {each.data_ptr(): each.nbytes for each in dense if each.device.type == wanted and not inside(each)}
