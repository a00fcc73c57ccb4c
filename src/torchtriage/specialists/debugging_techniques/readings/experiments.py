"""What an experiment shows of the course of a training: which rate gets further, whether batches and targets matter."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, sqrt
from statistics import fmean, stdev

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.examine.trial.experiment.arms import CONTROL, LAST, Arm, Contrast, Course
from torchtriage.examine.trial.experiment.conduct import Experiment
from torchtriage.examine.trial.experiment.questions import (
    FASTER,
    NO_CLIPPING,
    NO_DECAY,
    ONE_BATCH,
    ONE_BATCH_AT,
    OTHER_TARGETS,
    OVERFIT,
    SLOWER,
    SLOWEST,
    TRIES,
)

WORTH = 0.05  # of the loss at the start: what has to be gained before one speaks of training at all
SURE = 6.0  # times the noise of an end of a course, that a gain has to come to
ALIKE = 0.1  # further, as a share of what is gained, within which two arms do the same
CLIMBED = 4.0  # times its start, to which the loss rises before it is not finite, where the rate is too high
WARMING = 2.0  # times the rate of a branch's first step, from which its last is that of a warm-up
DECAYED, CLIPPED = 0.25, 0.9  # of a gain, that decay and clipping take at least where they are the cause
BEYOND = 4.0  # times the highest rate of the job, from which no warm-up explains that a trial's gets further
GONE = 0.1  # of its highest value in a trial, below which the job's own schedule has taken the rate away
STUCK = 0.02  # of the loss at the start, by which that of one batch moves where nothing of it is learned
FALLING = 2e-4  # of the loss at the start, by which one batch still gets cheaper: rounding is a hundredth of that
ROOM = 10  # parameters for each sample of a batch, from which it can be learned by heart
KINDS = 0.5  # of the samples of a batch, that have to differ for that
LONG = 4  # times the steps of a branch, after which a training knows more than how frequent each answer is
KNOWN = 0.03  # of the gain of one batch alone: who has gained more than that beyond what needs no inputs has learned
SAME = 1e-3  # of a loss, by which rounding alone may change it
WAY = "Give the command that trains, as it runs today: a few hundred steps are enough."


@detector("trial/learning-rate-too-high")
def learning_rate_too_high(experiment: Experiment) -> Iterator[Sighting]:
    """At a tenth or a hundredth of the learning rate the same training gets further in the same steps."""
    if not experiment.has_courses:
        return
    _rates(experiment)
    if _breaks_off(experiment):
        raise CannotSee(
            "the loss turns NaN or infinite without having risen before: that may come from one operation or one batch",
            "`torchtriage run` names the operation from which it comes.",
        )
    found = _best(experiment, (SLOWER, SLOWEST))
    if found is not None and not _is_explained(experiment, found[1]):
        yield _of_rates(experiment, *found)


def _breaks_off(experiment: Experiment) -> bool:
    """Whether an unchanged course ends in no finite number, and had not climbed far above its start by then.

    A rate that is too high throws weights away step by step; the root of zero is not finite at any rate.
    """
    for course in experiment.courses.of(CONTROL).values():
        finite = [loss for loss in course.losses if isfinite(loss)]
        if len(finite) < len(course.losses) and max(finite, default=0.0) < CLIMBED * abs(experiment.courses.start):
            return True
    return False


@detector("trial/learning-rate-too-low")
def learning_rate_too_low(experiment: Experiment) -> Iterator[Sighting]:
    """At ten to a thousand times the learning rate the same training gets many times as far in the same steps."""
    if not experiment.has_courses:
        return
    control = _rates(experiment)
    found = _best(experiment, FASTER)
    if found is None or _is_explained(experiment, found[1]):
        return
    tried, highest = dict(found[0].changes)["learning-rate"] * control[-1], experiment.highest_rate
    if _is_rising(control) and (highest is None or tried < BEYOND * highest):
        raise CannotSee(
            f"the learning rate was still rising, from {control[0]:.2g} to {control[-1]:.2g}, in the steps that were "
            "tried: higher rates get further there in any warm-up",
            "Let branches run beyond the warm-up: --steps N.",
        )
    yield _of_rates(experiment, *found)


def _is_explained(experiment: Experiment, told: Contrast) -> bool:
    """Whether what a change of the rate gains comes without decay or without clipping, too, which are then the cause.

    AdamW decays less at a lower rate, and what is clipped makes up for it by a higher one.
    """
    for arm, enough in ((NO_DECAY, DECAYED), (NO_CLIPPING, CLIPPED)):
        found = _best(experiment, (arm,))
        if found is not None and found[1].spread[0] > enough and found[1].ends[0] <= told.ends[0] + _margin(told):
            return True
    return False


def _margin(told: Contrast) -> float:
    """By how much of the loss two arms may end apart, as far as the better one is as good as the other."""
    gained = told.ends[1] - told.ends[0]
    return ALIKE * gained if isfinite(gained) else 0.0


def _is_rising(rates: tuple[float, ...]) -> bool:
    return rates[-1] > WARMING * rates[0] > 0


@detector("trial/weight-decay-too-large")
def weight_decay_too_large(experiment: Experiment) -> Iterator[Sighting]:
    """Without weight decay the same training gets further in the same steps, by more than decay may hold it back."""
    yield from _without(experiment, NO_DECAY, "without weight decay")


@detector("trial/clip-norm-too-small")
def clip_norm_too_small(experiment: Experiment) -> Iterator[Sighting]:
    """With gradients as they are the same training gets many times as far in the same steps."""
    yield from _without(experiment, NO_CLIPPING, "without clipping")


def _without(experiment: Experiment, arm: Arm, how: str) -> Iterator[Sighting]:
    if not experiment.courses.of(arm):
        return
    _rates(experiment)
    found = _best(experiment, (arm,))
    if found is None:
        return
    _, told = found
    now, was = (f"{each:.3g}" if isfinite(each) else "no finite number" for each in told.ends)
    fact = (
        f"in the same {experiment.steps} steps the loss falls from {experiment.courses.start:.3g} to {now} {how}, and "
        f"to {was} with it ({told.tries} pairs that begin alike)"
    )
    yield Sighting(_at_optimizer(experiment), fact, told.value, _unit(told), told.spread)


@detector("trial/cannot-overfit-one-batch")
def cannot_overfit_one_batch(experiment: Experiment) -> Iterator[Sighting]:
    """The same batch in each step, at four learning rates, and the loss stays where it was."""
    if not experiment.has_courses:
        return
    require_one_loss(experiment)
    courses = experiment.courses
    arms = [arm for arm in (ONE_BATCH, *ONE_BATCH_AT) if courses.of(arm)]
    if len(arms) < 1 + len(ONE_BATCH_AT):
        if not arms:
            raise CannotSee(refusal(experiment, ONE_BATCH), WAY)
        return
    if _is_rate_without_effect(experiment):
        raise CannotSee(
            "the learning rate changes no digit of the loss: no update reaches the weights that make it",
            "`torchtriage run` tells which weights no optimizer has, or whose gradients are cleared.",
        )
    start, best = courses.start, max(courses.gain(arm) for arm in arms)
    if best > STUCK * abs(start) or _is_anything_learned(experiment):
        return
    if _is_falling(max((courses.of(arm)[0] for arm in arms), key=lambda course: -course.end)):
        raise CannotSee("the loss of one batch still falls, if slowly, in the last steps", "More steps: --steps N.")
    if why := _no_heart(experiment):
        raise CannotSee(why, WAY)
    control = courses.of(CONTROL)[0].rates or (0.0,)
    if _is_rising(control):
        raise CannotSee("the learning rate was still rising in the steps that were tried", "More steps: --steps N.")
    if control[-1] < GONE * max(control):
        raise CannotSee(
            f"the job's own schedule lowers the learning rate from {max(control):.2g} to {control[-1]:.2g} in the "
            "steps that were tried: nothing is learned at such a rate",
            "`torchtriage run` tells whether the schedule is called too often; fewer steps: --steps N.",
        )
    fact = (
        f"one batch, {experiment.steps} times, at 0.1, 1, 10 and 100 times the learning rate: the loss goes from "
        f"{start:.3g} to {start - best:.3g} at best, where a network that is wired right learns it by heart"
    )
    yield Sighting(Place(rank=0), fact, best / abs(start) if start else 0.0, "of the loss")


def _is_rate_without_effect(experiment: Experiment) -> bool:
    control, *others = [experiment.courses.of(arm).get(0) for arm in (CONTROL, *FASTER)]
    return control is not None and any(each is not None and each.losses == control.losses for each in others)


def _is_falling(course: Course) -> bool:
    """Whether the last fourth lies below the third: at a rate that is far too low a healthy network moves so."""
    size = len(course.losses) // LAST
    third, last = course.losses[-2 * size : -size], course.losses[-size:]
    return fmean(third) - fmean(last) > FALLING * abs(course.losses[0])


def _is_anything_learned(experiment: Experiment) -> bool:
    """Whether the loss has fallen in any trial, or in the job, by more than batches differ: then something is, and the
    rate or the data is wrong.
    """
    start, other = experiment.courses.start, [each.losses for each in experiment.courses.found.values() if each.is_told]
    for losses in (_own_losses(experiment), *other):
        late = losses[-max(2, len(losses) // LAST) :]
        if len(late) > 1 and start - fmean(late) > WORTH * abs(start) + 2 * stdev(late):
            return True
    return False


def _no_heart(experiment: Experiment) -> str:
    """Why a healthy model may not learn a batch by heart; empty where it can."""
    look = next(iter(experiment.influences), None)
    if look is None or not look.objective:
        return "the loss is no plain one of torch: how low it can get is not known"
    if look.parameters < ROOM * look.rows:
        return f"{look.module} has {look.parameters} parameters for {look.rows} samples, and cannot learn them by heart"
    if look.distinct < KINDS * look.rows:
        return (
            f"only {look.distinct} of {look.rows} samples differ, or it is not known: equal ones cannot be told apart"
        )
    return ""


@detector("trial/labels-misaligned")
def labels_misaligned(experiment: Experiment) -> Iterator[Sighting]:
    """The training gets as far when each input has another sample's target, though one batch alone is learned."""
    if not experiment.has_courses:
        return
    require_one_loss(experiment)
    courses = experiment.courses
    if not courses.of(OTHER_TARGETS):
        raise CannotSee(refusal(experiment, OTHER_TARGETS), WAY)
    if not courses.of(ONE_BATCH):
        raise CannotSee(refusal(experiment, ONE_BATCH), WAY)
    gain = courses.gain(ONE_BATCH)  # at the job's own rate: one that is too low learns nothing of anything
    found = courses.contrast(OTHER_TARGETS, CONTROL, gain)
    if found is None or found.tries < TRIES or courses.start - gain > OVERFIT * courses.start:
        return
    if _is_paired_with_nothing(experiment):
        raise CannotSee("the loss is the same with other pairs: which sample is which does not reach it", WAY)
    low, high = found.spread
    if not -ALIKE < low <= high < ALIKE or high < 0 or _is_known_later(experiment, found.ends[0], gain):
        return
    fact = (
        f"{experiment.steps} steps get as far when each input has another sample's target: the loss ends at "
        f"{found.ends[0]:.3g} so and at {found.ends[1]:.3g} unchanged ({found.tries} pairs, which differ by "
        f"{low:+.0%} to {high:+.0%} of what one batch gains that is learned alone: to {courses.start - gain:.3g})"
    )
    yield Sighting(Place(rank=0), fact, -found.value, "of what one batch gains")


def _is_paired_with_nothing(experiment: Experiment) -> bool:
    """Whether other pairs give the same losses but for rounding, as those of views of one sample held together do."""
    own, other = (experiment.courses.of(arm)[0].losses for arm in (CONTROL, OTHER_TARGETS))
    return all(abs(mine - theirs) <= SAME * abs(mine) for mine, theirs in zip(own, other, strict=False))


def _is_known_later(experiment: Experiment, end: float, gain: float) -> bool:
    """Whether the job itself has fallen below END, where it gets without its inputs, or may have.

    In the first steps many trainings learn no more than how frequent each answer is: a recommender, a language model,
    a classifier of a thousand classes. Raises CannotSee where the job was not watched for long enough.
    """
    losses = _own_losses(experiment)
    if len(losses) < LONG * experiment.steps:
        raise CannotSee(
            f"the job was watched for {len(losses)} steps: it may learn later which target belongs to which input",
            f"Let it run for {LONG * experiment.steps} steps or more, or let branches be shorter: --steps N.",
        )
    late = losses[-(len(losses) // 4) :]
    error = 2 * stdev(late) / sqrt(len(late))
    if error > KNOWN * gain:
        raise CannotSee("the loss varies too much from step to step to see what is learned later", "More steps.")
    return end - fmean(late) + error > KNOWN * gain


def _own_losses(experiment: Experiment) -> list[float]:
    """The losses of the job itself."""
    ranks = experiment.record.ranks if experiment.record else ()
    return [row.loss for rank in ranks for row in rank.every_step if row.loss is not None and isfinite(row.loss)]


def _rates(experiment: Experiment) -> tuple[float, ...]:
    """The job's own rates in the steps that were tried; raises CannotSee where they cannot be judged."""
    require_one_loss(experiment)
    control = experiment.courses.of(CONTROL)[0]
    if len(control.losses) < experiment.steps / 2:
        raise CannotSee(f"the job ends after {len(control.losses)} steps", WAY)
    return control.rates or (0.0,)


def require_one_loss(experiment: Experiment) -> None:
    """Raises CannotSee where there is no course of a training with one loss that is to fall."""
    control = experiment.courses.of(CONTROL).get(0)
    if control is None:
        raise CannotSee(experiment.why or "no step of a training was seen", WAY)
    if not control.optimizers:
        raise CannotSee("no optimizer has stepped in the steps that were tried", "`torchtriage run` tells why.")
    if control.optimizers > 1:
        raise CannotSee(f"{control.optimizers} optimizers take turns: a loss of a game need not fall", WAY)


def _best(experiment: Experiment, arms: tuple[Arm, ...]) -> tuple[Arm, Contrast] | None:
    """Of ARMS the one that gets furthest, as far as that is worth a word and no chance."""
    courses = experiment.courses
    found = [(arm, told) for arm in arms if (told := courses.contrast(arm, CONTROL)) and told.tries == TRIES]
    if not found:
        return None
    arm, told = max(found, key=lambda each: each[1].value)
    gain = courses.start - told.ends[0]
    if not isfinite(gain) or gain < WORTH * abs(courses.start) or gain < SURE * courses.noise(arm):
        return None
    return arm, told


def _of_rates(experiment: Experiment, arm: Arm, told: Contrast) -> Sighting:
    factor = dict(arm.changes)["learning-rate"]
    was = experiment.courses.of(CONTROL)[0].rates
    of = f"{was[-1]:.3g}" if was else "that of the job"
    ends = [f"{each:.3g}" if isfinite(each) else "no finite number" for each in told.ends]
    fact = (
        f"in the same {experiment.steps} steps the loss falls from {experiment.courses.start:.3g} to {ends[0]} at "
        f"{factor:g} times the learning rate, and to {ends[1]} at {of} ({told.tries} pairs that begin alike)"
    )
    return Sighting(_at_optimizer(experiment), fact, told.value, _unit(told), told.spread)


def _at_optimizer(experiment: Experiment) -> Place:
    """Where the job's first optimizer is built."""
    rate = experiment.rate
    return Place(path=rate.path or None, line=rate.line or None, rank=0) if rate else Place(rank=0)


def _unit(told: Contrast) -> str:
    return "of what is gained, or more" if told.is_least else "of what is gained"


def refusal(experiment: Experiment, arm: Arm) -> str:
    why = experiment.answers.refused.get(arm)
    return f"{arm} could not be tried: {why}" if why else f"{arm} was not tried"
