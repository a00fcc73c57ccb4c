"""What a record says about targets that the model is given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isfinite

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import Classes, Setup
from torchtriage.examine.run.record import RankRecord

LOOKS = 2  # in each of which all targets are ids of the input: a short job has no more, thirty steps apart
LOW = 0.1  # of what a guess by the frequencies of the classes costs
KNOWN = 0.1  # nats that such a guess costs, at least: of one class alone everything is known
MEANT = re.compile("auto_?enc|vae|vq|codec|recon|denois|copy|copi|echo|identity", re.IGNORECASE)
"""In the name of a model that is to give back what it is given, token by token."""


@detector("run/target-in-input")
def target_in_input(record: RankRecord) -> Iterator[Sighting]:
    """A loss asks at each position for the id that the model was given there, and next to nothing is left of it."""
    looks = [each for each in record.all(Classes) if each.copied is not None and isfinite(each.copied)]
    if len(looks) < LOOKS or not all(map(_is_copied, looks)) or _is_meant(record):
        return
    first, last = looks[0], looks[-1]
    if first.value is None or last.value is None or last.prior is None or last.prior < KNOWN:
        return
    before, after, floor = first.value / first.summed, last.value / last.summed, last.floor or 0.0
    if not after - floor < LOW * (last.prior - floor):
        return
    fact = (
        f"the targets equal the ids that the embedding is given, position by position, in all {len(looks)} batches "
        f"that were compared; the loss fell from {before:.3g} to {after:.3g} in step {last.at}, where a guess costs "
        f"{last.prior:.3g}: the model copies its input and predicts nothing"
    )
    place = Place(path=last.path or None, line=last.line or None, rank=record.rank, module=last.module)
    yield Sighting(place, fact, float(len(looks)), "batches")


def _is_copied(look: Classes) -> bool:
    """As the whole loss: beside another it may keep embeddings apart, as in Diffusion-LM (arXiv 2205.14217)."""
    return look.copied == 1 and look.alone


def _is_meant(record: RankRecord) -> bool:
    models = [str(each.get("class")) for event in record.all(Setup) for each in event.models]
    return any(map(MEANT.search, models))
