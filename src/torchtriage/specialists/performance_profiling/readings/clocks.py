"""What a record says about clocks that were read while the device worked."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.series.quantiles import number
from torchtriage.specialists.performance_profiling.probes.events import ClockReadings

ENOUGH = 10  # times that a span was timed
LONGER, APART = 1.5, 1e-4  # the factor, and the seconds each time, by which the device takes longer than the clock says
LEVEL = 0.8  # of the device's time in all spans together, that the host's is at least where it does not run ahead


@detector("run/timing-without-sync", timed=True)
def timing_without_sync(record: RankRecord) -> Iterator[Sighting]:
    """The clock is read around work of which the device does more than half after it was read.

    Not where the job waits for the device by itself now and then, as who compares queueing with computing does; and not
    where the host runs ahead of the device in all that it times: then the queue fills up, and steps that are timed from
    end to end are right in the mean.
    """
    for event in record.all(ClockReadings):
        host, device = sum(span[4] for span in event.spans), sum(span[5] for span in event.spans)
        if event.waits or host < LEVEL * device:
            continue
        for path, first, second, times, by_clock, by_device in event.spans:
            if times < ENOUGH or by_device < LONGER * by_clock or by_device - by_clock < APART * times:
                continue
            fact = (
                f"from line {first} to here the clock says {number(by_clock / times * 1e3)} ms, but the device needs "
                f"{number(by_device / times * 1e3)} ms for what was launched in between ({times} times): only queueing "
                "is timed"
            )
            yield Sighting(Place(path=path, line=second, rank=record.rank), fact, by_device / by_clock, "times as long")
