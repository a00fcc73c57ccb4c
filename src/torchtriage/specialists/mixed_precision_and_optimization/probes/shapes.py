"""What a run writes down about the sizes of matrix products on a GPU, and about what the GPU computes natively."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .events import Misaligned, Products

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_STEP = 2  # the step after which it is written: lazy layers have their sizes, and the device is in use
_BYTES = 16  # to which rows of tensor cores are aligned
_NAMED = 8


def shapes(job: Job) -> None:
    """Once, for models on CUDA: the layers whose rows are not whole units of 16 bytes, by format, and the settings."""
    probe = job.placing

    def iterated(step: int) -> None:
        if step >= _STEP:
            job.withdraw(probe)
            _write(job)

    job.listen(iterated)


def _write(job: Job) -> None:
    import torch

    linear = [part for root in job.roots for part in root.modules() if isinstance(part, torch.nn.Linear)]
    # not part.weight: it may be a parametrization, whose power iteration goes on whenever it is read
    parts = [part for part in linear if (own := part._parameters.get("weight")) is not None and own.is_cuda]
    if not parts:
        return
    event = Products(
        layers=len(parts),
        weights=sum(part.weight.numel() for part in parts),
        misaligned={str(size): _misaligned(job, parts, size) for size in (2, 4)},
        capability=torch.cuda.get_device_capability(parts[0].weight.device),
        matmul=torch.get_float32_matmul_precision(),
        dtype=str(parts[0].weight.dtype).removeprefix("torch."),
    )
    job.record(event)


def _misaligned(job: Job, parts: list[Any], size: int) -> Misaligned:
    odd = [part for part in parts if not _aligned(part, size)]
    return {
        "layers": len(odd),
        "weights": sum(part.weight.numel() for part in odd),
        "named": [(job.module_name(part), part.in_features, part.out_features) for part in odd[:_NAMED]],
    }


def _aligned(part: Any, size: int) -> bool:
    """Whether rows of the product's operands are whole units of 16 bytes in a format of SIZE bytes."""
    return all(number * size % _BYTES == 0 for number in (part.in_features, part.out_features))
