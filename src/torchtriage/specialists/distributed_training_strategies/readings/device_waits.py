"""What the devices of all ranks waited for collectives, step by step, or why that is not known."""

from __future__ import annotations

from torchtriage.examine.detector import CannotSee
from torchtriage.examine.run.job.events import Collectives, Device, Meeting, Wrapper
from torchtriage.examine.run.ranks.device_steps import waits_by_step
from torchtriage.examine.run.reader.unseen import world_size
from torchtriage.examine.run.record import RankRecord, RunRecord

ENOUGH_STEPS = 20
LEAST = 0.0005  # seconds a step: what a launch of the host's takes now and then
PROFILE = "Profile the same ten steps on every rank with torch.profiler, and read their traces together."


def steps_with_waits(record: RunRecord) -> dict[int, list[Device]]:
    """Of each step that the devices of all ranks have timed, the step of each; none where ranks do not meet.

    Raises CannotSee where they do, and it is not known how long each device waited.
    """
    world = world_size(record.ranks)
    looks = [look for rank in record.ranks for look in rank.all(Collectives)]
    is_recorded = any(look.rows and len(ranks) > 1 for look in looks for _, ranks in look.groups)
    if not is_recorded and not any(map(_meets, record.ranks)):
        return {}
    if len(record.ranks) < world:
        raise CannotSee(
            f"records of {len(record.ranks)} of {world} ranks do not tell whom their devices wait for",
            "Put the run's folder on a disk that all nodes share, and start every node under torchtriage.",
        )
    if any(look.pairs for look in looks):
        raise CannotSee(
            "the ranks send each other tensors: a stage of a pipeline also waits for its turn, on no slow network",
            PROFILE,
        )
    if any(1 < len(ranks) < world for look in looks for _, ranks in look.groups):
        raise CannotSee("the ranks meet in several groups: who is late in one makes others late in the next", PROFILE)
    found = {step: devices for step, devices in waits_by_step(record).items() if devices[0].waits}
    if len(found) < ENOUGH_STEPS:
        timed = min(len(rank.on_device) for rank in record.ranks)
        whole = sum(bool(device.waits) for rank in record.ranks for device in rank.on_device)
        why = f"in {len(found)} steps the devices of all ranks have timed the same waits for collectives"
        if timed >= ENOUGH_STEPS and not whole:
            why = "the devices wait for collectives in no call of Python's: compiled code waits, or a sharded model"
        raise CannotSee(
            f"{why}; {ENOUGH_STEPS} steps are needed",
            f"Let the job run for {2 * ENOUGH_STEPS} steps or more. {PROFILE}",
        )
    return found


def _meets(rank: RankRecord) -> bool:
    return rank.has(Wrapper) or rank.has(Meeting) or any(device.waits for device in rank.all(Device))
