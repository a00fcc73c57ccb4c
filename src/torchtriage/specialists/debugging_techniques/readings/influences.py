"""What an experiment shows of a model by its answers: whether inputs reach them, other samples, and the future."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.examine.trial.experiment.arms import CONTROL
from torchtriage.examine.trial.experiment.conduct import Experiment
from torchtriage.examine.trial.experiment.questions import OTHER_TARGETS

from .experiments import WAY, refusal, require_one_loss

MIXED = 0.01  # of the spread of the answers, by which they change with what should not matter to them
NEXT = 0.9  # of the targets, that are the next id, where a model is to predict it


@detector("trial/input-ignored")
def input_ignored(experiment: Experiment) -> Iterator[Sighting]:
    """A model answers alike, whatever it is given."""
    for look in experiment.influences:
        if look.why:
            raise CannotSee(f"{look.module} could not be asked: {look.why}", WAY)
        if any(look.own) or not look.inputs or not (any(look.varied) or look.constant):
            continue
        if not _is_same_without(experiment):
            continue
        names = ", ".join(f"{name} of shape {'x'.join(map(str, shape))}" for name, shape in look.inputs)
        if look.constant:
            fact = f"all {look.rows} samples that {look.module} is given are equal ({names}): nothing tells them apart"
        else:
            fact = (
                f"{look.module} gives the very same answers when its {look.rows} samples change places ({names}): "
                "nothing of them reaches its output"
            )
        yield Sighting(Place(rank=0, module=look.module), fact, float(look.rows), "samples")


def _is_same_without(experiment: Experiment) -> bool:
    """Whether each loss is the same to the last digit when samples are exchanged: models that answer alike before their
    first update learn to use what they are given. Raises CannotSee where that was not tried.
    """
    both = [experiment.courses.of(arm).get(0) for arm in (CONTROL, OTHER_TARGETS)]
    if both[1] is None:
        raise CannotSee(refusal(experiment, OTHER_TARGETS), WAY)
    return both[0] is not None and both[0].losses == both[1].losses


@detector("trial/samples-mixed")
def samples_mixed(experiment: Experiment) -> Iterator[Sighting]:
    """In evaluation mode, a model's answer for a sample changes with the other samples of the batch.

    Not where any order of the samples gives the same answers in that order, as normalisation by hand does, or attention
    over a set: unless a layer takes samples for the steps of a sequence, nobody can say that this is not meant.
    """
    for look in experiment.influences:
        if look.why or look.no_samples:
            raise CannotSee(f"{look.module} could not be asked: {look.why or look.no_samples}", WAY)
        if look.others is None or look.order is None or look.others < MIXED or not any(look.own):
            continue
        if look.order < MIXED and not look.along:
            continue
        require_one_loss(experiment)
        along = f"; {look.along}" if look.along else ""
        fact = (
            f"{look.module} in evaluation mode: when half of its {look.rows} samples are exchanged, its answers for "
            f"the others change by {look.others:.0%} of their spread{along}"
        )
        place = Place(path=look.path or None, line=look.line or None, rank=0, module=look.module)
        yield Sighting(place, fact, look.others, "of the spread of its answers")


@detector("trial/future-visible")
def future_visible(experiment: Experiment) -> Iterator[Sighting]:
    """A model that is to predict the next id answers otherwise when what comes later is exchanged."""
    for look in experiment.influences:
        if look.later is None or look.later < MIXED or look.shifted is None or look.shifted < NEXT:
            continue
        fact = (
            f"the loss asks {look.module} at each position for the id of the next one ({look.shifted:.0%} of the "
            f"targets), and its answers in the first half change by {look.later:.0%} of their spread when the ids of "
            "the second half are exchanged: it is given what it is to predict"
        )
        yield Sighting(Place(rank=0, module=look.module), fact, look.later, "of the spread of its answers")
