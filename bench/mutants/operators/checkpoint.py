"""What is saved and loaded."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mutants.catalogue import ERROR, FIGURE, RESUME, operator
from mutants.queries import calls, last_name, statements
from mutants.source import Edit, Project, Site, Source

NETWORKS = ("model", "net", "network", "gen", "generator", "policy", "encoder")
RESUMED = (ERROR, FIGURE, RESUME)


def entries_dropped(project: Project, words: tuple[str, ...]) -> Iterator[Site]:
    """Without one entry of what is saved, and the statements that load it."""
    for source in project.sources:
        for saved in source.walk(ast.Dict):
            for key, value in zip(saved.keys, saved.values, strict=True):
                text = source.code(value).lower()
                is_meant = "state" in text and any(word in text for word in words)
                if isinstance(key, ast.Constant) and isinstance(key.value, str) and is_meant:
                    entry = _entry(source, key, value)
                    yield Site((entry,), (source.span(saved),)) + _loads_dropped(project, key.value)


def _entry(source: Source, key: ast.expr, value: ast.expr) -> Edit:
    """The whole lines of an entry where it has lines of its own, else the entry with its comma."""
    start, end = source.span(key).start, source.span(value).end
    first, last = source.text.rfind("\n", 0, start) + 1, source.text.find("\n", end) + 1
    if not source.text[first:start].strip() and source.text[end:last].strip() in ("", ","):
        return Edit(source.name, first, last, "")
    return Edit(source.name, start, end + (2 if source.text.startswith(", ", end) else 0), "")


def _loads_dropped(project: Project, key: str) -> Site:
    site = Site(())
    for source in project.sources:
        for statement in source.walk(ast.Expr):
            text = source.code(statement)
            if f'["{key}"]' in text and isinstance(statement.value, ast.Call):
                site += source.drop(statement)
    return site


@operator("A checkpoint without the optimizer (forums)", ("checkpoint-incomplete", "resume-differs"),
          shows=RESUMED)  # fmt: skip
def optimizer_not_saved(project: Project) -> Iterator[Site]:
    yield from entries_dropped(project, ("optim", "opt."))


@operator(
    "A checkpoint without the schedule or the average", ("checkpoint-incomplete", "resume-differs"), shows=RESUMED
)
def schedule_not_saved(project: Project) -> Iterator[Site]:
    yield from entries_dropped(project, ("sched", "ema", "scaler"))


@operator("A checkpoint without the generators' states", ("checkpoint-incomplete", "resume-differs"),
          beside=("seeds-incomplete",), shows=RESUMED)  # fmt: skip
def generators_not_saved(project: Project) -> Iterator[Site]:
    yield from entries_dropped(project, ("rng", "gen.", "generator"))


@operator("The weights are saved and not loaded", ("checkpoint-incomplete", "resume-differs"), shows=RESUMED)
def weights_not_loaded(project: Project) -> Iterator[Site]:
    for source, statement, call in statements(project, "load_state_dict"):
        is_best = "best" in source.code(statement)
        if isinstance(call.func, ast.Attribute) and last_name(call.func.value) in NETWORKS and not is_best:
            yield source.drop(statement)


@operator("An epoch that is done again", ("resume-off-by-one", "resume-differs"), shows=RESUMED)
def resumed_one_off(project: Project) -> Iterator[Site]:
    """`checkpoint["epoch"] + 1` and `"epoch": epoch + 1` lose their 1."""
    for source in project.sources:
        for each in source.walk(ast.BinOp):
            is_one = isinstance(each.op, ast.Add) and source.code(each.right) == "1"
            parent = source.parent(each)
            saved = isinstance(parent, ast.Dict) or (
                isinstance(each.left, ast.Subscript) and '["' in source.code(each.left)
            )
            counted = source.code(each.left) in ("it", "step", "epoch", "iteration", "global_step", "update")
            if is_one and (saved or (counted and isinstance(parent, ast.Call) and "save" in source.code(parent.func))):
                yield source.replace(each, source.code(each.left))


@operator("state_dict without its parentheses", ("state-dict-not-called", "method-not-called"), shows=RESUMED)
def state_dict_not_called(project: Project) -> Iterator[Site]:
    for source, call in calls(project, "state_dict"):
        if not call.args and isinstance(source.parent(call), ast.Dict | ast.Call):
            yield source.replace(call, source.code(call.func))


@operator("Keys that do not fit, and strict=False over it", ("mismatch-swallowed", "keys-mismatched", "resume-differs"),
          beside=("checkpoint-incomplete",), shows=RESUMED)  # fmt: skip
def mismatch_swallowed(project: Project) -> Iterator[Site]:
    for source, statement, call in statements(project, "load_state_dict"):
        if isinstance(call.func, ast.Attribute) and last_name(call.func.value) in NETWORKS and call.args:
            given = source.code(call.args[0])
            code = f'{{f"module.{{name}}": value for name, value in {given}.items()}}, strict=False'
            yield source.replace(statement, f"{source.code(call.func)}({code})")
