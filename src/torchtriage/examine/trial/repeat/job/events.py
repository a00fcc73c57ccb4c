"""What the probes of a repetition write beside the prints."""

from __future__ import annotations

from torchtriage.examine.run.job.events import Event


class Conditions(Event):
    """What may differ between two runs of one job: threads of torch, a hash that is random, CUDA, loaders' workers."""

    threads: int | None = None
    hash: bool = False
    cuda: bool = False
    workers: int = 0


class Elsewhere(Event):
    """Another thread has trained beside the one that was watched."""
