"""The device on which a proof of a page runs: the simulated one, or a CUDA device where there is one."""

from __future__ import annotations

import re
import statistics
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from torchtriage.catalog import page, walk
from torchtriage.simulation import Costs, Simulator, start

Work = Callable[[], object]


class Device(ABC):
    """What proofs ask of a device. name: its type in torch. backend: its collectives'. index: the one in use."""

    name: str
    backend: str

    def shown(self, slug: str, section: str, sizes: dict[int, int] | None = None) -> SimpleNamespace:
        """What the Bad or Good block of a page defines, by name, as a script for this device. SIZES: other numbers."""
        source = self.translate(page.read(walk.pages()[slug]).snippet(section))
        for before, after in (sizes or {}).items():
            source = re.sub(rf"\b{before}\b", str(after), source)
        names: dict[str, Any] = {"__name__": section}
        exec(compile(source, f"{slug}.md", "exec"), names)
        return SimpleNamespace(**names)

    def translate(self, source: str) -> str:
        """SOURCE, which is written for CUDA, as this device has it."""
        return source

    @property
    def module(self) -> Any:
        """What torch.cuda is to CUDA."""
        return torch.get_device_module(self.name)

    @abstractmethod
    def cost(self, **costs: Any) -> None:
        """Sets what operations cost (the fields of Costs; all others are free). A real device has costs of its own."""

    @abstractmethod
    def clock(self) -> float:
        """The host's clock, in seconds."""

    @abstractmethod
    def seconds(self, work: Work) -> float:
        """From the begin of WORK until the host has done it and the device has done what was queued."""

    @abstractmethod
    def waits(self, work: Work) -> int:
        """How often the host waits for the device, but for calls of synchronize()."""

    def limit(self, size: int) -> None:
        """Leaves SIZE bytes of memory beside what is taken, until the test ends."""
        self._limit(size + self.module.memory_reserved())

    @abstractmethod
    def _limit(self, size: int) -> None: ...


class SimulatedDevice(Device):
    """`sim`, on whose clock all times are exact."""

    name = backend = "sim"

    def __init__(self, simulator: Simulator) -> None:
        self.simulator = simulator

    def translate(self, source: str) -> str:
        return re.sub(r"\bcuda\b", self.name, source).replace('"nccl"', f'"{self.backend}"')

    def cost(self, **costs: Any) -> None:
        self.simulator.costs = Costs.free(**costs)

    def clock(self) -> float:
        return self.simulator.now / 1e9

    def seconds(self, work: Work) -> float:
        before = self.clock()
        work()
        torch.accelerator.synchronize()
        return self.clock() - before

    def waits(self, work: Work) -> int:
        before = len(self.simulator.ledger.synchronisations)
        work()
        waits = self.simulator.ledger.synchronisations[before:]
        return sum(each.call not in {"device", "stream", "event"} for each in waits)

    def _limit(self, size: int) -> None:
        start(devices=torch.accelerator.device_count(), memory=size, costs=self.simulator.costs)


class CudaDevice(Device):
    """A real device, with the costs that it has: what is measured there is more or less, and never to the digit."""

    name, backend = "cuda", "nccl"

    def cost(self, **costs: Any) -> None: ...

    def clock(self) -> float:
        return time.perf_counter()

    def seconds(self, work: Work) -> float:
        """The median of five, after one that loads kernels."""
        work()
        return statistics.median(self._timed(work) for _ in range(5))

    def _timed(self, work: Work) -> float:
        torch.cuda.synchronize()
        before = self.clock()
        work()
        torch.cuda.synchronize()
        return self.clock() - before

    def waits(self, work: Work) -> int:
        torch.cuda.set_sync_debug_mode("warn")
        try:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                work()
        finally:
            torch.cuda.set_sync_debug_mode("default")
        return sum("synchronizing CUDA operation" in str(each.message) for each in said)

    def _limit(self, size: int) -> None:
        torch.cuda.set_per_process_memory_fraction(size / torch.cuda.get_device_properties(0).total_memory)
