"""Networks whose parts are wrong, missing, or not known to PyTorch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mutants.catalogue import operator
from mutants.queries import (
    calls,
    children,
    first_argument,
    home,
    keyword,
    last_name,
    method,
    models,
    named_numbers,
    networks,
)
from mutants.source import Project, Site

ACTIVATIONS = ("ReLU", "GELU", "SiLU", "LeakyReLU", "ELU", "Tanh", "Mish")
FUNCTIONS = ("relu", "gelu", "silu", "leaky_relu", "elu", "tanh", "mish")
STUCK = ("gradients-vanishing", "dead-units", "loss-at-chance", "cannot-overfit-one-batch")


@operator("DeepCrime ARM", ("cannot-overfit-one-batch",))
def activation_removed(project: Project) -> Iterator[Site]:
    """All of a class at once: layer after layer with nothing between."""
    for source, network in networks(project):
        site = Site(())
        for call in source.walk(ast.Call, network):
            name = last_name(call.func)
            if name in ACTIVATIONS and name != "Tanh" and isinstance(call.func, ast.Attribute):
                site += source.replace(call, f"{source.code(call.func.value)}.Identity()")
            elif name in FUNCTIONS and call.args and name != "tanh":
                site += source.replace(call, source.code(call.args[0]))
        if site.edits:
            yield site


@operator("DeepCrime ACH", ("gradients-vanishing", "dead-units", "cannot-overfit-one-batch"),
          beside=("learning-rate-too-low",))  # fmt: skip
def activation_sigmoid(project: Project) -> Iterator[Site]:
    for source, network in networks(project):
        site = Site(())
        for call in source.walk(ast.Call, network):
            name = last_name(call.func)
            if name in ACTIVATIONS and isinstance(call.func, ast.Attribute):
                site += source.replace(call, f"{source.code(call.func.value)}.Sigmoid()")
            elif name in FUNCTIONS and call.args:
                site += source.replace(call, f"torch.sigmoid({source.code(call.args[0])})")
        if site.edits:
            yield site + source.imported("import torch")


@operator("DeepCrime AAL: an activation after the last layer", ("wrong-loss-input", "dead-units"),
          beside=("gradients-vanishing",))  # fmt: skip
def activation_added_to_output(project: Project) -> Iterator[Site]:
    for _, _, _, network in models(project):
        found = _output(network)
        if found is not None:
            source = home(project, network)
            yield source.replace(found, f"torch.relu({source.code(found)})") + source.imported("import torch")


def _output(network: ast.ClassDef) -> ast.expr | None:
    """What forward returns, where that is one call."""
    forward = method(network, "forward")
    last = forward.body[-1] if forward else None
    value = last.value if isinstance(last, ast.Return) else None
    return value if isinstance(value, ast.Call) and not last_name(value.func)[:1].isupper() else None


@operator("DeepCrime WCI: all weights alike", STUCK)
def weights_zero(project: Project) -> Iterator[Site]:
    yield from _filled(project, "nn.init.zeros_(parameter)")


@operator("DeepCrime WCI: weights far too large", ("initial-loss-off", "gradients-exploding", "learning-rate-too-high"),
          beside=("dead-units", "loss-diverged"))  # fmt: skip
def weights_large(project: Project) -> Iterator[Site]:
    yield from _filled(project, "nn.init.normal_(parameter, std=2.0)")


def _filled(project: Project, code: str) -> Iterator[Site]:
    for source, assign, name, _ in models(project):
        text = f"for parameter in {name}.parameters():\n    {code}"
        yield source.after(assign, text) + source.imported("from torch import nn")


@operator("Layers in a Python list (PyTorch forum, dozens of threads)", ("unregistered-modules",),
          beside=("parameters-not-in-optimizer",))  # fmt: skip
def list_instead_of_module_list(project: Project) -> Iterator[Site]:
    for source, call in calls(project, "ModuleList", "ModuleDict"):
        if len(call.args) == 1 and isinstance(call.args[0], ast.List | ast.ListComp | ast.Dict | ast.DictComp):
            yield source.replace(call, source.code(call.args[0]))
        elif len(call.args) == 1:
            text = source.code(call.args[0])
            yield source.replace(call, f"list{text}" if text.startswith("(") else f"list({text})")


@operator("A weight that is a plain tensor, or a buffer that is an attribute", ("unregistered-tensor",),
          beside=("checkpoint-incomplete", "uninitialised-parameter"))  # fmt: skip
def tensor_not_registered(project: Project) -> Iterator[Site]:
    for source, call in calls(project, "Parameter"):
        if len(call.args) == 1:
            yield source.replace(call, source.code(call.args[0]))


@operator("[layer] * n (PyTorch forum)", ("layers-shared-by-repetition",))
def layers_repeated(project: Project) -> Iterator[Site]:
    for source, call in calls(project, "ModuleList", "Sequential"):
        first = first_argument(call)
        given = first.value if isinstance(first, ast.Starred) else first
        if isinstance(given, ast.ListComp | ast.GeneratorExp) and isinstance(given.elt, ast.Call):
            count = given.generators[0].iter
            if isinstance(count, ast.Call) and last_name(count.func) == "range" and len(count.args) == 1:
                text = f"[{source.code(given.elt)}] * {source.code(count.args[0])}"
                is_bare = isinstance(given, ast.GeneratorExp) and source.code(given).startswith("(")
                yield source.replace(given, f"({text})" if is_bare else text)


@operator("A residual connection that was lost", ("gradients-vanishing", "cannot-overfit-one-batch", "input-ignored"),
          beside=("dead-units",))  # fmt: skip
def residual_dropped(project: Project) -> Iterator[Site]:
    """`x = x + f(x)` and `return x + f(x)` lose their x."""
    for source, network in networks(project):
        for each in source.walk(ast.BinOp, network):
            if isinstance(each.op, ast.Add) and isinstance(each.left, ast.Name) and isinstance(each.right, ast.Call):
                names = {node.id for node in source.walk(ast.Name, each.right)}
                yield from [source.replace(each, source.code(each.right))] * (each.left.id in names)


@operator("A causal mask that was forgotten", ("future-visible",), beside=("target-in-input",),
          shows=("error", "figure", "report"))  # fmt: skip
def causal_mask_dropped(project: Project) -> Iterator[Site]:
    for source in project.sources:
        for each in source.walk(ast.keyword):
            if each.arg == "is_causal" and source.code(each.value) == "True":
                yield source.replace(each.value, "False")
    for source, call in calls(project, "masked_fill", "masked_fill_"):
        text = source.code(call.args[0]) if call.args else ""
        if isinstance(call.func, ast.Attribute) and any(
            word in text for word in ("causal", "tril", "triu", "future", "bias")
        ):
            yield source.replace(call, source.code(call.func.value))
    for source, call in calls(project, "triu", "tril"):
        filled = {"triu": "zeros_like", "tril": "ones_like"}[last_name(call.func)]
        if call.args:
            yield source.replace(call, f"torch.{filled}({source.code(call.args[0])})")


@operator("A padding mask that was forgotten")
def padding_mask_dropped(project: Project) -> Iterator[Site]:
    for source in project.sources:
        for each in source.walk(ast.keyword):
            if each.arg in ("key_padding_mask", "src_key_padding_mask", "memory_key_padding_mask", "ignore_index"):
                yield source.replace(each.value, "-100" if each.arg == "ignore_index" else "None")
    for source, call in calls(project, "masked_fill"):
        if isinstance(call.func, ast.Attribute) and "pad" in source.code(call.args[0]):
            yield source.replace(call, source.code(call.func.value))


@operator("softmax over the wrong dimension", ("samples-mixed",))
def softmax_over_batch(project: Project) -> Iterator[Site]:
    for source, call in calls(project, "softmax", "log_softmax", "normalize"):
        given = keyword(call, "dim")
        place = given.value if given else call.args[-1] if call.args else None
        if place is not None and source.code(place) in ("-1", "1"):
            yield source.replace(place, "0")


@operator("view or reshape where a transpose was meant (Goldberg; PyTorch forum)", ("samples-mixed",),
          beside=("cannot-overfit-one-batch",))  # fmt: skip
def reshape_instead_of_transpose(project: Project) -> Iterator[Site]:
    for source, call in calls(project, "transpose"):
        if isinstance(call.func, ast.Attribute) and len(call.args) == 2:
            base, axes = source.code(call.func.value), ", ".join(map(source.code, call.args))
            if isinstance(call.func.value, ast.Name) and base != "torch":
                yield source.replace(call, f"{base}.reshape({base}.transpose({axes}).shape)")


@operator("Functional dropout that never stops (transformers 33844, TrainCheck)", ("dropout-always-on",),
          beside=("mode-left-in-train",))  # fmt: skip
def dropout_never_off(project: Project) -> Iterator[Site]:
    for source, call in calls(project, "dropout", "scaled_dot_product_attention"):
        training, rate = keyword(call, "training"), keyword(call, "dropout_p")
        if training:
            yield source.replace(training.value, "True")
        elif rate and isinstance(rate.value, ast.IfExp):
            yield source.replace(rate.value, source.code(rate.value.body))
    for source, network in networks(project):
        for _, assign, call in children(source, network):
            if last_name(call.func) == "Dropout":
                rate_text = source.code(call.args[0]) if call.args else "0.5"
                functional = f"lambda x: nn.functional.dropout(x, {rate_text})"
                yield source.replace(assign.value, functional) + source.imported("from torch import nn")


@operator("Sizes that are off by one", ("shape-mismatch",))
def width_off_by_one(project: Project) -> Iterator[Site]:
    for source, call in calls(project, "Linear", "Conv2d", "Conv1d", "LayerNorm", "BatchNorm2d", "BatchNorm1d"):
        if call.args and source.function(call):
            yield source.replace(call.args[0], f"{source.code(call.args[0])} + 1")


@operator("A table with fewer rows than there are ids", ("index-out-of-range",))
def table_too_small(project: Project) -> Iterator[Site]:
    for source, call in calls(project, "Embedding"):
        if call.args:
            text = source.code(call.args[0])
            yield source.replace(call.args[0], f"({text}) // 2" if " " in text else f"{text} // 2")


@operator("A layer that is made anew in each forward", ("layer-built-in-forward",),
          beside=("parameters-not-in-optimizer", "unregistered-modules", "parameter-never-used"))  # fmt: skip
def layer_built_in_forward(project: Project) -> Iterator[Site]:
    for source, network in networks(project):
        forward = method(network, "forward")
        for name, _, built in children(source, network):
            free = [node for node in ast.walk(built) if isinstance(node, ast.Name) and node.id not in ("nn", "torch")]
            for call in source.walk(ast.Call, forward) if forward and not free else ():
                if source.code(call.func) == f"self.{name}" and last_name(built.func) in ("Linear", "Conv2d", "Conv1d"):
                    yield source.replace(call.func, source.code(built))


@operator("super().__init__() is missing", ("super-init-missing",))
def super_init_dropped(project: Project) -> Iterator[Site]:
    for source, call in calls(project, "__init__"):
        if source.code(call) == "super().__init__()" and len(source.block(source.statement(call))) > 1:
            yield source.drop(source.statement(call))


@operator("A network too narrow for its task", ("cannot-overfit-one-batch",))
def width_cut(project: Project) -> Iterator[Site]:
    """DeepCrime's LCN, in its strongest form: a sixteenth of the width."""
    names = (
        r"(hidden|width|dim|d_model|n_embd|hidden_dim|hidden_size|channels|base_channels|latent_dim|embed_dim|emb_dim)"
    )
    for source, node, value in named_numbers(project, names):
        if isinstance(value, int) and value >= 16:
            yield source.replace(node, str(max(1, value // 16)))
