"""Evaluations in the wrong mode, with a graph, or with figures that are none, and what is kept as the best."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mutants.catalogue import ERROR, FIGURE, MEMORY, REPORT, SPEED, operator
from mutants.queries import calls, evaluation_functions, last_name, statements
from mutants.source import Project, Site, Source


def modes(project: Project, name: str) -> Iterator[tuple[Source, ast.Expr, ast.Call]]:
    """`model.eval()` or `model.train()`, not a function of that name."""
    for source, statement, call in statements(project, name):
        if isinstance(call.func, ast.Attribute) and not call.args and last_name(call.func.value) not in ("trainer",):
            yield source, statement, call


@operator("model.eval() forgotten (StackOverflow 60018578)", ("mode-left-in-train",), shows=(ERROR, FIGURE, REPORT))
def eval_dropped(project: Project) -> Iterator[Site]:
    for source, statement, _ in modes(project, "eval"):
        yield source.drop(statement)


@operator("model.train() forgotten after an evaluation", ("mode-left-in-eval",))
def train_dropped(project: Project) -> Iterator[Site]:
    for source, statement, _ in modes(project, "train"):
        yield source.drop(statement)


@operator("eval() where train() was meant", ("mode-left-in-eval",))
def eval_instead_of_train(project: Project) -> Iterator[Site]:
    for source, statement, call in modes(project, "train"):
        yield source.replace(statement, source.code(call).replace(".train(", ".eval("))


@operator("An evaluation with gradients (TrainCheck's category of waste; PyTorch FAQ)", ("eval-builds-graph",),
          beside=("graph-retained", "memory-growth"), shows=(ERROR, SPEED, MEMORY))  # fmt: skip
def no_grad_dropped(project: Project) -> Iterator[Site]:
    for source in project.sources:
        for function in source.walk(ast.FunctionDef):
            for each in function.decorator_list:
                if last_name(each) in ("no_grad", "inference_mode"):
                    start = source.span(each).start - 1
                    line = source.text.rindex("\n", 0, start) + 1
                    dropped = Site(source.replace(each, "").edits, (source.span(function),)).edits[0]
                    edit = type(dropped)(source.name, line, source.text.index("\n", dropped.end) + 1, "")
                    yield Site((edit,), (source.span(function),))
        for block in source.walk(ast.With):
            if len(block.items) == 1 and last_name(block.items[0].context_expr) in ("no_grad", "inference_mode"):
                yield source.unwrap(block)


@operator("A figure that is that of the last batch", (), shows=(ERROR, REPORT))
def metric_not_summed(project: Project) -> Iterator[Site]:
    """`total += …` in an evaluation becomes `total = …`."""
    for source, function in evaluation_functions(project):
        for each in source.walk(ast.AugAssign, function):
            if isinstance(each.op, ast.Add) and isinstance(each.target, ast.Name) and source.loop(each):
                yield source.replace(each, f"{each.target.id} = {source.code(each.value)}")


@operator("The best weights kept by reference (PyTorch's own warning in saving_loading)", ("best-state-aliased",))
def best_state_aliased(project: Project) -> Iterator[Site]:
    for source, call in calls(project, "deepcopy"):
        if call.args and isinstance(call.args[0], ast.Call) and last_name(call.args[0].func) == "state_dict":
            yield source.replace(call, source.code(call.args[0]))
    for source in project.sources:
        for each in source.walk(ast.DictComp):
            origin = each.generators[0].iter
            if (
                isinstance(origin, ast.Call)
                and "state_dict()" in source.code(origin)
                and "clone" in source.code(each.value)
            ):
                yield source.replace(each, source.code(origin).removesuffix(".items()"))


@operator("The best weights are never loaded back", ("checkpoint-incomplete",))
def best_state_not_loaded(project: Project) -> Iterator[Site]:
    for source, statement, call in statements(project, "load_state_dict"):
        given = source.code(call.args[0]) if call.args else ""
        if "best" in given:
            yield source.drop(statement)


@operator("An average of weights that is never updated", (), beside=("learning-rate-too-low",))
def average_not_updated(project: Project) -> Iterator[Site]:
    for source, statement, call in statements(project, "update", "update_parameters", "update_target", "soft_update"):
        if any(word in source.code(call.func).lower() for word in ("ema", "average", "target", "shadow", "teacher")):
            yield source.drop(statement)
