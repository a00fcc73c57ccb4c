"""What operations cost on the simulated device and on its host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any


@dataclass(frozen=True)
class Transfer:
    """A transfer of n bytes occupies its stream for LATENCY nanoseconds plus n / BYTES_PER_SECOND seconds."""

    latency: int = 0
    bytes_per_second: float = inf


@dataclass(frozen=True)
class Costs:
    """Nanoseconds and rates. The defaults are round numbers, of the order of a current accelerator.

    launch: host time per kernel, copy or collective.
    kernel: device time per kernel, whatever its size.
    kernels: total device time of a kernel by its name in the ledger (`addmm`, `add_`, `_foreach_add_`), in place of the
        other rates.
    flops_per_second, bytes_per_second: the longer of both is added to `kernel`.
    pinned: copies between a device and pinned host memory.
    pageable: copies between a device and other host memory. The host waits until they end.
    staged: up to this many bytes, a non-blocking copy from pageable memory is sent with the launch, and the host does
        not wait (64 KiB in the CUDA programming guide).
    peer: copies between devices.
    collective: a collective, from the time at which the streams of all ranks have reached it.
    segment: host time per segment that the allocator requests or frees.
    queue: launches that a stream accepts before the host waits for the oldest to end.
    """

    launch: int = 5_000
    kernel: int = 10_000
    kernels: Mapping[str, int] = field(default_factory=dict)
    flops_per_second: float = inf
    bytes_per_second: float = inf
    pinned: Transfer = Transfer(10_000, 25e9)
    pageable: Transfer = Transfer(20_000, 5e9)
    staged: int = 64 * 1024
    peer: Transfer = Transfer(10_000, 50e9)
    collective: Transfer = Transfer(20_000, 10e9)
    segment: int = 0
    queue: int = 1024

    @classmethod
    def free(cls, **costs: Any) -> Costs:
        """Everything is free except what is given, for tests that add up nanoseconds."""
        none = Transfer()
        free = cls(launch=0, kernel=0, staged=0, pinned=none, pageable=none, peer=none, collective=none)
        return replace(free, **costs)
