"""What a record says about the order in which the ranks saw their samples."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.distributed_training_strategies.probes.events import Order


@detector("run/sampler-epoch-not-set")
def sampler_epoch_not_set(record: RankRecord) -> Iterator[Sighting]:
    """A DistributedSampler that shuffles gave every epoch the order of the first."""
    last = {(event.path, event.line): event for event in record.all(Order)}
    for (path, line), event in last.items():
        if event.changed:
            continue  # some epochs had an order of their own: somebody sees to that
        epochs = event.again + 1
        fact = f"{epochs} epochs of training had the same {event.length} indices in the same order: "
        fact += f"all were epoch {event.epoch} of the sampler, set_epoch never gave it another"
        place = Place(path=path or None, line=line or None, rank=record.rank, step=event.step)
        yield Sighting(place, fact, float(epochs), "epochs")
        where, number = event.loop
        if number and (where, number) != (path, line):
            place = Place(path=where, line=number, rank=record.rank, step=event.step)
            yield Sighting(
                place, "here each of these epochs began, with no set_epoch before it", float(epochs), "epochs"
            )
