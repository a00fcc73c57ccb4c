"""What an evaluation over a part of the samples says of the figures that are made of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RunRecord
from torchtriage.specialists.distributed_training_strategies.probes.events import Evaluated


@detector("run/metrics-not-reduced")
def metrics_not_reduced(record: RunRecord) -> Iterator[Sighting]:
    """Each rank evaluates its own part of the samples, makes a figure of it, and none ever hears of the others'."""
    loops: dict[tuple[str, int], dict[int, list[Evaluated]]] = defaultdict(lambda: defaultdict(list))
    for rank in record.ranks:
        for event in rank.all(Evaluated):
            loops[event.path, event.loop][rank.rank].append(event)
    for (path, loop), by_rank in sorted(loops.items()):
        events = [event for told in by_rank.values() for event in told]
        of = _divided([told[-1].part for _, told in sorted(by_rank.items())])
        if of < 2 or len(by_rank) < of or any(each.exchanges or each.labelled for each in events):
            continue
        seen = max(told[-1].passes for told in by_rank.values())
        times = "once" if seen == 1 else f"{seen} times"
        first = events[0]
        fact = f"this figure is made {times} of the part of the samples that this rank evaluates, one of {of}, and no "
        fact += "rank heard of the others' before training went on"
        yield Sighting(Place(path=path, line=first.line, step=first.step), fact, seen, "evaluations")
        for line, what in ((first.counts, "here it is counted"), (loop, f"here {of} ranks divide the samples")):
            if line != first.line:
                yield Sighting(Place(path=path, line=line, step=first.step), what, seen, "evaluations")


def _divided(parts: Sequence[Mapping[str, int]]) -> int:
    """Into how many parts, one for each rank, the samples are divided; 0 where that does not show."""
    if all("replicas" in part for part in parts):
        replicas = {part["replicas"] for part in parts}
        alone = len({part["rank"] for part in parts}) == len(parts)
        return replicas.pop() if len(replicas) == 1 and alone else 0
    if any("step" not in part for part in parts):
        return 0
    steps, firsts, number = {part["step"] for part in parts}, [part["first"] for part in parts], len(parts)
    if steps == {number} and firsts == list(range(number)):
        return number
    follows = all(one["last"] + 1 == other["first"] for one, other in pairwise(parts))
    return number if steps == {1} and firsts[0] == 0 and follows else 0
