"""What a resumed job lacks: the component that differs at the first resumed step, before what follows from it."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.trial.resume.trial import Resumed
from torchtriage.specialists.checkpointing_and_reproducibility.resuming.missing import missing
from torchtriage.specialists.checkpointing_and_reproducibility.resuming.words import Missing


@detector("trial/resume-differs")
def resume_differs(resumed: Resumed) -> Iterator[Sighting]:
    """The resumed job does not go on as the uninterrupted one does."""
    found = missing(resumed)
    for number, each in enumerate(found):
        fact = each.fact if number else f"{each.fact}. {_course(resumed)}"
        yield Sighting(_place(resumed, each), fact, each.relative, "of the norm" if each.relative is not None else None)


@detector("trial/resume-off-by-one")
def resume_off_by_one(resumed: Resumed) -> Iterator[Sighting]:
    """The resumed job counts one more, or one less, than the uninterrupted one."""
    for each in missing(resumed):
        if each.slug in ("epoch", "scheduler") and abs(each.off) == 1:
            yield Sighting(_place(resumed, each), each.fact, each.off, None)


def _place(resumed: Resumed, each: Missing) -> Place:
    """The anchor is the component: the same omission is the same finding, wherever the job is stopped."""
    return Place(rank=resumed.rank, step=resumed.turn, container=each.holder or None, anchor=each.slug)


def _course(resumed: Resumed) -> str:
    """How the resumed job went on, in one sentence."""
    course, turn = resumed.course, resumed.turn
    firsts = {name: number for name, number in course.apart.items() if name in ("loss", "weights")}
    told = [f"the {name} from {_ordinal(number + 1)} resumed pass on" for name, number in sorted(firsts.items())]
    said = [f"Resumed after step {turn}, it differs in {' and '.join(told)}" if told else
            f"Resumed after step {turn}, its losses and weights are the same for {course.units} passes"]  # fmt: skip
    if course.losses is not None:
        said.append("loss {:.6g} where it was {:.6g}".format(*reversed(course.losses)))
    if course.relative:
        said.append(f"the final weights are {course.relative:.2g} of their norm away")
    if course.missing:
        said.append(f"it does {abs(course.missing)} passes {'less' if course.missing > 0 else 'more'}")
    return "; ".join(said)


def _ordinal(number: int) -> str:
    return "the first" if number == 1 else f"the {number}th" if number > 3 else f"the {('second', 'third')[number - 2]}"
