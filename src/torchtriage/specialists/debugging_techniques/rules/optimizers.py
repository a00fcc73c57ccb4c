"""What an execution of the program shows about the parameters that an optimizer was given."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.autograd import Parameter
from torchtriage.examine.source.execution.registration import bare, is_nameless
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Facts, Trainings, certain
from torchtriage.examine.source.execution.values import Object


@detector("source/parameters-not-in-optimizer")
def parameters_not_in_optimizer(trainings: Trainings) -> Iterator[Sighting]:
    """The loss depends on layers whose parameters no optimizer was given."""

    def find(training: Training) -> Facts:
        yield from _made_too_early(training)
        optimizers = training.optimizers
        if not training.knows_optimizers or not training.of(events.OptimizerStep) or training.mentions(_HANDED_OVER):
            return
        held = {each for optimizer in optimizers for each in training.parameters_of(optimizer)}
        yield from _of_another_model(training, held)
        yield from _of_loss(training, held)
        for forward, backward in training.backwards:
            graph = backward.loss.graph
            known = training.executor.modules(forward.model)  # what is not registered is another fault
            left = [each for each in graph - held if _is_trained(each) and each.owner in known]
            if (
                forward.training is True
                and graph & held
                and left
                and _is_left_out(training, forward, backward, held, left, is_loaded=_is_loaded(trainings))
            ):
                spot = next(each.spot for each in optimizers if each.spot and set(training.parameters_of(each)) & graph)
                yield spot, f"{_layers(left)} get gradients and are in no optimizer"
                return

    yield from certain(trainings, find)


_HANDED_OVER = re.compile(rb"\._?grad\s*=\s*(?!=|None)")
"""Gradients are given to other parameters: each worker computes some for a model that all share."""


def _made_too_early(training: Training) -> Facts:
    """An optimizer was given `model.parameters()`, and the model has got more of them since."""
    used = {each for backward in training.of(events.Backward) for each in backward.loss.graph}
    for event in training.of(events.Made):
        optimizer, model = event.made, event.made.state.get("of")
        if optimizer.kind != "optimizer" or not isinstance(model, Object) or model.has_escaped:
            continue
        held = {each for one in training.optimizers for each in training.parameters_of(one)}
        held |= set(training.parameters_of(optimizer))
        for part, late in _parts(training, model):
            new = [each for each in late if each not in held and _is_made_here(each, model)]
            if new and (not used or used.issuperset(new)):
                spot = new[0].spot if new[0].owner is model else new[0].owner.spot if new[0].owner else None
                name = "a part" if is_nameless(part) else f"`{part}`"
                fact = f"{name} comes into the model after {event.spot} has listed its parameters"
                yield spot or event.spot, f"{fact}: the optimizer never changes it"


def _parts(training: Training, model: Object) -> Iterator[tuple[str, list[Parameter]]]:
    """The parts of MODEL by their names, with the parameters in them."""
    for name, child in training.executor.children(model):
        yield name, training.executor.parameters(child)
    for name, each in training.executor.own_parameters(model).items():
        yield name, [each]


def _is_made_here(parameter: Parameter, model: Object) -> bool:
    """Whether the project makes PARAMETER itself, of a layer or for MODEL."""
    is_own = parameter.owner is model and parameter.spot is not model.spot and parameter.requires_grad is True
    return is_own or _is_trained(parameter)


def _of_another_model(training: Training, held: Set[Parameter]) -> Facts:
    """What is optimized is in no loss: the model that is trained is a copy of it, or was made anew."""
    used = {each for backward in training.of(events.Backward) for each in backward.loss.graph}
    is_open = any(each.loss.is_open or each.loss.has_escaped for each in training.of(events.Backward))
    is_copy = any(each.copied in held for each in used)
    if held & used or not held or not any(map(_is_trained, used)):
        return
    if is_open and not is_copy:
        yield from _made_anew(training, held, used)
        return
    copies = [each for each in training.executor.called if "copied" in each.state]
    copy = next((each for each in copies if used & set(training.executor.parameters(each))), None)
    for optimizer in training.optimizers:
        if optimizer.spot is not None and training.parameters_of(optimizer):
            line = optimizer.spot.line
            spot = copy.state["copied"] if copy is not None else optimizer.spot
            yield spot, f"the optimizer of line {line} has the parameters of another model than the one that is trained"


def _made_anew(training: Training, held: Set[Parameter], used: Set[Parameter]) -> Facts:
    """For each fold a new model, and one optimizer for all, with the parameters of the model before."""
    models = [bare(each.model) for each in training.of(events.Forward)]
    if any(held & set(training.executor.parameters(each)) for each in models):
        return
    for optimizer in training.optimizers:
        for model in models:
            is_late = model.state.get("born", 0) > optimizer.state.get("born", 0)
            if is_late and model.spot and optimizer.spot and used & set(training.executor.parameters(model)):
                line = optimizer.spot.line
                yield model.spot, f"a new model: the optimizer of line {line} has the parameters of the one before"


def _of_loss(training: Training, held: Set[Parameter]) -> Facts:
    """A loss has parameters of its own, and nobody optimizes them."""
    losses = {id(each): each for each in training.executor.called if each.cls is not None}
    for backward in training.of(events.Backward):
        for module in losses.values():
            own = [each for each in training.executor.own_parameters(module).values() if each.requires_grad is True]
            is_apart = not module.has_escaped and not held & set(training.executor.parameters(module))
            if own and is_apart and backward.loss.graph.issuperset(own) and held & backward.loss.graph:
                spot = own[0].spot or backward.spot
                yield spot, f"the loss of {backward.spot} learns with it, and no optimizer has it"


def _is_left_out(
    training: Training,
    forward: events.Forward,
    backward: events.Backward,
    held: Set[Parameter],
    left: list[Parameter],
    *,
    is_loaded: bool,
) -> bool:
    """Whether LEFT, of the model of FORWARD, were to be trained: of a model in part, or of a head on what is trained.

    A backbone under what is trained, and what was loaded, are kept as they are on purpose.
    """
    model = bare(forward.model)
    if set(training.executor.parameters(model)) & held:
        return _is_forgotten(training, forward.model, held, left, is_loaded=is_loaded)
    is_compared = backward.loss.loss not in ("", "mean")  # what only judges, -critic(generator(noise)).mean(), is fixed
    return is_compared and bool(forward.given & held) and not model.state.get("is_set")


def _is_forgotten(
    training: Training, model: Object, held: Set[Parameter], left: Iterable[Parameter], *, is_loaded: bool
) -> bool:
    """Whether the parts of MODEL that LEFT belongs to are fewer than those in HELD, or have never learned anything.

    Who trains a head on a backbone gives the optimizer one part of two, and means to; the backbone has been trained.
    """
    parts = [set(training.executor.parameters(each)) for _, each in training.executor.children(model)]
    missing = sum(bool(each & set(left)) for each in parts)
    is_new = not is_loaded and not training.mentions(_LEARNED)
    return missing < sum(bool(each) and each <= held for each in parts) or (missing > 0 and is_new)


def _is_loaded(trainings: Trainings) -> bool:
    """Whether a model may take over what another training has learned; one that is resumed takes over the state of its
    optimizer as well.
    """
    restores = [(run, each) for run in trainings.runs for each in run.of(events.Restore)]
    resumed = {id(run) for run, each in restores if each.part.kind == "optimizer"}
    if not resumed:
        return bool(restores) or trainings.runs[0].mentions(_LOADS)
    return any(id(run) not in resumed and _is_before_training(run, each) for run, each in restores)


def _is_before_training(training: Training, restore: events.Restore) -> bool:
    return any(isinstance(each, events.OptimizerStep) for each in training.events_after(restore))


_LEARNED = re.compile(rb"pretrain|from_pretrained|torch\.hub|finetune|fine_tune|probe")
"""Words of programs whose models have been trained before."""
_LOADS = re.compile(rb"checkpoint|load_state_dict")


def _is_trained(parameter: Parameter) -> bool:
    """Whether PARAMETER is of a layer that the project makes itself."""
    owner = parameter.owner
    is_own = owner is not None and owner.made.startswith("torch.nn.") and not owner.has_escaped
    return is_own and parameter.requires_grad is True and not parameter.is_updated


def _layers(parameters: list[Parameter]) -> str:
    owners = sorted({(each.owner.spot.line, each.owner.made) for each in parameters if each.owner and each.owner.spot})
    shown = [f"{made.rpartition('.')[2]} of line {line}" for line, made in owners[:3]]
    return f"{', '.join(shown) or 'parameters'}{' and more' if len(owners) > 3 else ''}"
