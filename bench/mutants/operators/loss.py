"""Losses that are given something else than they take, or lose their graph."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mutants.catalogue import operator
from mutants.queries import EVALUATION, backwards, calls, differentiated, keyword, last_name, training_functions
from mutants.source import Project, Site, Source

CRITERIA = {"CrossEntropyLoss": "cross_entropy", "BCEWithLogitsLoss": "binary_cross_entropy_with_logits"}
RATE = ("learning-rate-too-high", "gradients-exploding", "loss-diverged")


def loss_calls(project: Project, function: str) -> Iterator[tuple[Source, ast.Call]]:
    """Calls of a functional loss, and of names to which its class was assigned, that are in no evaluation."""
    for source, call in _loss_calls(project, function):
        owner = source.function(call)
        if owner is None or not EVALUATION.match(owner.name):
            yield source, call


def _loss_calls(project: Project, function: str) -> Iterator[tuple[Source, ast.Call]]:
    yield from calls(project, function)
    classes = {name for name, made in CRITERIA.items() if made == function}
    for source in project.sources:
        named = {last_name(assign.targets[0]) for assign in source.walk(ast.Assign)
                 if isinstance(assign.value, ast.Call) and last_name(assign.value.func) in classes}  # fmt: skip
        yield from ((source, call) for call in source.walk(ast.Call) if last_name(call.func) in named and call.args)


def wrapped(project: Project, function: str, text: str) -> Iterator[Site]:
    """With the first argument of a loss in TEXT."""
    for source, call in loss_calls(project, function):
        if len(call.args) > 1 and not isinstance(call.args[0], ast.Starred):
            yield source.replace(call.args[0], text.format(source.code(call.args[0]))) + source.imported("import torch")


@operator("Softmax before cross entropy (Humbatova et al. 2020; StackOverflow 55675345)",
          ("softmax-before-cross-entropy", "wrong-loss-input"), beside=("learning-rate-too-low",))  # fmt: skip
def softmax_before_cross_entropy(project: Project) -> Iterator[Site]:
    yield from wrapped(project, "cross_entropy", "torch.softmax({}, dim=1)")


@operator("Sigmoid before a loss with logits", ("softmax-before-cross-entropy", "wrong-loss-input"),
          beside=("learning-rate-too-low",))  # fmt: skip
def sigmoid_before_logits(project: Project) -> Iterator[Site]:
    yield from wrapped(project, "binary_cross_entropy_with_logits", "torch.sigmoid({})")


@operator("nll_loss on probabilities", ("wrong-loss-input", "loss-below-possible"),
          beside=("softmax-before-cross-entropy",))  # fmt: skip
def nll_on_probabilities(project: Project) -> Iterator[Site]:
    for source, call in loss_calls(project, "cross_entropy"):
        if (
            len(call.args) > 1
            and last_name(call.func) == "cross_entropy"
            and not keyword(call, "label_smoothing")
            and isinstance(call.func, ast.Attribute)
        ):
            first, rest = source.code(call.args[0]), source.text[source.span(call.args[0]).end : source.span(call).end]
            base = source.code(call.func.value)
            yield source.replace(call, f"{base}.nll_loss({base}.softmax({first}, dim=1){rest}")


@operator("A loss that is summed where its mean was meant", ("initial-loss-off", *RATE))
def loss_summed(project: Project) -> Iterator[Site]:
    names = ("cross_entropy", "mse_loss", "binary_cross_entropy_with_logits", "l1_loss", "smooth_l1_loss",
             "CrossEntropyLoss", "MSELoss", "BCEWithLogitsLoss", "L1Loss", "SmoothL1Loss")  # fmt: skip
    for source, call in calls(project, *names):
        owner = source.function(call)
        if not keyword(call, "reduction") and not (owner and EVALUATION.match(owner.name)):
            inner = source.code(call)[:-1].rstrip(", \n")
            comma = "" if inner.endswith("(") else ", "
            yield source.replace(call, f'{inner}{comma}reduction="sum")')


@operator("(N, 1) against (N,) (PyTorch forum)", ("loss-broadcast", "shape-mismatch"), beside=("wrong-loss-input",))
def squeeze_dropped(project: Project) -> Iterator[Site]:
    for source, call in calls(project, "squeeze", "unsqueeze", "view", "reshape"):
        given = [source.code(each) for each in call.args]
        is_flat = last_name(call.func).endswith("squeeze") or given == ["-1"]
        if isinstance(call.func, ast.Attribute) and is_flat and given[:1] in (["-1"], ["1"], []):
            yield source.replace(call, source.code(call.func.value))


@operator("A term of the loss with the wrong sign (KL, entropy, a penalty)", ("loss-diverged", "loss-below-possible",
          ), beside=("learning-rate-too-high",))  # fmt: skip
def term_with_wrong_sign(project: Project) -> Iterator[Site]:
    for source in project.sources:
        for each in source.walk(ast.BinOp):
            if not isinstance(each.op, ast.Add | ast.Sub) or not _is_of_loss(source, each):
                continue
            left, right = source.code(each.left), source.code(each.right)
            sign = "-" if isinstance(each.op, ast.Add) else "+"
            yield source.replace(each, f"{left} {sign} {right}")


def _is_of_loss(source: Source, node: ast.BinOp) -> bool:
    """A sum of terms that is assigned to a loss, or returned as one, and has no number in it."""
    statement = source.statement(node)
    match statement:
        case ast.Assign(targets=[target], value=value):
            named = last_name(target)
        case ast.Return(value=value):
            named = getattr(source.function(node), "name", "")
        case _:
            return False
    words = re.search(r"(?i)loss|elbo|objective|criterion", named)
    return bool(words) and value is node and not isinstance(node.right, ast.Constant)


@operator(
    "loss = torch.tensor(loss.item(), requires_grad=True)", ("loss-detached", "parameter-never-used", "step-missing")
)
def loss_wrapped_anew(project: Project) -> Iterator[Site]:
    for source, statement, call in backwards(project):
        place = differentiated(call)
        if isinstance(place, ast.Name):
            code = f"{place.id} = torch.tensor({place.id}.item(), requires_grad=True)"
            yield source.before(statement, code) + source.imported("import torch")


@operator("detach in the path of the loss", ("loss-detached", "parameter-never-used", "no-gradient-by-design"))
def output_detached(project: Project) -> Iterator[Site]:
    """The output of a call in a training function or a forward is cut from its graph."""
    for source, function in training_functions(project):
        for assign in source.walk(ast.Assign, function):
            target = assign.targets[0]
            if isinstance(assign.value, ast.Call) and isinstance(target, ast.Name) and _is_network(assign.value):
                yield source.replace(assign.value, f"{source.code(assign.value)}.detach()")
    for source in project.sources:
        for function in source.walk(ast.FunctionDef):
            for assign in source.walk(ast.Assign, function) if function.name == "forward" else ():
                called = assign.value.func if isinstance(assign.value, ast.Call) else None
                is_part = isinstance(called, ast.Attribute) and source.code(called.value) == "self"
                if is_part and isinstance(assign.targets[0], ast.Name):
                    yield source.replace(assign.value, f"{source.code(assign.value)}.detach()")


def _is_network(call: ast.Call) -> bool:
    name = last_name(call.func)
    return name in ("model", "net", "network", "encoder", "decoder", "generator", "policy", "student", "classifier")


@operator("Targets as floats where class numbers are taken", ("dtype-mismatch", "shape-mismatch", "wrong-loss-input"))
def targets_cast_to_float(project: Project) -> Iterator[Site]:
    for source, call in loss_calls(project, "cross_entropy"):
        if len(call.args) > 1:
            yield source.replace(call.args[1], f"{_safe(source.code(call.args[1]))}.float()")


def _safe(text: str) -> str:
    return text if re.fullmatch(r"[\w.\[\]()\-:, ]+", text) and " " not in text else f"({text})"


@operator("Losses added up over micro-batches, not averaged", ("loss-not-averaged-over-accumulation", *RATE))
def accumulation_undivided(project: Project) -> Iterator[Site]:
    for source in project.sources:
        for each in source.walk(ast.BinOp):
            is_loss = "loss" in last_name(each.left).lower() and re.search(
                r"accum|micro", source.code(each.right).lower()
            )
            if isinstance(each.op, ast.Div) and is_loss:
                yield source.replace(each, source.code(each.left))


@operator("The loss function of another task (DeepCrime LCH)", ("wrong-loss-input",),
          beside=("learning-rate-too-low",))  # fmt: skip
def loss_function_changed(project: Project) -> Iterator[Site]:
    """Cross entropy becomes a margin loss, squared errors become those of the sums."""
    for source, call in calls(project, "mse_loss", "smooth_l1_loss", "l1_loss"):
        if len(call.args) > 1 and not call.keywords:
            first, second = source.code(call.args[0]), source.code(call.args[1])
            yield source.replace(call, f"(({first}).mean() - ({second}).mean()).pow(2)")


@operator("Predictions by argmax in the path of the loss", ("no-gradient-by-design", "loss-detached"),
          beside=("parameter-never-used",))  # fmt: skip
def loss_of_rounded(project: Project) -> Iterator[Site]:
    """An output is rounded before it is compared."""
    for source, call in calls(project, "mse_loss", "smooth_l1_loss", "l1_loss", "binary_cross_entropy_with_logits"):
        if len(call.args) > 1 and not isinstance(call.args[0], ast.Starred):
            yield source.replace(call.args[0], f"torch.round({source.code(call.args[0])})") + source.imported(
                "import torch"
            )
