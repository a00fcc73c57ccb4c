"""Parameters that are made of memory as it is, and that nobody fills."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope, Store
from torchtriage.examine.source.nets import Net
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.families import METADATA, VALUE_METHODS, VIEW_ATTRIBUTES
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.module_design_patterns.rules.state import is_parameter

# Parts of the names of functions that may fill parameters out of sight.
_FILLERS = ("init", "reset", "load_weight", "weight_loader", "pretrained", "fill_weight", "set_weight")
_SIZES = METADATA | VALUE_METHODS | VIEW_ATTRIBUTES | {"t", "norm", "detach"}


@detector("source/uninitialised-parameter")
def uninitialised_parameter(net: Net) -> Iterator[Sighting]:
    """A parameter is made of memory that nobody fills."""
    script = net.script
    if net.init is None or not script.trace.is_whole(net.scope):
        return
    for name, store, made in _raw(net):
        if not any(block.kind == "with" for block in store.path) and _is_raw(net, name):
            fact = f"{script.source(made)} takes memory as it is, and nothing in this file fills self.{name}"
            yield script.seen(store.node, fact)


def _raw(net: Net) -> Iterator[tuple[str, Store | Call, ast.Call]]:
    """The names, places and makers of parameters that are made of memory as it is."""
    for name, stores in net.scope.attributes.items():
        if len(stores) == 1 and stores[0].how == "assign" and stores[0].index is None and name.isidentifier():
            made = _empty(net.script, stores[0].value, stores[0].scope)
            if made is not None:
                yield name, stores[0], made
    for call in net.calls("register_parameter"):
        match call.node.args:
            case [ast.Constant(value=str(name)), value] if (made := _empty(net.script, value, call.scope)) is not None:
                yield name, call, made


def _empty(script: Script, value: ast.expr | None, scope: Scope) -> ast.Call | None:
    """The call in nn.Parameter(torch.empty(…)) that takes memory and leaves it as it is."""
    if isinstance(value, ast.Call) and script.names.resolve(value.func, scope) == "torch.nn.ParameterList":
        many = value.args[0] if value.args else None
        return _empty(script, many.elt, scope) if isinstance(many, ast.ListComp | ast.GeneratorExp) else None
    if not isinstance(value, ast.Call) or len(value.args) != 1 or not is_parameter(script, value, scope):
        return None
    frozen = (each.value for each in value.keywords if each.arg == "requires_grad")
    if any(not (isinstance(each, ast.Constant) and each.value is True) for each in frozen):
        return None
    inner = value.args[0]
    return _memory(script, _only_wrapped(inner, scope) if isinstance(inner, ast.Name) else inner, scope)


def _memory(script: Script, inner: ast.expr | None, scope: Scope) -> ast.Call | None:
    if not isinstance(inner, ast.Call):
        return None
    name = script.names.resolve(inner.func, scope)
    if name in ("torch.empty", "torch.empty_like"):
        return inner if inner.args or any(each.arg == "size" for each in inner.keywords) else None
    sized = len(inner.args) > 1 or (inner.args and _is_size(script, inner.args[0], scope))
    return inner if name in symbols().tensor_classes and sized else None


def _only_wrapped(inner: ast.Name, scope: Scope) -> ast.expr | None:
    """What the local name was given, where it serves for nothing but to become the parameter."""
    stores = [*scope.stores.get(inner.id, ())]
    loads = [
        node
        for node in ast.walk(scope.node)
        if isinstance(node, ast.Name) and node.id == inner.id and isinstance(node.ctx, ast.Load)
    ]
    plain = len(stores) == 1 and stores[0].how == "assign" and stores[0].index is None
    return stores[0].value if plain and len(loads) == 1 else None


def _is_size(script: Script, node: ast.expr, scope: Scope) -> bool:
    """Whether NODE is a number: a literal, or a name that also says how wide a layer of torch's is."""
    layers = (call for call in scope.calls if script.name(call).startswith("torch.nn.") and call.tail != "Parameter")
    widths = {each.id for call in layers for each in call.node.args if isinstance(each, ast.Name)}
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id in widths)


def _is_raw(net: Net, name: str) -> bool:
    """Whether forward uses self.NAME, and nothing else in this file fills it or goes through all parameters."""
    script = net.script
    if any(_may_fill(script, call) for tail in script.facts.calls if _is_filler(tail) for call in script.calls(tail)):
        return False
    forward = net.methods.get("forward")
    reads = [
        node
        for node in ast.walk(script.facts.scopes[0].node)
        if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load)
    ]
    strange = net.foreign(name)
    reads = [node for node in reads if id(node) not in strange]
    inside = {id(node) for node in ast.walk(forward.node)} if forward is not None else set()
    used = any(id(node) in inside for node in reads) or (reads and "forward" not in net.methods)
    others = {id(node) for node in reads} - inside
    return bool(used) and not _touched(script, others) and not _is_filled_in(net, name)


def _touched(script: Script, reads: set[int]) -> bool:
    """Whether what is read outside of forward may be filled there: its size and sums with it are harmless."""
    for node in ast.walk(script.facts.scopes[0].node) if reads else ():
        for child in ast.iter_child_nodes(node):
            if id(child) in reads:
                match node:
                    case ast.BinOp() | ast.Compare():
                        pass
                    case ast.Attribute(attr=attr) if attr in _SIZES:
                        pass
                    case _:
                        return True
    return False


def _is_filler(tail: str) -> bool:
    return tail != "__init__" and any(word in tail.lower() for word in _FILLERS)


def _may_fill(script: Script, call: Call) -> bool:
    """Whether CALL may fill parameters out of sight: none of this file, of torch.nn.init or of a layer does."""
    if script.trace.definition(call.node.func, call.scope) is not None:
        return False
    if script.name(call).startswith(("torch.nn.init.", "torch.cuda.", "torch.distributed.", "wandb.", "logging.")):
        return False
    if call.tail == "from_pretrained" and script.name(call):
        return False
    return not (call.tail == "reset_parameters" and bool(script.roles.made(call.receiver, call.scope, "model")))


def _is_filled_in(net: Net, name: str) -> bool:
    """Whether the parameters are gone through and filled somewhere, or this one is named in a string."""
    script = net.script
    applied = any(
        script.written.function(each, call.scope) is None and script.trace.definition(each, call.scope) is None
        for call in script.calls("apply")
        for each in call.arguments
    )
    named = applied or any(net.calls("state_dict", "getattr", "vars")) or _is_string(net, name)
    return named or any(_fills(scope) for scope in script.facts.scopes)


def _fills(scope: Scope) -> bool:
    """Whether SCOPE goes through parameters() and changes each in place."""
    turned = {
        name
        for name, stores in scope.stores.items()
        for store in stores
        if store.how == "element" and store.value is not None and "parameters" in ast.dump(store.value)
    }
    if not turned:
        return False
    if any(store.partition(".")[0] in turned and not store.endswith("grad") for store in scope.stores if "." in store):
        return True
    changes = (call for call in scope.calls if call.tail.endswith("_") and call.tail != "requires_grad_")
    named = (node for call in changes for node in ast.walk(call.node))
    return any(isinstance(node, ast.Name) and node.id in turned for node in named)


def _is_string(net: Net, name: str) -> bool:
    tree = net.script.facts.scopes[0].node
    registered = {id(call.node.args[0]) for call in net.calls("register_parameter") if call.node.args}
    return any(
        isinstance(node, ast.Constant) and node.value == name and id(node) not in registered for node in ast.walk(tree)
    )
