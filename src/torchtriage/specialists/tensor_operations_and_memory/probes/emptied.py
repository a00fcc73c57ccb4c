"""What a run writes down about the allocator's cache being emptied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import replace

from .events import CacheEmptied

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_SITES = 16  # lines that empty the cache, of which notes are kept
_TIMES = frozenset({20, 100, 1000, 10_000})  # steps after which a line is written down again


def emptied(job: Job) -> None:
    """The lines that call empty_cache, in how many steps, and how often the driver was asked for memory meanwhile."""
    import torch

    watch = _Emptied(job)
    for owner in (torch.cuda, torch.cuda.memory, getattr(torch, "xpu", None), getattr(torch, "accelerator", None)):
        if hasattr(owner, "empty_cache"):  # torch.accelerator has it since torch 2.9
            job.wrap(owner, "empty_cache", watch.emptying)
    job.listen(watch.ending)


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
