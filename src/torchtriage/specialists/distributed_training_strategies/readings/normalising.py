"""What a record says of layers that normalise by the batch of one rank."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord

ENOUGH = 16  # samples on a rank


@detector("run/batchnorm-not-synced")
def batchnorm_not_synced(record: RankRecord) -> Iterator[Sighting]:
    """Replicas normalise by the few samples that their own rank has."""
    if record.rank:
        return  # the others do the same
    for event in record.all("inputs"):
        layers, samples = event.get("normalised") or 0, event.get("samples")
        if event["root"] != "DistributedDataParallel" or not layers or samples is None or samples >= ENOUGH:
            continue
        made = next((head["made"] for head in record.all("replicas") if head.get("made")), ("", 0))
        fact = f"{layers} layers of BatchNorm normalise by the {samples} samples of their own rank"
        yield Sighting(Place(path=made[0] or None, line=made[1] or None, step=event["step"]), fact, samples, "samples")
        return
