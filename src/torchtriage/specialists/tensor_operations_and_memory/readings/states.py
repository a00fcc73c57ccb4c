"""What a record says about states that are carried over steps together with their graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import Error
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.record.further import further
from torchtriage.specialists.tensor_operations_and_memory.probes.events import CarriedState

ERRORS = ("backward through the graph a second time", "modified by an inplace operation")
COUNTS = 16  # backward passes over carried states: fewer may be a window of steps that is propagated through on purpose
ON = 0.8  # of the growth in the first half, at least, in the second: a window that is full grows no more


@detector("run/hidden-state-not-detached")
def hidden_state_not_detached(record: RankRecord) -> Iterator[Sighting]:
    """A model was given its own earlier output with the graph that a backward had been through."""
    events = record.all(CarriedState)
    if not events:
        return
    last = events[-1]
    what = f"{last.root} was given a state of its own ({last.state}) with the graph of an earlier step"
    place = Place(path=last.path or None, line=last.line or None, rank=record.rank, step=last.step)
    error, nodes = record.first(Error) or Error(), last.nodes
    message = next((each for each in ERRORS if each in error.message), None)
    if message is not None and error.step == last.step:
        seen = Sighting(place, f"{what}, and backward raised: {message}", float(len(nodes)), "steps")
        yield from further(seen, last.further)
        return
    if grows(nodes):
        grew = f"grew from {nodes[0]} nodes to {nodes[-1]} in {len(nodes)} backward passes"
        seen = Sighting(
            place,
            f"{what}: the graph of the loss {grew}",
            float(nodes[-1] - nodes[0]) / (len(nodes) - 1),
            "nodes per step",
        )
        yield from further(seen, last.further)


def grows(nodes: Sequence[int]) -> bool:
    """Whether each of many graphs is larger than the one before, as much at the end as at first."""
    middle = len(nodes) // 2
    ever = len(nodes) >= COUNTS and all(later > earlier for earlier, later in pairwise(nodes))
    return ever and nodes[-1] - nodes[middle] >= ON * (nodes[middle] - nodes[0])
