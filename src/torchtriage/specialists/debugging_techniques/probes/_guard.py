"""What is looked at in steps that rest, so that a first NaN among them can still be traced.

It runs in nearly all steps of a long job: what stands here in few lines is there for the number of calls.
"""

from __future__ import annotations

import weakref
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job
    from torchtriage.examine.run.job.origin.replay import Calls

    from ._delivered import Delivered

_NEAR, _SMALL = 8, 1 << 14  # parameters among which a gradient is looked for of so few values


class Guard:
    """The loss, where the host has it, and one small gradient, as far as neither is waited for."""

    def __init__(self, job: Job, calls: Calls, scaled: list[Any], delivered: Delivered) -> None:
        import torch

        self.job, self.probe, self.calls, self.tensor = job, job.placing, calls, torch.Tensor
        self.delivered = delivered
        self.scaled = scaled  # losses of this step under a scaler, with their graphs
        self.backwards = 0
        self.last: tuple[Any, Any] | None = None  # an optimizer and one of its parameters, weakly

    def forward(self, module: Any, args: Any, kwargs: Any) -> None:
        backwards = self.job.clock.counts["backwards"]
        if self.backwards != backwards:
            self.calls.clear()
            self.backwards = backwards
        self.calls.keep(module, args, kwargs, watched=False)

    def is_loss_finite(self, root: Any) -> bool:
        """False only where it is known not to be."""
        root = self.job.scaling.behind(root)  # before a scaler's factor
        if type(root) is not self.tensor or not root.is_cpu or root.numel() != 1 or self.job.is_observed():
            return True
        self.job.clock.latest = self.job.rest.loss = value = root.item()
        return isfinite(value)

    def is_gradient_finite(self, optimizer: Any) -> bool:
        """Of one of the first parameters, through which a NaN of any later layer comes."""
        parameter = self.last[1]() if self.last is not None and self.last[0]() is optimizer else None
        if parameter is None:
            near = islice(optimizer.param_groups[0]["params"], _NEAR)
            parameter = next((each for each in near if each.numel() <= _SMALL), None)
            if parameter is None:
                return True
            self.last = weakref.ref(optimizer), weakref.ref(parameter)
        gradient = parameter.grad
        if type(gradient) is not self.tensor or not gradient.is_cpu or self.job.is_observed():
            return True
        total = gradient.detach().sum().item()
        return bool(total - total == 0)  # of a complex number, too

    def batch(self, loader: Any, batch: Any) -> None:
        self.delivered.came(loader, batch)

    def close(self) -> None:
        self.calls.clear()
        self.scaled.clear()
        self.job.scaling.forget()
        self.backwards = self.job.clock.counts["backwards"]
