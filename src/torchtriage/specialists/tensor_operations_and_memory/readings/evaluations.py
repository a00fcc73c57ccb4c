"""What a record says about models that are evaluated with autograd switched on."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.record.further import further
from torchtriage.specialists.tensor_operations_and_memory.probes.events import (
    EvaluatedWithGraph,
    Evaluating,
    LearnedFrom,
)

PASSES = {True: 16, False: 5}  # whose graphs died unused, by training mode: fewer may be a look at something
PHASES = 4  # in which a look at something was repeated
RARE = 4  # steps for each of those phases, at least, in training mode: what comes in every step is a part of it


@detector("run/eval-builds-graph")
def eval_builds_graph(record: RankRecord) -> Iterator[Sighting]:
    """Many forward passes in a row recorded graphs that no backward ever went through."""
    latest = {_site(event): event for event in record.all(EvaluatedWithGraph)}
    learned = {_site(event) for event in record.all(LearnedFrom)}
    for site, event in latest.items():
        if site in learned or not _enough(event, record.count):
            continue
        mode = "training" if event.training else "evaluation"
        times = f"in {event.phases} phases" if event.phases > 1 else "in a row"
        seen = Sighting(
            Place(path=event.path or None, line=event.line or None, rank=record.rank),
            f"{event.root} ran {event.passes} passes {times} here, in {mode} mode and with autograd on: each "
            f"recorded a graph of {event.nodes} nodes with its activations, and no backward ever went through one",
            float(event.passes),
            "passes",
        )
        yield from further(seen, event.further)


def _enough(event: EvaluatedWithGraph, steps: int) -> bool:
    again = event.phases >= PHASES and (not event.training or steps >= RARE * event.phases)
    return again or event.passes >= PASSES[event.training]


def _site(event: Evaluating) -> tuple[str, int, bool]:
    return event.path, event.line, event.training
