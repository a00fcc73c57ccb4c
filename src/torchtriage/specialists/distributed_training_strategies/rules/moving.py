"""Whether a model is on its device before it is wrapped."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.flow import reaches
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.wrappers import Wrapper


@detector("source/moved-after-wrapping")
def moved_after_wrapping(wrapper: Wrapper) -> Iterator[Sighting]:
    """The model is moved to its device only after DistributedDataParallel has wrapped it."""
    script, call, inner = wrapper.script, wrapper.call, dotted(wrapper.module)
    if wrapper.kind == "replicated" and wrapper.target == "":
        yield from _moved_at_once(wrapper)
    if wrapper.kind != "replicated" or not inner or not wrapper.target:
        return
    moves = [each for each in script.calls("to", "cuda") if _is_move(script, each)]
    names = {inner, wrapper.target, f"{wrapper.target}.module"}
    if _is_placed(wrapper, moves):
        return
    for move in moves:
        ours = dotted(move.receiver) in names and move.scope is call.scope and _is_statement(move)
        if ours and reaches(call, move):
            fact = f"{wrapper.target} was wrapped in line {call.node.lineno}, when its parameters were not there yet"
            yield script.seen(move.node, fact, edits=_swapped(wrapper, move))
            return


def _moved_at_once(wrapper: Wrapper) -> Iterator[Sighting]:
    """DistributedDataParallel(model).to(device), and a wrapper that a function returns to one who moves it."""
    script, call, module = wrapper.script, wrapper.call, wrapper.module
    moves = [each for each in script.calls("to", "cuda") if _is_move(script, each)]
    if isinstance(module, ast.Call):
        placed = _is_made_there(script) or _makes_there(script, module, call.scope)
    else:
        placed = module is None or not dotted(module) or _is_placed(wrapper, moves)
    for move in moves if not placed else ():
        if move.receiver is call.node or any(_is_name_of(move, site) for site in _returned_to(wrapper)):
            fact = f"the model was wrapped in line {call.node.lineno}, when its parameters were not there yet"
            yield script.seen(move.node, fact)
            return


def _returned_to(wrapper: Wrapper) -> tuple[Call, ...]:
    """The calls of the function that returns the wrapper at once."""
    statement = wrapper.call.statement
    returned = isinstance(statement, ast.Return) and statement.value is wrapper.call.node
    return wrapper.script.trace.sites(wrapper.call.scope) if returned else ()


def _is_name_of(move: Call, site: Call) -> bool:
    """Whether MOVE moves what SITE gave its name to."""
    match site.statement:
        case ast.Assign(targets=[target], value=value) if value is site.node and dotted(target):
            same = dotted(move.receiver) == dotted(target) and move.scope is site.scope
            return same and _is_statement(move) and reaches(site, move)
    return False


def _is_move(script: Script, call: Call) -> bool:
    """Whether CALL moves to a device other than the CPU, as far as one can read it."""
    if call.receiver is None:
        return False
    if call.tail == "cuda":
        return True
    target = call.argument("device", 0)
    if target is None or (isinstance(target, ast.Constant) and target.value == "cpu"):
        return False
    name = script.names.resolve(target, call.scope)
    is_dtype = name.startswith("torch.") or "dtype" in dotted(target) or "dtype" in ast.unparse(target)
    return not is_dtype or (isinstance(target, ast.Call) and name != "torch.device")


def _is_statement(move: Call) -> bool:
    """Whether the move stands for itself: model.to(device), or model = model.to(device)."""
    match move.statement:
        case ast.Expr(value=value):
            return value is move.node
        case ast.Assign(targets=[target], value=value):
            return value is move.node and dotted(target) == dotted(move.receiver)
    return False


def _is_placed(wrapper: Wrapper, moves: list[Call]) -> bool:
    """Whether the model may be on its device already when it is wrapped."""
    script, call = wrapper.script, wrapper.call
    inner = dotted(wrapper.module)
    if _is_made_there(script):
        return True
    for move in moves:
        earlier = reaches(move, call) if move.scope is call.scope else "." in inner
        if dotted(move.receiver) == inner and earlier:
            return True
    for store in _stores(wrapper):
        if store.how == "parameter" and _is_given_placed(script, store, moves):
            return True
        earlier = store.scope is not call.scope or reaches(store, call)
        made = store.value if store.how == "assign" and earlier and store.value is not call.node else None
        if made is not None and _makes_there(script, made, store.scope):
            return True
    return _is_passed_before(wrapper, inner)


def _is_made_there(script: Script) -> bool:
    return any(script.calls("set_default_device", "set_default_tensor_type", "to_empty")) or any(
        isinstance(call.statement, ast.With) for call in script.named("torch.device")
    )


def _stores(wrapper: Wrapper) -> list[Store]:
    name, scope = dotted(wrapper.module), wrapper.call.scope
    root, _, rest = name.partition(".")
    if rest:
        host = scope.host if root == scope.receiver else None
        return list(host.attributes.get(rest, ())) if host is not None else list(scope.stores.get(name, ()))
    return wrapper.script.names.stores(name, scope)


def _is_given_placed(script: Script, store: Store, moves: list[Call]) -> bool:
    """Whether a call of the function that wraps its parameter hands in a model that was moved."""
    words = [each.arg for each in store.scope.parameters]
    place = words.index(store.name) - (store.scope.receiver in words[:1])
    for site in script.trace.sites(store.scope):
        given = site.argument(store.name, place)
        if given is not None and (_makes_there(script, given, site.scope) or _is_moved(script, given, site, moves)):
            return True
    return False


def _is_moved(script: Script, given: ast.expr, site: Call, moves: list[Call]) -> bool:
    name = dotted(given)
    made = [store.value for store in script.names.stores(name, site.scope) if store.value is not None]
    moved = any(dotted(move.receiver) == name for move in moves)
    return bool(name) and (moved or any(_makes_there(script, value, site.scope) for value in made))


def _makes_there(script: Script, value: ast.expr, scope: Scope) -> bool:
    """Whether a value may come with its device: .to() in it, device= among its arguments, or a function unseen."""
    for node in ast.walk(value):
        if isinstance(node, ast.Call):
            if dotted(node.func).rpartition(".")[2] in ("to", "cuda") or (
                isinstance(node.func, ast.Attribute) and (node.func.attr in ("to", "cuda"))
            ):
                return True
            if any(keyword.arg in ("device", "device_map", "gpu", None) for keyword in node.keywords):
                return True
            if any("device" in dotted(each).lower() for each in node.args):
                return True
    own = script.trace.definition(value.func, scope) if isinstance(value, ast.Call) else None
    if own is not None:
        return any(call.tail in ("to", "cuda") for call in _calls_in(script, own))
    name = script.names.resolve(value.func, scope) if isinstance(value, ast.Call) else ""
    word = dotted(value.func).rpartition(".")[2] if isinstance(value, ast.Call) else ""
    return not (name.startswith(("torch.", "torchvision.")) or word[:1].isupper() or isinstance(value, ast.Name))


def _calls_in(script: Script, own: Scope) -> Iterator[Call]:
    scopes = [own] if own.kind == "function" else [each for each in script.facts.scopes if each.host is own]
    for scope in scopes:
        yield from scope.calls


def _is_passed_before(wrapper: Wrapper, inner: str) -> bool:
    """Whether other code gets the model in its hands before it is wrapped, and may move it."""
    script, call = wrapper.script, wrapper.call
    for other in call.scope.calls:
        if other is call or not reaches(other, call):
            continue
        if any(dotted(each) == inner for each in other.arguments):
            own = script.trace.definition(other.node.func, other.scope)
            if own is not None and any(each.tail in ("to", "cuda") for each in _calls_in(script, own)):
                return True
            if own is None and not script.knows(other):
                return True
    return False


def _swapped(wrapper: Wrapper, move: Call) -> tuple[Edit, ...]:
    """The two statements in each other's place, where nothing stands between them and both speak of one name."""
    script, first, second = wrapper.script, wrapper.call.statement, move.statement
    alike = wrapper.target == dotted(wrapper.module) == dotted(move.receiver)
    near = first.lineno == first.end_lineno == second.lineno - 1 and second.end_lineno == second.lineno
    if not (alike and near and first.col_offset == second.col_offset):
        return ()
    return (
        *script.replaced("move-first", first, script.source(second)),
        *script.replaced("move-first", second, script.source(first)),
    )
