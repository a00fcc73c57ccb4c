"""Records of what happened on the simulated devices, with exact times."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TypeVar


@dataclass(frozen=True)
class Kernel:
    """A kernel. All times are nanoseconds on the host's clock.

    step: the number of calls of `simulator.step()` before it.
    launched: when the host had launched it; start, end: when the device ran it.
    flops, bytes: what it computed and moved; flops are 0 except for matrix products, convolutions and attention.
    """

    step: int
    name: str
    device: int
    stream: int
    launched: int
    start: int
    end: int
    flops: int
    bytes: int


@dataclass(frozen=True)
class Copy:
    """A copy to, from or between devices; within a device a copy is a kernel.

    kind: `host-to-device`, `device-to-host` or `device-to-device`.
    pinned: whether the host memory is. non_blocking: as requested; with pageable memory the host waits regardless.
    file, line: the innermost line of Python outside of torch; empty and 0 where there is none, as in backward.
    """

    step: int
    kind: str
    device: int
    stream: int
    launched: int
    start: int
    end: int
    bytes: int
    pinned: bool
    non_blocking: bool
    file: str
    line: int


@dataclass(frozen=True)
class Synchronisation:
    """The host waited for a device; for 0 nanoseconds if that was idle.

    call: `item`, `copy_`, an operator whose result has a data-dependent shape (`nonzero`), `stream`, `event`, `device`,
        `barrier`, or `free of cached memory`.
    """

    step: int
    call: str
    device: int
    begun: int
    ended: int
    file: str
    line: int

    @property
    def waited(self) -> int:
        return self.ended - self.begun


@dataclass(frozen=True)
class Collective:
    """A collective.

    ready: when the stream of this rank had reached it; start: when those of all ranks had.
    """

    step: int
    name: str
    device: int
    ranks: int
    bytes: int
    launched: int
    ready: int
    start: int
    end: int


@dataclass(frozen=True)
class Allocation:
    """An entry of the allocator's history.

    action: `alloc`, `free`, `segment_alloc`, `segment_free` or `oom`, as in torch's memory snapshots.
    allocated, reserved: bytes in tensors and in segments after it.
    frames: `file:line function`, innermost first; empty unless `start(frames=...)` requests them.
    """

    step: int
    action: str
    device: int
    stream: int
    time: int
    address: int
    bytes: int
    allocated: int
    reserved: int
    frames: tuple[str, ...]


_Record = TypeVar("_Record", Kernel, Copy, Synchronisation, Collective, Allocation)


@dataclass(frozen=True)
class Ledger:
    """Everything that happened since the start or the last reset, each kind in order.

    dropped: the number of older records, of all kinds, that exceeded `start(records=...)`.
    """

    kernels: tuple[Kernel, ...] = ()
    copies: tuple[Copy, ...] = ()
    synchronisations: tuple[Synchronisation, ...] = ()
    collectives: tuple[Collective, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    dropped: int = 0

    def of_step(self, step: int) -> Ledger:
        """What happened in one step."""
        return Ledger(
            _select_step(self.kernels, step),
            _select_step(self.copies, step),
            _select_step(self.synchronisations, step),
            _select_step(self.collectives, step),
            _select_step(self.allocations, step),
            self.dropped,
        )

    def save(self, path: str | Path) -> None:
        """Writes the ledger as JSON, to be read by another process."""
        Path(path).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Ledger:
        """Reads what `save` wrote."""
        read = json.loads(Path(path).read_text(encoding="utf-8"))
        for row in read["allocations"]:
            row["frames"] = tuple(row["frames"])
        kinds = {field.name: tuple(_KINDS[field.name](**row) for row in read[field.name]) for field in fields(cls)[:-1]}
        return cls(**kinds, dropped=read["dropped"])


def _select_step(records: tuple[_Record, ...], step: int) -> tuple[_Record, ...]:
    return tuple(each for each in records if each.step == step)


_KINDS = {
    "kernels": Kernel,
    "copies": Copy,
    "synchronisations": Synchronisation,
    "collectives": Collective,
    "allocations": Allocation,
}
