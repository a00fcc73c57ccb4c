"""What a module holds without knowing it: tensors and parameters that are not registered, layers that are one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope, Store
from torchtriage.examine.source.nets import Net, between, chain, end, replaced
from torchtriage.examine.source.script import Script
from torchtriage.specialists.module_design_patterns.rules.state import holds_weights, is_parameter

# Methods that give the parameter itself (float() does, since that is how parameters are made by default).
_STAYS = frozenset({"float", "requires_grad_", "share_memory_", "detach_", "apply_", "register_hook", "retain_grad"})
# Methods that make something else on purpose.
_LEAVES = frozenset({"item", "tolist", "numpy", "detach", "size", "dim", "numel", "data_ptr", "backward", "stride"})
_MOVES = frozenset({"to", "cuda", "cpu", "float", "half", "double", "bfloat16", "type", "type_as"})


@detector("source/parameter-then-moved")
def parameter_then_moved(net: Net) -> Iterator[Sighting]:
    """What is assigned is the result of an operation on nn.Parameter(...), not the parameter."""
    for name, stores in net.scope.attributes.items():
        for store in stores if name.isidentifier() else ():
            made = _moved(net.script, store)
            if made is not None and not _is_wrapped_later(net, store, name):
                by = _operation(store.value, made)
                fact = f"self.{name} is the result of {by} on a Parameter: where that makes a new tensor, "
                yield net.script.seen(
                    store.node, f"{fact}it is missing from parameters()", _moving(net.script, store, made)
                )


def _moved(script: Script, store: Store) -> ast.Call | None:
    """The nn.Parameter(…) from which STORE's value is computed; None when it is a parameter, or something else."""
    value = store.value
    if store.how != "assign" or store.index is not None:
        return None
    if isinstance(value, ast.BinOp):
        sides = (value.left, value.right)
        return next(
            (side for side in sides if isinstance(side, ast.Call) and is_parameter(script, side, store.scope)), None
        )
    inner, methods = chain(value)
    if not isinstance(inner, ast.Call) or not is_parameter(script, inner, store.scope):
        return None
    plain = isinstance(value, ast.Call) and not _LEAVES.intersection(methods) and not _STAYS.issuperset(methods)
    return inner if plain else None


def _operation(value: ast.expr | None, made: ast.Call) -> str:
    if isinstance(value, ast.BinOp):
        return "arithmetic"
    return f".{chain(value)[1][0]}()" if made is not None else ""


def _is_wrapped_later(net: Net, store: Store, name: str) -> bool:
    """Whether self.NAME is given another value, or goes into a Parameter or a buffer by other means."""
    others = [each for each in net.stores(name) if each is not store and each.order > store.order]
    wrapped = (each for each in others if each.scope is store.scope and not isinstance(each.value, ast.Constant))
    return any(wrapped) or any(
        isinstance(each, ast.Attribute) and net.is_own(each, name, call.scope)
        for call in net.calls("register_parameter", "register_buffer", "Parameter", "ParameterList", "setattr")
        for argument in call.arguments
        for each in ast.walk(argument)
    )


def _moving(script: Script, store: Store, made: ast.Call) -> tuple[Edit, ...]:
    """Puts the moves inside: nn.Parameter(tensor).to(device) → nn.Parameter(tensor.to(device))."""
    value, methods = store.value, chain(store.value)[1]
    if not isinstance(value, ast.Call) or not _MOVES.issuperset(methods) or len(made.args) != 1:
        return ()
    given = made.args[0]
    if not isinstance(given, ast.Call | ast.Name | ast.Attribute | ast.Subscript):
        return ()
    tail = script.text.data[end(script, made) : end(script, value)].decode()
    first, last = end(script, given), end(script, value)
    rest = script.text.data[first : end(script, made)].decode()
    return between(script, "move-first", first, last, tail + rest)


@detector("source/layers-shared-by-repetition")
def layers_shared_by_repetition(script: Script) -> Iterator[Sighting]:
    """A list of layers that is multiplied holds one layer many times."""
    if "torch" not in {each.partition(".")[0] for each in script.facts.imports}:
        return
    seen: set[int] = set()
    for scope in script.facts.scopes:
        for node in _lists(scope):
            for product in _products(node):
                if id(product) not in seen and _repeats(script, product, scope):
                    seen.add(id(product))
                    fact = "every element of this list is the same layer: one set of weights, trained as one"
                    yield script.seen(product, fact, _repeating(script, product))


def _lists(scope: Scope) -> Iterator[ast.expr]:
    """The expressions of SCOPE that may be a multiplied list: stored, given or returned."""
    for action in scope.actions:
        if isinstance(action, Call):
            for each in action.node.args:
                yield each.value if isinstance(each, ast.Starred) else each
        elif type(action.value) is ast.BinOp:
            yield action.value
    for back in scope.returns:
        if type(back.node.value) is ast.BinOp:
            yield back.node.value


def _products(node: ast.expr) -> Iterator[ast.BinOp]:
    if type(node) is ast.BinOp:
        if type(node.op) is ast.Mult and (type(node.left) is ast.List or type(node.right) is ast.List):
            yield node
        elif type(node.op) is ast.Add:
            yield from _products(node.left)
            yield from _products(node.right)


def _repeats(script: Script, product: ast.BinOp, scope: Scope) -> bool:
    made, count = _parts(product)
    if not made.elts or (isinstance(count, ast.Constant) and count.value in (0, 1)):
        return False
    return any(_is_layer(script, each, scope) for each in made.elts) and not _is_said(script, product, scope)


def _parts(product: ast.BinOp) -> tuple[ast.List, ast.expr]:
    if isinstance(product.left, ast.List):
        return product.left, product.right
    return (product.right if isinstance(product.right, ast.List) else ast.List([])), product.left


def _is_layer(script: Script, node: ast.expr, scope: Scope) -> bool:
    origins = script.trace.origins(node, scope)
    return bool(origins) and all(holds_weights(script, each.call, each.scope) for each in origins)


def _is_said(script: Script, node: ast.AST, scope: Scope) -> bool:
    """Whether sharing is what the code says it wants, in a name or in a comment close by."""
    line = getattr(node, "lineno", 1)
    near = " ".join(script.text.line(number) for number in range(max(1, line - 3), line + 1))
    near = near.replace("layers-shared-by-repetition", "")  # a comment about this fault says nothing about the code
    words = f"{scope.name} {scope.host.name if scope.host else ''} {near}".lower()
    return any(word in words for word in ("shar", "tied", "tie_", "same weight", "recurr", "recurs", "universal"))


def _repeating(script: Script, product: ast.BinOp) -> tuple[Edit, ...]:
    """[Layer(n)] * depth → [Layer(n) for _ in range(depth)], where the layer is made on the spot."""
    made, count = _parts(product)
    if len(made.elts) != 1 or not isinstance(made.elts[0], ast.Call) or product.lineno != product.end_lineno:
        return ()
    code = f"[{script.source(made.elts[0])} for _ in range({script.source(count)})]"
    return replaced(script, "one-each", product, code)
