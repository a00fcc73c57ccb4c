"""Formats that are too short, guards that are missing, and formulas that are unstable."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mutants.catalogue import operator
from mutants.queries import calls, keyword, last_name, model_in, models, number, statements
from mutants.source import Project, Site

NOT_FINITE = ("non-finite-origin", "nan-gradient-where", "input-not-finite")
GUARDS = re.compile(r"(?i)\w*eps(ilon)?|tiny|\w*_eps")


@operator("model.half() and training on", ("half-model-trained", "dtype-mismatch"))
def model_halved(project: Project) -> Iterator[Site]:
    for source, assign, name, _ in models(project):
        yield source.after(assign, f"{name} = {name}.half()")


@operator("A guard against a division by zero that was lost", NOT_FINITE, beside=("unstable-composition",))
def guard_dropped(project: Project) -> Iterator[Site]:
    """`x + 1e-6` and `x.clamp(min=1e-6)` become x."""
    for source in project.sources:
        for each in source.walk(ast.BinOp):
            value = number(each.right)
            is_small = value is not None and 0 < value <= 1e-3
            if isinstance(each.op, ast.Add) and (is_small or GUARDS.fullmatch(last_name(each.right))):
                yield source.replace(each, source.code(each.left))
    for source, call in calls(project, "clamp", "clamp_min", "nan_to_num"):
        if isinstance(call.func, ast.Attribute) and last_name(call.func.value) != "torch":
            yield source.replace(call, source.code(call.func.value))


@operator("log of softmax, exp of a large number (Kloberdanz et al. 2022, DeepStability)",
          ("unstable-composition", *NOT_FINITE))  # fmt: skip
def unstable_formula(project: Project) -> Iterator[Site]:
    for source, call in calls(project, "log_softmax", "binary_cross_entropy_with_logits", "logsumexp", "softplus"):
        if not call.args or not isinstance(call.func, ast.Attribute):
            continue
        name, first, base = last_name(call.func), source.code(call.args[0]), source.code(call.func.value)
        rest = source.text[source.span(call.args[0]).end : source.span(call).end]
        text = {
            "log_softmax": f"torch.log(torch.softmax({first}{rest})",
            "logsumexp": f"torch.log(torch.sum(torch.exp({first}){rest})",
            "softplus": f"torch.log(1 + torch.exp({first}))",
            "binary_cross_entropy_with_logits": f"{base}.binary_cross_entropy(torch.sigmoid({first}){rest}",
        }[name]
        if base in ("F", "torch", "functional", "nn.functional"):
            yield source.replace(call, text) + source.imported("import torch")


@operator("A logarithm or root of what may be 0 or below", NOT_FINITE, beside=("unstable-composition",))
def root_of_zero(project: Project) -> Iterator[Site]:
    """A distance by the square root of a sum of squares, which has no slope at 0, added to the loss."""
    for source, statement, call in statements(project, "backward"):
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and not call.args:
            name = call.func.value.id
            yield source.before(statement, f"{name} = {name} + 0.0 * ({name} - {name}).abs().sqrt()")


@operator("float16 autocast with no GradScaler", ("scaler-missing",), beside=("scale-collapsing", "scaler-bypassed"))
def autocast_in_float16(project: Project) -> Iterator[Site]:
    for source, call in calls(project, "autocast"):
        given = keyword(call, "dtype")
        if given and source.code(given.value) == "torch.bfloat16":
            yield source.replace(given.value, "torch.float16")


@operator(
    "Clipping before unscale_ (PyTorch AMP examples)", ("clip-before-unscale",), beside=("learning-rate-too-low",)
)
def unscale_dropped(project: Project) -> Iterator[Site]:
    for source, statement, _ in statements(project, "unscale_"):
        yield source.drop(statement)


@operator("scaler.update() forgotten", ("scaler-not-updated",))
def scaler_update_dropped(project: Project) -> Iterator[Site]:
    for source, statement, call in statements(project, "update"):
        if isinstance(call.func, ast.Attribute) and "scaler" in source.code(call.func.value):
            yield source.drop(statement)


@operator(
    "optimizer.step() where scaler.step(optimizer) was meant", ("scaler-bypassed",), beside=("scaler-not-updated",)
)
def scaler_bypassed(project: Project) -> Iterator[Site]:
    for source, statement, call in statements(project, "step"):
        if call.args and isinstance(call.func, ast.Attribute) and "scaler" in source.code(call.func.value):
            yield source.replace(statement, f"{source.code(call.args[0])}.step()")


@operator("Weights kept in bfloat16, whose small updates are lost", ("half-model-trained", "dtype-mismatch"),
          beside=("learning-rate-too-low",))  # fmt: skip
def weights_rounded(project: Project) -> Iterator[Site]:
    """Weights are put through bfloat16 after each step, as a state that is kept in it does."""
    for source, statement, call in statements(project, "step"):
        name = model_in(project, source, statement)
        if name and source.loop(statement) and "opt" in source.code(call.func):
            code = (f"with torch.no_grad():\n    for parameter in {name}.parameters():\n"
                    "        parameter.copy_(parameter.to(torch.bfloat16))")  # fmt: skip
            yield source.after(statement, code) + source.imported("import torch")
