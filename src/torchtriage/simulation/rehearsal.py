"""A rehearsal: a script written for a GPU runs on the simulated device, and what it does there is summed up by line."""

from __future__ import annotations

import atexit
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .build import SimulationError, is_built
from .cards import Card
from .mapping import map_cuda
from .mapping.absent import Absences
from .simulator import Simulator, start

HOLDERS = ("other", "parameters", "gradients", "optimizer_states", "buffers")
OURS = str(Path(__file__).parents[1])
RECORDS = 200_000
"""Of each kind, at most: a step of a large model has some ten thousand kernels, and 16 steps are enough."""

STILL, MOMENT = 10, 0.1
"""Looks in a row without an allocation, and seconds between two, after which a backward pass has ended."""


class Properties(NamedTuple):
    """What `torch.cuda.get_device_properties` tells of the card."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int = 1
    warp_size: int = 32
    is_integrated: int = 0
    is_multi_gpu_board: int = 0
    gcnArchName: str = ""  # noqa: N815 - torch's name


class Wait(NamedTuple):
    """Waits of the host for the device at a line, in all steps that were counted; IN_STEPS of them it has any."""

    file: str
    line: int
    call: str
    times: int
    in_steps: int


class Transfer(NamedTuple):
    """Copies between the host and the device at a line."""

    file: str
    line: int
    kind: str
    pinned: bool
    non_blocking: bool
    times: int
    bytes: int
    in_steps: int


class Counted(NamedTuple):
    """What the device did in so many STEPS. nanoseconds: of the device, by the card's data sheet."""

    steps: int
    kernels: int
    nanoseconds: int
    waits: list[Wait]
    transfers: list[Transfer]


class Peak(NamedTuple):
    """The most bytes in tensors of a device, by what they are for, and the line that asked for the last of them.

    reserved: the most that its allocator held. step: of training, from 0.
    """

    device: int
    bytes: int
    reserved: int
    step: int
    file: str
    line: int
    holders: dict[str, int]


class Rehearsal:
    """The simulated device of a job."""

    def __init__(self, card: Card) -> None:
        import torch

        self.card = card
        # lines of torch, and of what watches the job, are told as those of their callers
        self.absences = Absences((str(Path(torch.__file__).parent), OURS))
        if not is_built():
            sys.stderr.write(
                f"torchtriage: the simulated accelerator is compiled for torch {torch.__version__}, once; "
                "this takes about two minutes\n"
            )
            sys.stderr.flush()
        self.simulator: Simulator = start(
            card.count, card.memory, card.costs, realtime=True, records=RECORDS, skipped=[OURS]
        )
        self.native = self.simulator._native
        self.native.keep_peak_lines(True)
        major, minor = card.capability
        atexit.register(self.settle)
        map_cuda(self.native, self.absences, Properties(f"Simulated {card.name}", major, minor, card.memory))

    def settle(self) -> None:
        """After Ctrl-C in a backward pass, waits until the device's thread has ended it: the interpreter would end with
        that thread in Python, which aborts the process.
        """
        import torch

        still = 0
        while getattr(sys, "last_type", None) is KeyboardInterrupt and still < STILL:
            before = torch.cuda.memory_stats()["allocation.all.allocated"]
            time.sleep(MOMENT)
            still = still + 1 if torch.cuda.memory_stats()["allocation.all.allocated"] == before else 0

    @property
    def is_used(self) -> bool:
        """Whether anything was ever put on the device."""
        return any(self.native.peak(device)[0] for device in range(self.card.count))

    def step(self) -> int:
        """A step of training has ended; how many have."""
        return self.simulator.step()

    def hold(self, holder: str, tensors: Iterable[Any]) -> None:
        """The memory of TENSORS is that of HOLDER, until it is freed."""
        storages = (each.untyped_storage().data_ptr() for each in tensors if each.is_cuda)
        self.native.hold([address for address in storages if address], HOLDERS.index(holder))

    def counted(self, first: int, ended: int) -> Counted:
        """What happened in the steps from FIRST on that come before ENDED, as far as the ledger still has it."""
        ledger = self.simulator.ledger
        rows = (ledger.kernels, ledger.copies, ledger.synchronisations)
        first = max([first, *(each[0].step + 1 for each in rows if len(each) == RECORDS)])
        kernels = [each for each in ledger.kernels if first <= each.step < ended]
        waits: dict[tuple[str, int, str], list[int]] = {}
        for wait in ledger.synchronisations:
            if first <= wait.step < ended:
                waits.setdefault((wait.file, wait.line, wait.call), []).append(wait.step)
        copies: dict[tuple[str, int, str, bool, bool], list[tuple[int, int]]] = {}
        for each in ledger.copies:
            if first <= each.step < ended and each.kind != "device-to-device":
                key = (each.file, each.line, each.kind, each.pinned, each.non_blocking)
                copies.setdefault(key, []).append((each.bytes, each.step))
        return Counted(
            max(ended - first, 0),
            len(kernels),
            sum(each.end - each.start for each in kernels) if self.card.has_rates else 0,
            [Wait(*key, len(steps), len(set(steps))) for key, steps in waits.items()],
            [
                Transfer(*key, len(found), sum(size for size, _ in found), len({step for _, step in found}))
                for key, found in copies.items()
            ],
        )

    def aside(self, call: Callable[..., Any]) -> Callable[..., None]:
        """CALL, whose kernels, copies and waits are an observer's and are not counted."""
        pause = self.native.pause_records

        def called(*arguments: Any) -> None:
            before = pause(True)
            try:
                call(*arguments)
            finally:
                pause(before)

        return called

    def stop_counting(self) -> None:
        """Memory is followed to the end, kernels and copies are no longer written down."""
        self.native.set_records(0)

    def count_again(self) -> None:
        """Kernels and copies are written down anew."""
        self.native.set_records(RECORDS)

    def peaks(self) -> list[Peak]:
        """Of each device that was used."""
        found = []
        for device in range(self.card.count):
            size, reserved, step, file, line, holders = self.native.peak(device)
            if size:
                parts = {HOLDERS[number]: held for number, held in holders.items()}
                found.append(Peak(device, size, reserved, step, file, line, parts))
        return found


def begin(row: Mapping[str, Any], note: Callable[[str, str], None]) -> Rehearsal:
    """Puts the card of ROW into this process, before its script has begun.

    Ends the process with a sentence where it cannot be simulated: what follows would not be what was asked for. NOTE
    writes a line of a kind into the list of the job's processes.
    """
    try:
        return Rehearsal(Card.from_row(row))
    except SimulationError as error:
        note("not-begun", str(error))
        sys.exit(f"torchtriage: {error}")
