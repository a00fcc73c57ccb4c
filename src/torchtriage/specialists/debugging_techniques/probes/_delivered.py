"""The batch of this step, and what in it is not finite."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from ._data import samples, undefined
from ._undefined import of_inputs
from .events import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torchtriage.examine.run.job.events import Bad, Batch
    from torchtriage.examine.run.job.job import Job
    from torchtriage.examine.run.job.origin.replay import Call

_NAMED = 3  # samples and tensors told by their number
_TIMES = frozenset({2, 10, 100, 1000})  # batches that were left aside after which that is written down


class _Source:
    """A loader, and the line that asks it for batches."""

    def __init__(self, loader: Any, where: tuple[str, int]) -> None:
        self.loader = weakref.ref(loader)
        self.where, self.dataset = where, type(loader.dataset).__name__


class Delivered:
    """Holds what the DataLoader delivered last, until the next batch or step."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.held: Any = None
        self.source: _Source | None = None
        self.sources: weakref.WeakKeyDictionary[Any, _Source] = weakref.WeakKeyDictionary()

    def batch(self, loader: Any, batch: Any) -> None:
        source = self.source
        if source is None or source.loader() is not loader:
            source = self.sources.get(loader) or _Source(loader, self.job.caller())
            self.source = self.sources[loader] = source
        self.hold(batch)

    def came(self, loader: Any, batch: Any) -> None:
        """BATCH had come before anybody watched: of a loader made since, the line is that of the one before it."""
        source = self.sources.get(loader)
        if source is None:
            before = self.source
            alike = before is not None and before.dataset == type(loader.dataset).__name__
            source = self.sources[loader] = _Source(loader, before.where if before is not None and alike else ("", 0))
        self.source = source
        self.hold(batch)

    def hold(self, batch: Any) -> None:
        # of a container a copy: many a script takes the labels out
        self.held = batch.copy() if type(batch) in (dict, list) else batch

    def leave(self) -> None:
        """The step is over."""
        self.held = None

    def not_finite(self, calls: Iterable[Call]) -> Batch | None:
        """The batch, or, where no loader delivered one, what was given to a root module; None where it is finite."""
        if self.source is None or self.held is None:  # no loader gave it
            given = {}
            for call in calls:
                given.update(_leaves([*call.args, *call.kwargs.values()], "input", 3))
            bad = _bad(self.job, given)
            return {"index": None, "tensors": bad, "further": of_inputs(self.job)} if bad else None
        bad, loader = _bad(self.job, _leaves(self.held, "batch", 3)), self.source.loader()
        if not bad:
            return None
        return {
            "index": self.job.batches_of(loader) - 1 if loader is not None else None,
            "tensors": bad,
            "path": self.source.where[0],
            "line": self.source.where[1],
            "dataset": self.source.dataset,
            "further": undefined(self.job, loader) + samples(self.job, loader) if loader is not None else [],
        }


class Refusals:
    """Batches that were not finite, as what the model made of them, and through which no backward pass went then."""

    def __init__(self, job: Job, delivered: Delivered) -> None:
        self.job, self.delivered = job, delivered
        self.found: tuple[int, Batch] | None = None  # of the latest pass: its step
        self.first: tuple[int, Batch] | None = None
        self.times = 0

    def place(self, job: Job) -> None:
        job.sampled()
        job.listen(self.batch, self.forwarded, self.backward, self.ending)

    def forwarded(self, module: Any, output: Any) -> None:
        import torch

        found = [output] if isinstance(output, torch.Tensor) else _leaves(output, "", 2).values()
        made: Any = next(iter(found), None)
        if type(made) is not torch.Tensor or not made.is_cpu or not (module.training and torch.is_grad_enabled()):
            return
        if made.is_floating_point() and bool(made.detach().isnan().any()):
            batch = self.delivered.not_finite(()) if self.delivered.source is not None else None
            self.found = (self.job.step, batch) if batch is not None else None

    def backward(self, _roots: Any) -> None:
        self.found = None  # it was no batch to be left aside

    def batch(self, _loader: Any, _batch: Any) -> None:
        """The next one: what was found in the one before was left aside."""
        if self.found is not None:
            self.first, self.found, self.times = self.first or self.found, None, self.times + 1
            if self.times in _TIMES:
                self.write()

    def ending(self) -> None:
        self.batch(None, None)
        self.write()

    def write(self) -> None:
        if self.first is not None:
            at, batch = self.first
            self.job.record(Refused(times=self.times, at=at, batch=batch))


def _leaves(value: Any, name: str, depth: int) -> dict[str, Any]:
    """The floating-point tensors in a batch, by the way to them."""
    import torch

    if isinstance(value, torch.Tensor):
        return {name: value} if value.is_floating_point() and type(value) in (torch.Tensor, torch.nn.Parameter) else {}
    if not depth or not isinstance(value, (dict, tuple, list)):
        return {}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    found: dict[str, Any] = {}
    for key, each in list(items)[:16]:
        found.update(_leaves(each, f"{name}[{key!r}]"[:60], depth - 1))
    return found


def _bad(job: Job, tensors: dict[str, Any]) -> list[Bad]:
    """Of each tensor that holds NaN or infinity, and is no mask: how many of its values, and in which samples."""
    import torch

    found: list[Bad] = []
    for name, tensor in tensors.items():
        if not tensor.is_cpu or tensor.layout is not torch.strided:
            continue
        values = tensor.detach()
        wrong = ~torch.isfinite(values)
        if bool(wrong.any()) and not job.is_mask(values):
            rows = wrong.reshape(len(wrong), -1).any(1) if wrong.dim() else wrong.reshape(1)
            told: Bad = {
                "name": name,
                "value": "NaN" if bool(torch.isnan(values).any()) else "infinity",
                "bad": int(wrong.sum()),
                "of": wrong.numel(),
                "samples": rows.nonzero().flatten()[:_NAMED].tolist(),
                "shape": list(values.shape),
            }
            found.append(told)
    return found[:_NAMED]
