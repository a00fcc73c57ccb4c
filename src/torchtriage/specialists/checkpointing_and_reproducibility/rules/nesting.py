"""What the source alone shows about where in a file a state lies, and where it is looked for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting
from torchtriage.examine.source.facts import Call, Scope, dotted
from torchtriage.examine.source.script import Script
from torchtriage.specialists.checkpointing_and_reproducibility.rules.places import holds, is_model, saves

_Keys = dict[str, ast.expr]


def state_elsewhere(script: Script) -> Iterator[Sighting]:
    """A file's state is loaded from another key than the one under which it was saved."""
    loads = list(script.named("torch.load"))
    if not loads or script.names.framework() or not any(saves(script)):
        return
    for call in script.calls("load_state_dict"):
        if call.argument("strict", 1) is not None or not _is_torchs(script, call):
            continue
        read = _read(script, call.argument("state_dict", 0), call.scope, loads)
        if read is None:
            continue
        load, key = read
        path = (load.argument("f", 0), load.scope)
        own = [save for save in saves(script) if holds(script, save, path)]
        held = [_keys(script, save) for save in own]
        if own and all(keys is not None for keys in held):
            yield from _of(script, call, key, [(save, keys) for save, keys in zip(own, held, strict=True) if keys])


def _of(script: Script, call: Call, key: str | None, held: list[tuple[Call, _Keys]]) -> Iterator[Sighting]:
    if not held or any(key in keys for _, keys in held):
        return
    save, keys = held[0]
    states = [name for name, value in keys.items() if _is_state(value)]
    if not states or (key is not None and _is_written(script, key)):
        return
    listed = ", ".join(repr(each) for each in keys)
    if key is None:
        fact = f"line {save.node.lineno} saves a dictionary with the keys {listed}, none of which is one of this model"
    else:
        fact = f"line {save.node.lineno} saves the keys {listed}; there is no {key!r} in that file: KeyError"
    given = call.argument("state_dict", 0)
    plain = key is None and len(states) == 1 and isinstance(given, ast.Name | ast.Call)
    edits = script.appended("name-the-entry", given, f'["{states[0]}"]') if plain and given is not None else ()
    yield script.seen(call.node, fact, edits=edits)


def _is_torchs(script: Script, call: Call) -> bool:
    """Whether a model of torch is loaded, with no load_state_dict of this file's own."""
    own = script.trace.instance(call.receiver, call.scope) if call.receiver is not None else None
    names = ("load_state_dict", "_load_from_state_dict")
    if own is not None and any(script.trace.method(own, name) is not None for name in names):
        return False
    return is_model(script, call.receiver, call.scope)


def _read(script: Script, node: ast.expr | None, scope: Scope, loads: list[Call]) -> tuple[Call, str | None] | None:
    """The load whose file NODE surely is, and the key of it that NODE surely is the entry of (None: all of it)."""
    found = {_one(script, origin.node, origin.scope, loads) for origin in script.trace.origins(node, scope)}
    if len(found) != 1 or (one := found.pop()) is None:
        return None
    return loads[one[0]], one[1]


def _one(
    script: Script, node: ast.expr | None, scope: Scope, loads: list[Call], is_all: bool = True
) -> tuple[int, str | None] | None:
    """The number of the load, and the key; IS_ALL: whether NODE is that file or an entry, else the file only."""
    for number, load in enumerate(loads):
        if load.node is node:
            return number, None
    match node:
        case ast.Subscript(value=base, slice=ast.Constant(value=str(key))) if is_all:
            inner = {
                _one(script, each.node, each.scope, loads, is_all=False) for each in script.trace.origins(base, scope)
            }
            one = inner.pop() if len(inner) == 1 else None
            return (one[0], key) if one is not None else None
    return None


def _keys(script: Script, save: Call) -> _Keys | None:
    """The entries of the dictionary that SAVE surely writes; None for anything else."""
    given = save.argument("obj", 0)
    origins = script.trace.origins(given, save.scope)
    if len(origins) != 1:
        return None
    found: _Keys = {}
    match origins[0].node:
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if not isinstance(key, ast.Constant):
                    return None
                found[str(key.value)] = value
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=words) if all(each.arg for each in words):
            found = {each.arg: each.value for each in words if each.arg}
        case _:
            return None
    store = origins[0].store
    name = store.name if store is not None else ""
    if any(dotted(call.receiver) == name for call in script.calls("update", "setdefault", "pop")):
        return None
    added = store.scope.stores.get(f"{name}[]", []) if store is not None else []
    return None if added else found


def _is_state(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "state_dict"


def _is_written(script: Script, key: str) -> bool:
    """Whether this file puts anything under KEY."""
    for call in (call for calls in script.facts.calls.values() for call in calls):
        if any(each.arg == key for each in call.node.keywords):
            return True
    stores = (store for scope in script.facts.scopes for stores in scope.stores.values() for store in stores)
    for store in stores:
        for target in getattr(store.node, "targets", ()):
            if (
                isinstance(target, ast.Subscript)
                and isinstance(target.slice, ast.Constant)
                and target.slice.value == key
            ):
                return True
        value = store.value
        if isinstance(value, ast.Dict) and any(isinstance(k, ast.Constant) and k.value == key for k in value.keys):
            return True
    return False
