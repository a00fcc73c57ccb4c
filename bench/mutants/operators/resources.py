"""Time and memory that a training need not take."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mutants.catalogue import ERROR, FIGURE, MEMORY, SPEED, operator
from mutants.queries import (
    backwards,
    batches,
    calls,
    differentiated,
    keyword,
    last_name,
    model_in,
    models,
    optimizer_steps,
    step_loops,
)
from mutants.source import Project, Site, Source

COST = (ERROR, SPEED, MEMORY)


def outermost(source: Source, node: ast.AST) -> ast.stmt:
    """The outermost loop around NODE in its function, else its statement."""
    found: ast.stmt = source.statement(node)
    while (loop := source.loop(found)) is not None:
        found = loop
    return found


@operator("total += loss (PyTorch FAQ: memory)", ("graph-retained", "memory-growth"), beside=("host-memory-growth",),
          shows=COST)  # fmt: skip
def item_dropped(project: Project) -> Iterator[Site]:
    """`.item()` or `.detach()` is lost where a loss is added up or appended."""
    for source, call in calls(project, "item"):
        owner = source.statement(call)
        is_kept = isinstance(owner, ast.AugAssign) or (isinstance(owner, ast.Expr) and "append(" in source.code(owner))
        if is_kept and isinstance(call.func, ast.Attribute) and "loss" in source.code(call.func.value).lower():
            yield source.replace(call, source.code(call.func.value))


@operator("Losses kept with their graphs, in a list", ("graph-retained", "memory-growth"),
          beside=("host-memory-growth", "retain-graph-needless"), shows=COST)  # fmt: skip
def graphs_kept(project: Project) -> Iterator[Site]:
    for source, statement, call in backwards(project):
        inner = differentiated(call)
        if isinstance(inner, ast.Name) and source.loop(statement):
            kept = Site((), (), source.before(outermost(source, statement), "history = []").edits)
            yield (
                source.before(statement, f"history.append({inner.id} * 1.0)")
                + _retained(source, statement, call)
                + kept
            )


def _retained(source: Source, statement: ast.Expr, call: ast.Call) -> Site:
    """backward() that keeps what it went through, or else the graph holds no tensor any more."""
    if isinstance(call.func, ast.Attribute) and not call.args and not call.keywords:
        return source.replace(statement, source.code(call)[:-1] + "retain_graph=True)")
    return Site(())


@operator("Batches that are kept for later", ("memory-growth", "host-memory-growth"), shows=COST)
def batches_kept(project: Project) -> Iterator[Site]:
    for batch in batches(project):
        put = batch.source.before if batch.is_before else batch.source.after
        start = Site((), (), batch.source.before(outermost(batch.source, batch.anchor), "seen = []").edits)
        if batch.source.loop(batch.anchor):
            yield put(batch.anchor, f"seen.append({batch.inputs}.repeat(8, *[1] * ({batch.inputs}.dim() - 1)))") + start


@operator("A tensor that grows by cat in a loop", ("grown-by-cat", "memory-growth", "progressive-slowdown"),
          beside=("host-memory-growth",), shows=COST)  # fmt: skip
def grown_by_cat(project: Project) -> Iterator[Site]:
    for batch in batches(project):
        put = batch.source.before if batch.is_before else batch.source.after
        start = Site((), (), batch.source.before(outermost(batch.source, batch.anchor), "seen = torch.empty(0)").edits)
        if batch.source.loop(batch.anchor):
            code = f"seen = torch.cat([seen, {batch.inputs}.detach().float().flatten().repeat(8)])"
            yield put(batch.anchor, code) + start + batch.source.imported("import torch")


@operator("Gradients read one by one for a log", ("sync-bound", "python-loop-over-tensor"), beside=(), shows=COST)
def gradients_read_in_python(project: Project) -> Iterator[Site]:
    for source, statement, _ in optimizer_steps(project):
        name = model_in(project, source, statement)
        if name and source.loop(statement):
            code = (f"largest = max(abs(value.item()) for parameter in {name}.parameters()\n"
                    "              if parameter.grad is not None for value in parameter.grad.flatten()[:200])\n"
                    "assert largest >= 0")  # fmt: skip
            yield source.before(statement, code)


@operator("Anomaly detection left on (PyTorch tuning guide)", ("debug-left-on",), shows=COST)
def anomaly_detection_on(project: Project) -> Iterator[Site]:
    for source, assign, _, _ in models(project):
        yield source.before(assign, "torch.autograd.set_detect_anomaly(True)") + source.imported("import torch")


@operator("A copy of the model in each step", ("built-in-loop",), beside=("memory-growth", "host-memory-growth"),
          shows=COST)  # fmt: skip
def model_copied_each_step(project: Project) -> Iterator[Site]:
    for source, statement, _ in optimizer_steps(project):
        name = model_in(project, source, statement)
        if name and source.loop(statement):
            yield source.after(statement, f"snapshot = copy.deepcopy({name})") + source.imported("import copy")


@operator("A checkpoint in each step", ("built-in-loop",), beside=("save-not-atomic",), shows=COST)
def saved_each_step(project: Project) -> Iterator[Site]:
    for source, statement, _ in optimizer_steps(project):
        name = model_in(project, source, statement)
        if name and source.loop(statement):
            code = f'torch.save({{"model": {name}.state_dict()}}, "last.pt")'
            yield source.after(statement, code) + source.imported("import torch")


@operator("Hooks that pile up", ("hook-handle-dropped", "progressive-slowdown"), beside=("memory-growth",), shows=COST)
def hooks_piled_up(project: Project) -> Iterator[Site]:
    for source, loop, _ in step_loops(project):
        name = model_in(project, source, loop)
        if name:
            code = (f"for module in {name}.modules():\n"
                    "    module.register_forward_hook(lambda _module, _inputs, _output: None)")  # fmt: skip
            yield source.before(loop.body[0], code)


@operator("A loader that is made anew for each batch", ("built-in-loop", "input-bound"), shows=(ERROR, FIGURE, SPEED))
def loader_rebuilt(project: Project) -> Iterator[Site]:
    """`for batch in loader` over a list of it, made once more in each epoch or step."""
    for source, loop, _ in step_loops(project):
        if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Name) and "loader" in loop.iter.id:
            yield source.before(loop.body[0], f"list({loop.iter.id})")


@operator("Workers that are started again and again for little work", ("worker-count", "input-bound"),
          shows=COST)  # fmt: skip
def workers_for_nothing(project: Project) -> Iterator[Site]:
    for source, call in calls(project, "DataLoader"):
        given = keyword(call, "num_workers")
        if given and source.code(given.value) == "0":
            yield source.replace(given.value, "8")
        elif not given:
            yield source.replace(call, source.code(call)[:-1].rstrip(", \n") + ", num_workers=8)")


@operator("A loop in Python where one operation would do", ("python-loop-over-tensor",), beside=(), shows=COST)
def loop_over_samples(project: Project) -> Iterator[Site]:
    """The network is called once for each sample of the batch."""
    names = ("model", "net", "network", "classifier")
    for source, loop, _ in step_loops(project):
        for call in source.walk(ast.Call, loop):
            if source.code(call.func) in names and len(call.args) == 1 and not call.keywords:
                parent = source.parent(call)
                if (
                    isinstance(parent, ast.Assign)
                    and isinstance(parent.targets[0], ast.Name)
                    and last_name(call.args[0]) != "batch"
                    and last_name(call.args[0])
                ):
                    text = f"torch.cat([{source.code(call.func)}(each[None]) for each in {source.code(call.args[0])}])"
                    yield source.replace(call, text) + source.imported("import torch")
