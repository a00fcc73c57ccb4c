"""Which explanations of a difference are tried, and in what order: those first for which something speaks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from torchtriage.examine.run.lines import Row
from torchtriage.examine.trial.repeat.compare import Difference
from torchtriage.examine.trial.repeat.pinpoint import Origin
from torchtriage.examine.trial.repeat.record import Told

DRAWN = ("seeds", "entropy", "hash", "listing", "addresses")
REST = ("workers", "threads", "deterministic")
TOGETHER = ("seeds", "entropy", "hash", "listing", "addresses", "threads", "deterministic")
_CLOCKS = ("time.", "os.urandom", "os.getpid")


def explanations(place: Difference, origin: Origin | None, one: Told, other: Told) -> list[str]:
    """The names of what legs can hold still, the likeliest first; what cannot be the reason is left out."""
    cheap = [name for name in DRAWN if _may_be(name, one, place)]
    if seeds_apart(one.sources, other.sources):
        cheap.sort(key=lambda name: name not in {"entropy", "hash"})
    elif not place.states and not find_requests(one.sources, "without a seed", place):
        cheap.sort(key=lambda name: name == "seeds")
    rest = [name for name in REST if _may_be(name, one, place)]
    kernel = origin is not None and origin.how == "kernel"
    later = place.phase in {"backward", "update"} and origin is None and not place.states
    return [*rest, *cheap] if kernel or later else [*cheap, *rest]


def _may_be(name: str, one: Told, place: Difference) -> bool:
    """Whether what NAME holds still has had anything to do with the job."""
    conditions = one.conditions
    speaks = {
        "entropy": any(find_requests(one.sources, clock, place) for clock in _CLOCKS),
        "hash": bool(conditions.get("hash", True)),
        "listing": bool(
            find_requests(one.sources, "os.listdir", place) or find_requests(one.sources, "os.scandir", place)
        ),
        "workers": bool(conditions.get("workers")),
        "threads": int(conditions.get("threads") or 1) > 1,
        "deterministic": place.phase in {"forward", "backward", "update"},
    }
    return speaks.get(name, True)


def find_requests(sources: tuple[Row, ...], what: str, place: Difference) -> list[Row]:
    """The user's lines that have asked for WHAT before the step had ended; in workers of loaders at any time."""
    return [each for each in sources if what in each["what"] and (each["turn"] <= place.turns[1] or each.get("worker"))]


def seeds_apart(one: tuple[Row, ...], other: tuple[Row, ...]) -> list[Row]:
    """The lines that have given other seeds in the other leg."""
    theirs = {_seed(each) for each in other if each["what"] == "seed"}
    return [each for each in one if each["what"] == "seed" and _seed(each) not in theirs]


def _seed(event: Row) -> tuple[object, ...]:
    return event["path"], event["line"], event["of"], event["value"]


def reordered(one: Told, other: Told) -> float | None:
    """Which share of the samples of one leg has come in the other, too, where the order differs; None where unknown."""
    shares = [share for rank in one.by_rank if (share := _of_rank(one, other, rank)) is not None]
    return min(shares, default=None)


def _of_rank(one: Told, other: Told, rank: int) -> float | None:
    ours, theirs = list(_rows(one, rank)), list(_rows(other, rank))
    if not ours or not theirs or ours == theirs:
        return None
    common = (Counter(ours) & Counter(theirs)).total()
    return common / max(len(ours), len(theirs))


def _rows(told: Told, rank: int) -> Iterator[int]:
    for line in told.by_rank[rank].rows if rank in told.by_rank else ():
        yield from line["rows"]
