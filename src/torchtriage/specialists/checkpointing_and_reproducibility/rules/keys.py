"""What the source alone shows about the keys of a state: whether they fit, and whether anyone would hear."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import islice

from msgspec import Struct

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Ring
from torchtriage.examine.source.facts import Block, Call, Scope, Store, dotted
from torchtriage.examine.source.flow import reaching
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.checkpointing_and_reproducibility.rules.nesting import state_elsewhere
from torchtriage.specialists.checkpointing_and_reproducibility.rules.places import (
    comes_from,
    holds,
    parts_of,
    saves,
)

_WRAPPERS = symbols().key_prefixes
_MOVES = symbols().module_self
_STRIPS = re.compile(r"module\.|_orig_mod|prefix")


@detector("source/keys-mismatched")
def keys_mismatched(script: Script) -> Iterator[Sighting]:
    """A state is loaded with other keys than it was saved with."""
    yield from state_elsewhere(script)
    loads = list(script.named("torch.load"))
    if not loads or not any(script.named(*_WRAPPERS)) or script.names.framework():
        return
    if any(_STRIPS.search(word) for word in script.aside):
        return
    for call in script.calls("load_state_dict"):
        if call.argument("strict", 1) is not None or call.receiver is None:
            continue
        into = _prefix(script, call.receiver, call)
        wrong = (
            (saved, prefix) for saved, prefix in _saved(script, call, loads) if into is not None and prefix != into
        )
        for saved, prefix in islice(wrong, 1):
            edits = script.appended("save-unwrapped", saved, f".{prefix[:-1]}") if prefix and not into else ()
            yield script.seen(call.node, _says(prefix, into or "", saved.lineno), edits=edits)


def _says(saved: str, into: str, line: int) -> str:
    if saved and into:
        return f"line {line} saves keys that begin with {saved!r}, those of this model begin with {into!r}"
    if saved:
        return f"line {line} saves the wrapper's keys, which begin with {saved!r}; this model's do not: all are missing"
    return f"line {line} saves the bare model's keys; those of this wrapper begin with {into!r}: all are missing"


def _saved(script: Script, load: Call, loads: list[Call]) -> Iterator[tuple[ast.expr, str]]:
    """The states that the file holds which LOAD reads: the model and the prefix of its keys."""
    given = load.argument("state_dict", 0)
    read = next((each for each in loads if comes_from(script, given, load.scope, each)), None)
    if read is None:
        return
    key = _key(script, given, load.scope)
    path = (read.argument("f", 0), read.scope)
    for save in saves(script):
        if not holds(script, save, path):
            continue
        for model, at in _states(script, save, key):
            prefix = _prefix(script, model, at)
            if prefix is not None:
                yield model, prefix


def _key(script: Script, node: ast.expr | None, scope: Scope) -> str | None:
    """Under which key of the file the state is found; None for the file itself."""
    for origin in script.trace.origins(node, scope):
        match origin.node:
            case ast.Subscript(slice=ast.Constant(value=str(key))):
                return key
            case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str(key)), *_]):
                return key
    return None


def _states(script: Script, save: Call, key: str | None) -> Iterator[tuple[ast.expr, Call]]:
    """The models whose state_dict() SAVE writes under KEY, and the call."""
    given = save.argument("obj", 0)
    if key is None:
        held = [origin.node for origin in script.trace.origins(given, save.scope)]
    else:
        parts = [(value, scope) for name, value, scope in parts_of(script, given, save.scope) if name == key]
        held = [origin.node for value, scope in parts for origin in script.trace.origins(value, scope)]
    for node in held:
        call = next((each for each in script.calls("state_dict") if each.node is node), None)
        if call is not None and call.receiver is not None:
            yield call.receiver, call


def _prefix(script: Script, node: ast.expr, at: Call) -> str | None:
    """What the keys of NODE's state begin with: "" for a bare model; None when that is not sure."""
    if isinstance(node, ast.Attribute) and node.attr in ("module", "_orig_mod"):
        inner = _prefix(script, node.value, at)
        return "" if inner in ("module.", "_orig_mod.") else None
    found = {_made(script, value, scope) for value, scope in _values(script, node, at)}
    return found.pop() if len(found) == 1 else None


def _values(script: Script, node: ast.expr, at: Call, deep: int = 0) -> Iterator[tuple[ast.expr | None, Scope]]:
    """What NODE may have been given by the time of the call AT."""
    stores = script.names.stores(node.id, at.scope) if isinstance(node, ast.Name) else []
    if stores and all(store.scope is at.scope for store in stores):
        seen = reaching(stores, at)
        for store in seen:
            if store.how == "parameter" and deep < 4:
                yield from _given(script, store, deep + 1)
            else:
                yield (store.value if store.how == "assign" and store.index is None else None), store.scope
    elif seen_here := _of_object(script, node, at):
        for store in seen_here:
            yield (store.value if store.how == "assign" and store.index is None else None), store.scope
    elif not stores:
        for origin in script.trace.origins(node, at.scope):
            yield origin.node, origin.scope


class _End(Struct, frozen=True):
    """The end of a function, as a point that other points reach."""

    path: tuple[Block, ...]
    order: int


def _of_object(script: Script, node: ast.expr, at: Call) -> list[Store]:
    """The stores to self.x that the call AT may see: those before it in its method, else what __init__ leaves."""
    root, _, rest = dotted(node).partition(".")
    host = at.scope.host
    if not rest or root != at.scope.receiver or host is None:
        return []
    every = host.attributes.get(rest, [])
    scopes = {id(store.scope): store.scope for store in every}
    if len(scopes) != 1:
        return []
    (scope,) = scopes.values()
    if scope is at.scope:
        return reaching(every, at)
    if scope.name != "__init__":
        return []
    sites = [site for site in script.trace.sites(at.scope) if site.scope is scope]
    if sites:  # __init__ itself calls this method, before or after it wraps
        return [store for site in sites for store in reaching(every, site)]
    events = script.written.events(Ring(scope.body, scope))
    return [] if any(event.call is at for event in events) else reaching(every, _End(scope.body.path, 1 << 40))


def _is_wrapped_later(script: Script, node: ast.Call) -> bool:
    """Whether this file wraps what NODE makes, so that it is no wrapper of its own."""
    wraps = (call for call in script.named(*_WRAPPERS) if script.name(call) != "torch.compile")
    made = (origin.node for call in wraps for origin in script.trace.origins(call.argument("module", 0), call.scope))
    like = ast.dump(node.func)
    return any(isinstance(each, ast.Call) and ast.dump(each.func) == like for each in made)


def _given(script: Script, store: Store, deep: int) -> Iterator[tuple[ast.expr | None, Scope]]:
    """What a parameter may be, by its callers in this file; None when there are none."""
    scope, words = store.scope, [each.arg for each in store.scope.parameters]
    sites = script.trace.sites(scope)
    for site in sites:
        given = site.argument(store.name, words.index(store.name) - (scope.receiver in words[:1]))
        if given is None:
            yield None, scope
        else:
            yield from _values(script, given, site, deep) if isinstance(given, ast.Name) else ((given, site.scope),)
    if not sites:
        yield None, scope


def _made(script: Script, node: ast.expr | None, scope: Scope, deep: int = 0) -> str | None:
    """The prefix of what NODE constructs; None when it is no constructor that can be seen."""
    if not isinstance(node, ast.Call):
        return None
    moves = isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES
    if moves and isinstance(node.func, ast.Attribute):
        return _made(script, node.func.value, scope, deep + 1) if deep < 4 else None
    name = script.names.resolve(node.func, scope)
    if name in _WRAPPERS:
        return _WRAPPERS[name]
    if _is_wrapped_later(script, node):
        return ""
    parts = script.roles.parts(node, scope)
    own = script.trace.instance(node, scope)
    changed = own is not None and script.trace.method(own, "state_dict") is not None
    return "" if parts and all(part.role == "model" and part.by == "made" for part in parts) and not changed else None
