"""What an execution of the program shows about the order of a training step, its loss and its optimizer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.training import Facts, Training, Trainings, certain, wherever
from torchtriage.examine.source.execution.values import Object, Parameter, Tensor


@detector("source/gradients-not-zeroed")
def gradients_not_zeroed(trainings: Trainings) -> Iterator[Sighting]:
    """Gradients that an optimizer has stepped with are still there when the next backward pass adds to them."""

    def find(training: Training) -> Facts:
        if "zero_grad" in training.blind:
            return
        for step in training.of(events.OptimizerStep):
            stale = [gradient for _, gradient in step.gradients if 0 < gradient.used < len(gradient.by)]
            if stale and len(stale) == len(step.gradients):
                spot, _ = stale[0].by[-1]
                yield spot, f"its gradients are added to those that line {step.spot.line} has stepped with before"

    yield from certain(trainings, find)


@detector("source/step-missing")
def step_missing(trainings: Trainings) -> Iterator[Sighting]:
    """Gradients are computed for an optimizer that never steps."""

    def find(training: Training) -> Facts:
        stepped = {id(each.optimizer) for each in training.of(events.OptimizerStep)}
        if stepped or "step" in training.blind or not training.optimizers:
            return
        for optimizer in training.optimizers:
            held = set(training.parameters_of(optimizer))
            for backward in training.of(events.Backward):
                if held & backward.loss.graph and not optimizer.has_escaped:
                    yield backward.spot, "no optimizer of these parameters steps"

    yield from certain(trainings, find)


@detector("source/parameters-not-in-optimizer")
def parameters_not_in_optimizer(trainings: Trainings) -> Iterator[Sighting]:
    """The loss depends on layers whose parameters no optimizer was given."""

    def find(training: Training) -> Facts:
        optimizers = training.optimizers
        if not training.knows_optimizers or not training.of(events.OptimizerStep):
            return
        held = {each for optimizer in optimizers for each in training.parameters_of(optimizer)}
        yield from _made_too_early(training, held)
        yield from _of_loss(training, held)
        for forward, backward in training.backwards:
            graph = backward.loss.graph
            known = training.executor.modules(forward.model)  # what is not registered is another fault
            left = [each for each in graph - held if _is_trained(each) and each.owner in known]
            if (
                forward.training is True
                and graph & held
                and left
                and _is_forgotten(training, forward.model, held, left)
            ):
                spot = next(each.spot for each in optimizers if each.spot and set(training.parameters_of(each)) & graph)
                yield spot, f"{_layers(left)} get gradients and are in no optimizer"
                return

    yield from certain(trainings, find)


def _made_too_early(training: Training, held: Set[Parameter]) -> Facts:
    """An optimizer was given `model.parameters()`, and the model has got more of them since."""
    for optimizer in training.optimizers:
        model = optimizer.state.get("of")
        if not isinstance(model, Object) or optimizer.spot is None or model.has_escaped:
            continue
        late = [each for each in training.executor.parameters(model) if each not in held and _is_trained(each)]
        used = {each for backward in training.of(events.Backward) for each in backward.loss.graph}
        if late and used.issuperset(late):
            yield optimizer.spot, f"{_layers(late)} come into the model when its parameters have been listed here"


def _of_loss(training: Training, held: Set[Parameter]) -> Facts:
    """A loss has parameters of its own, and nobody optimizes them."""
    losses = {id(each): each for each in training.executor.called if each.cls is not None}
    for backward in training.of(events.Backward):
        for module in losses.values():
            own = [each for each in training.executor.own_parameters(module).values() if each.requires_grad is True]
            is_apart = not module.has_escaped and not held & set(training.executor.parameters(module))
            if own and is_apart and backward.loss.graph.issuperset(own) and held & backward.loss.graph:
                spot = own[0].spot or backward.spot
                yield spot, f"the loss of line {backward.spot.line} learns with it, and no optimizer has it"


def _is_forgotten(training: Training, model: Object, held: Set[Parameter], left: Iterable[Parameter]) -> bool:
    """Whether the parts of MODEL that LEFT belongs to are fewer than those in HELD.

    Who trains a head on a backbone gives the optimizer one part of two, and means to.
    """
    parts = [set(training.executor.parameters(each)) for _, each in training.executor.children(model)]
    missing = sum(bool(each & set(left)) for each in parts)
    return missing < sum(bool(each) and each <= held for each in parts)


def _is_trained(parameter: Parameter) -> bool:
    """Whether PARAMETER is of a layer that the project makes itself."""
    owner = parameter.owner
    is_own = owner is not None and owner.made.startswith("torch.nn.") and not owner.has_escaped
    return is_own and parameter.requires_grad is True


def _layers(parameters: list[Parameter]) -> str:
    owners = sorted({(each.owner.spot.line, each.owner.made) for each in parameters if each.owner and each.owner.spot})
    shown = [f"{made.rpartition('.')[2]} of line {line}" for line, made in owners[:3]]
    return f"{', '.join(shown) or 'parameters'}{' and more' if len(owners) > 3 else ''}"


@detector("source/softmax-before-cross-entropy")
def softmax_before_cross_entropy(trainings: Trainings) -> Iterator[Sighting]:
    """cross_entropy gets probabilities, and takes their logarithm of a softmax again."""

    def find(training: Training) -> Facts:
        for call in training.of(events.LossCall):
            first = call.inputs[0] if call.inputs else None
            if call.name == "cross_entropy" and isinstance(first, Tensor) and first.activation == "softmax":
                where = f" in line {first.spot.line}" if first.spot is not None else ""
                yield call.spot, f"its input comes out of a softmax{where}"

    yield from certain(trainings, find, where_reached=True)


@detector("source/scheduler-before-optimizer")
def scheduler_before_optimizer(trainings: Trainings) -> Iterator[Sighting]:
    """A scheduler steps before its optimizer has: the first learning rate is skipped."""

    def find(training: Training) -> Facts:
        stepped: set[int] = set()
        early: dict[int, events.SchedulerStep] = {}
        for event in training.executor.events:
            if isinstance(event, events.OptimizerStep):
                stepped.add(id(event.optimizer))
                if id(event.optimizer) in early:
                    yield (
                        early[id(event.optimizer)].spot,
                        f"the optimizer steps in line {event.spot.line} for the first time",
                    )
            elif isinstance(event, events.SchedulerStep):
                optimizer = event.scheduler.argument("optimizer", 0)
                if isinstance(optimizer, Object) and id(optimizer) not in stepped:
                    early.setdefault(id(optimizer), event)

    yield from certain(trainings, find)


@detector("source/clip-after-step")
def clip_after_step(trainings: Trainings) -> Iterator[Sighting]:
    """Gradients are clipped when the optimizer has stepped with them already."""

    def find(training: Training) -> Facts:
        for clip in training.of(events.Clip):
            used = [each for each in clip.gradients if each.used == len(each.by) > 0]
            if used and len(used) == len(clip.gradients):
                yield clip.spot, "the optimizer has stepped with these gradients already"

    yield from certain(trainings, find, where_reached=True)


@detector("source/zeroed-before-step")
def zeroed_before_step(trainings: Trainings) -> Iterator[Sighting]:
    """Gradients are set to zero between the backward pass that made them and the step that wants them."""

    def find(training: Training) -> Facts:
        fresh: dict[Parameter, events.Backward] = {}
        zeroed: dict[Parameter, events.ZeroGrad] = {}
        for event in training.executor.events:
            if isinstance(event, events.Backward):
                fresh |= dict.fromkeys(event.loss.graph, event)
                is_known = event.loss.graph and not event.loss.is_open
                zeroed = {each: cause for each, cause in zeroed.items() if is_known and each not in event.loss.graph}
            elif isinstance(event, events.ZeroGrad):
                zeroed |= {each: event for each in event.parameters if each in fresh}
            elif isinstance(event, events.OptimizerStep):
                held = training.parameters_of(event.optimizer)
                if held and not event.gradients and all(each in zeroed for each in held if each in fresh) and zeroed:
                    cause = next((zeroed[each] for each in held if each in zeroed), None)
                    if cause is not None:
                        yield cause.spot, f"line {event.spot.line} steps with gradients that are zero"
                fresh = {each: cause for each, cause in fresh.items() if each not in held}

    yield from certain(trainings, find)


@detector("source/loss-detached")
def loss_detached(trainings: Trainings) -> Iterator[Sighting]:
    """Backward is called on a loss that has lost its graph on the way."""

    def find(training: Training) -> Facts:
        for backward in training.of(events.Backward):
            loss = backward.loss
            if loss.cut is not None and not loss.graph and not loss.is_open and not loss.has_escaped:
                yield loss.cut, f"the loss that line {backward.spot.line} goes back from has no graph from here on"

    yield from certain(trainings, find, where_reached=True)


@detector("source/method-not-called")
def method_not_called(trainings: Trainings) -> Iterator[Sighting]:
    """A method that does something is named as a statement, without parentheses."""

    def find(training: Training) -> Facts:
        for named in training.of(events.Named):
            if named.name in _DO:
                yield named.spot, f"{named.name} is named here and not called: nothing happens"

    yield from certain(trainings, find, where_reached=True)


_DO = frozenset({"step", "zero_grad", "backward", "train", "eval", "update", "set_epoch", "cuda", "wait", "remove"})


@detector("source/failure-swallowed")
def failure_swallowed(trainings: Trainings) -> Iterator[Sighting]:
    """An error in a training step is dropped without a word, and training goes on."""

    def find(training: Training) -> Facts:
        for silence in training.of(events.Silence):
            if silence.loops[-1][0] in training.batch_loops:
                yield silence.spot, "any error of the step in this `try` is dropped without a word"

    yield from certain(trainings, find, where_reached=True)


@detector("source/framework-bypassed")
def framework_bypassed(trainings: Trainings) -> Iterator[Sighting]:
    """backward() is called past the Accelerator, which scales and divides the loss."""

    def find(training: Training) -> Facts:
        if not any(each.made.kind == "accelerator" for each in training.of(events.Made)):
            return
        for backward in training.of(events.Backward):
            if not getattr(backward.spot.node, "args", ()):
                yield backward.spot, "accelerator.backward(loss) is not what is called here"

    yield from certain(trainings, find, where_reached=True)


@detector("source/inplace-breaks-autograd")
def inplace_breaks_autograd(trainings: Trainings) -> Iterator[Sighting]:
    """A result that its operation needs for the gradient is changed in place."""
    yield from wherever(
        trainings, events.ResultEdit, lambda edit: f"{edit.name} needs its result for the gradient, and this changes it"
    )
