"""What an execution of the program shows about functions of autograd that the project writes."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.training import Facts, Training, Trainings, certain, wherever


@detector("source/tensor-on-ctx")
def tensor_on_ctx(trainings: Trainings) -> Iterator[Sighting]:
    """An input or output of forward is kept as an attribute of the context."""
    yield from wherever(
        trainings, events.ContextValue, lambda kept: f"ctx.{kept.name} keeps a tensor past save_for_backward"
    )


@detector("source/saved-non-tensor")
def saved_non_tensor(trainings: Trainings) -> Iterator[Sighting]:
    """save_for_backward is given something that is no tensor."""
    yield from wherever(
        trainings, events.SavedValue, lambda saved: f"save_for_backward takes tensors and None, and not {saved.value!r}"
    )


@detector("source/grad-output-edited")
def grad_output_edited(trainings: Trainings) -> Iterator[Sighting]:
    """Backward changes the gradient in place that it is given."""
    yield from wherever(
        trainings,
        events.GradientEdit,
        lambda _: "this changes the gradient that autograd has given, which others may read",
    )


@detector("source/gradient-count")
def gradient_count(trainings: Trainings) -> Iterator[Sighting]:
    """Backward gives another number of gradients than forward has inputs."""
    yield from wherever(
        trainings,
        events.GradientCount,
        lambda count: f"{count.number} gradients are returned, and apply() was given {count.wanted} inputs",
    )


@detector("source/no-gradient-by-design")
def no_gradient_by_design(trainings: Trainings) -> Iterator[Sighting]:
    """The whole loss goes through an operation whose gradient is zero everywhere."""

    def find(training: Training) -> Facts:
        for backward in training.of(events.Backward):
            loss = backward.loss
            if loss.graph and loss.flat is not None and not loss.is_open:
                yield loss.flat, f"the loss of line {backward.spot.line} has a gradient of zero everywhere behind this"

    yield from certain(trainings, find, where_reached=True)


@detector("source/dirty-not-marked")
def dirty_not_marked(trainings: Trainings) -> Iterator[Sighting]:
    """An input is changed in place by forward, which does not say so."""
    yield from wherever(
        trainings, events.DirtyInput, lambda _: "an input is changed here, and ctx.mark_dirty does not name it"
    )


@detector("source/function-called-directly")
def function_called_directly(trainings: Trainings) -> Iterator[Sighting]:
    """An autograd function is made as an object, instead of being asked by apply()."""
    yield from wherever(
        trainings, events.FunctionInstance, lambda _: "functions of autograd are called by their apply()"
    )
