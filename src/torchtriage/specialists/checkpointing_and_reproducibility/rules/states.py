"""What the source alone shows about state_dict and load_state_dict: whether they are called, and with what."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.checkpointing_and_reproducibility.rules.paths import is_path
from torchtriage.specialists.checkpointing_and_reproducibility.rules.places import (
    parts_of,
    saves,
    states_of,
    unwrapped,
)
from torchtriage.specialists.checkpointing_and_reproducibility.rules.uncalled import uncalled

_STATEFUL = frozenset({"model", "optimizer", "scheduler", "scaler"})
_CHAINED = symbols().module_self | {"parameters", "state_dict"}


@detector("source/state-dict-not-called")
def state_dict_not_called(script: Script) -> Iterator[Sighting]:
    """A state_dict is named but not called, or load_state_dict is given a path or asked for a module."""
    yield from _named_only(script)
    for call in script.calls("load_state_dict"):
        if _is_stateful(script, call.receiver, call.scope):
            yield from _given_a_path(script, call)
    yield from _taken_for_a_module(script)


def _named_only(script: Script) -> Iterator[Sighting]:
    seen: set[int] = set()
    for node, scope in chain(_expected_states(script), uncalled(script)):
        if not isinstance(node, ast.Attribute) or node.attr != "state_dict" or id(node) in seen:
            continue
        if _is_stateful(script, node.value, scope):
            seen.add(id(node))
            yield script.seen(
                node,
                f"{script.source(node)} without parentheses is the method and not the state: torch.load refuses the "
                "file, or load_state_dict raises TypeError",
                edits=script.appended("call-it", node, "()"),
            )


def _expected_states(script: Script) -> Iterator[tuple[ast.expr, Scope]]:
    """Every expression that should be a state: what is saved, the entries of it, and what is loaded."""
    if "state_dict" not in script.aside:  # every one is called
        return
    for call in saves(script):
        given = call.argument("obj", 0)
        yield from ((origin.node, origin.scope) for origin in script.trace.origins(given, call.scope) if origin.node)
        yield from ((value, scope) for _, value, scope in parts_of(script, given, call.scope))
    for call in script.calls("load_state_dict", "deepcopy"):
        given = call.argument("state_dict", 0)
        yield from ((origin.node, origin.scope) for origin in script.trace.origins(given, call.scope) if origin.node)


def _is_stateful(script: Script, node: ast.expr | None, scope: Scope) -> bool:
    """A module, optimizer, scheduler or scaler whose methods are those of torch."""
    node = unwrapped(node)
    if isinstance(node, ast.Name) and node.id == scope.receiver and scope.host is not None:
        return "torch.nn.Module" in script.trace.bases(scope.host) and not _has_own(script, scope.host)
    own = script.trace.instance(node, scope) if node is not None else None
    if own is not None and _has_own(script, own):
        return False
    return any(part.role in _STATEFUL for part in script.roles.parts(node, scope))


def _has_own(script: Script, host: Scope) -> bool:
    names = ("state_dict", "load_state_dict")
    return any(name in host.attributes or script.trace.method(host, name) is not None for name in names)


def _given_a_path(script: Script, call: Call) -> Iterator[Sighting]:
    given = call.argument("state_dict", 0)
    if given is not None and is_path(script, given, call.scope):
        yield script.seen(
            call.node,
            f"load_state_dict takes the state itself and {script.source(given)} is a path: TypeError, "
            "expected state_dict to be dict-like",
        )


def _taken_for_a_module(script: Script) -> Iterator[Sighting]:
    loading = {id(call.node): call for call in script.calls("load_state_dict")}
    if not loading:
        return
    for scope in script.facts.scopes:
        for stores in scope.stores.values():
            for store in stores:
                value = states_of(store)
                call = loading.get(id(value)) if value is not None else None
                if call is not None and (_loses(script, store, call) or _is_used_as_one(script, store, call)):
                    yield script.seen(store.node, _answer(script, call), edits=_only_call(script, store))
        for returned in scope.returns:
            call = loading.get(id(returned.node.value))
            if call is not None and _is_only_known_here(script, call):
                yield script.seen(returned.node, f"{_answer(script, call)}, and nothing else holds what was loaded")
    for call in script.calls(*_CHAINED):
        inner = loading.get(id(call.receiver))
        if inner is not None and _is_stateful(script, inner.receiver, inner.scope):
            yield script.seen(call.node, f"{_answer(script, inner)}, which has no .{call.tail}()")
    yield from _handed_on(script, loading)


def _handed_on(script: Script, loading: dict[int, Call]) -> Iterator[Sighting]:
    """What load_state_dict returns, given to something that wants the module: a wrapper, a function, a record."""
    for calls in script.facts.calls.values():
        for call in calls:
            for argument in call.arguments:
                inner = loading.get(id(argument))
                if inner is None or not _is_stateful(script, inner.receiver, inner.scope):
                    continue
                if script.roles.of_class(script.name(call)) is not None or _wants_a_module(script, call, argument):
                    yield script.seen(inner.node, _answer(script, inner))


def _wants_a_module(script: Script, call: Call, given: ast.expr) -> bool:
    """Whether CALL is of a function of this file that calls what it is GIVEN, moves it or asks for its parameters."""
    own = script.trace.definition(call.node.func, call.scope)
    if own is None or own.kind != "function":
        return False
    word = next((each.arg for each in call.node.keywords if each.value is given), None)
    if word is None and given in call.node.args:
        words = [each.arg for each in own.parameters]
        at = call.node.args.index(given) + (own.receiver in words[:1])
        word = words[at] if at < len(words) else None
    return any(
        each.tail == word if each.receiver is None else dotted(each.receiver) == word and each.tail in _CHAINED
        for each in own.calls
    )


def _is_used_as_one(script: Script, store: Store, call: Call) -> bool:
    """Whether the name that gets the answer is used as the module: called, moved, asked for its parameters."""
    if not store.name or len(script.names.stores(store.name, store.scope)) > 1:
        return False
    if not _is_stateful(script, call.receiver, call.scope):
        return False
    return any(dotted(each.receiver) == store.name for each in script.calls(*_CHAINED) if each.scope is store.scope)


def _is_only_known_here(script: Script, call: Call) -> bool:
    """Whether the module that is loaded is made in this function and kept nowhere, so that the answer replaces it."""
    made, scope = call.receiver, call.scope
    if isinstance(made, ast.Call):
        return _is_stateful(script, made, scope)
    if not isinstance(made, ast.Name) or not _is_stateful(script, made, scope):
        return False
    stores = scope.stores.get(made.id, [])
    kept = (each for all_of in scope.stores.values() for each in all_of if each.value is not None and "." in each.name)
    if not stores or made.id in scope.outside or not all(_is_made_anew(script, store) for store in stores):
        return False
    elsewhere = (
        each
        for each in scope.calls
        if each is not call and each.tail in ("append", "add", "setdefault", "update", "register", "extend")
        for argument in each.arguments
        if dotted(argument) == made.id
    )
    return not any(dotted(each.value) == made.id for each in kept) and not any(True for _ in elsewhere)


def _is_made_anew(script: Script, store: Store) -> bool:
    """Whether STORE names something that is made right there, and not taken from where others hold it."""
    call = store.value if store.how == "assign" and store.index is None else None
    if not isinstance(call, ast.Call) or not script.roles.made(call, store.scope, "model"):
        return False
    called = {id(each.func) for each in ast.walk(call) if isinstance(each, ast.Call)}
    named = (each for each in ast.walk(call) if isinstance(each, ast.Name | ast.Attribute) and id(each) not in called)
    return not any(
        dotted(each) == store.scope.receiver or script.roles.plays(each, store.scope, "model") for each in named
    )


def _loses(script: Script, store: Store, call: Call) -> bool:
    """Whether the name that held the thing, or is to hold it, gets what load_state_dict returns."""
    same = bool(dotted(call.receiver)) and dotted(call.receiver) == store.name
    made = isinstance(call.receiver, ast.Call)
    return (same or made) and _is_stateful(script, call.receiver, call.scope)


def _answer(script: Script, call: Call) -> str:
    parts = script.roles.parts(call.receiver, call.scope)
    what = "the missing and unexpected keys" if any(part.role == "model" for part in parts) else "None"
    return f"load_state_dict loads in place and returns {what}, not the {parts[0].role if parts else 'module'}"


def _only_call(script: Script, store: Store) -> tuple[Edit, ...]:
    match store.node:
        case ast.Assign(targets=[ast.Name() | ast.Attribute()], value=ast.Call(func=ast.Attribute(value=value))) if (
            dotted(value) == store.name
        ):
            return script.change("call-it", script.text.span(store.node)[0], script.text.span(store.node.value)[0], "")
    return ()
