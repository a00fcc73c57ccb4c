"""What a record says about frozen layers that nobody has trained."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.record.further import further
from torchtriage.specialists.module_design_patterns.probes.events import FrozenAtRandom

ENOUGH = 20  # steps: whoever tries a program out takes fewer
DEEP = 3  # weights: one or two layers at random are features that somebody wants, or a stem that is kept still
MOST = 0.5  # of the model, or of the numbers of its embeddings, which are frozen all: the rest has to tell at random
MEANT = re.compile(
    r"(?<![a-z])(random|reservoir|echo|rnd|elm|lottery|mask|untrained|target|teacher|ema|momentum)|"
    r"Random|Reservoir|Echo|RND|ELM|Lottery|Mask|Untrained|Target|Teacher|EMA|Momentum"
)


@detector("run/frozen-at-random")
def frozen_at_random(record: RankRecord) -> Iterator[Sighting]:
    """Frozen layers below the trained ones are as they were initialised; their share of the model."""
    for event in record.all(FrozenAtRandom):
        is_meant = any(map(MEANT.search, (event.model, *event.names, *event.kinds)))
        if is_meant or event.steps < ENOUGH or event.layers < DEEP or event.drawn < event.matrices:
            continue
        share = event.frozen / event.of
        if share < MOST and not (event.tables and event.measurable >= MOST * event.frozen):
            continue
        first, last = event.names[0], event.names[-1]
        whose = f"{share:.0%} of the numbers of {event.model}" if share >= MOST else f"all embeddings of {event.model}"
        fact = (
            f"{whose} were frozen in all {event.steps} steps and are still those of a random initialisation "
            f"({event.layers} weights, {first} to {last}): what is trained after them learns from random features"
        )
        place = Place(path=event.path or None, line=event.line or None, rank=record.rank, module=first)
        yield from further(Sighting(place, fact, share, "of the model"), event.further)
