"""What a run writes down about the size of updates against that of the weights, and whether they point to and fro."""

from __future__ import annotations

import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

from .events import UpdateSize

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_WEIGHTS = 6  # of an optimizer, evenly chosen over the depth
_VALUES = 256  # of each
_FIRST = 8  # turns that are all written down
_OFTEN = 8  # turns, of which two neighbouring ones are


def sizes(job: Job) -> None:
    """The size of an update against that of the weights, and the cosine between it and the update before."""
    import torch

    job.sampled()
    job.computes()
    watch = _Sizes(job)
    job.listen(watch.stepping, watch.stepped, watch.watching)
    job.place(f"{job.placing} loaded", lambda job: job.wrap(torch.nn.Module, "load_state_dict", watch.loading))


class _Seen:
    """Of one optimizer: its weights, their values before the step under way, and the update before."""

    def __init__(self, number: int) -> None:
        self.number, self.turns = number, 0
        self.owners: list[Any] | None = None
        self.values: Any = None
        self.update: Any = None
        self.first: Any = None  # values before the first of all updates


class _Sizes:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.known: weakref.WeakKeyDictionary[Any, _Seen] = weakref.WeakKeyDictionary()
        self.count = 0
        self.loaded = False  # a model has got weights from elsewhere

    def loading(self, original: Any) -> Any:
        def load_state_dict(*args: Any, **kwargs: Any) -> Any:
            self.loaded = True
            return original(*args, **kwargs)

        return load_state_dict

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
            seen.first = seen.values if seen.first is None else seen.first
        else:
            seen.update = None

    def stepped(self, optimizer: Any) -> None:
        import torch

        seen = self.known.get(optimizer)
        if seen is None or seen.values is None:
            return
        now = _values(seen.owners or [])
        update = now - seen.values
        numbers = [update.norm(), seen.values.norm(), (now - seen.first).norm()]
        if seen.update is not None:
            numbers.append(torch.dot(update, seen.update) / (numbers[0] * seen.update.norm()).clamp(min=1e-30))
        seen.update, seen.values = update, None
        self.job.late.read_all(torch.stack(numbers), partial(self.write, seen.number, self.job.step))

    def write(self, number: int, step: int, values: list[float]) -> None:
        update, weights, moved, *cosine = values
        if weights > 0:
            ratio, angle = update / weights, cosine[0] if cosine else None
            event = UpdateSize(at=step, optimizer=number, ratio=ratio, cosine=angle, moved=moved / weights)
            event.loaded = self.loaded or any(map(_named, self.job.roots))
            self.job.record(event)


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
        and _learns(each)
        and each.device == every[0].device
    ]
    return plain[:: max(1, -(-len(plain) // _WEIGHTS))]


def _named(root: Any) -> bool:
    """Whether transformers has made it from a checkpoint with a name: it exchanges the parameters without a call."""
    return bool(getattr(getattr(root, "config", None), "_name_or_path", ""))


def _learns(weight: Any) -> bool:
    """Whether the values that are looked at have a gradient: rows of an embedding for tokens that never come have none,
    and frozen weights that were handed over all the same.
    """
    grad = weight.grad
    if grad is None or not grad.is_contiguous():
        return False
    return not grad.is_cpu or bool(grad.detach().view(-1)[:_VALUES].any())


def _values(owners: list[Any]) -> Any:
    import torch

    parts = [each.detach().view(-1)[:_VALUES].float() for each in owners]
    return torch.cat(parts) if parts else None
