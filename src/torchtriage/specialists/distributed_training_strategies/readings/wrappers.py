"""What a record says about the set-up of DistributedDataParallel: unused parameters, sizes of buckets."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import Error, Wrapper
from torchtriage.examine.run.record import RankRecord

UNREDUCED = "Expected to have finished reduction in the prior iteration"
INDICES = re.compile(r"did not receive grad for rank \d+: ([\d ]+)")
LOOKS = 8  # passes without an unused parameter, after which the search for them is in vain
KIB = 1024
SMALL, MANY = 256 * KIB, 8  # bytes of a bucket in the mean, buckets: bucket-size.md says why
LARGE = 64 * KIB * KIB  # bytes of gradients in one bucket


@detector("run/unused-parameters")
def unused_parameters(record: RankRecord) -> Iterator[Sighting]:
    """DistributedDataParallel waits for gradients that never come, or searches for unused parameters in vain."""
    yield from _unreduced(record)
    if not record.rank:
        yield from _searched(record)


def unreduced(record: RankRecord) -> list[Error]:
    """The error of a rank that ended since an average of its gradients never came."""
    return [error for error in record.all(Error) if error.message.startswith(UNREDUCED)]


def _unreduced(record: RankRecord) -> Iterator[Sighting]:
    for error in unreduced(record):
        found = INDICES.search(error.message)
        numbers = [int(each) for each in found.group(1).split()] if found else []
        wrappers = record.all(Wrapper)
        known = next((event.names for event in wrappers if event.names), ())
        names = [known[each] for each in numbers if each < len(known)]
        what = ", ".join(names[:6]) or f"those with the numbers {', '.join(map(str, numbers[:6]))}"
        fact = f"{len(numbers) or 'some'} parameters got no gradient in a backward pass ({what}): the next forward "
        fact += "pass ended the job, for their average never came"
        named = names[0].rpartition(".")[0] or names[0] if names else None
        yield Sighting(Place(path=error.path or None, line=error.line or None, rank=record.rank, module=named), fact)
        for event in wrappers[:1]:
            yield Sighting(_built(record, event), "the wrapper is made here, without find_unused_parameters")


def _searched(record: RankRecord) -> Iterator[Sighting]:
    for event in _last(record):
        if event.searches and not event.spared and event.looks >= LOOKS and _several(event):
            fact = f"{event.name} is searched for unused parameters in every pass, and none was unused in the "
            fact += f"{event.looks} passes that were looked at"
            yield Sighting(_built(record, event), fact)


@detector("run/bucket-size")
def bucket_size(record: RankRecord) -> Iterator[Sighting]:
    """The buckets in which gradients are averaged are far too small, or one holds a whole large network."""
    for event in _last(record) if not record.rank else ():
        buckets = event.buckets
        if not buckets or not _several(event):
            continue
        mean, place = sum(buckets) / len(buckets), _built(record, event)
        said = f"the gradients of {event.name} are averaged in"
        if len(buckets) >= MANY and mean < SMALL:
            fact = f"{said} {len(buckets)} buckets of {mean / KIB:.3g} KiB in the mean, each with its latency"
            yield Sighting(place, fact, float(len(buckets)), "buckets")
        elif len(buckets) == 1 and mean >= LARGE:
            fact = f"{said} one bucket of {mean / KIB / KIB:.3g} MiB, which begins when backward has ended"
            yield Sighting(place, fact, 1.0, "buckets")


def _last(record: RankRecord) -> list[Wrapper]:
    """The last word on each wrapper."""
    return list({(event.path, event.line, event.name): event for event in record.all(Wrapper)}.values())


def _several(event: Wrapper) -> bool:
    return (event.world or 1) > 1


def _built(record: RankRecord, event: Wrapper) -> Place:
    return Place(path=event.path or None, line=event.line or None, rank=record.rank)
