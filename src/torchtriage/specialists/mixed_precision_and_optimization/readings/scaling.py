"""What a run's record says about its loss scale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from itertools import pairwise
from math import sqrt

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.examine.run.job.events import ClipScaled, NonFinite, Skip, Step
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.mixed_precision_and_optimization.readings import byhand

ENOUGH_STEPS = 20
SEARCH = 20  # steps at most in which the scaler looks for its first scale: 2 ** 16 is halved to 1 in sixteen
LEAST = 1.0  # a scale from which a try of twice as much overflows because of something else
FEW = 3  # skips after the search that are too few to be called anything
CONFIDENCE = 1.96  # standard deviations of a normal distribution that hold 95 %


@detector("run/clip-before-unscale")
def clip_before_unscale(record: RankRecord) -> Iterator[Sighting]:
    """Gradients were clipped while still multiplied by the loss scale."""
    events = record.all(ClipScaled)
    if not events:
        yield from byhand.clipped(record)
        return
    first, last = events[0], events[-1]
    norm, scale = first.norm, first.scale
    place = Place(path=first.path or None, line=first.line or None, rank=record.rank, step=first.step)
    measured = "" if norm is None else f": a norm of {norm:.3g}, which is {norm / scale:.3g} times the scale"
    yield Sighting(
        place,
        f"{first.call} clipped gradients still multiplied by the loss scale {scale:.0f}{measured}; "
        f"{last.times} times by step {last.step}",
        scale,
        "loss scale",
    )


@detector("run/scale-collapsing")
def scale_collapsing(record: RankRecord) -> Iterator[Sighting]:
    """The share of optimizer steps that the GradScaler skipped after its first search for a scale."""
    skips = record.all(Skip)
    if not skips:
        return
    steps = record.all(Step)
    if len(steps) < ENOUGH_STEPS:
        raise CannotSee(f"{len(steps)} steps, {ENOUGH_STEPS} are needed", "Let the job run for 50 steps or more.")
    count, after = _after_search(record)
    if count < FEW:
        return
    later = [skip for skip in skips if not _is_search(skip, skips)] or skips
    first, last = next((skip for skip in later if skip.bad), later[0]), later[-1]
    yield Sighting(
        Place(path=first.path or None, line=first.line or None, rank=record.rank, step=first.step,
              module=first.nearest),
        f"{count} of {after} steps were skipped after the search for a scale, which went from "
        f"{first.scale:g} (step {first.step}) to {last.scale:g} (step {last.step}); the first time "
        f"{first.bad} of {first.of} gradients were not finite, nearest to the loss {first.nearest}",
        count / after,
        "of the steps",
        _wilson(count, after),
    )  # fmt: skip
    origin = record.first(NonFinite)
    if origin is not None and origin.line:
        place = Place(path=origin.path or None, line=origin.line, rank=record.rank, module=origin.module or None)
        told = "the first loss or gradient that was not finite before scaling comes from here"
        yield Sighting(place, told, count / after, "of the steps")


def collapses(record: RankRecord, bound: float) -> bool:
    """Whether the share of skipped steps after the search is above BOUND at the near end of its interval."""
    if len(record.all(Step)) < ENOUGH_STEPS:
        return False
    count, after = _after_search(record)
    return count >= FEW and _wilson(count, after)[0] > bound


def skips_after_search(record: RankRecord) -> int:
    """How many steps were skipped, without those in which a scaler was looking for its first scale."""
    turns = _by_scaler(record.all(Skip))
    left_out = sum(turn < _search(skipped) for skipped in turns.values() for turn in skipped)
    return sum(bool(step.skipped) for step in record.all(Step)) - left_out


def _after_search(record: RankRecord) -> tuple[int, int]:
    """How many of those skips lowered the scale further, and of how many steps after the search."""
    skips = record.all(Skip)
    searched = sum(map(_search, _by_scaler(skips).values()))
    return round(skips_after_search(record) * _share_that_falls(skips)), len(record.all(Step)) - searched


def _share_that_falls(skips: Sequence[Skip]) -> float:
    """Of the skips after the search that have a neighbour: those whose scale is lower than at the skip before.

    A scaler doubles its scale now and then, to try: a skip that follows brings it back to where it was.
    """
    later = [skip for skip in skips if not _is_search(skip, skips)]
    pairs = [
        (before.scale, skip.scale)
        for before, skip in pairwise(later)
        if skip.total == before.total + 1 and skip.step - _turn(skip) == before.step - _turn(before)
    ]
    return sum(after < before or after <= LEAST for before, after in pairs) / len(pairs) if pairs else 1.0


def _is_search(skip: Skip, skips: Sequence[Skip]) -> bool:
    turn = _turn(skip)
    return turn < _search(_by_scaler(skips)[skip.step - turn])


def _by_scaler(skips: Sequence[Skip]) -> dict[int, set[int]]:
    """By the step in which a scaler began: which of its steps, counted from there, were skipped."""
    turns: dict[int, set[int]] = {}
    for skip in skips:
        turns.setdefault(skip.step - _turn(skip), set()).add(_turn(skip))
    return turns


def _turn(skip: Skip) -> int:
    return skip.step if skip.turn is None else skip.turn


def _search(skipped: Set[int]) -> int:
    """How many of a scaler's first steps belong to its search: as long as half of them or more are in SKIPPED."""
    count = 0
    end = 0
    for number in range(SEARCH):
        count += number in skipped
        if 2 * count > number:
            end = number + 1
    return end


def _wilson(count: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share that was counted (Wilson's score interval)."""
    z = CONFIDENCE**2 / of
    share = count / of
    middle = (share + z / 2) / (1 + z)
    half = CONFIDENCE / (1 + z) * sqrt(share * (1 - share) / of + z / (4 * of))
    return max(0.0, min(middle - half, share)), min(1.0, max(middle + half, share))
