"""What a record says about the time that autocast saves."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.examine.run.job.events import Setup
from torchtriage.examine.run.measures.figures import cpu_got
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.mixed_precision_and_optimization.probes.events import AutocastCost

ENOUGH = 3  # pairs
TOY = 0.01  # seconds of a pass without autocast: where it takes less, entering autocast is all that one would see


@detector("run/autocast-not-paying", timed=True)
def autocast_not_paying(record: RankRecord) -> Iterator[Sighting]:
    """A forward pass, repeated with autocast and without: its time with, as a multiple of that without."""
    setup = record.first(Setup)
    if setup and (setup.precision or {}).get("autocast") and any(step.allocated for step in record.every_step):
        raise CannotSee(
            "what autocast saves is measured on a CPU only: on a GPU the host does not see when a pass is over",
            "Time fifty steps after ten of warm-up, synchronized, with autocast and with enabled=False.",
        )
    event = record.first(AutocastCost)
    if event is None:
        return
    if event.why or len(event.pairs) < ENOUGH:
        raise CannotSee(
            f"the forward pass was not repeated without autocast: {event.why or 'the run was too short'}",
            "Time fifty steps after ten of warm-up with autocast and with enabled=False.",
        )
    ratios = sorted(short / full for short, full in event.pairs)
    middle = ratios[len(ratios) // 2]
    short, full = (min(each) for each in zip(*event.pairs, strict=True))
    if full * cpu_got(record.steps) < TOY:
        return
    yield Sighting(
        Place(path=event.path or None, line=event.line or None, rank=record.rank, step=event.step),
        f"a forward pass takes {short * 1e3:.0f} ms under autocast to {event.format} and {full * 1e3:.0f} ms "
        f"without (best of {len(ratios)})",
        middle,
        "times as long",
        (ratios[0], ratios[-1]),
    )
