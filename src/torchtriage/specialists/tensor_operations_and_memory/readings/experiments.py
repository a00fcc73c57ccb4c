"""What an experiment shows of the device's memory: with which change a job that is too large for it goes on."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.examine.trial.experiment.arms import CONTROL
from torchtriage.examine.trial.experiment.conduct import NO_DEVICE, REHEARSE, Experiment
from torchtriage.specialists.tensor_operations_and_memory.allocator import gib


@detector("trial/device-out-of-memory")
def device_out_of_memory(experiment: Experiment) -> Iterator[Sighting]:
    """The unchanged job ends because the device is full; which changes let it go on, and what it holds then."""
    found = experiment.peaks.courses.found
    own = found.get((CONTROL, 0))
    if own is None:
        return
    if not experiment.has_peaks:
        raise CannotSee(NO_DEVICE, REHEARSE)
    if not own.full:
        return
    runs = [(str(arm), each.peak or 0) for (arm, _), each in found.items() if arm != CONTROL and each.is_told]
    runs.sort(key=lambda each: each[1])
    peaks = ", ".join(f"{name} (peak {gib(peak)})" for name, peak in runs)
    way = f"it runs with {peaks}" if runs else "it does so with each change that was tried"
    when = f"after {len(own.losses)} steps" if own.losses else "in its first step"
    yield Sighting(Place(rank=0), f"the job runs out of memory {when} ({own.full}); {way}")
