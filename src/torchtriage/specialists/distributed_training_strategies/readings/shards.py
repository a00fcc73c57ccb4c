"""What the marks of several ranks say of the samples that they saw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.ranks.looks import joined
from torchtriage.examine.run.record import RankRecord, RunRecord
from torchtriage.specialists.distributed_training_strategies.probes.events import Divided, Inputs, Pass, Shard

LOOKS = 4  # batches, of which as many differ from each other
MOST = 0.9  # of the looks
SKETCHED = 64  # marks of samples, fewer of which say nothing
MARKS = 2**62  # the range of those
DISTINCT = 0.7  # of the samples of a pass: where many are alike, other samples look the same
LEARNED = 0.75  # of the batches, after which a backward came

Numbers = tuple[int, int]  # of a pass, and of a batch in it
Seen = Mapping[Numbers, Shard | Inputs]


@detector("run/same-data-on-ranks")
def same_data_on_ranks(record: RunRecord) -> Iterator[Sighting]:
    """Ranks whose gradients are averaged learn from the same batches in the same order."""
    by_rank = {rank.rank: rank for rank in record.ranks}
    told: set[str] = set()
    for ranks in _replicated(record):
        for one, other in combinations(sorted(ranks)[:8], 2):
            if one in by_rank and other in by_rank:
                for key, sightings in _same(by_rank[one], by_rank[other], len(ranks)):
                    if key not in told:
                        told.add(key)
                        yield from sightings


def _replicated(record: RunRecord) -> set[tuple[int, ...]]:
    """Groups of ranks whose gradients are averaged: by a wrapper, by FSDP, or by collectives of the job's own."""
    found = {
        tuple(ranks) for rank in record.ranks for event in rank.all(Inputs) for ranks in event.over if len(ranks) > 1
    }
    for joint in joined(record):
        if joint.wrapped or joint.expected or joint.returning:
            over = joint.head.over or sorted(joint.heads)
            found.add(tuple(over))
    return found


def _same(one: RankRecord, other: RankRecord, ranks: int) -> Iterator[tuple[str, list[Sighting]]]:
    loaders = _loaders(one).keys() & _loaders(other).keys()
    learned = [key for key in sorted(loaders) if _learns(one, key) and _learns(other, key)]
    for key in learned:
        share, number = _alike(_batches(one, key), _batches(other, key))
        if share >= MOST and (_whole(one, key) or _inputs_alike(one, other)):
            yield key, list(_told(one, other, key, share, number, ranks))
        elif (samples := _same_samples(one, other, key)) and (_whole(one, key) or _inputs_whole(one, key)):
            yield key, list(_in_another_order(one, other, key, samples, ranks))
    if not learned and all(map(_followed, (one.all(Inputs), other.all(Inputs)))) and _inputs_alike(one, other):
        yield "inputs", list(_drawn(one, other))


def _loaders(record: RankRecord) -> dict[str, Divided]:
    return {event.loader: event for event in record.all(Divided)}


def _batches(record: RankRecord, key: str) -> dict[Numbers, Shard]:
    return {(each.pass_, each.number): each for each in record.all(Shard) if each.loader == key and each.marks}


def _learns(record: RankRecord, key: str) -> bool:
    """Whether a backward came after most of the batches: an evaluation may well see the same on every rank."""
    last = {(each.pass_, each.number): each for each in record.all(Shard) if each.loader == key}
    return _followed(list(last.values()))  # a look at the data bears the number of the pass that follows it


def _followed(passes: Sequence[Shard | Inputs]) -> bool:
    after = [later.backwards > each.backwards for each, later in pairwise(passes)]
    return bool(after) and sum(after) >= LEARNED * len(after)


def _alike(one: Seen, other: Seen) -> tuple[float, int]:
    """The share of the looks in which the ranks had the same, and how many; none where batches are alike anyway."""
    both = sorted(one.keys() & other.keys())
    different = {_mark(one[key]) for key in both}
    if len(both) < LOOKS or len(different) < LOOKS:
        return 0.0, len(both)
    return sum(_mark(one[key]) == _mark(other[key]) for key in both) / len(both), len(both)


def _same_samples(one: RankRecord, other: RankRecord, key: str) -> int:
    """How many samples two ranks both went through in their whole first pass, whatever the order; 0 where they did not.

    Of the smallest marks of the samples that each saw, nine in ten must be the same, and nearly all samples differ.
    """
    mine, theirs = (next((each for each in rank.all(Pass) if each.loader == key), None) for rank in (one, other))
    if mine is None or theirs is None or mine.samples != theirs.samples:
        return 0
    if min(len(mine.kept), len(theirs.kept)) < SKETCHED:
        return 0
    if any(each.batches != each.of or _distinct(each) < DISTINCT * each.samples for each in (mine, theirs)):
        return 0
    bound = min(mine.kept[-1], theirs.kept[-1])
    here, there = ({mark for mark in each.kept if mark <= bound} for each in (mine, theirs))
    return mine.samples if len(here & there) >= MOST * len(here | there) else 0


def _distinct(event: Pass) -> float:
    """How many of the samples of a pass are different from each other, by the density of their marks."""
    return len(event.kept) * MARKS / max(event.kept[-1], 1)


def _inputs_whole(record: RankRecord, key: str) -> bool:
    """Whether nobody divides the batches of a loader that knows no ranks: models are given no fraction of them."""
    given = {value for event in record.all(Inputs) for value in event.values if value > 1}
    values = {value for event in _batches(record, key).values() for value in event.values if value > 1}
    return bool(given) and not any(0 < each < value and not value % each for each in given for value in values)


def _in_another_order(one: RankRecord, other: RankRecord, key: str, samples: int, ranks: int) -> Iterator[Sighting]:
    here, there = _loaders(one)[key], _loaders(other)[key]
    fact = f"ranks {one.rank} and {other.rank} both went through the same {samples} samples in their first pass, in "
    fact += f"another order: an epoch is {ranks} epochs. {_why(here, there)}"
    step = next(iter(_batches(one, key).values())).step
    yield Sighting(Place(path=here.path or None, line=here.line or None, step=step), fact, 1.0, "of the samples")
    path, line = here.loop
    if line and (path, line) != (here.path, here.line):
        yield Sighting(Place(path=path, line=line, step=step), "here they are read", 1.0, "of the samples")


def _mark(event: Shard | Inputs) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((event.marks or {}).items()))


def _whole(record: RankRecord, key: str) -> bool:
    """Whether a model was given as many values as a batch has: else each rank may have cut its part out of it."""
    given = {value for event in record.all(Inputs) for value in event.values}
    return any(value in given for event in _batches(record, key).values() for value in event.values)


def _inputs_alike(one: RankRecord, other: RankRecord) -> bool:
    """Whether all roots that were given different things in time were given the same on both ranks."""
    roots = {event.root for event in one.all(Inputs)} & {event.root for event in other.all(Inputs)}
    shares = [_alike(_inputs(one, root), _inputs(other, root))[0] for root in sorted(roots)]
    return bool(shares) and min(shares) >= MOST


def _inputs(record: RankRecord, root: str) -> dict[Numbers, Inputs]:
    passes = (event for event in record.all(Inputs) if event.root == root and event.marks)
    return {(0, number): event for number, event in enumerate(passes)}


def _told(one: RankRecord, other: RankRecord, key: str, share: float, number: int, ranks: int) -> Iterator[Sighting]:
    here, there = _loaders(one)[key], _loaders(other)[key]
    same = round(share * number)
    fact = f"{same} of {number} batches that were looked at are the same on ranks {one.rank} and {other.rank}, in the "
    fact += f"same order: {ranks} ranks do the work of one. {_why(here, there)}"
    step = next(iter(_batches(one, key).values())).step
    place = Place(path=here.path or None, line=here.line or None, step=step)
    yield Sighting(place, fact, share, "of the batches")
    path, line = here.sampled or ("", 0)
    if line and (path, line) != (here.path, here.line):
        yield Sighting(Place(path=path, line=line, step=step), "here its sampler is made", share, "of the batches")
    path, line = here.loop
    if line and (path, line) != (here.path, here.line):
        yield Sighting(Place(path=path, line=line, step=step), "here they are read", share, "of the batches")


def _why(here: Divided, there: Divided) -> str:
    if here.num_replicas is not None and here.rank == there.rank:
        return f"The {here.sampler} was told rank {here.rank} of {here.num_replicas} on both"
    if here.num_replicas is not None:
        return f"The {here.sampler} divides by {here.num_replicas}, and the batches are the same all the same"
    if here.sampler.startswith("_Infinite"):
        return f"{here.dataset} gives its whole stream to every rank"
    return f"The loader's sampler is a {here.sampler}, which knows no ranks"


def _drawn(one: RankRecord, other: RankRecord) -> Iterator[Sighting]:
    events = [event for event in one.all(Inputs) if event.marks]
    path, line = events[0].at
    fact = f"the model is given the same on ranks {one.rank} and {other.rank} in {len(events)} passes that were looked "
    fact += "at, and something new in each: they draw with one seed, and do the work of one"
    yield Sighting(Place(path=path or None, line=line or None, step=events[0].step), fact, 1.0, "of the passes")
    given = next((event.given for event in events if event.given), 0)
    if given:
        place = Place(path=path or None, line=given, step=events[0].step)
        yield Sighting(place, "here they are made", 1.0, "of the passes")
