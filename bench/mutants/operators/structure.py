"""Slips that are of no one theme: results that nobody takes, formats and places in memory."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mutants.catalogue import operator
from mutants.queries import last_name, method, networks
from mutants.source import Project, Site

OUT_OF_PLACE = ("to", "float", "long", "clamp", "unsqueeze", "squeeze", "masked_fill", "flatten", "detach", "transpose",
                "permute", "view", "reshape", "contiguous", "div", "mul", "add", "roll", "log", "exp")  # fmt: skip


@operator("The result of an operation that is out of place is lost", ("result-dropped",),
          beside=("shape-mismatch", "loss-broadcast", "dtype-mismatch", "device-mismatch"))  # fmt: skip
def result_dropped(project: Project) -> Iterator[Site]:
    """`x = x.unsqueeze(1)` becomes `x.unsqueeze(1)`."""
    for source in project.sources:
        for assign in source.walk(ast.Assign):
            match assign:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute(value=inner)) as call):
                    if isinstance(inner, ast.Name) and inner.id == name and last_name(call.func) in OUT_OF_PLACE:
                        yield source.replace(assign, source.code(call))


@operator("An edit in place of what backward needs", ("inplace-breaks-autograd",))
def edited_in_place(project: Project) -> Iterator[Site]:
    """In a forward, the result of an activation, a softmax or an exp is changed where it lies."""
    for source, network in networks(project):
        for assign in source.walk(ast.Assign, method(network, "forward")):
            match assign:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=called)):
                    if last_name(called) in ("sigmoid", "softmax", "tanh", "exp", "relu", "sqrt", "gelu", "silu"):
                        yield source.after(assign, f"{name} *= 1.1")


@operator("except Exception: pass around a step, and an error under it", ("failure-swallowed",),
          beside=("step-missing", "parameter-never-used", "shape-mismatch"))  # fmt: skip
def failure_swallowed(project: Project) -> Iterator[Site]:
    """A backward that fails in each step is caught with it, and nothing learns."""
    for source in project.sources:
        for statement in source.walk(ast.Expr):
            call = statement.value
            if not isinstance(call, ast.Call) or last_name(call.func) != "backward" or call.args:
                continue
            if isinstance(call.func, ast.Attribute):
                code = f"({source.code(call.func.value)}.reshape(1).expand(2)).backward()"
                tried = f"try:\n    {code}\nexcept RuntimeError:\n    pass"
                yield source.replace(statement, tried.replace("\n", "\n" + source.indent(statement)))
