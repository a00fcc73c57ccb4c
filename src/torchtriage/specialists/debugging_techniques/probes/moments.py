"""What a run writes down about the decay rates of Adam and its kin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .events import Betas

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_TORCH = frozenset({"Adam", "AdamW", "NAdam", "RAdam", "Adamax", "SparseAdam"})
_OTHERS = frozenset({"FusedAdam", "DeepSpeedCPUAdam", "CPUAdam", "AdamP", "AdaBelief", "FusedLAMB"})
_QUANTIZED = ("8bit", "32bit", "4bit", "Fp8")  # of bitsandbytes and torchao: PagedAdamW8bit
_MANY = 16  # optimizers


def moments(job: Job) -> None:
    """The betas with which an optimizer of Adam's kind is built."""
    seen = 0

    def built(optimizer: Any) -> None:
        nonlocal seen
        pair = _pair(optimizer) if _is_adam(type(optimizer)) and seen < _MANY else None
        if pair is not None:
            seen += 1
            path, line = job.built.at(optimizer)
            job.record(Betas(optimizer=type(optimizer).__name__, first=pair[0], second=pair[1], path=path, line=line))

    job.listen(built)


def _is_adam(kind: type) -> bool:
    """Not by the name betas: those of Lion and of a schedule-free optimizer mean something else."""
    for each in kind.__mro__:
        name = each.__name__
        for tail in _QUANTIZED:
            name = name.removesuffix(tail)
        if name.removeprefix("Paged") in (_TORCH if each.__module__.startswith("torch.optim") else _TORCH | _OTHERS):
            return True
    return False


def _pair(optimizer: Any) -> tuple[float, float] | None:
    """Of the groups, the pair whose first exceeds the second most; None where no two plain numbers are there."""
    pairs: list[Any] = [group.get("betas") for group in optimizer.param_groups]
    plain = [each for each in pairs if isinstance(each, (tuple, list)) and len(each) == 2]
    known = [(one, two) for one, two in plain if isinstance(one, (float, int)) and isinstance(two, (float, int))]
    return max(known, key=lambda pair: pair[0] - pair[1], default=None)
