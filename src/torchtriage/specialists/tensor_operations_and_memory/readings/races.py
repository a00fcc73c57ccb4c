"""What a record says about memory that is used before a copy into or out of it has ended.

Whether a copy ends in time is a matter of the device: on one that is simulated, silence would say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import CopyRaces, StreamUses
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.series.quantiles import number

LEAST = 1e-6  # seconds: twice the resolution of times between events, which CUDA's documentation gives as 0.5 us
NAMES = {
    "numpy": "an array of numpy()", "save": "torch.save()", "__repr__": "repr()", "__index__": "an index",
    "__eq__": "==", "__ne__": "!=", "__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">=", "__add__": "+",
    "__radd__": "+", "__iadd__": "+=", "__sub__": "-", "__rsub__": "-", "__isub__": "-=", "__mul__": "*",
    "__rmul__": "*", "__imul__": "*=", "__truediv__": "/", "__rtruediv__": "/", "__itruediv__": "/=",
    "__setitem__": "[...] =",
}  # fmt: skip
"""What is called, as code writes it; all others are methods of their name."""


@detector("run/non-blocking-race", timed=True)
def non_blocking_race(record: RankRecord) -> Iterator[Sighting]:
    """The host read or overwrote memory of a non-blocking copy that the device had not ended."""
    steps: dict[tuple[str, int, str, str, str, int, str], list[int]] = {}
    for event in record.all(CopyRaces):
        for *key, _times in event.races:
            steps.setdefault(tuple(key), []).append(event.at)
    for (path, line, call, goes, used_at, used_in, use), at in steps.items():
        copy = f"{call}(non_blocking=True) to the {goes} in {_line(path, line, used_at)}"
        name = NAMES.get(use, f"{use.removeprefix('__').removesuffix('__')}()")
        if goes == "host":
            what = f"{name} used the result of {copy} before the copy had ended"
        else:
            what = f"{name} overwrote pinned memory before {copy} had read it"
        place = Place(path=used_at or None, line=used_in or None, rank=record.rank, step=at[0])
        yield Sighting(place, f"{what}, in {_count(len(at))}, the first of them {at[0]}", float(len(at)), "steps")


@detector("run/stream-not-waited", timed=True)
def stream_not_waited(record: RankRecord) -> Iterator[Sighting]:
    """The device began a forward pass before a copy of another stream that the pass was given had ended."""
    late: dict[tuple[str, int, str], list[tuple[int, float]]] = {}
    seen: dict[tuple[str, int, str], set[int]] = {}
    for event in record.all(StreamUses):
        for path, line, call, seconds in event.uses:
            seen.setdefault((path, line, call), set()).add(event.at)
            if seconds > LEAST:
                late.setdefault((path, line, call), []).append((event.at, seconds))
    for (path, line, call), uses in late.items():
        steps = sorted({at for at, _ in uses})
        ms = number(median(seconds for _, seconds in uses) * 1e3)
        share = f"{len(steps)} of {_count(len(seen[path, line, call]))}"
        fact = (
            f"{call}() copies to the device in a stream of its own, and in {share} the device began the forward pass "
            f"that is given the copy {ms} ms before it had ended: nothing makes one stream wait for the other"
        )
        place = Place(path=path or None, line=line or None, rank=record.rank, step=steps[0])
        yield Sighting(place, fact, float(len(steps)), "steps")


def _line(path: str, line: int, beside: str) -> str:
    """LINE of PATH, which is named where it is another than the one BESIDE."""
    return f"line {line}" if path == beside else f"{path}:{line}"


def _count(steps: int) -> str:
    return f"{steps} step{'s' * (steps != 1)}"
