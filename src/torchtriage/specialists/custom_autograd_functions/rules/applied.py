"""Where an autograd function is applied."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.source.classes import FunctionClass
from torchtriage.examine.source.facts import Call, Store, dotted
from torchtriage.examine.source.script import Script


def applications(function: FunctionClass) -> Iterator[Call]:
    """The calls of FUNCTION's apply: by its name, and by another name for it (spike = Spike.apply)."""
    script = function.script
    for call in script.calls("apply"):
        if call.receiver is not None and script.trace.instance(call.receiver, call.scope) is function.scope:
            yield call
    for store in _names(function):
        word = store.name.rpartition(".")[2]
        for call in script.calls(word):
            if _calls(script, call, store):
                yield call


def _names(function: FunctionClass) -> Iterator[Store]:
    """The stores that give a name of its own to FUNCTION's apply."""
    own = function.scope.name
    for scope in function.script.facts.scopes:
        every = (*scope.stores.values(), *(scope.attributes.values() if scope.kind == "class" else ()))
        for stores in every:
            for store in stores[:1] if len(stores) == 1 else ():
                if store.how == "assign" and store.index is None and dotted(store.value) == f"{own}.apply":
                    root = ast.Name(own, ast.Load())
                    if function.script.trace.instance(root, store.scope) is function.scope:
                        yield store


def _calls(script: Script, call: Call, store: Store) -> bool:
    if call.receiver is None:
        return any(each is store for each in script.names.stores(call.tail, call.scope))
    host = call.scope.host
    return host is not None and dotted(call.node.func) == store.name and store in host.attributes.get(call.tail, ())
