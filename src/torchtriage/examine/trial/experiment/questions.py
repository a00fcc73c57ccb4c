"""Which arms are tried, in which order, and when an answer is enough."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

from torchtriage.examine.trial.experiment.arms import CONTROL, Arm, Course, Courses

TRIES = 4  # further ones of an arm that may be the cause: each begins with other batches
SLOWER = Arm((("learning-rate", 0.1),))
SLOWEST = Arm((("learning-rate", 0.01),))
FASTER = tuple(Arm((("learning-rate", factor),)) for factor in (10.0, 100.0, 1000.0))
NO_DECAY = Arm((("weight-decay", 0.0),))
NO_CLIPPING = Arm((("clipping", 0.0),))
OTHER_TARGETS = Arm((("other-targets", 1.0),))
ONE_BATCH = Arm((("one-batch", 1.0),))
ONE_BATCH_AT = tuple(Arm((("one-batch", 1.0), ("learning-rate", factor))) for factor in (0.1, 10.0, 100.0))
FROM_MEMORY = Arm((("batch-from-memory", 1.0),))
FASTER_LOADING = tuple(Arm((("workers", number),)) for number in (0.0, 2.0, 4.0))
FASTER_STEPS = tuple(
    Arm(((name, 1.0),))
    for name in (
        "anomaly-detection", "deterministic-kernels", "fused-optimizer", "threads", "channels-last", "bfloat16",
        "compilation",
    )
)  # fmt: skip
SMALLER = tuple(
    Arm((change,)) for change in (("checkpointing", 1.0), ("bfloat16", 1.0), ("foreach", 0.0), ("batch-size", 0.5))
)
WAITING = 0.1  # of a step, that batches from memory save, from which more workers are tried
SHORTER = 0.05  # of a step, that an arm saves, from which it is tried again
BETTER = 0.15  # further, as a share of what the better arm gains, at which an arm is tried again
OVERFIT = 0.5  # of the start, to which the loss of one batch falls where nothing is in its way


@dataclass(frozen=True)
class Order:
    """One branch that is wanted: an ARM, the TRY's number; or a look, which has no arm."""

    arm: Arm = CONTROL
    number: int = 0
    look: str = ""

    def __str__(self) -> str:
        if self.look:
            return "what the model's answers depend on"
        return f"{self.arm}" + (f", try {self.number + 1}" if self.number else "")


Plan = Generator[Order, Course | None, None]


@dataclass
class Answers:
    """What is known so far, and which changes had no place in the job."""

    courses: Courses = field(default_factory=Courses)
    refused: dict[Arm, str] = field(default_factory=dict)


def plan(answers: Answers, recipes: frozenset[str], wanted: tuple[Arm, ...] = ()) -> Plan:
    """The orders of RECIPES, the cheapest first, and of the arms that are WANTED by name, with all their tries.

    Each order is answered by its course, or None where it has none.
    """
    if "sanity" in recipes:
        yield Order(look="influence")
    control = yield from _tried(answers, CONTROL, 0)
    if control is None:
        return
    if "stability" in recipes and control.optimizers == 1:
        yield from _rates(answers)
    if "sanity" in recipes:
        yield from _one_batch(answers)
        yield from _targets(answers)
    for arm in wanted:
        yield from _tried(answers, arm, 0)
        yield from _again(answers, arm)


def paces(answers: Answers, wanted: tuple[Arm, ...] = ()) -> Plan:
    """The orders of what may make a step shorter, and of the arms that are WANTED; each needs a leg of its own.

    Whether loading matters is asked first: workers are started only where it does.
    """
    control = yield from _tried(answers, CONTROL, 0)
    if control is None:
        return
    arms = wanted
    if not wanted:
        yield from _tried(answers, FROM_MEMORY, 0)
        arms = (FROM_MEMORY, *(FASTER_LOADING if _saves(answers, FROM_MEMORY, WAITING) else ()), *FASTER_STEPS)
    for arm in arms:
        yield from _tried(answers, arm, 0)
        if wanted or _saves(answers, arm, SHORTER):
            yield from _again(answers, arm)


def peaks(answers: Answers, wanted: tuple[Arm, ...] = ()) -> Plan:
    """The orders of what may lower the peak of the device's memory, or of the arms that are WANTED; a leg for each.

    One try: bytes are counted, not sampled. A job that runs out of memory is tried as well: that is what it is for.
    """
    control = yield from _tried(answers, CONTROL, 0)
    full = answers.courses.found.get((CONTROL, 0))
    if (control is None or control.peak is None) and not (full and full.full):
        return
    for arm in wanted or SMALLER:
        yield from _tried(answers, arm, 0)


def _saves(answers: Answers, arm: Arm, share: float) -> bool:
    found = answers.courses.saved(arm, CONTROL)
    return found is not None and found.value > share


def _rates(answers: Answers) -> Plan:
    for arm in (SLOWER, *FASTER):
        yield from _tried(answers, arm, 0)
    if _is_better(answers, SLOWER):
        yield from _tried(answers, SLOWEST, 0)
    candidates = [arm for arm in (SLOWER, SLOWEST, *FASTER) if _is_better(answers, arm)]
    candidates.sort(key=lambda arm: -answers.courses.gain(arm))
    for arm in candidates[:1]:
        yield from _again(answers, arm)
    for arm in (NO_DECAY, NO_CLIPPING):
        yield from _tried(answers, arm, 0)
        if _is_better(answers, arm):
            yield from _again(answers, arm)


def _one_batch(answers: Answers) -> Plan:
    """The one batch, at other rates too until it is learned at one of them."""
    for arm in (ONE_BATCH, *ONE_BATCH_AT):
        course = yield from _tried(answers, arm, 0)
        if course is None or course.end < OVERFIT * answers.courses.start:
            return


def _targets(answers: Answers) -> Plan:
    """Whether it matters which targets belong to which inputs; asked again where it does not seem to."""
    course = yield from _tried(answers, OTHER_TARGETS, 0)
    if course is not None and not _is_worse(answers, OTHER_TARGETS):
        yield from _again(answers, OTHER_TARGETS)


def _again(answers: Answers, arm: Arm) -> Plan:
    """Further tries of ARM beside the control."""
    for number in range(1, TRIES + 1):
        for each in (CONTROL, arm):
            yield from _tried(answers, each, number)


def _tried(answers: Answers, arm: Arm, number: int) -> Generator[Order, Course | None, Course | None]:
    known = answers.courses.found.get((arm, number))
    if known is not None or arm in answers.refused:
        return known
    course = yield Order(arm, number)
    if course is None or course.ended in ("not applied", "nothing"):
        answers.refused[arm] = course.why if course else "it took longer than its part of the budget"
        return None
    answers.courses.found[arm, number] = course
    return course if course.is_told else None


def _is_better(answers: Answers, arm: Arm) -> bool:
    found = answers.courses.contrast(arm, CONTROL)
    return found is not None and found.value > BETTER


def _is_worse(answers: Answers, arm: Arm) -> bool:
    found = answers.courses.contrast(arm, CONTROL)
    return found is not None and found.value < -BETTER


def arms(answers: Answers) -> Iterator[Arm]:
    """Each arm that has a course, in the order in which it was tried first."""
    yield from dict.fromkeys(arm for arm, _ in answers.courses.found)
