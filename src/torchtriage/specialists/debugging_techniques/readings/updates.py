"""What a record says about gradients that pile up, and optimizers that never step."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.record.further import further
from torchtriage.specialists.debugging_techniques.probes.events import Carried, Stalled, Updates
from torchtriage.specialists.debugging_techniques.readings import seen

OFTEN = 10  # steps on carried gradients, not in a row
SHARE = 0.45  # of all steps, at least, are such ones then
RUNNING = 3  # steps in a row on carried gradients: one or two may be a deliberate trick
ENOUGH_BACKWARDS = 10
LONG = 1000  # backward passes with no step that are too many even for a job that was killed


@detector("run/gradients-not-zeroed")
def gradients_not_zeroed(record: RankRecord) -> Iterator[Sighting]:
    """Gradients that a step has used are added to by the next backward, step after step."""
    seen.anything_learned(record)
    longest: dict[str, Carried] = {}
    for event in record.all(Carried):
        before = longest.get(event.optimizer)
        if (event.running >= RUNNING or _often(event)) and (before is None or event.running > before.running):
            longest[event.optimizer] = event
    for name, event in longest.items():
        place = Place(path=event.path or None, line=event.line or None, rank=record.rank, step=event.step)
        running = event.running
        fact = f"the gradients of {name} were not zeroed over {running} steps in a row: each backward added to the last"
        if running < RUNNING:
            running = event.total
            fact = f"{running} of {event.of} steps of {name} used gradients that an earlier step had used already"
        yield from further(Sighting(place, fact, float(running), "steps"), event.further)


def _often(event: Carried) -> bool:
    return event.total >= OFTEN and event.total >= SHARE * event.of


@detector("run/step-missing")
def step_missing(record: RankRecord) -> Iterator[Sighting]:
    """An optimizer whose parameters get gradients that are never applied."""
    seen.anything_learned(record)
    yield from _stalled(record)
    ledgers = {(each.built, each.number): each for each in record.all(Updates)}
    if not any(ledger.steps for ledger in ledgers.values()) and any(each.beside for each in ledgers.values()):
        raise CannotSee(
            "no optimizer stepped, and an input got gradients too: an attack or a saliency map, or a forgotten step",
            "Call the optimizer's step() after backward() if the job is meant to train.",
        )
    for (built, _), ledger in ledgers.items():
        count = ledger.backwards
        if ledger.steps or ledger.moved or count < (ENOUGH_BACKWARDS if ledger.last else LONG):
            continue
        place = Place(path=ledger.path or None, line=ledger.line or None, rank=record.rank)
        fact = f"{count} backward passes filled the gradients of {ledger.optimizer} ({built}), which never stepped"
        yield from further(Sighting(place, fact, float(count), "backward passes"), ledger.further)


def _stalled(record: RankRecord) -> Iterator[Sighting]:
    """Steps that were made, and changed nothing until the end."""
    for event in {event.number: event for event in record.all(Stalled)}.values():
        if not event.running:
            continue  # it went on
        place = Place(path=event.path or None, line=event.line or None, rank=record.rank, step=event.since)
        fact = (
            f"{event.running} steps of {event.optimizer} in a row, since step {event.since}, changed none of "
            f"its parameters, though their gradients are not zero and the learning rate is {event.rate:g}"
        )
        yield from further(Sighting(place, fact, float(event.running), "steps"), event.further)
