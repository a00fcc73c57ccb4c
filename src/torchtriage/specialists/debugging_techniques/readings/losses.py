"""What a record says about losses: what they were given, and whether they ever left chance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord

_NAMES = {"Sub": "a difference", "MseLoss": "mse_loss", "SmoothL1Loss": "smooth_l1_loss", "HuberLoss": "huber_loss"}


@detector("run/softmax-before-cross-entropy")
def softmax_before_cross_entropy(record: RankRecord) -> Iterator[Sighting]:
    """Probabilities go into a loss that applies softmax or sigmoid itself."""
    for event in {(each["word"], each["loss"]): each for each in record.all("probabilities")}.values():
        line = f" in line {event['loss_line']}" if event.get("loss_line") else ""
        given = (
            "is given probabilities" if event["word"] == "probabilities" else f"is given the {event['word']} of them"
        )
        fact = f"{event['loss']}{line} expects logits and {given}, in {event['times']} steps that were watched"
        yield Sighting(_place(record, event), fact, float(event["times"]), "steps")


@detector("run/loss-broadcast")
def loss_broadcast(record: RankRecord) -> Iterator[Sighting]:
    """A prediction and a target of different shapes are compared all with all."""
    for event in {each["loss"]: each for each in record.all("broadcast")}.values():
        first, second = (tuple(shape) for shape in event["given"])
        fact = f"{_NAMES[event['loss']]} of shapes {first} and {second} compares each prediction with every target, "
        yield Sighting(_place(record, event), f"{fact}{event['times']} times", float(event["times"]), "times")


def _place(record: RankRecord, event: dict[str, Any]) -> Place:
    return Place(
        path=event["path"] or None,
        line=event["line"] or None,
        rank=record.rank,
        step=event["first"],
        module=event.get("module"),
    )
