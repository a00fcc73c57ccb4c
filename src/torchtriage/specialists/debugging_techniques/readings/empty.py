"""What a record says about steps that train nothing: no gradient reached them, or an error was hidden."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import Error, PassFailed
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.record.further import further
from torchtriage.specialists.debugging_techniques.probes.events import Cut, EmptySteps

ENOUGH = 10  # steps without a gradient: a phase of warming up or of freezing has fewer, or other optimizers that learn
OFTEN = 0.95  # of the passes fail: batches without a pair to compare, or too large ones, are left out on purpose
FAILURES = 5
WITHOUT_GRAPH = "does not require grad and does not have a grad_fn"


@detector("run/loss-detached")
def loss_detached(record: RankRecord) -> Iterator[Sighting]:
    """Backward reaches no parameter, since the graph of the loss was cut, and no step ever learns."""
    error = record.first(Error)
    if error is not None and WITHOUT_GRAPH in error.message:
        for says, path, line in (each for cut in record.all(Cut) for each in cut.further):
            yield Sighting(Place(path=path, line=line, rank=record.rank), f"{says}, before the loss that has none")
    for event in _empty(record):
        if not event.leaves or event.leaves < event.passes:
            continue
        place = Place(path=event.path or None, line=event.line or None, rank=record.rank)
        fact = (
            f"backward reached no parameter in {event.leaves} passes, whose graph begins at a tensor "
            f"of its own: none of the {event.parameters} parameters of {event.optimizer} had a gradient in "
            f"{event.steps} steps"
        )
        made = "the tensor that is differentiated is made here"
        others = [(made, event.path, event.root), (f"{event.optimizer} is built here", *event.built)]
        yield from further(Sighting(place, fact, float(event.steps), "steps"), others)


def _empty(record: RankRecord) -> list[EmptySteps]:
    """The last that was told of each optimizer that never found a gradient."""
    last = {tuple(event.built): event for event in record.all(EmptySteps)}
    return [event for event in last.values() if event.steps >= ENOUGH and not event.sound]


@detector("run/failure-swallowed")
def failure_swallowed(record: RankRecord) -> Iterator[Sighting]:
    """Passes that raise an error, most of them, and the script goes on."""
    last = {(each.phase, each.error, each.path, each.line): each for each in record.all(PassFailed)}
    for event in last.values():
        if event.times < FAILURES or event.times < OFTEN * event.of:
            continue
        what = "backward passes" if event.phase == "backward" else "calls of the model"
        place = Place(path=event.path or None, line=event.line or None, rank=record.rank)
        said = f"{event.error}: {event.message}".rstrip(": ").splitlines()[0]
        fact = f"{event.times} of {event.of} {what} raised {said}; the script caught it and went on"
        empty = [f"{each.optimizer} stepped {each.steps} times without a gradient" for each in _empty(record)]
        yield Sighting(place, "; ".join([fact, *empty]), float(event.times), what)
