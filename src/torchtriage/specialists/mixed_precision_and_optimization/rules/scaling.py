"""What an execution of the program shows about loss scaling and gradient accumulation."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.autograd import Gradient, Parameter, Tensor
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import E, Facts, Trainings, certain
from torchtriage.examine.source.execution.values import Factor, Object, Spot, Unknown, truth
from torchtriage.specialists.mixed_precision_and_optimization.rules.scaler_edits import (
    step_through_scaler,
    unscale_first,
)

LARGE = 8
"""Static loss scales are 8 to 32,768 in Mixed Precision Training (arXiv 1710.03740); a loss weighs about 1."""


def _uses_scaler(training: Training) -> bool:
    """Whether TRAINING goes the way with a scaler: `--amp` is asked for, in programs that ask."""
    steps = [each.scaler for each in training.of(events.OptimizerStep) if each.scaler is not None]
    losses = [each.loss.scaled for each in training.of(events.Backward)]
    return any(each is not None for each in losses) or any(_is_on(training, each) for each in steps)


def _is_on(training: Training, scaler: Object) -> bool:
    """Whether SCALER scales in the execution TRAINING."""
    known = truth(scaler.argument("enabled", None, True))
    return bool(scaler.state.get("is_on", training.executor.takes == "always")) if known is None else known


@detector("source/clip-before-unscale")
def clip_before_unscale(trainings: Trainings) -> Iterator[Sighting]:
    """Gradients are clipped while they are multiplied by the loss scale."""

    def find(training: Training) -> Facts:
        for clip in training.of(events.Clip):
            if _is_unscaled_beside(training, clip):
                continue
            is_scaled_too = isinstance(clip.limit, Unknown) and clip.limit.why == "an operation"  # 1.0 * get_scale()
            if not is_scaled_too and _are_scaled(clip.gradients):
                yield clip.spot, _still_scaled(clip.gradients[0]), unscale_first
        for limit in training.of(events.GradientLimit):
            if _are_scaled((limit.gradient,)):
                yield limit.spot, _still_scaled(limit.gradient)

    yield from certain(trainings, find, where_reached=True, among=_uses_scaler)


def _is_unscaled_beside(training: Training, clip: events.Clip) -> bool:
    """Whether gradients are unscaled before CLIP in the same iteration, and no optimizer is known to have those that
    are clipped: of models[k] and optimizers[k], which belong together.
    """
    held = {each for optimizer in training.optimizers for each in training.parameters_of(optimizer)}
    clipped = frozenset[Parameter]().union(*(each.by[-1][1].graph for each in clip.gradients if each.by))
    before = itertools.takewhile(lambda each: each is not clip, training.executor.events)
    is_unscaled = any(isinstance(each, events.Unscale) and each.loops == clip.loops for each in before)
    return is_unscaled and held.isdisjoint(clipped)


def _are_scaled(gradients: tuple[Gradient, ...]) -> bool:
    """Whether all GRADIENTS are multiplied by a loss scale, and nothing has stepped with them."""
    return bool(gradients) and all(
        each.scaled is not None and each.by and each.used < len(each.by) for each in gradients
    )


def _still_scaled(gradient: Gradient) -> str:
    spot, _ = gradient.by[-1]
    return (
        f"the gradients of {spot} are still multiplied by the loss scale here (65536 at first), so what is "
        "left after clipping is that much too small"
    )


def _is_factor_alone(training: Training) -> bool:
    """Whether scaling changes nothing: Adam divides by the size of a gradient, and somebody has chosen a scale that
    stays as it is, GradScaler(2**10) of radiance fields.
    """
    made = [each.made for each in training.of(events.Made)]
    given = [(*each.arguments, each.keywords.get("init_scale")) for each in made if each.kind == "scaler"]
    is_chosen = bool(given) and all(any(isinstance(one, int | float) for one in each) for each in given)
    is_normalized = all(_NORMALIZES.search(each.optimizer.made) for each in training.of(events.OptimizerStep))
    return is_chosen and is_normalized and not training.of(events.ScalerUpdate)


_NORMALIZES = re.compile(r"\.(Adam|AdamW|NAdam|RAdam|Adamax|Adagrad|RMSprop|Rprop)$")
"""Optimizers for which a factor by which all gradients are multiplied, always the same, changes nothing."""


@detector("source/scaler-bypassed")
def scaler_bypassed(trainings: Trainings) -> Iterator[Sighting]:
    """An optimizer steps by itself with gradients that are multiplied by the loss scale, or the scaler steps with
    gradients that are not.
    """

    def find(training: Training) -> Facts:
        if _is_factor_alone(training):
            return
        for step in training.of(events.OptimizerStep):
            gradients = [gradient for _, gradient in step.gradients]
            if step.scaler is None and gradients and all(each.scaled is not None for each in gradients):
                yield (
                    step.spot,
                    _SCALED,
                    step_through_scaler,
                )
            elif step.scaler is not None and _is_on(training, step.scaler):
                yield from _unscaled(training, step)
        yield from _of_unknown(training)
        yield from _past_its_check(training)

    yield from certain(trainings, find, where_reached=True, among=_uses_scaler)


def _unscaled(training: Training, step: events.OptimizerStep) -> Facts:
    """The backward passes without a scale whose gradients the scaler divides by it in STEP."""
    mine = {parameter for parameter, _ in step.gradients}
    is_scaled = True
    found: list[events.Backward] = []
    for event in _since_last(training, step):
        if isinstance(event, events.Unscale):  # what is added from here on is at its true size, as these are
            is_scaled = event.optimizer is not step.optimizer and is_scaled
        elif isinstance(event, events.ZeroGrad):
            found = [] if mine.intersection(event.parameters) else found
        elif isinstance(event, events.Backward) and is_scaled and event.loss.graph & mine:
            found += [event] if event.loss.scaled is None and not _is_multiplied(event.loss) else []
    yield from ((each.spot, _divided(step)) for each in found)


def _divided(step: events.OptimizerStep) -> str:
    return f"scaler.step in {step.spot} divides these gradients by a scale that they were not multiplied by"


def _since_last(training: Training, step: events.OptimizerStep) -> list[events.Event]:
    """What has happened since the optimizer of STEP stepped last."""
    found: list[events.Event] = []
    for event in reversed(training.events_before(step)):
        if isinstance(event, events.OptimizerStep) and event.optimizer is step.optimizer:
            break
        found.append(event)
    return found[::-1]


def _of_unknown(training: Training) -> Facts:
    """Of optimizers whose parameters are not known, as of several that a function is given: steps past the scaler
    where only scaled gradients wait for a step, and steps of the scaler where only others do.
    """
    waiting: list[events.Backward] = []
    for event in training.executor.events:
        if isinstance(event, events.Backward):
            waiting.append(event)
        elif isinstance(event, events.Unscale):
            waiting = [each for each in waiting if each.loss.scaled is not event.scaler]
        elif isinstance(event, events.OptimizerStep):
            mine = [each for each in waiting if (each.loss.scaled is not None) is (event.scaler is not None)]
            is_open = not training.parameters_of(event.optimizer) and not event.optimizer.has_escaped
            is_on = event.scaler is None or (_is_on(training, event.scaler) and not event.scaler.has_escaped)
            if waiting and not mine and is_open and is_on and event.loops == waiting[-1].loops:
                if event.scaler is None:
                    yield event.spot, _SCALED, step_through_scaler
                else:
                    yield waiting[-1].spot, _divided(event)
            waiting = [each for each in waiting if each not in mine] if mine else []


_SCALED = "the gradients are multiplied by the loss scale, and scaler.step is not called"


def _past_its_check(training: Training) -> Facts:
    """Steps of an optimizer by itself after unscale_(): nothing skips those with gradients that are not finite."""
    if training.names(_CHECKS):
        return
    unscaled: dict[int, events.Unscale] = {}
    for event in training.executor.events:
        if isinstance(event, events.Unscale):
            unscaled[id(event.optimizer)] = event
        elif isinstance(event, events.OptimizerStep):
            before = unscaled.pop(id(event.optimizer), None)
            if before is not None and event.scaler is None and _is_on(training, before.scaler):
                yield event.spot, "only scaler.step skips gradients that are not finite", step_through_scaler


_CHECKS = re.compile("isfinite|isinf|isnan|found_inf|nan_to_num", re.IGNORECASE)
"""What code calls that looks for such gradients itself."""


@detector("source/scaler-missing")
def scaler_missing(trainings: Trainings) -> Iterator[Sighting]:
    """A loss that was computed in float16 is not scaled before backward."""

    def find(training: Training) -> Facts:
        if training.speaks_of_scaling:
            return
        stepped = {
            id(loss)
            for step in training.of(events.OptimizerStep)
            for _, gradient in step.gradients
            for _, loss in gradient.by
        }
        for backward in training.of(events.Backward):
            loss = backward.loss
            halves = [each for each in loss.regions if each.format == "float16"]
            if halves and id(loss) in stepped and loss.scaled is None and not _is_multiplied(loss):
                line = halves[0].spot.line if halves[0].spot is not None else 0
                yield (
                    backward.spot,
                    f"the forward pass runs in float16 (autocast in line {line}), and gradients below 6e-8 become 0 "
                    "there: nothing multiplies this loss by a loss scale",
                )

    yield from certain(trainings, find, among=_computes_in("float16"))


def _computes_in(format_: str) -> Callable[[Training], bool]:
    """Whether a training has a loss that was computed in FORMAT_."""

    def computes(training: Training) -> bool:
        return any(region.format == format_ for each in training.of(events.Backward) for region in each.loss.regions)

    return computes


@detector("source/loss-not-averaged-over-accumulation")
def loss_not_averaged_over_accumulation(trainings: Trainings) -> Iterator[Sighting]:
    """Gradients of several batches are added up, and nothing is divided by their number."""

    def find(training: Training) -> Facts:
        for step in training.of(events.OptimizerStep):
            sums = [gradient for _, gradient in step.gradients if _is_sum_of_means(gradient)]
            if sums and len(sums) == len(step.gradients) and not _has_divided_rate(step.optimizer):
                spot, _ = sums[0].by[-1]
                number = len(sums[0].by)
                yield spot, f"the gradients of {number} mean losses are added up for the step in {step.spot}"

    yield from certain(trainings, find)


def _has_divided_rate(optimizer: Object) -> bool:
    """Whether the learning rate of OPTIMIZER makes up for the sum: lr=0.1 / n."""
    node = optimizer.spot.node if optimizer.spot is not None else None
    rates = [each.value for each in getattr(node, "keywords", ()) if each.arg == "lr"]
    return any(isinstance(each, ast.BinOp) and isinstance(each.op, ast.Div) for each in rates)


def _is_multiplied(loss: Tensor) -> bool:
    """Whether LOSS was multiplied by a loss scale of the program's own: a large number, or what is called so."""
    factors = [each.value for each in loss.divided if isinstance(each, Factor)]
    large = any(isinstance(each, Tensor) or (isinstance(each, int | float) and each >= LARGE) for each in factors)
    return large or any(isinstance(each, Unknown) and "scale" in each.why.lower() for each in factors)


def _is_sum_of_means(gradient: Gradient) -> bool:
    """Whether GRADIENT adds up mean losses that one line has computed of several batches, none of them divided."""
    lines = {(spot.path, spot.line) for spot, _ in gradient.by}
    means = [loss.loss and not loss.divided for _, loss in gradient.by]
    return not gradient.used and len(means) > 1 and len(lines) == 1 and all(means)


@detector("source/scaler-not-updated")
def scaler_not_updated(trainings: Trainings) -> Iterator[Sighting]:
    """A scaler steps or unscales twice for one optimizer, with no update() in between: the second time raises."""

    def find(training: Training) -> Facts:
        done: dict[tuple[int, int, type], events.Event] = {}
        for event in training.executor.events:
            if isinstance(event, events.ScalerUpdate):
                done = {key: each for key, each in done.items() if key[0] != id(event.scaler)}
            elif isinstance(event, events.Backward):  # unscaled for each of several batches: of the other rule
                done = {key: each for key, each in done.items() if isinstance(each, events.OptimizerStep)}
            elif isinstance(event, events.OptimizerStep | events.Unscale) and event.scaler is not None:
                key = (id(event.scaler), id(event.optimizer), type(event))
                before = done.get(key)
                if before is not None and not event.scaler.has_escaped:
                    yield event.spot, _again(before, event)
                done[key] = event

    yield from certain(trainings, find, where_reached=True, among=_uses_scaler)


def _again(before: events.Event, event: events.Event) -> str:
    if isinstance(event, events.Unscale):
        return f"the gradients are unscaled already ({before.spot}): the second unscale_() raises"
    return "the scaler has stepped before, and update() was not called since: its scale never changes"


@detector("source/scaler-with-bf16")
def scaler_with_bf16(trainings: Trainings) -> Iterator[Sighting]:
    """A loss that was computed in bfloat16 is scaled."""

    def find(training: Training) -> Facts:
        for backward in training.of(events.Backward):
            scaler, regions = backward.loss.scaled, backward.loss.regions
            if scaler is None or scaler.spot is None or {each.format for each in regions} != {"bfloat16"}:
                continue
            enabled = scaler.argument("enabled", None, True)
            region = next(iter(regions))
            is_on = enabled is True or (isinstance(enabled, Unknown) and enabled is region.enabled)
            if is_on and region.spot is not None:
                yield scaler.spot, f"the forward pass of {region.spot} runs in bfloat16"

    yield from certain(trainings, find, among=_uses_scaler)


@detector("source/backward-in-autocast")
def backward_in_autocast(trainings: Trainings) -> Iterator[Sighting]:
    """Backward is called within the autocast region."""

    def find(training: Training) -> Facts:
        for backward in training.of(events.Backward):
            region = backward.region
            if region.is_on and region.spot is not None:
                yield backward.spot, f"the autocast region of {region.spot} is still on here"

    yield from certain(trainings, find, where_reached=True, among=_has_region)


def _has_region(training: Training) -> bool:
    """Whether TRAINING enters a region of autocast: `--amp` is asked for, in programs that ask."""
    return any(each.region.is_on for each in training.executor.events)


@detector("source/bce-under-autocast")
def bce_under_autocast(trainings: Trainings) -> Iterator[Sighting]:
    """binary_cross_entropy is called under autocast, which raises on CUDA."""

    def find(training: Training) -> Facts:
        for call in training.of(events.LossCall):
            if call.name == "binary_cross_entropy" and call.region.format:
                yield call.spot, f"autocast to {call.region.format} is on, under which CUDA refuses this loss"

    yield from certain(trainings, find, where_reached=True, among=_has_region)


@detector("source/scaler-touched-mid-accumulation")
def scaler_touched_mid_accumulation(trainings: Trainings) -> Iterator[Sighting]:
    """The scale is changed, or taken out, between batches whose gradients are added up."""

    def find(training: Training) -> Facts:
        if any(each.scaler is not None for each in training.of(events.OptimizerStep)):
            yield from _updated_early(training)
            yield from _unscaled_early(training)

    yield from certain(trainings, find, where_reached=True, among=_uses_scaler)


def _updated_early(training: Training) -> Facts:
    """Updates of a scaler while gradients wait for a step that are multiplied by its scale."""
    waiting: dict[int, events.Backward] = {}
    for event in training.executor.events:
        if isinstance(event, events.Backward) and event.loss.scaled is not None:
            waiting[id(event.loss.scaled)] = event
        elif isinstance(event, events.OptimizerStep):
            _take(waiting, event)
        elif isinstance(event, events.ScalerUpdate):
            added = waiting.pop(id(event.scaler), None)
            if added is not None:
                fact = f"the gradients of {added.spot} wait for a step, multiplied by the old scale"
                yield event.spot, fact


def _unscaled_early(training: Training) -> Facts:
    """Calls of unscale_() for gradients to which more are added, which are scaled, before the step."""
    early: dict[int, events.Unscale] = {}
    for event in training.executor.events:
        if isinstance(event, events.Unscale):
            early[id(event.scaler)] = event
        elif isinstance(event, events.OptimizerStep):
            _take(early, event)
        elif isinstance(event, events.ZeroGrad):
            early.clear()
        elif isinstance(event, events.Backward) and event.loss.scaled is not None:
            before = early.pop(id(event.loss.scaled), None)
            if before is not None and event.loss.graph.intersection(training.parameters_of(before.optimizer)):
                yield before.spot, f"{event.spot} adds gradients to these that are still scaled"


def _take(waiting: dict[int, E], step: events.OptimizerStep) -> None:
    """What of WAITING, by scaler, STEP is for; all, where it may be for anything."""
    if step.scaler is None or step.optimizer.state.get("is_given"):
        waiting.clear()
    waiting.pop(id(step.scaler), None)


@detector("source/scheduler-on-skipped-step")
def scheduler_on_skipped_step(trainings: Trainings) -> Iterator[Sighting]:
    """A scheduler advances with every batch, also when the scaler has skipped the optimizer's step."""

    def find(training: Training) -> Facts:
        if training.names(_ASKS):
            return
        last: events.OptimizerStep | None = None
        for event in training.executor.events:
            if isinstance(event, events.OptimizerStep):
                last = event if event.scaler is not None else None
            elif isinstance(event, events.SchedulerStep) and last is not None and event.loops == last.loops != ():
                yield event.spot, _skipped(last.spot)

    yield from certain(trainings, find, where_reached=True, among=_uses_scaler)


_ASKS = re.compile("get_scale|_scale$|skipped")
"""What code looks at that finds out whether the scaler has skipped a step."""


def _skipped(step: Spot) -> str:
    return (
        f"scaler.step in {step} skips the optimizer when a gradient is not finite (the first steps of most "
        "float16 runs), and this scheduler advances all the same"
    )
