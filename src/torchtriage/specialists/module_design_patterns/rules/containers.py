"""What the source alone shows about how a module is built."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.classes import ModuleClass
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.roles import Part
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.symbols import symbols

_REGISTRARS = symbols().registering_containers
_ADDS = ("append", "extend", "insert", "update")
_BUFFERS = frozenset({"register_buffer", "register_parameter", "add_module"})
_DEEP = 4
_BY_NAME = ("add_module", "register_module", "register_parameter", "setattr", "__setattr__")

# Modules without parameters, buffers or a training mode: outside of parameters() they lose nothing.
_STATELESS = symbols().stateless_layers


@detector("source/unregistered-modules")
def unregistered_modules(module: ModuleClass) -> Iterator[Sighting]:
    """Modules or parameters in a plain list, dict or tuple are not registered."""
    if any(module.calls(*_BY_NAME)) or "_modules" in _words(module.scope.node):
        return
    for name in module.scope.attributes:
        held = list(module.contents(name))
        lost = [at.node for element, scope, at in held if _is_lost(module, element, scope)]
        if lost and not _is_registered(module, name):
            yield module.script.seen(
                lost[0],
                f"self.{name} is a plain container: the modules in it are missing from parameters(), "
                "to() and state_dict()",
            )


def _is_lost(module: ModuleClass, element: ast.expr, scope: Scope) -> bool:
    """A module or parameter that is made for the container and has no other name in the module."""
    script = module.script
    if isinstance(element, ast.Call) and script.names.resolve(element.func, scope) == "copy.deepcopy" and element.args:
        made = script.roles.made(element.args[0], scope, "model")
        return any(not _is_stateless(script, part) for part in made if part.scope is not None)
    if isinstance(element, ast.Name):
        stores = script.names.stores(element.id, scope)
        if any(dotted(each.value) == element.id for stores in module.scope.attributes.values() for each in stores):
            return False
        if any(store.how != "assign" for store in stores):
            return False
    elif not isinstance(element, ast.Call):
        return False
    made = script.roles.made(element, scope, "model")
    return any(not _is_stateless(script, part) for part in made if part.scope is not None)


def _is_stateless(script: Script, part: Part) -> bool:
    """One of torch's modules without state, or a class of this file that keeps none."""
    if part.made is None or part.scope is None or part.name:
        return part.name.rpartition(".")[2] in _STATELESS
    own = script.trace.definition(part.made.func, part.scope)
    return own is not None and own.kind == "class" and _keeps_nothing(script, own, 0)


def _keeps_nothing(script: Script, own: Scope, deep: int) -> bool:
    """Whether what the class assigns to itself are numbers and modules without state; dropout has a mode to keep."""
    lineage = script.trace.lineage(own)
    if deep > _DEEP or script.trace.bases(own) - {each.name for each in lineage} - {""} != {"torch.nn.Module"}:
        return False
    if any(method.calls and _BUFFERS & {call.tail for call in method.calls} for method in own.inner.values()):
        return False
    stores = [store for each in lineage for stores in each.attributes.values() for store in stores]
    return all(_is_nothing(script, store, deep) for store in stores)


def _is_nothing(script: Script, store: Store, deep: int) -> bool:
    value = store.value
    if not isinstance(value, ast.Call):
        return isinstance(
            value, ast.Constant | ast.Name | ast.BinOp | ast.UnaryOp | ast.Compare | ast.IfExp | ast.Tuple
        )
    name = script.names.resolve(value.func, store.scope)
    if name:
        return name.rpartition(".")[2] in _STATELESS or name.startswith(("math.", "builtins."))
    inner = script.trace.definition(value.func, store.scope)
    return inner is not None and inner.kind == "class" and _keeps_nothing(script, inner, deep + 1)


def _is_registered(module: ModuleClass, name: str) -> bool:
    """Whether self.NAME, or the local list behind it, goes into a container that registers what it is given.

    Code that is given the list may register it, too; torch's functions, builtins and the list itself do not.
    """
    local = {dotted(store.value) for store in module.scope.attributes[name]} - {""}
    stores = [each for stores in module.scope.attributes.values() for each in stores if each.how == "augment"]
    for method in module.methods:
        if any(each.scope is method and dotted(each.value) == f"{method.receiver}.{name}" for each in stores):
            return True
        held = {f"{method.receiver}.{name}", *local}
        held |= _turned_through(method, held) | {dotted(each) for each, _, _ in module.contents(name)} - {""}
        for call in method.calls:
            inside = {dotted(inner) for argument in call.arguments for inner in ast.walk(argument)}
            if inside & held and _may_register(module, call, held):
                return True
    return False


def _turned_through(method: Scope, held: set[str]) -> set[str]:
    """The names that a loop over something HELD gives to its elements."""
    return {
        store.name
        for stores in method.stores.values()
        for store in stores
        if store.how == "element" and store.value is not None and held & _words(store.value)
    }


def _may_register(module: ModuleClass, call: Call, held: set[str]) -> bool:
    if call.tail in _REGISTRARS:
        return True
    if call.tail in _ADDS and call.receiver is not None:
        made = module.script.roles.made(call.receiver, call.scope, "model")
        return any(part.name.rpartition(".")[2] in _REGISTRARS for part in made)
    own = module.script.trace.definition(call.node.func, call.scope)
    whole = {dotted(each.value if isinstance(each, ast.Starred) else each) for each in call.arguments}
    return own is not None and own.kind == "function" and bool(whole & held)


def _words(node: ast.AST) -> set[str]:
    """Names, chains, last words and strings in NODE."""
    inside = list(ast.walk(node))
    strings = {each.value for each in inside if isinstance(each, ast.Constant) and isinstance(each.value, str)}
    return (
        strings | {dotted(each) for each in inside} | {each.attr for each in inside if isinstance(each, ast.Attribute)}
    )
