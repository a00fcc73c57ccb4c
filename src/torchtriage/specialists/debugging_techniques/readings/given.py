"""What a record says about losses that were given what they do not expect, and about values that no loss can have."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import Classes
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.record.further import further
from torchtriage.specialists.debugging_techniques.probes.events import Rectified, Scores

LOOKS = 2  # calls of one loss, at least, that must all look so
ROWS = 0.9  # of a call: padding may hold anything
BELOW = 1e-3  # rounding leaves a cross entropy of nothing a little below 0


@detector("run/wrong-loss-input")
def wrong_loss_input(record: RankRecord) -> Iterator[Sighting]:
    """A likelihood that gets no log-probabilities, logits without any below 0, or targets beyond 0 and 1."""
    for looks in _by_call(record, Scores):
        if len(looks) >= LOOKS and all((each.above or 0.0) >= ROWS for each in looks):
            fact = "`nll_loss` expects log-probabilities, and the exponentials of its inputs sum to more than 1 in all "
            fact += f"{len(looks)} calls that were looked at: it got probabilities or logits{_reached(looks)}"
            yield Sighting(_place(record, looks), fact, float(len(looks)), "calls")
    for event in {each.loss: each for each in record.all(Rectified)}.values():
        line = f" in line {event.loss_line}" if event.loss_line else ""
        fact = f"{event.loss}{line} expects logits and is given the output of a ReLU, in {event.times} steps that were "
        fact += "watched: no logit is below 0, and one that is cut off gets no gradient"
        place = Place(event.path or None, event.line or None, rank=record.rank, step=event.first, module=event.module)
        yield from further(Sighting(place, fact, float(event.times), "steps"), event.further)
    for looks in _by_call(record, Classes):
        outside = [each.outside or 0.0 for each in looks]
        if len(looks) >= LOOKS and min(outside) > 0 and all(each.whole for each in looks):
            fact = f"binary cross entropy expects targets from 0 to 1, and {outside[0]:.0%} of them lie outside in the "
            fact += f"first of {len(looks)} calls that were looked at: the loss has no least value{_reached(looks)}"
            yield Sighting(_place(record, looks), fact.replace("%", " %"), float(len(looks)), "calls")


@detector("run/loss-below-possible")
def loss_below_possible(record: RankRecord) -> Iterator[Sighting]:
    """A cross entropy or negative log-likelihood of classes that is below 0."""
    named = {(each.place.path, each.place.line) for each in wrong_loss_input.look(record)}
    for kind in (Scores, Classes):
        for looks in _by_call(record, kind):
            below = [each.value for each in looks if each.value is not None and each.value < -BELOW]
            place = _place(record, looks)
            known = (place.path, place.line) in named or not all(each.whole for each in looks)
            if len(below) < LOOKS or known or looks[-1].value not in below:
                continue
            fact = f"this loss was {looks[-1].value:.3g} at step {looks[-1].at} and below 0 in {len(below)} of "
            fact += f"{len(looks)} calls that were looked at; of classes it is never below 0"
            yield Sighting(place, fact, float(len(below)), "calls")


def _by_call(record: RankRecord, kind: type[Classes]) -> list[list[Classes]]:
    calls: dict[tuple[str | None, int | None], list[Classes]] = {}
    for event in record.all(kind):
        calls.setdefault((event.path or None, event.line or None), []).append(event)
    return list(calls.values())


def _reached(looks: list[Classes]) -> str:
    values = [each.value for each in looks if each.value is not None]
    return f"; the loss went down to {min(values):.3g}" if values and min(values) < -BELOW else ""


def _place(record: RankRecord, looks: list[Classes]) -> Place:
    first = looks[0]
    return Place(first.path or None, first.line or None, rank=record.rank, module=first.module)
