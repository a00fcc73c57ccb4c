"""What an execution of the program shows about the order of a training step, its loss and its optimizer."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.autograd import Parameter, Tensor
from torchtriage.examine.source.execution.graphs import tensors_in
from torchtriage.examine.source.execution.loops import ACCUMULATED
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Facts, Trainings, by_default, certain
from torchtriage.examine.source.execution.values import Class, Object, Unknown, truth
from torchtriage.examine.source.nodes import nodes_in, other_branches
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.debugging_techniques.rules.clipping import is_measured
from torchtriage.specialists.debugging_techniques.rules.mends import (
    call_accelerator,
    call_it,
    drop_activation,
    move_after,
    move_before,
)


@detector("source/gradients-not-zeroed")
def gradients_not_zeroed(trainings: Trainings) -> Iterator[Sighting]:
    """Gradients that an optimizer has stepped with are still there when the next backward pass adds to them."""

    def find(training: Training) -> Facts:
        named = {each.name for each in training.of(events.Named)}
        if "zero_grad" in training.blind | named:
            return
        for step in training.of(events.OptimizerStep):
            stale = [gradient for _, gradient in step.gradients if 0 < gradient.used < len(gradient.by)]
            if stale and len(stale) == len(step.gradients):
                spot, _ = stale[0].by[-1]
                yield spot, f"its gradients are added to those that {step.spot} has stepped with before"

    yield from certain(trainings, find)


@detector("source/step-missing")
def step_missing(trainings: Trainings) -> Iterator[Sighting]:
    """Gradients are computed for an optimizer that never steps."""
    all_steps = [each for run in trainings.runs for each in run.of(events.OptimizerStep)]

    def find(training: Training) -> Facts:
        if not training.of(events.Backward):
            return
        turns = [each.loops[-1][1] for each in training.of(events.Backward) if each.loops]
        is_followed = training.executor.is_finished or max(turns, default=0) >= ACCUMULATED - 1
        if "step" in training.blind or not is_followed or _steps_elsewhere(training):
            return
        if any(map(is_measured, training.of(events.Clip))):  # gradients are looked at, and not used
            return
        steps = training.of(events.OptimizerStep)
        stepped = {each for step in steps for each in training.parameters_of(step.optimizer)}
        if steps and not training.knows_optimizers:
            return
        for optimizer in training.optimizers:
            held = set(training.parameters_of(optimizer))
            backwards = (each for each in training.of(events.Backward) if not training.asks_for_input(each))
            propagated = [each for each in backwards if held & each.loss.graph]
            is_out_of_sight = optimizer.has_escaped or _is_stepped_beside(training, optimizer)
            mine = [each for each in all_steps if optimizer.spot and each.optimizer.spot == optimizer.spot]
            is_out_of_sight |= any(_is_now_and_then(training, propagated[0], each) for each in mine if propagated)
            if propagated and not held & stepped and not is_out_of_sight:
                name = optimizer.made.rpartition(".")[2] or "an optimizer"
                made = f"{name} of {optimizer.spot}" if optimizer.spot else name
                yield propagated[0].spot, f"{made} never steps: its parameters stay as they are"

    yield from certain(trainings, find, where_reached=True)


def _is_now_and_then(training: Training, backward: events.Backward, step: events.OptimizerStep) -> bool:
    """Whether STEP stands beside BACKWARD, under a condition that this execution has decided otherwise, and not
    in the other arm of an `if` around the backward.
    """
    node, code = backward.spot.node, training.code_around(backward.spot)
    tests = (each for each in ast.walk(code) if isinstance(each, ast.If) and id(node) in nodes_in(each))
    other = {id(each) for test in tests for one in other_branches(test, node) for each in ast.walk(one)}
    inside = nodes_in(code) - other - {id(code)}
    return any(id(each) in inside for _, each in step.spot.chain)


def _steps_elsewhere(training: Training) -> bool:
    """Whether the execution is of one method, and another one of the class steps."""
    entry = training.executor.entry
    classes = [each for each in entry.lineage if isinstance(each, Class)] if isinstance(entry, Class) else []
    inside = (each for own in classes for each in ast.walk(own.node))
    return any(isinstance(each, ast.Attribute) and each.attr == "step" for each in inside)


def _is_stepped_beside(training: Training, optimizer: Object) -> bool:
    """Whether the class that makes OPTIMIZER has code that steps it, to which this program does not come.

    An agent of reinforcement learning that is only watched: optimize() belongs to another script.
    """
    around = training.definitions_around(optimizer.spot) if optimizer.spot is not None else []
    host = next((each for each in around if isinstance(each, ast.ClassDef)), None)
    if host is None or optimizer.spot is None:
        return False
    made = id(optimizer.spot.node)
    assigned = (each for each in ast.walk(host) if isinstance(each, ast.Assign) and made in nodes_in(each.value))
    names = {ast.unparse(target) for each in assigned for target in each.targets}
    asked = (each for each in ast.walk(host) if isinstance(each, ast.Attribute) and each.attr == "step")
    return any(ast.unparse(each.value) in names for each in asked)


@detector("source/softmax-before-cross-entropy")
def softmax_before_cross_entropy(trainings: Trainings) -> Iterator[Sighting]:
    """Probabilities go into a loss that applies softmax or sigmoid itself."""
    calls = [each for run in trainings.runs for each in run.of(events.LossCall)]
    sound = {each.spot.key for each in calls if _activated(each) is None}

    def find(training: Training) -> Facts:
        for call in training.of(events.LossCall):
            tensor = _activated(call)
            if tensor is not None and call.spot.key not in sound:
                word = tensor.activation
                yield (
                    tensor.activated or call.spot,
                    f"the loss of {call.spot} applies the {word} itself: it expects logits",
                    drop_activation,
                )

    yield from certain(trainings, find, where_reached=True)


def _activated(call: events.LossCall) -> Tensor | None:
    """What CALL is given, where that has gone through the activation that the loss applies itself."""
    first = call.inputs[0] if call.inputs else None
    wanted = symbols().activating_losses.get(f"torch.nn.functional.{call.name}", "")
    return first if isinstance(first, Tensor) and wanted and first.activation == wanted else None


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
                        f"the first step of the optimizer comes later, in {event.spot}, and takes the second "
                        "learning rate of the schedule: the first is skipped",
                        move_after("scheduler-last", event.spot),
                    )
            elif isinstance(event, events.SchedulerStep):
                optimizer = event.scheduler.argument("optimizer", 0)
                if event.scheduler.state.get("is_given") and len(training.optimizers) == 1:
                    optimizer = training.optimizers[0]
                if event.is_placed or training.resumes_before(event):
                    continue
                if isinstance(optimizer, Object) and id(optimizer) not in stepped:
                    early.setdefault(id(optimizer), event)

    yield from by_default(trainings, find, where_reached=False)  # one that is resumed has stepped before


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
                zeroed |= {each: event for each in event.lost if each in fresh}
            elif isinstance(event, events.OptimizerStep):
                held = training.parameters_of(event.optimizer)
                if (
                    held
                    and event.is_known
                    and not event.gradients
                    and all(each in zeroed for each in held if each in fresh)
                ):
                    lost = next((each for each in held if each in zeroed and each in fresh), None)
                    if lost is not None:
                        cause, made = zeroed[lost], fresh[lost]
                        fact = (
                            f"the gradients of {made.spot} are cleared here, before the step of "
                            f"{event.spot} applies them: the weights do not move"
                        )
                        is_alone = len({id(each.spot.node) for each in training.of(events.Backward)}) == 1
                        # zero, step, backward: the step would come between a forward pass and its backward pass
                        is_last = made.spot.path == event.spot.path and made.spot.line > event.spot.line
                        mend = move_before("zero-before-backward", made.spot)
                        yield (cause.spot, fact, mend) if is_alone and not is_last else (cause.spot, fact)
                fresh = {each: cause for each, cause in fresh.items() if each not in held}

    # where a step is held back (norms that are not finite), those executions count that step
    yield from certain(trainings, find, among=lambda training: bool(training.of(events.OptimizerStep)))


@detector("source/loss-detached")
def loss_detached(trainings: Trainings) -> Iterator[Sighting]:
    """Backward is called on a loss that has lost its graph on the way."""

    def find(training: Training) -> Facts:
        for call in training.of(events.LibraryCall):
            first = call.arguments[0] if call.name == "torch.tensor" and call.arguments else None
            is_leaf = truth(call.keywords.get("requires_grad", False)) is True
            if is_leaf and any(each.graph or each.loss for each in tensors_in((first,))):
                yield call.spot, "the copy has no graph: no gradient flows back from here"
        for backward in training.of(events.Backward):
            if isinstance(backward.spot.node, ast.ClassDef):  # of a module that was tried out: nobody wrote it
                continue
            loss = backward.loss
            if loss.is_leaf and loss.grad_fn is None and loss.spot is not None and not _is_optimized(training, loss):
                yield loss.spot, f"it has no graph: the backward of {backward.spot} reaches no parameter"
            is_of_unknown = any(not each.state.get("is_known") for each in training.optimizers)
            if is_of_unknown and not any(each.state.get("is_given") for each in training.optimizers):
                continue
            if loss.cut is not None and not loss.graph and not loss.is_open and not loss.has_escaped:
                yield loss.cut, f"the loss that {backward.spot} goes back from has no graph from here on"

    yield from certain(trainings, find, where_reached=True)


def _is_optimized(training: Training, tensor: Tensor) -> bool:
    """Whether TENSOR is what is learned, or nothing is."""
    groups = [group for each in training.optimizers for group in each.state.get("groups", ())]
    return not groups or any(tensor is each for group in groups for each in group["params"])


@detector("source/method-not-called")
def method_not_called(trainings: Trainings) -> Iterator[Sighting]:
    """A method that does something is named as a statement, without parentheses."""

    def find(training: Training) -> Facts:
        for named in training.of(events.Named):
            if named.name in _DO:
                fact = f"`{ast.unparse(named.spot.node)}` is looked up here and not called: {_DO[named.name]}"
                yield (named.spot, fact, call_it) if named.name != "update" else (named.spot, fact)

    yield from certain(trainings, find, where_reached=True)


_DO = {
    "eval": "the model stays in the mode it was in, with dropout and batch statistics as in training",
    "train": "the model stays in the mode it was in",
    "zero_grad": "the gradients stay, and the next ones are added to them",
    "step": "nothing is stepped",
    "backward": "no gradient is computed",
    "update": "nothing is updated",
    "set_epoch": "every epoch has the order of the first",
    "cuda": "nothing is moved",
    "wait": "nothing is waited for",
    "remove": "the hook stays",
    "requires_grad_": "requires_grad stays as it was",
    "synchronize": "nothing is waited for",
    "barrier": "no rank waits",
    "empty_cache": "nothing is released",
    "destroy_process_group": "the process group stays",
}
"""What does not happen when the method, or the function of torch, is only named."""


@detector("source/failure-swallowed")
def failure_swallowed(trainings: Trainings) -> Iterator[Sighting]:
    """An error in a training step is dropped without a word, and training goes on."""

    def find(training: Training) -> Facts:
        for silence in training.of(events.Silence):
            steps = {loop for each in training.of(events.OptimizerStep) for loop, _ in each.loops}
            if silence.loops[-1][0] in training.batch_loops & steps:
                yield silence.spot, "any error of the step in this `try` is dropped without a word"

    yield from certain(trainings, find, where_reached=True)


@detector("source/framework-bypassed")
def framework_bypassed(trainings: Trainings) -> Iterator[Sighting]:
    """backward() is called past the Accelerator, which scales and divides the loss."""

    def find(training: Training) -> Facts:
        yield from _propagated_twice(training)
        made = [each for each in training.of(events.Made) if each.made.kind == "accelerator"]
        harm = next(filter(None, (_harm(each.made) for each in made)), "")
        for backward in training.of(events.Backward) if harm else ():
            if not getattr(backward.spot.node, "args", ()):
                fact = f"{harm}; this backward goes past `Accelerator.backward`"
                yield (backward.spot, fact, call_accelerator(made[0].spot)) if len(made) == 1 else (backward.spot, fact)

    yield from certain(trainings, find, where_reached=True)


def _harm(accelerator: Object) -> str:
    """What a backward pass that goes past ACCELERATOR misses."""
    words, steps = accelerator.keywords, accelerator.keywords.get("gradient_accumulation_steps", 1)
    if words.get("mixed_precision") == "fp16":
        return "mixed_precision='fp16' scales the loss in backward(): without it the first step fails"
    if isinstance(steps, int) and steps > 1:
        return (
            f"gradient_accumulation_steps={steps} divides the loss in backward(): gradients are {steps} times as large"
        )
    is_open = {"mixed_precision", "gradient_accumulation_steps", "**"} & words.keys()
    unknown = [each for each in is_open if isinstance(words[each], Unknown)]
    return f"`{unknown[0]}` may scale or divide the loss in backward()" if unknown else ""


def _propagated_twice(training: Training) -> Facts:
    """A training_step that propagates the loss itself and returns it to Lightning, which propagates it again."""
    entry = training.executor.entry
    is_lightning = isinstance(entry, Class) and any(each.endswith(".LightningModule") for each in entry.externals)
    if not is_lightning or training.mentions(_MANUAL):
        return
    returned = [*tensors_in((training.executor.returned,))]
    for backward in training.of(events.Backward):
        function = next(iter(training.definitions_around(backward.spot)[-1:]), None)
        if (
            function is not None
            and function.name == "training_step"
            and any(each is backward.loss for each in returned)
        ):
            yield backward.spot, "Lightning calls backward() on what training_step returns: its graph is freed by then"


_MANUAL = re.compile(rb"automatic_optimization|manual_backward")
"""Programs that tell Lightning to leave the backward pass to them."""


@detector("source/inplace-breaks-autograd")
def inplace_breaks_autograd(trainings: Trainings) -> Iterator[Sighting]:
    """A result that its operation needs for the gradient is changed in place."""

    def find(training: Training) -> Facts:
        for stale in training.of(events.StaleWeight):
            yield (
                stale.spot,
                f"the step of {stale.stepped} has changed weights in place that backward needs: it raises",
            )
        for place, edit in enumerate(training.executor.events):
            if not isinstance(edit, events.ResultEdit):
                continue
            later = (each for each in training.executor.events[place:] if isinstance(each, events.Backward))
            if any(_is_needed(edit, each) for each in later if training.optimizers or not _is_last(edit, each)):
                yield edit.spot, f"{edit.name} needs its result for the gradient, and this changes it"

    yield from certain(trainings, find, where_reached=True)


def _is_needed(edit: events.ResultEdit, backward: events.Backward) -> bool:
    """Whether BACKWARD goes through the operation whose result EDIT changes."""
    loss = backward.loss
    return bool(edit.result.graph & loss.graph and edit.result.ages & loss.ages)


def _is_last(edit: events.ResultEdit, backward: events.Backward) -> bool:
    """Whether a model that nothing in sight trains ends with EDIT: it may be for inference alone."""
    last = backward.loss.grad_fn
    return last is not None and edit.result.grad_fn in (last, *last.inputs)
