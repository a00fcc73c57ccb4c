"""What a record says beside the case of the same job on one process."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.examine.run.measures.scaling import scaling
from torchtriage.examine.run.record import RunRecord


@detector("run/scale-needed")
def scale_needed(record: RunRecord) -> Iterator[Sighting]:
    """One process computes most of its step, nothing else is wrong with it, and several have been started."""
    told = record.baseline
    if not told:
        return
    figures = scaling(record)
    if figures is None:
        raise CannotSee(
            "the baseline is no measure for this job: one rank, another model, or no batch in its steps",
            "Run the same script once on one process, and once on several with --baseline and the case of the first.",
        )
    if told.get("computes") and not told.get("found"):
        fact = f"one process computes most of its step and nothing else is wrong with it; {figures['ranks']} ranks "
        fact += f"reach {figures['efficiency']:.0%} of {figures['ranks']} times its pace"
        yield Sighting(Place(), fact, figures["efficiency"], "of the pace of as many single processes")
