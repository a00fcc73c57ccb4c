"""What a record says about the mode in which models learned and were evaluated."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.module_design_patterns.probes.events import EvaluatedInTraining, LearnedInEvaluation

EVALUATES = """
    val valid validation validate validating eval evaluate evaluation evaluating evaluator test testing tester dev
    holdout held heldout acc accuracy metric metrics monitor correct perplexity ppl auc auroc rmse bleu wer cer
    psnr ssim
"""
SAMPLES = """
    mc monte carlo uncertain uncertainty bayes bayesian ensemble stochastic noise noisy sample samples sampled sampling
    generate generated fake fakes rollout rollouts collect act action actions policy env episode play pseudo bank
    memory cluster clusters teacher distill momentum ema swa bn calibrate calibration recalibrate estimate reestimate
    warm warmup adapt init initialise initialize
"""  # code with such names wants, or does not mind, what the training mode does
STATED = "mc monte carlo uncertain uncertainty bayesian bald stochastic"  # says so in the lines above, in a comment
FEW = 0.5  # evaluations a step: a model that is called more often than that is part of the training
WITHOUT_TRAINING = 8  # passes of a job that never learns


@detector("run/mode-left-in-eval")
def mode_left_in_eval(record: RankRecord) -> Iterator[Sighting]:
    """A model learned, step after step, while it was in evaluation mode."""
    longest: dict[str, LearnedInEvaluation] = {}
    for event in record.all(LearnedInEvaluation):
        if event.kinds and not event.mixed and not _kept_statistics(event):
            longest[event.root] = event
    for root, event in longest.items():
        path, line = (event.path, event.line) if event.path else (event.called, event.at)
        place = Place(path=path or None, line=line or None, rank=record.rank, step=event.first)
        before = f", after {event.learned} in training mode" if event.learned else ""
        switched = f"evaluation mode, set at {path}:{line}, was not left again"
        said = switched if event.path else "train() was never called"
        fact = f"{root} learned in evaluation mode for {event.steps} steps{before}: {said}; {_parts(event)}"
        yield Sighting(place, fact, float(event.running), "steps")


@detector("run/mode-left-in-train")
def mode_left_in_train(record: RankRecord) -> Iterator[Sighting]:
    """A model was evaluated, without gradients, while it was in training mode."""
    last = max((step.step for step in record.every_step), default=0)
    lines: dict[tuple[str, str, int], list[EvaluatedInTraining]] = {}
    for event in record.all(EvaluatedInTraining):
        if event.kinds and not _meant(event) and _evaluates(event, last - event.since + 1):
            lines.setdefault((event.root, event.path, event.line), []).append(event)
    for (root, path, line), events in lines.items():
        place = Place(path=path or None, line=line or None, rank=record.rank)
        passes = sum(event.passes for event in events)
        which = f"{len(events)} times a new {root}" if len(events) > 1 else root
        fact = f"{which} was evaluated in training mode: {passes} passes without gradients from here"
        yield Sighting(place, f"{fact}; {_parts(events[0])}", float(passes), "passes")
        where, number = next((event.set for event in events if event.set), ("", 0))
        if number:
            place = Place(path=where, line=number, rank=record.rank)
            yield Sighting(place, f"this put {root} into training mode before those passes", float(passes), "passes")


def _kept_statistics(event: LearnedInEvaluation) -> bool:
    """A model whose batch norm had statistics from elsewhere before all its steps: they may be meant to stay."""
    return not event.learned and set(event.kinds) == {"batch norm"} and not event.fresh


def _meant(event: EvaluatedInTraining) -> bool:
    """Passes over one batch again and again, over what has just been learned, or whose results nobody takes."""
    again = 2 * max(event.again, event.trained_on) >= event.passes
    named = set(SAMPLES.split()) & set(event.words) or set(STATED.split()) & set(event.around)
    return bool(event.dropped or not event.momentum or again or named)


def _evaluates(event: EvaluatedInTraining, steps: int) -> bool:
    """Whether these passes measure the model: batches of a loader now and then, or a name that says so."""
    passes, phases = event.passes, event.phases
    seldom = passes >= 2 * phases or phases <= FEW * steps
    named = bool(set(EVALUATES.split()) & {*event.words, *event.around})
    if not event.backwards:
        return passes >= WITHOUT_TRAINING and (named or event.fresh >= 0.9 * passes)
    if passes < 2:
        return False
    if not event.learned:  # a slow copy of a model that learns, or the critic of one: only by its name
        return bool(set(EVALUATES.split()) & set(event.words)) and passes >= 2 * phases and event.fresh >= passes
    if not seldom:  # the validation of a job whose epoch is one step; nothing within a step is that
        return named and not event.fresh and not {"step", "update", "learn"} & set(event.words)
    return named or event.fresh >= 0.9 * passes


def _parts(event: LearnedInEvaluation | EvaluatedInTraining) -> str:
    kinds = " and ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in event.kinds.items())
    return f"{kinds} (module{'s' if len(event.names) > 1 else ''} {', '.join(event.names)})"
