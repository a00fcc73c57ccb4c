"""The steps of a rank on its device's own clock, with what its device waited for others taken out of the phases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torchtriage.examine.run.job.events import Device, Step, replace
from torchtriage.examine.run.record import SETTLED, RankRecord, RunRecord

PHASES = ("data", "transfer", "forward", "backward", "optimizer", "communication")


class Wait(NamedTuple):
    """One of a Device. certain: seconds for which the device waited for nothing else, as for a host that is slow."""

    path: str
    line: int
    call: str
    bytes: int
    seconds: float
    certain: float


def uses_device(record: RankRecord) -> bool:
    """Whether the rank has memory on a device: its host then runs ahead of what it times."""
    return any(step.allocated for step in record.every_step)


def device_steps(record: RankRecord) -> list[Step]:
    """The watched steps with the times of the device; all else, as the host's wait for a CPU, is the host's."""
    host = {step.step: step for step in record.watched_steps}
    return [_on_device(host[each.at], each) for each in record.on_device if each.at in host]


def waits_by_step(record: RunRecord) -> dict[int, list[Device]]:
    """Of each step that all ranks have timed, the step of each rank, in their order, where all waited equally often."""
    by_rank = [{each.at: each for each in rank.timed_on_device(SETTLED)} for rank in record.ranks]
    common = set.intersection(*(set(steps) for steps in by_rank)) if by_rank else set()
    rows = {number: [steps[number] for steps in by_rank] for number in sorted(common)}
    return {number: each for number, each in rows.items() if len({len(device.waits) for device in each}) == 1}


def unhidden(devices: Sequence[Device]) -> list[Wait]:
    """Each wait, for as long as even the rank waited that came last: nobody was waited for any more."""
    each = zip(*([Wait(*wait) for wait in device.waits] for device in devices), strict=True)
    return [
        waits[0]._replace(seconds=min(wait.seconds for wait in waits), certain=min(wait.certain for wait in waits))
        for waits in each
    ]


def _on_device(host: Step, device: Device) -> Step:
    times = {name: device.spent(name) for name in PHASES}
    return replace(host, seconds=device.seconds, probes=0.0, idle=0.0, **times)
