"""What a run writes down about the allocator's cache being emptied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import replace

from .events import CacheEmptied

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_SITES = 16  # lines that empty the cache, of which notes are kept
_EARLY = 8  # steps by which a device is in use, if the job has one
_OF_DEVICE = "tensor_operations_and_memory/emptied by the device's module"
_TIMES = frozenset({20, 100, 1000, 10_000})  # steps after which a line is written down again


def emptied(job: Job) -> None:
    """The lines that call empty_cache, in how many steps, and how often the driver was asked for memory meanwhile."""
    import torch

    watch = _Emptied(job)
    known = (torch.cuda, torch.cuda.memory, getattr(torch, "xpu", None), getattr(torch, "accelerator", None))
    for owner in known:
        if hasattr(owner, "empty_cache"):  # torch.accelerator has it since torch 2.9
            job.wrap(owner, "empty_cache", watch.emptying)
    job.listen(watch.ending)

    def iterated(step: int) -> None:
        """The module of any other device is known once that is in use."""
        module = job.accelerator.module
        if module is not None or step >= _EARLY:
            job.withdraw(_OF_DEVICE)
            if hasattr(module, "empty_cache") and module not in known:
                job.place(
                    f"{_OF_DEVICE}, {job.accelerator.kind}", lambda job: job.wrap(module, "empty_cache", watch.emptying)
                )

    job.place(_OF_DEVICE, lambda job: job.listen(iterated))


class _Emptied:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.sites: dict[tuple[str, int], CacheEmptied] = {}

    def emptying(self, original: Any) -> Any:
        def empty_cache(*args: Any, **kwargs: Any) -> Any:
            if self.job.accelerator.kind:
                self.called(self.job.caller())
            return original(*args, **kwargs)

        return empty_cache

    def called(self, where: tuple[str, int]) -> None:
        site = self.sites.get(where)
        if site is None:
            if len(self.sites) >= _SITES:
                return
            path, line = where
            step, asked = self.job.step, -self.asked()  # what is asked for from now on counts
            site = CacheEmptied(path=path, line=line, calls=0, steps=0, first=step, last=-1, asked=asked)
            self.sites[where] = site
        site.calls += 1
        if site.last != self.job.step:
            site.last = self.job.step
            site.steps += 1
            if site.steps in _TIMES:
                self.tell(site)

    def asked(self) -> int:
        """How often the allocator has asked the driver for memory."""
        return self.job.accelerator.requests()

    def tell(self, site: CacheEmptied) -> None:
        self.job.record(replace(site, asked=site.asked + self.asked()))

    def ending(self) -> None:
        for site in self.sites.values():
            self.tell(site)
