"""Numbers that a training is given and that do not fit it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from mutants.catalogue import operator
from mutants.queries import OPTIMIZER, Number, calls, keyword, last_name, named_numbers, number, optimizers
from mutants.source import Project, Site

RATE = r"(base_|max_|peak_|init_|initial_|\w+_)?(lr|learning_rate)"
TOO_HIGH = ("learning-rate-too-high", "loss-diverged", "gradients-exploding")
TOO_LOW = ("learning-rate-too-low",)


def scaled(project: Project, pattern: str, change: Callable[[Number], Number]) -> Iterator[Site]:
    """Each number of that name, changed."""
    for source, node, value in named_numbers(project, pattern):
        if value:
            yield source.replace(node, repr(change(value)))


def decimal(value: float) -> float:
    """Without the digits that a product of decimal fractions adds."""
    return float(f"{value:.6g}")


@operator("DeepCrime HLR; learning rates of 1 and more on StackOverflow", TOO_HIGH, beside=("schedule-unfinished",))
def learning_rate_times_1000(project: Project) -> Iterator[Site]:
    yield from scaled(project, RATE, lambda value: decimal(value * 1000))


@operator("DeepCrime HLR, at the edge of stability", TOO_HIGH)
def learning_rate_times_50(project: Project) -> Iterator[Site]:
    yield from scaled(project, RATE, lambda value: decimal(value * 50))


@operator("DeepCrime HLR, too low", TOO_LOW)
def learning_rate_by_1000(project: Project) -> Iterator[Site]:
    yield from scaled(project, RATE, lambda value: decimal(value / 1000))


@operator("DeepCrime RAW and RCW", ("learning-rate-too-high", "weight-decay-too-large"), beside=TOO_LOW)
def weight_decay_large(project: Project) -> Iterator[Site]:
    """The decay that there is, as 20; else one is added to the optimizer."""
    found = list(scaled(project, r"(\w+_)?(weight_decay|wd)", lambda _: 20.0))
    yield from found
    for source, call in optimizers(project) if not found else ():
        if not keyword(call, "weight_decay"):
            yield source.replace(call, source.code(call)[:-1].rstrip(", \n") + ", weight_decay=20.0)")


@operator("A momentum above 1, a user's reading of it as a gain", TOO_HIGH)
def momentum_above_one(project: Project) -> Iterator[Site]:
    yield from scaled(project, r"(\w+_)?(momentum|beta1|adam_beta1)", lambda _: 1.02)
    for source, call in optimizers(project):
        name = last_name(call.func)
        if name in ("SGD", "RMSprop") and not keyword(call, "momentum"):
            yield source.replace(call, source.code(call)[:-1].rstrip(", \n") + ", momentum=1.02)")


@operator("Adam's betas in the order of another library", ("betas-swapped", *TOO_HIGH), beside=TOO_LOW)
def betas_swapped(project: Project) -> Iterator[Site]:
    for source, call in optimizers(project):
        given = keyword(call, "betas")
        if given and isinstance(given.value, ast.Tuple) and len(given.value.elts) == 2:
            first, second = map(source.code, given.value.elts)
            yield source.replace(given.value, f"({second}, {first})")
        elif not given and last_name(call.func) in ("Adam", "AdamW"):
            yield source.replace(call, source.code(call)[:-1].rstrip(", \n") + ", betas=(0.999, 0.9))")


@operator("DeepCrime HBS", ("learning-rate-too-low",), beside=("schedule-unfinished",))
def batch_size_times_16(project: Project) -> Iterator[Site]:
    for source, node, value in named_numbers(project, r"(per_device_)?(train_)?(batch_size|bs|batch)(_size)?"):
        statement = source.statement(node)
        is_held_out = isinstance(statement, ast.Assign) and re.match(
            "(?i)val|eval|test", last_name(statement.targets[0])
        )
        if isinstance(value, int) and not is_held_out:
            yield source.replace(node, str(value * 16))


@operator("DeepCrime HNE", ("schedule-unfinished",), beside=TOO_LOW)
def epochs_cut(project: Project) -> Iterator[Site]:
    """A twentieth of the epochs or steps."""
    names = r"(max_|num_|n_|total_|num_train_)?(epochs|iters|steps|train_steps|iterations|updates|episodes)"
    for source, node, value in named_numbers(project, names):
        if isinstance(value, int) and value > 1:
            yield source.replace(node, str(max(1, value // 20)))


@operator("DeepCrime OCG", ("learning-rate-too-low",), beside=("gradients-vanishing",))
def clip_norm_tiny(project: Project) -> Iterator[Site]:
    names = r"(gradient_|grad_)?(clip|clip_norm|clip_val|clip_value|max_norm|clipping)|max_grad_norm"
    yield from scaled(project, names, lambda value: decimal(value * 1e-5))
    for source, call in calls(project, "clip_grad_norm_"):
        value = number(call.args[1]) if len(call.args) > 1 else None
        if value:
            yield source.replace(call.args[1], repr(decimal(value * 1e-5)))


@operator("DeepCrime RCD", (), beside=(*TOO_LOW, "mode-left-in-train"))
def dropout_nearly_one(project: Project) -> Iterator[Site]:
    yield from scaled(project, r"(\w+_)?(dropout|drop|p_drop|dropout_rate|drop_rate|dropout_p)", lambda _: 0.95)
    for source, call in calls(project, "Dropout", "Dropout2d", "dropout"):
        yield from (source.replace(given, "0.95") for given in call.args[-1:] if number(given))


@operator("DeepCrime OCH", TOO_LOW, beside=("learning-rate-too-high",))
def optimizer_changed(project: Project) -> Iterator[Site]:
    """Adam becomes plain gradient descent, at Adam's rate."""
    for source, call in optimizers(project):
        if last_name(call.func) in ("Adam", "AdamW") and isinstance(call.func, ast.Attribute):
            kept = [f", lr={source.code(rate.value)}" for rate in call.keywords if rate.arg == "lr"]
            yield source.replace(
                call, f"{source.code(call.func.value)}.SGD({source.code(call.args[0])}{''.join(kept)})"
            )


@operator("Temperatures multiplied where they divide (contrastive losses, distillation, sampling)",
          ("wrong-loss-input",), beside=(*TOO_HIGH, *TOO_LOW))  # fmt: skip
def temperature_inverted(project: Project) -> Iterator[Site]:
    for source in project.sources:
        for each in source.walk(ast.BinOp):
            name = last_name(each.right)
            if isinstance(each.op, ast.Div) and name in ("temperature", "tau", "temp", "T"):
                yield source.replace(each, f"{source.code(each.left)} * {source.code(each.right)}")


@operator("A schedule that decays by the step although it was meant by the epoch", TOO_LOW,
          beside=("schedule-unfinished",))  # fmt: skip
def schedule_decays_at_once(project: Project) -> Iterator[Site]:
    """T_max, step_size or total steps of a scheduler, a tenth of what they are; gamma to the tenth power."""
    for source, call in calls(project, "CosineAnnealingLR", "StepLR", "OneCycleLR", "LinearLR", "ExponentialLR"):
        wanted = keyword(call, "T_max", "step_size", "total_iters", "gamma")
        given = wanted.value if wanted else call.args[1] if len(call.args) > 1 else None
        if given is not None and not OPTIMIZER.fullmatch(last_name(given)):
            text = source.code(given)
            power = last_name(call.func) == "ExponentialLR" or (wanted is not None and wanted.arg == "gamma")
            yield source.replace(given, f"({text}) ** 10" if power else f"max(1, ({text}) // 10)")
