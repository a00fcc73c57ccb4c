"""States that an object or a closure keeps for a training that runs outside of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.script import Script

_TRAINS = ("train", "fit", "backward")


def entries_given(script: Script, scope: Scope) -> list[Store]:
    """The entries that best.update(weights=model.state_dict()) puts into a dictionary of this file."""
    return [
        Store(f"{name}.{each.arg}", "assign", each.value, None, scope, call.block, call.order, call.node)
        for call in script.calls("update")
        if call.scope is scope and (name := dotted(call.receiver))
        for each in call.node.keywords
        if each.arg and any(isinstance(inner, ast.Call) for inner in ast.walk(each.value))
        if _is_dictionary(script, call)
    ]


def _is_dictionary(script: Script, call: Call) -> bool:
    ends = [end.node for end in script.trace.origins(call.receiver, call.scope)]
    return bool(ends) and all(
        isinstance(each, ast.Dict) or (isinstance(each, ast.Call) and dotted(each.func) == "dict") for each in ends
    )


def is_loaded_again(script: Script, store: Store) -> bool:
    """For a class that watches a training from outside: whether it, or who holds it, loads or saves what it kept."""
    word = store.name.rpartition(".")[2].removesuffix("[]")
    return any(
        isinstance(inner, ast.Attribute) and inner.attr == word
        for call in (*script.calls("load_state_dict"), *_saves_at_the_end(script, store))
        for each in call.arguments
        for inner in ast.walk(each)
    )


def _saves_at_the_end(script: Script, store: Store) -> Iterator[Call]:
    """The saves outside of the class that no loop repeats, after something was trained."""
    for save in script.named("torch.save"):
        repeated = any(block.kind == "loop" for block in save.path)
        if repeated or save.scope.host is store.scope.host or script.trace.sites(save.scope):
            continue
        before = (call for call in save.scope.calls if call.order < save.order and call.arguments)
        if any(call.tail.lower().startswith(_TRAINS) for call in before):
            yield save


def is_loaded_beside(script: Script, store: Store) -> bool:
    """For a closure: whether another function of the same one loads what it kept in a dictionary of that."""
    root, _, rest = store.name.partition(".")
    home = script.names.home(root, store.scope)
    if not rest or home is None or home is store.scope or home.kind != "function" or store.name.endswith("[]"):
        return False
    return any(
        call.scope is not store.scope
        and script.names.home(root, call.scope) is home
        and any(dotted(inner) == store.name for each in call.arguments for inner in ast.walk(each))
        for call in script.calls("load_state_dict")
    )
