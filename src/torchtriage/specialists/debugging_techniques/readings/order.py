"""What a record says about steps in the wrong order."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.record.further import further
from torchtriage.specialists.debugging_techniques.probes.events import LateClip, LateShrunk, Zeroed

VARIES = 1.01  # the largest of factors over the least: a clip by norm divides by a norm, which differs


@detector("run/zeroed-before-step")
def zeroed_before_step(record: RankRecord) -> Iterator[Sighting]:
    """Every step of an optimizer found the gradients cleared that backward had just filled."""
    for event in {each.number: each for each in record.all(Zeroed)}.values():  # the last word on each
        if event.sound:
            continue  # a step learned: clearing before the others is a way to hold them back
        by = "zero_grad" if event.by_name else "something"
        fact = f"{by} cleared the gradients between backward and step: all {event.early} steps of {event.optimizer} "
        fact += "that were watched found none"
        yield from further(
            Sighting(_place(record, event, event.step), fact, float(event.early), "steps"), event.further
        )


@detector("run/clip-after-step")
def clip_after_step(record: RankRecord) -> Iterator[Sighting]:
    """Gradients are clipped only after the step that used them."""
    for clip in record.all(LateClip)[-1:]:
        if not clip.cut:
            continue  # a limit that nothing ever reached: a measurement
        fact = f"{clip.call} came after the optimizer's step, {clip.late} times of {clip.late} that were watched: "
        fact += f"gradients above {clip.limit:g} went into the weights whole ({clip.cut} times)"
        yield from further(Sighting(_place(record, clip, clip.at), fact, float(clip.late), "steps"), clip.further)
    for shrunk in record.all(LateShrunk)[-1:]:
        least, most = shrunk.factors
        if not shrunk.cut and most < VARIES * least:
            continue  # always the same factor: another unit, for somebody to look at
        late = shrunk.scaled + shrunk.cut
        fact = f"the gradients were made smaller only after the optimizer's step had used them, {late} times"
        if shrunk.scaled:
            fact += f" (to {least:.2g} of them and more)"
        yield from further(Sighting(_place(record, shrunk, shrunk.step), fact, float(late), "steps"), shrunk.further)


def _place(record: RankRecord, event: Zeroed | LateClip | LateShrunk, step: int) -> Place:
    return Place(path=event.path or None, line=event.line or None, rank=record.rank, step=step)
