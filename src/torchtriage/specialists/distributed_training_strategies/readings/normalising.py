"""What a record says of layers that normalise by the batch of one rank."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import Replicas
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.distributed_training_strategies.probes.events import Inputs

ENOUGH = 16  # samples on a rank


@detector("run/batchnorm-not-synced")
def batchnorm_not_synced(record: RankRecord) -> Iterator[Sighting]:
    """Replicas normalise by the few samples that their own rank has."""
    if record.rank:
        return  # the others do the same
    for event in record.all(Inputs):
        layers, samples = event.normalised, event.samples
        if event.root != "DistributedDataParallel" or not layers or samples is None or samples >= ENOUGH:
            continue
        path, line = next((head.made for head in record.all(Replicas) if head.made), ("", 0))
        fact = f"{layers} layers of BatchNorm normalise by the {samples} samples of their own rank"
        yield Sighting(Place(path=path or None, line=line or None, step=event.step), fact, samples, "samples")
        return
