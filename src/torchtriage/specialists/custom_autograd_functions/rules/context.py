"""What forward keeps for backward on ctx, and what it does to its inputs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.classes import FunctionClass
from torchtriage.examine.source.facts import Store, dotted
from torchtriage.examine.source.flow import reaching
from torchtriage.examine.source.held import Inputs, edits, given, shared
from torchtriage.examine.source.switches import applied_flags
from torchtriage.specialists.custom_autograd_functions.rules.saved import is_asked

# Attributes of ctx that the engine itself reads.
_ENGINES = frozenset({"to_save", "dirty_tensors", "non_differentiable", "saved_for_forward", "needs_input_grad"})


@detector("source/tensor-on-ctx")
def tensor_on_ctx(function: FunctionClass) -> Iterator[Sighting]:
    """An input or output tensor of forward is kept as an attribute of ctx."""
    inputs = Inputs(function)
    yield from _set(inputs)
    released = {name.partition(".")[2] for name in function.backward.stores}
    for scope in inputs.scopes:
        context = inputs.context(scope)
        for name, stores in scope.stores.items():
            root, _, attribute = name.partition(".")
            if not context or root != context or not attribute.isidentifier():
                continue
            if attribute in released or attribute in _ENGINES:
                continue
            for store in stores:
                yield from _kept(store, name, inputs)


def _set(inputs: Inputs) -> Iterator[Sighting]:
    """setattr(ctx, "x", x)"""
    for scope in inputs.scopes:
        for call in scope.calls:
            if (
                call.tail == "setattr"
                and len(call.node.args) == 3
                and dotted(call.node.args[0]) == inputs.context(scope)
            ):
                found = inputs.at(call.node.args[2], scope, call)
                if found is not None and _is_kept_tensor(found, inputs):
                    yield inputs.script.seen(
                        call.node, f"ctx keeps the input {found.arg} itself: it stays in memory after backward"
                    )


def _kept(store: Store, name: str, inputs: Inputs) -> Iterator[Sighting]:
    if store.how != "assign" or store.value is None:
        return
    parts = store.value.elts if isinstance(store.value, ast.Tuple | ast.List) else [store.value]
    if store.index is not None:  # ctx.x, ctx.scale = x, scale
        parts = parts[store.index : store.index + 1] if parts != [store.value] else []
    elif len(parts) == 1 and _is_all(parts[0], inputs, store):  # ctx.inputs = inputs
        yield from _all_kept(store, name, inputs)
        return
    parts = _inside(store, inputs) or parts
    for part in parts or [store.value]:
        found = inputs.unpacked(store) if not parts else inputs.at(_itself(part), store.scope, store)
        if found is not None and _is_kept_tensor(found, inputs) and not is_asked(found.arg, store):
            yield inputs.script.seen(
                store.node,
                f"{name} keeps the input {found.arg} itself: unlike what save_for_backward keeps, it stays in memory "
                "after backward, and a change of it in place gives a wrong gradient without an error",
            )
            return
        if found is None and _is_returned(store, name, inputs):
            yield inputs.script.seen(
                store.node,
                f"{name} keeps the output, which itself keeps ctx: the memory of this circle waits for Python's "
                "garbage collector, step after step",
            )
            return
        if found is None and inputs.is_output(part, store.scope, store):
            yield inputs.script.seen(
                store.node,
                f"{name} keeps the output {inputs.script.source(part)}, which itself keeps ctx: the memory of this "
                "circle waits for Python's garbage collector, step after step",
            )
            return


def _inside(store: Store, inputs: Inputs) -> list[ast.expr]:
    """The values of the dictionary or list that is kept, written here or in a name of its own."""
    value: ast.expr | None = store.value if store.index is None else None
    if isinstance(value, ast.Name) and inputs.at(value, store.scope, store) is None:
        ways = reaching(store.scope.stores.get(value.id, []), store)
        whole = len(ways) == 1 and ways[0].how == "assign" and ways[0].index is None
        value = ways[0].value if whole and not isinstance(ways[0].value, ast.Tuple) else None
        value = value if isinstance(value, ast.Dict | ast.List | ast.Call) else None
    match value:
        case ast.Dict(values=parts):
            return parts
        case ast.List(elts=parts):
            return parts
        case ast.Call(func=ast.Name(id="dict"), keywords=named):
            return [each.value for each in named]
    return []


def _itself(node: ast.expr) -> ast.expr:
    """The tensor whose memory NODE keeps as well: x.detach(), x.data."""
    match node:
        case (
            ast.Call(func=ast.Attribute(value=value, attr="detach"), args=[]) | ast.Attribute(value=value, attr="data")
        ):
            return value
    return node


def _is_all(node: ast.expr, inputs: Inputs, store: Store) -> bool:
    """Whether NODE is the tuple of all inputs that setup_context is given."""
    held = given(node, store.scope, store)
    return held is not None and store.scope is inputs.setup and held.node in store.scope.parameters[1:2]


def _all_kept(store: Store, name: str, inputs: Inputs) -> Iterator[Sighting]:
    for each in inputs.function.inputs:
        if _is_kept_tensor(each, inputs):
            yield inputs.script.seen(
                store.node,
                f"{name} keeps the input {each.arg} itself: unlike what save_for_backward keeps, it stays in memory "
                "after backward, and a change of it in place gives a wrong gradient without an error",
            )
            return


def _is_returned(store: Store, name: str, inputs: Inputs) -> bool:
    """Whether forward makes a tensor, keeps it on ctx and returns it from there: ctx.y = x.exp(); return ctx.y."""
    returned = any(dotted(each.node.value) == name for each in store.scope.returns)
    return returned and len(store.scope.stores[name]) == 1 and inputs.makes_tensor(store)


def _is_kept_tensor(argument: ast.arg, inputs: Inputs) -> bool:
    """Whether ARGUMENT surely is a tensor that is kept on ctx alone.

    An annotation may be wrong: a number annotated as Tensor has no gradient. Saved as well, the version is checked.
    """
    saved = (call for scope in inputs.scopes for call in scope.calls if call.tail == "save_for_backward")
    if any(inputs.at(each, call.scope, call) is argument for call in saved for each in call.node.args):
        return False
    return inputs.is_used(argument) or inputs.has_gradient(argument)


@detector("source/dirty-not-marked")
def dirty_not_marked(function: FunctionClass) -> Iterator[Sighting]:
    """The forward method changes an input in place and does not mark it dirty."""
    inputs = Inputs(function)
    if any(call.tail == "mark_dirty" for scope in inputs.scopes for call in scope.calls) or function.is_open:
        return
    told: set[str] = set()
    words = [each.arg for each in function.inputs]
    flags = applied_flags(function.script, function.scope, function.forward, words)
    for edited in edits(function.script, function.forward, flags):
        source = shared(edited.target, function.forward, edited.by)
        found = next((each for each in function.inputs if source is not None and each is source.node), None)
        if found is None or found.arg in told or not (edited.is_sure or inputs.is_tensor(found)):
            continue
        if inputs.has_gradient(found):
            told.add(found.arg)
            yield function.script.seen(
                edited.node,
                f"forward changes its input {found.arg} here and never calls ctx.mark_dirty({found.arg}): whoever else "
                "uses it gets the gradient of the old values",
            )
