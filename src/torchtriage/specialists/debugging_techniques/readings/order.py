"""What a record says about steps in the wrong order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.further import further
from torchtriage.examine.run.record import RankRecord

VARIES = 1.01  # the largest of factors over the least: a clip by norm divides by a norm, which differs


@detector("run/zeroed-before-step")
def zeroed_before_step(record: RankRecord) -> Iterator[Sighting]:
    """Every step of an optimizer found the gradients cleared that backward had just filled."""
    for event in _last(record, "zeroed", "number").values():
        if event["sound"]:
            continue  # a step learned: clearing before the others is a way to hold them back
        early = event["early"]
        by = "zero_grad" if event["by_name"] else "something"
        fact = f"{by} cleared the gradients between backward and step: all {early} steps of {event['optimizer']} "
        fact += "that were watched found none"
        yield from further(Sighting(_place(record, event), fact, float(early), "steps"), event)


@detector("run/clip-after-step")
def clip_after_step(record: RankRecord) -> Iterator[Sighting]:
    """Gradients are clipped only after the step that used them."""
    for event in record.all("late-clip")[-1:]:
        if not event["cut"]:
            continue  # a limit that nothing ever reached: a measurement
        late, limit = event["late"], event["limit"]
        fact = f"{event['call']} came after the optimizer's step, {late} times of {late} that were watched: "
        fact += f"gradients above {limit:g} went into the weights whole ({event['cut']} times)"
        place = _place(record, {**event, "step": event["at"]})
        yield from further(Sighting(place, fact, float(late), "steps"), event)
    for event in record.all("late-shrunk")[-1:]:
        least, most = event["factors"]
        if not event["cut"] and most < VARIES * least:
            continue  # always the same factor: another unit, for somebody to look at
        late = event["scaled"] + event["cut"]
        fact = f"the gradients were made smaller only after the optimizer's step had used them, {late} times"
        if event["scaled"]:
            fact += f" (to {least:.2g} of them and more)"
        yield from further(Sighting(_place(record, event), fact, float(late), "steps"), event)


def _last(record: RankRecord, kind: str, key: str) -> dict[Any, dict[str, Any]]:
    """The last word on each."""
    return {event[key]: event for event in record.all(kind)}


def _place(record: RankRecord, event: dict[str, Any]) -> Place:
    return Place(path=event["path"] or None, line=event["line"] or None, rank=record.rank, step=event["step"])
