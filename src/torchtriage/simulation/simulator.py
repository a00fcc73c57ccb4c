"""Starts the simulated devices, advances their clocks, and reads what happened on them."""

from __future__ import annotations

import atexit
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .build import SimulationError, load_library
from .costs import Costs, Transfer
from .ledger import Allocation, Collective, Copy, Kernel, Ledger, Synchronisation

GIB = 2**30
MOST_DEVICES = 16

LAST_PASS = 0.05
"""Seconds that a process waits before it ends. Until then autograd's thread for the device lets go of the last backward
pass, for which it needs the GIL; a thread that asks for it later is ended by Python, and with it the process, with
SIGABRT (torch 2.13, one process in 25 beside three busy ones that ended right after a pass).
"""


class Simulator:
    """The simulated devices of this process; `start` returns it."""

    def __init__(self, native: Any) -> None:
        self._native = native
        self._costs = Costs()

    @property
    def costs(self) -> Costs:
        return self._costs

    @costs.setter
    def costs(self, costs: Costs) -> None:
        """Sets the costs of everything launched from now on."""
        self._costs = costs
        plain = asdict(costs) | {"kernels": dict(costs.kernels)}
        rates = {
            name: (each.latency, each.bytes_per_second) for name, each in vars(costs).items() if _is_transfer(each)
        }
        self._native.set_costs(plain | rates)

    @property
    def now(self) -> int:
        """The host's clock in nanoseconds: since the start, or in real time that of `time.monotonic_ns()`."""
        return int(self._native.now())

    def host(self, nanoseconds: int) -> None:
        """Keeps the host busy with something else, such as loading data. In real time this takes as long."""
        self._native.spend(nanoseconds)

    def busy_until(self, device: int = 0) -> int:
        """When the device finishes the work queued so far, on the host's clock."""
        return int(self._native.end_of_device(device))

    def occupy(self, nbytes: int) -> None:
        """From now on other processes hold so many bytes of each device, until the next `start`."""
        self._native.set_held_by_others(nbytes)

    def step(self) -> int:
        """Ends a training step: later records carry the next number, which is returned."""
        return int(self._native.next_step())

    @property
    def ledger(self) -> Ledger:
        """A copy of everything recorded so far."""
        return _read_ledger(self._native)

    def reset(self) -> None:
        """Empties the ledger, drops queued work, sets the clock to 0 and the memory peaks to what is in use."""
        self._native.reset()


_STARTED: list[Simulator] = []


def start(  # noqa: PLR0913 - each is a property of the devices
    devices: int = 1,
    memory: int = 16 * GIB,
    costs: Costs | None = None,
    *,
    realtime: bool = False,
    frames: int = 0,
    records: int = 1_000_000,
    skipped: Iterable[str] = (),
) -> Simulator:
    """Registers the device `sim` with torch and returns its simulator; called again, applies the arguments and resets.

    devices: `sim:0` to `sim:15` at most. The number cannot change later: torch starts threads for the devices.
    memory: bytes of each device.
    realtime: the host's clock is the machine's, and waiting for a device sleeps; for jobs watched from outside.
        Otherwise only costs and `Simulator.host` advance the clock, and times are the same in every run.
    frames: Python frames recorded for each allocation.
    records: the ledger keeps this many records of each kind, the latest.
    skipped: files and folders whose lines the ledger does not name, but those of their callers.

    Raises SimulationError if the device cannot be compiled, if torch has another private device, or if the number of
    devices differs from before.
    """
    import torch

    if not 1 <= devices <= MOST_DEVICES:
        raise SimulationError(f"{devices} simulated devices are not possible: use 1 to {MOST_DEVICES}")
    if not _STARTED:
        _STARTED.append(Simulator(_register(devices)))
    simulator = _STARTED[0]
    native = simulator._native
    if native.device_count() != devices:
        raise SimulationError(
            f"{native.device_count()} simulated devices were started before, and torch cannot change their number. "
            "Start a new process."
        )
    native.set_capacity(memory)
    native.set_held_by_others(0)
    native.set_frames(frames)
    native.set_records(records)
    own = (str(Path(torch.__file__).parent), str(Path(__file__).parent))
    native.skip_files_under([*own, *skipped])
    native.set_real_time(realtime)
    simulator.costs = costs or Costs()
    simulator.reset()
    return simulator


def _register(devices: int) -> Any:
    import torch

    from . import collectives, device_module

    name = torch._C._get_privateuse1_backend_name()
    if name not in {"privateuseone", device_module.NAME}:
        raise SimulationError(f"torch supports one private device in a process, and {name!r} is registered already")
    native = load_library()
    native.set_device_count(devices)
    native.register_backend()
    device_module.register(native)
    collectives.register(native)
    atexit.register(time.sleep, LAST_PASS)
    return native


def _is_transfer(value: object) -> bool:
    return isinstance(value, Transfer)


def _read_ledger(native: Any) -> Ledger:
    kinds = {
        "kernels": (native.kernels, Kernel),
        "copies": (native.copies, Copy),
        "synchronisations": (native.synchronisations, Synchronisation),
        "collectives": (native.collectives, Collective),
        "allocations": (native.allocations, Allocation),
    }
    read: dict[str, Any] = {}
    dropped = 0
    for name, (rows, kind) in kinds.items():
        count, kept = rows()
        read[name] = tuple(kind(*row) for row in kept)
        dropped += count - len(kept)
    return Ledger(**read, dropped=dropped)
