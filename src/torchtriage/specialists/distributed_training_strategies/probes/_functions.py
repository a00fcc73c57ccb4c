"""The functions of torch.distributed, which two modules hold: either name may be the one that a job calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchtriage.examine.run.job.job import Job

CARRYING = (
    "all_reduce", "broadcast", "reduce", "all_gather", "all_gather_into_tensor", "reduce_scatter",
    "reduce_scatter_tensor", "gather", "scatter", "all_to_all", "all_to_all_single",
)  # fmt: skip
COLLECTIVES = (*CARRYING, "barrier")


def wrap(job: Job, name: str, making: Callable[[Any], Any]) -> None:
    """Puts what MAKING makes of it in the place of the function NAME, wherever this torch has it."""
    import torch

    for owner in (torch.distributed.distributed_c10d, torch.distributed):
        if hasattr(owner, name):
            job.wrap(owner, name, making)
