"""What a run writes down about the size of updates against that of the weights, and whether they point to and fro."""

from __future__ import annotations

import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_WEIGHTS = 6  # of an optimizer, evenly chosen over the depth
_VALUES = 256  # of each
_FIRST = 8  # turns that are all written down
_OFTEN = 8  # turns, of which two neighbouring ones are


def sizes(job: Job) -> None:
    """The size of an update against that of the weights, and the cosine between it and the update before."""
    job.sampled()
    watch = _Sizes(job)
    job.listen(watch.stepping, watch.stepped, watch.watching)


class _Seen:
    """Of one optimizer: its weights, their values before the step under way, and the update before."""

    def __init__(self, number: int) -> None:
        self.number, self.turns = number, 0
        self.owners: list[Any] | None = None
        self.values: Any = None
        self.update: Any = None


class _Sizes:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.known: weakref.WeakKeyDictionary[Any, _Seen] = weakref.WeakKeyDictionary()
        self.count = 0

    def watching(self) -> None:
        for seen in self.known.values():
            seen.update = None  # the update before is none of a neighbouring step

    def stepping(self, optimizer: Any) -> None:
        seen = self.known.get(optimizer)
        if seen is None:
            seen = self.known[optimizer] = _Seen(self.count)
            self.count += 1
        seen.turns += 1
        seen.values = None
        if seen.turns <= _FIRST or seen.turns % _OFTEN < 2:
            seen.owners = seen.owners or _chosen(optimizer)
            seen.values = _values(seen.owners)
        else:
            seen.update = None

    def stepped(self, optimizer: Any) -> None:
        import torch

        seen = self.known.get(optimizer)
        if seen is None or seen.values is None:
            return
        update = _values(seen.owners or []) - seen.values
        numbers = [update.norm(), seen.values.norm()]
        if seen.update is not None:
            numbers.append(torch.dot(update, seen.update) / (numbers[0] * seen.update.norm()).clamp(min=1e-30))
        seen.update, seen.values = update, None
        self.job.late.read_all(torch.stack(numbers), partial(self.write, seen.number, self.job.step))

    def write(self, number: int, step: int, values: list[float]) -> None:
        update, weights, *cosine = values
        if weights > 0:
            more = {"cosine": cosine[0] if cosine else None}
            self.job.record("update-size", at=step, optimizer=number, ratio=update / weights, **more)


def _chosen(optimizer: Any) -> list[Any]:
    """Plain weights of one device and dtype, each in one piece: of others a view would be a copy, or a collective."""
    import torch

    every = [each for group in optimizer.param_groups for each in group["params"]]
    plain = [
        each
        for each in every
        if type(each) is torch.nn.Parameter
        and each.dim() > 1
        and each.is_floating_point()
        and each.is_contiguous()
        and each.device == every[0].device
    ]
    return plain[:: max(1, -(-len(plain) // _WEIGHTS))]


def _values(owners: list[Any]) -> Any:
    import torch

    parts = [each.detach().view(-1)[:_VALUES].float() for each in owners]
    return torch.cat(parts) if parts else None
