"""What a record says about losses that are accumulated."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.mixed_precision_and_optimization.probes.events import Accumulated

TURNS = 3  # of one optimizer that must all look so


@detector("run/loss-not-averaged-over-accumulation")
def loss_not_averaged_over_accumulation(record: RankRecord) -> Iterator[Sighting]:
    """Several backward passes of one line, each from a batch of its own, with losses that are undivided means."""
    by_line: dict[tuple[str, int, str], list[Accumulated]] = {}
    for event in record.all(Accumulated):
        by_line.setdefault((event.path, event.line, event.optimizer), []).append(event)
    for (path, line, name), events in by_line.items():
        first = events[0]
        if len(events) < TURNS or not all(_summed(each) for each in events) or _divided_rate(first):
            continue
        count = first.passes
        place = Place(path=path or None, line=line or None, rank=record.rank, step=first.step)
        fact = (
            f"{count} backward passes filled the gradients for one step of {name}, each from {first.kinds[0]} "
            f"averaged over a batch of its own and not divided: the gradient is {count} times that of the mean loss"
        )
        yield Sighting(place, fact, float(count), "backward passes per step")
        if first.root:
            place = Place(path=path or None, line=first.root, rank=record.rank, step=first.step)
            yield Sighting(place, "this is the loss that nobody divides", float(count), "backward passes per step")


def _summed(event: Accumulated) -> bool:
    """Micro-batches of one loss: one line, one kind, the same parameters, a batch and a call of the model for each, or
    as many calls each, of several tensors of the batch.
    """
    one_of_each = event.places == 1 and event.reached == 1 and len(event.kinds) == 1 and bool(event.kinds[0])
    once = set(event.calls) == {1} or (len(set(event.calls)) == 1 and event.delivered)
    fed = event.batches == 0 or (event.batches == event.passes and event.loaders == 1) or _cut(event)
    return one_of_each and once and fed and not (event.again or event.fed_back or event.edited)


def _cut(event: Accumulated) -> bool:
    """Whether one batch was cut into the pieces of which each pass took one."""
    return event.batches == 1 and min(event.lengths) > 0 and sum(event.lengths) == event.length


def _divided_rate(event: Accumulated) -> bool:
    """Whether the script divides the learning rate instead of the loss. Where no source could be read, the digits
    decide in favour of the script: a rate that is rounder when multiplied by the number of passes was divided.
    """
    if event.divided is not None:
        return event.divided
    rate, passes = event.rate, event.passes
    if not rate:
        return False
    own, times = _digits(rate), _digits(rate * passes)
    return len(times) < len(own) or (times == "1" and own != "1")


def _digits(value: float) -> str:
    """The significant digits of VALUE: "25" for 0.0025."""
    return f"{value:.6e}".split("e")[0].replace(".", "").rstrip("0")
