"""What a run writes down so that ranks can tell whether they see the same samples: marks of batches and of inputs.

Which batches is a matter of their number alone, so that all ranks look at the same ones.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from ._sketch import Sketch
from .events import Divided, Inputs, Pass, Shard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchtriage.examine.run.job.job import Job

PASSES = 4  # over each loader, that are looked at
BATCHES = 6, 3  # of the first pass, and of the others
PEEKED = 2  # batches, at most, of a pass that was no training's
FORWARDS = 8  # passes of each root in training


def shards(job: Job) -> None:
    """Marks of the first batches of each loader, in jobs of several ranks."""
    import torch

    if not torch.distributed.is_available():
        return
    from torch.utils.data import DataLoader
    from torch.utils.data.distributed import DistributedSampler

    watch = _Shards(job)
    job.wrap(DataLoader, "__init__", watch.building)
    job.wrap(DistributedSampler, "__init__", watch.building)
    job.listen(watch.begun, watch.ending)


def inputs(job: Job) -> None:
    """Marks of what roots are given in their first passes of training, in jobs of several ranks."""
    import torch

    if not torch.distributed.is_available():
        return
    probe, seen = job.placing, dict[int, int]()
    left = 4 * FORWARDS

    def forward(module: Any, args: Any, kwargs: Any) -> None:
        nonlocal left
        if not torch.is_grad_enabled() or not module.training:
            return
        left -= 1
        number = seen.get(id(module), 0)
        seen[id(module)] = number + 1
        if number < FORWARDS and several(torch):
            given = [*args, *kwargs.values()]
            event = Inputs(
                root=type(module).__name__,
                number=number,
                over=list(_divided(module)),
                at=job.caller(),
                backwards=job.clock.count("backwards"),
                marks=_marks(job, given),
                values=list(_values(given)),
            )
            if not number:
                event.normalised, event.samples = _normalised(module, given)
                frame = job.frame()
                if frame is not None:
                    event.given = job.written.given_from(frame)
            job.record(event)
        if left <= 0:
            job.withdraw(probe)

    job.listen(forward)


class _Shards:
    def __init__(self, job: Job) -> None:
        self.job, self.inner = job, f"{job.placing} within"
        self.built: weakref.WeakKeyDictionary[Any, tuple[str, int]] = weakref.WeakKeyDictionary()
        self.passes: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.keys: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self.counts: dict[tuple[str, int], int] = {}
        self.open: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()  # batches of the pass so far
        self.began: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()  # backward passes before it
        self.sketches: weakref.WeakKeyDictionary[Any, Sketch] = weakref.WeakKeyDictionary()  # of first passes

    def building(self, original: Any) -> Any:
        def __init__(itself: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is one
            self.built[itself] = self.job.caller()
            original(itself, *args, **kwargs)

        return __init__

    def begun(self, loader: Any, _given: int) -> None:
        import torch

        number = self.passes.get(loader, 0)
        if self.peeked(loader):
            number -= 1
            self.sketches.pop(loader, None)
        self.passes[loader] = number + 1
        self.began[loader] = self.job.clock.count("backwards")
        self.went(loader)
        if number >= PASSES or not several(torch):
            self.open.pop(loader, None)
            return
        if not number:
            if loader not in self.keys:
                self.tell(loader)
            if _length(loader) <= Sketch.LONGEST:
                self.sketches[loader] = Sketch()
        self.job.withdraw(self.inner)
        self.job.place(self.inner, self.within)
        self.open[loader] = 0

    def within(self, job: Job) -> None:
        """The same batches on all ranks, in whatever steps they are."""
        job.continuous()
        job.listen(self.batch)

    def peeked(self, loader: Any) -> bool:
        """Whether the pass before was only a look at the data, such as next(iter(loader)) for its shapes: one or two
        batches, and nothing learned. What comes next is the pass that was looked ahead into.
        """
        given, began = self.open.get(loader), self.began.get(loader)
        return given is not None and 0 < given <= PEEKED and began == self.job.clock.count("backwards")

    def tell(self, loader: Any) -> None:
        """What a loader is, once. Its key is the same on all ranks that have built it alike."""
        path, line = where = self.built.get(loader, ("", 0))
        number = self.counts[where] = self.counts.get(where, -1) + 1
        self.keys[loader] = key = f"{path}:{line}#{number}"
        sampler, replicas, rank = division(loader)
        self.job.record(
            Divided(
                loader=key,
                batch_size=loader.batch_size,
                path=path,
                line=line,
                loop=self.job.caller(),
                dataset=type(loader.dataset).__name__,
                sampler=type(sampler).__name__,
                sampled=self.built.get(sampler),
                num_replicas=replicas,
                rank=rank,
            )
        )

    def went(self, loader: Any) -> None:
        """The first pass over a loader is over, or the job is."""
        sketch = self.sketches.pop(loader, None)
        if sketch is not None and sketch.kept is not None and hasattr(loader.dataset, "__len__"):
            self.job.record(
                Pass(
                    loader=self.keys[loader],
                    of=len(loader),
                    batches=sketch.batches,
                    samples=sketch.samples,
                    kept=sketch.marks(),
                )
            )
        self.close()

    def ending(self) -> None:
        for loader in list(self.sketches):
            self.went(loader)

    def close(self) -> None:
        if not self.open and not self.sketches:
            self.job.withdraw(self.inner)

    def batch(self, loader: Any, batch: Any) -> None:
        sketch = self.sketches.get(loader)
        if sketch is not None:
            sketch.add(batch)
            if sketch.off:
                del self.sketches[loader]
        number = self.open.get(loader)
        if number is None:
            return
        turn = self.passes[loader] - 1
        backwards = self.job.clock.count("backwards")
        shard = Shard(loader=self.keys[loader], pass_=turn, number=number, backwards=backwards, marks=None, values=[])
        if number < BATCHES[bool(turn)]:
            shard.marks, shard.values = _marks(self.job, batch), list(_values(batch))
            self.open[loader] = number + 1
        else:
            del self.open[loader]
        self.job.record(shard)
        self.close()


def several(torch: Any) -> bool:
    return bool(torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1)


def division(loader: Any) -> tuple[Any, int | None, int | None]:
    """The sampler of a LOADER, and where it divides the samples, among how many ranks and for which."""
    sampler: Any = getattr(loader, "sampler", None)
    inner: Any = getattr(getattr(loader, "batch_sampler", None), "sampler", None)
    sampler = inner if hasattr(inner, "num_replicas") else sampler
    replicas, rank = (getattr(sampler, name, None) for name in ("num_replicas", "rank"))
    return sampler, replicas if isinstance(replicas, int) else None, rank if isinstance(rank, int) else None


def _length(loader: Any) -> int:
    """Batches of a pass; too many where that is not known, for no sketch would be written down."""
    try:
        return len(loader)
    except (TypeError, NotImplementedError):
        return Sketch.LONGEST + 1


def _marks(job: Job, batch: Any) -> dict[str, int]:
    return {name: mark for name, mark, _ in job.marks(batch)}


def _values(batch: Any, depth: int = 3) -> Iterator[int]:
    """How many values each tensor of a batch has, wherever it lies."""
    if hasattr(batch, "numel") and hasattr(batch, "dtype"):
        yield int(batch.numel())
    elif depth and isinstance(batch, (dict, tuple, list)):
        for each in list(batch.values() if isinstance(batch, dict) else batch)[:16]:
            yield from _values(each, depth - 1)


def _divided(module: Any) -> Iterator[list[int]]:
    """The ranks among which FSDP has divided what is in MODULE, and the batches."""
    for each in module.modules():
        if type(each).__name__ == "FullyShardedDataParallel":
            from torch.distributed import get_process_group_ranks

            yield sorted(get_process_group_ranks(each.process_group))
            return
        if any(kind.__name__ == "FSDPModule" for kind in type(each).__mro__):
            for parameter in each.parameters():
                mesh = getattr(parameter, "device_mesh", None)
                first = type(parameter.placements[0]).__name__ if mesh is not None else ""
                if mesh is not None and (mesh.ndim == 1 or first == "Replicate"):
                    yield sorted(mesh.mesh.flatten().tolist())
                    return


def _normalised(module: Any, given: list[Any]) -> tuple[int, int | None]:
    """How many layers of MODULE normalise by the batch of this rank alone, and how large that is."""
    from torch.nn import SyncBatchNorm
    from torch.nn.modules.batchnorm import _BatchNorm

    layers = [each for each in module.modules() if isinstance(each, _BatchNorm) and each.training]
    sizes = [int(each.shape[0]) for each in given if getattr(each, "shape", ())]
    alone = sum(not isinstance(each, SyncBatchNorm) for each in layers)
    return alone, sizes[0] if sizes else None
