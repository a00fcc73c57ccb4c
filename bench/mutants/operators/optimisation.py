"""Steps of the training loop that are missing, doubled or in the wrong order, and optimizers of the wrong weights."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mutants.catalogue import ERROR, FIGURE, MEMORY, SPEED, operator
from mutants.queries import (
    OPTIMIZERS,
    backwards,
    calls,
    children,
    home,
    last_name,
    models,
    optimizer_steps,
    optimizers,
    scheduler_steps,
    statements,
    step_loops,
)
from mutants.source import Project, Site, Source

RATE = ("learning-rate-too-high", "loss-diverged")
UNTRAINED = ("parameters-not-in-optimizer", "parameter-never-used")


def neighbours(
    source: Source, statement: ast.stmt, found: list[tuple[Source, ast.Expr, ast.Call]]
) -> Iterator[ast.Expr]:
    """Those of FOUND in the same suite as STATEMENT."""
    block = source.block(statement)
    yield from (other for place, other, _ in found if place is source and other in block and other is not statement)


@operator("zero_grad forgotten (TrainCheck stackoverflow-60335387)", ("gradients-not-zeroed",), beside=RATE)
def zero_grad_dropped(project: Project) -> Iterator[Site]:
    for source, statement, _ in statements(project, "zero_grad"):
        yield source.drop(statement)


@operator("zero_grad between backward and step (PyTorch forum)", ("zeroed-before-step", "step-missing"),
          beside=UNTRAINED)  # fmt: skip
def zeroed_before_step(project: Project) -> Iterator[Site]:
    for source, statement, _ in statements(project, "zero_grad"):
        for backward in neighbours(source, statement, list(backwards(project))):
            if backward.lineno > statement.lineno:
                moved = source.after(backward, source.dedented(statement))
                dropped = source.drop(statement)
                yield Site(moved.edits, (), dropped.edits)


@operator("optimizer.step() forgotten", ("step-missing",), beside=("scheduler-before-optimizer",))
def step_dropped(project: Project) -> Iterator[Site]:
    for source, statement, _ in optimizer_steps(project):
        yield source.drop(statement)


@operator("step in front of backward, zero_grad before both", ("zeroed-before-step", "step-missing"), beside=UNTRAINED)
def step_before_backward(project: Project) -> Iterator[Site]:
    for source, statement, _ in optimizer_steps(project):
        for backward in neighbours(source, statement, list(backwards(project))):
            if backward.lineno < statement.lineno:
                moved = source.before(backward, source.dedented(statement))
                yield Site(moved.edits, (), source.drop(statement).edits)


@operator("scheduler.step() forgotten: a warm-up that never ends", ("schedule-unfinished", "learning-rate-too-low"),
          beside=RATE)  # fmt: skip
def scheduler_step_dropped(project: Project) -> Iterator[Site]:
    for source, statement, _ in scheduler_steps(project):
        yield source.drop(statement)


@operator("A schedule by the epoch that is stepped by the batch", ("learning-rate-too-low", "schedule-exceeded"),
          beside=("schedule-unfinished",))  # fmt: skip
def scheduler_stepped_by_batch(project: Project) -> Iterator[Site]:
    """Next to the optimizer's step, or ten times where it is already there."""
    for source, statement, _ in scheduler_steps(project):
        text = source.code(statement)
        for place, loop, step in step_loops(project):
            if (
                place is source
                and source.loop(statement) is not loop
                and source.function(step) is source.function(statement)
            ):
                yield Site(source.after(step, text).edits, (), source.drop(statement).edits)
            elif place is source and source.loop(statement) is loop:
                yield Site(
                    source.replace(statement, f"for _ in range(10):\n{source.indent(statement)}    {text}").edits
                )


@operator("scheduler.step() before optimizer.step() (PyTorch 1.1's change of order)", ("scheduler-before-optimizer",))
def scheduler_before_optimizer(project: Project) -> Iterator[Site]:
    for source, statement, _ in scheduler_steps(project):
        for step in neighbours(source, statement, list(optimizer_steps(project))):
            if step.lineno < statement.lineno:
                yield Site(source.before(step, source.code(statement)).edits, (), source.drop(statement).edits)


@operator("Gradients clipped after the step", ("clip-after-step",), beside=("gradients-exploding", *RATE))
def clipped_after_step(project: Project) -> Iterator[Site]:
    for source, statement, _ in statements(project, "clip_grad_norm_", "clip_grad_value_"):
        for step in neighbours(source, statement, list(optimizer_steps(project))):
            if step.lineno > statement.lineno:
                yield Site(source.after(step, source.dedented(statement)).edits, (), source.drop(statement).edits)


@operator("DeepCrime OCG: clipping removed", ("gradients-exploding", *RATE))
def clipping_dropped(project: Project) -> Iterator[Site]:
    for source, statement, _ in statements(project, "clip_grad_norm_", "clip_grad_value_"):
        yield source.drop(statement)


@operator("An optimizer of the head alone", UNTRAINED)
def optimizer_of_one_part(project: Project) -> Iterator[Site]:
    """`model.parameters()` becomes that of the last layer with weights."""
    for source, call in optimizers(project):
        given = call.args[0]
        if not (isinstance(given, ast.Call) and last_name(given.func) == "parameters"):
            continue
        name = source.code(given.func).removesuffix(".parameters")
        parts = [part for _, _, model, network in models(project) if model == name
                 for part, _, built in children(home(project, network), network)
                 if last_name(built.func) in ("Linear", "Conv2d", "Conv1d", "Sequential", "LayerNorm")]  # fmt: skip
        yield from (source.replace(given.func, f"{name}.{part}.parameters") for part in parts[-1:])


@operator(
    "A part frozen by mistake, before the optimizer sees it",
    (*UNTRAINED, "frozen-at-random"),
    beside=("only-norms-trained",),
)
def part_frozen(project: Project) -> Iterator[Site]:
    for source, assign, name, network in models(project):
        parts = [part for part, _, _ in children(home(project, network), network)]
        if len(parts) > 1:
            yield source.after(
                assign, f"for parameter in {name}.{parts[0]}.parameters():\n    parameter.requires_grad = False"
            )


@operator("The optimizer of the other network (GAN, actor and critic)", UNTRAINED, beside=RATE)
def optimizers_crossed(project: Project) -> Iterator[Site]:
    """Of two optimizers in one function the second gets the weights of the first."""
    found = list(optimizers(project))
    for source, call in found:
        for place, other in found:
            is_near = place is source and other is not call and source.function(other) is source.function(call)
            if is_near and source.code(call.args[0]) != source.code(other.args[0]):
                yield source.replace(call.args[0], source.code(other.args[0]))


@operator("An optimizer that is made anew in each batch", ("built-in-loop",), beside=RATE,
          shows=(ERROR, FIGURE, SPEED))  # fmt: skip
def optimizer_rebuilt(project: Project) -> Iterator[Site]:
    for source, call in optimizers(project):
        assign = source.statement(call)
        for place, loop, _ in step_loops(project):
            if place is source and source.function(loop) is source.function(assign) and isinstance(assign, ast.Assign):
                yield source.before(loop.body[0], source.dedented(assign))


@operator("Weights replaced after the optimizer was made (PyTorch forum)", ("parameters-not-in-optimizer",),
          beside=("parameter-never-used", "step-missing"))  # fmt: skip
def model_copied_after_optimizer(project: Project) -> Iterator[Site]:
    names = {name for _, _, name, _ in models(project)}
    for source in project.sources:
        for assign in source.walk(ast.Assign):
            text = source.code(assign.value)
            for name in sorted(names):
                if re.search(rf"\b{name}\.(parameters|configure_optim\w*|optim\w*)\(", text) and _makes_optimizer(
                    assign
                ):
                    yield source.after(assign, f"{name} = copy.deepcopy({name})") + source.imported("import copy")


def _makes_optimizer(assign: ast.Assign) -> bool:
    name = last_name(assign.value)
    return name in OPTIMIZERS or "optim" in name


@operator("A detach that was taken out (recurrent state, the fake of a GAN, a target network)",
          ("hidden-state-not-detached", "backward-twice", "graph-retained"), beside=RATE,
          shows=(ERROR, FIGURE, SPEED, MEMORY))  # fmt: skip
def detach_dropped(project: Project) -> Iterator[Site]:
    for source, call in calls(project, "detach"):
        if isinstance(call.func, ast.Attribute) and not _feeds_python(source, call):
            yield source.replace(call, source.code(call.func.value))


def _feeds_python(source: Source, call: ast.Call) -> bool:
    """Whether what was detached goes on to numpy, a list or a number, which is reading and not training."""
    parent = source.parent(call)
    return isinstance(parent, ast.Attribute) and parent.attr in ("cpu", "numpy", "tolist", "item", "clone")


@operator("backward called twice on one graph", ("backward-twice",), beside=("retain-graph-needless",))
def backward_twice(project: Project) -> Iterator[Site]:
    for source, statement, _ in backwards(project):
        yield source.after(statement, source.code(statement))


@operator("Steps with a sign of their own: ascent", ("learning-rate-too-high", "loss-diverged"))
def loss_negated(project: Project) -> Iterator[Site]:
    for source, _, call in backwards(project):
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and not call.args:
            yield source.replace(call.func.value, f"(-{call.func.value.id})")


@operator("A step one level too shallow: once in an epoch", ("step-missing", "gradients-not-zeroed",
          "learning-rate-too-low"), beside=RATE)  # fmt: skip
def step_after_loop(project: Project) -> Iterator[Site]:
    for source, statement, _ in optimizer_steps(project):
        loop = source.loop(statement)
        if loop is not None and statement in loop.body and source.loop(loop) is not None:
            yield Site(
                source.after(loop, source.dedented(statement)).edits,
                source.scope(statement),
                source.drop(statement).edits,
            )


@operator("A method that is named and not called", ("method-not-called",),
          beside=("gradients-not-zeroed", "step-missing", "mode-left-in-train", *RATE))  # fmt: skip
def method_not_called(project: Project) -> Iterator[Site]:
    for source, statement, call in statements(project, "zero_grad", "step", "eval", "backward"):
        if not call.args or last_name(call.func) == "zero_grad":
            yield source.replace(statement, source.code(call.func))
