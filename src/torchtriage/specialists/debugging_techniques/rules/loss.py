"""What the source alone shows about the loss: what goes into it, and what is left of its graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.flow import surely
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.families import CASTS, RESHAPES
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.debugging_techniques.rules.likeness import targets
from torchtriage.specialists.debugging_techniques.rules.values import (
    Value,
    constructions,
    default,
    entries,
    returned,
    use,
    values,
)

_DEEP = 6
# The loss that applies an activation itself: its module, its function, and that activation.
_LOSSES = symbols().activating_losses
_ACTIVATIONS = {
    word: frozenset(name for name, activation in symbols().activations.items() if activation == word)
    for word in ("softmax", "sigmoid")
}
# What leaves the values of a tensor as they are.
_SHAPES = CASTS | RESHAPES | {"clone"}

_READY = ("torchvision.models.", "timm.", "torch.hub.load")
_HEADS = ("fc", "classifier", "head", "heads", "classifier.1", "classifier.3", "classifier.6")


@detector("source/softmax-before-cross-entropy")
def softmax_before_cross_entropy(script: Script) -> Iterator[Sighting]:
    """Probabilities go into a loss that applies softmax or sigmoid itself."""
    seen: set[int] = set()
    for call, loss in _losses(script):
        given = call.argument("input", 0)
        word = _LOSSES[loss]
        found = _activated(script, use(call, given), word, 0) if given is not None else None
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        yield script.seen(
            found,
            f"the {word} here is applied once more by {loss.rpartition('.')[2]} in line {call.node.lineno}: "
            "it expects logits",
            edits=_without(script, found),
        )


def _losses(script: Script) -> Iterator[tuple[Call, str]]:
    """The calls of such losses, and the name of each."""
    for name in _LOSSES:
        if name.startswith("torch.nn.functional"):
            yield from ((call, name) for call in script.named(name))
    words = [name for name in _LOSSES if name.startswith("torch.nn.") and any(script.named(name))]
    for calls in script.facts.calls.values() if words else ():
        for call in calls:
            if len(call.arguments) == 2 and not script.name(call):
                made = {script.names.resolve(m.func, s) for m, s in _makings(script, call)}
                if len(made) == 1 and made <= _LOSSES.keys():
                    yield call, made.pop()


def _makings(script: Script, call: Call) -> list[tuple[ast.Call, Scope]]:
    """The constructor calls that what is called comes from; also criterions["ce"], and a parameter's default."""
    called = call.node.func
    match called:
        case ast.Subscript(value=value, slice=ast.Constant(value=str(key))):
            ways = entries(script, use(call, value), key) or []
            return [(way.node, way.scope) for way in ways if isinstance(way.node, ast.Call)]
        case ast.Name(id=name) if [store.how for store in call.scope.stores.get(name, ())] == ["parameter"]:
            given = default(call.scope, name)
            if (
                isinstance(given, ast.Call)
                and call.scope.parent is not None
                and not _is_passed(script, call.scope, name)
            ):
                return [(given, call.scope.parent)]
    return constructions(script, called, call.scope)


def _is_passed(script: Script, function: Scope, name: str) -> bool:
    words = [each.arg for each in function.parameters]
    place = words.index(name) - (1 if function.receiver in words[:1] else 0)
    return any(call.argument(name, place) is not None for call in script.trace.sites(function))


def _activated(script: Script, value: Value, word: str, deep: int) -> ast.expr | None:
    """The activation, when VALUE surely is its result; the first one, when there are several ways."""
    found = None
    for each in values(script, value) or [] if deep < _DEEP else []:
        last = _made_by(script, each, word, deep)
        if last is None:
            return None
        found = found or last
    return found


def _made_by(script: Script, value: Value, word: str, deep: int) -> ast.expr | None:
    node = value.node
    if isinstance(node, ast.Subscript):
        return _taken_out(script, value, node, word, deep)
    if not isinstance(node, ast.Call):
        return None
    if value.index is None and _is_activation(script, value, node, word):
        return node
    if (
        isinstance(node.func, ast.Attribute)
        and node.func.attr in _SHAPES
        and not script.names.resolve(node.func, value.scope)
    ):
        return _activated(script, value.at(node.func.value), word, deep + 1)
    ways = returned(script, value)
    if ways is not None:
        found = [_made_by(script, way, word, deep + 1) for way in ways] if deep < _DEEP else []
        return found[0] if found and all(found) else None
    return _ending(script, node.func, value, word) if value.index is None else None


def _taken_out(script: Script, value: Value, node: ast.Subscript, word: str, deep: int) -> ast.expr | None:
    """The activation behind out["logits"], or behind a part of a tensor."""
    match node.slice:
        case ast.Constant(value=str(key)):
            found = [
                _activated(script, way, word, deep + 1) for way in entries(script, value.at(node.value), key) or ()
            ]
            return found[0] if found and all(found) else None
    return _activated(script, value.at(node.value), word, deep + 1)


def _is_activation(script: Script, value: Value, node: ast.Call, word: str) -> bool:
    """F.softmax(x), x.softmax(-1), nn.Softmax(-1)(x), self.softmax(x)."""
    name = script.names.resolve(node.func, value.scope)
    if name:
        return name in _ACTIVATIONS[word] and name.islower()
    if isinstance(node.func, ast.Attribute) and node.func.attr == word and _is_dimension(node):
        method = node.func.value
        own = value.scope.receiver
        return (not own or dotted(method) != own) and script.trace.instance(method, value.scope) is None
    if isinstance(node.func, ast.Call):
        return script.names.resolve(node.func.func, value.scope) in _ACTIVATIONS[word]
    made_of = constructions(script, node.func, value.scope)
    return bool(made_of) and all(script.names.resolve(m.func, s) in _ACTIVATIONS[word] for m, s in made_of)


def _is_dimension(node: ast.Call) -> bool:
    """Whether a method is given nothing but a dimension, so that what it is called on is the tensor."""
    return all(isinstance(each, ast.Constant | ast.UnaryOp) for each in (*node.args, *(k.value for k in node.keywords)))


def _ending(script: Script, called: ast.expr, value: Value, word: str) -> ast.expr | None:
    """The activation at the end of the nn.Sequential that is called."""
    found = None
    for made, scope in constructions(script, called, value.scope):
        name = script.names.resolve(made.func, scope)
        last = _last(made, scope) if name == "torch.nn.Sequential" else _new_head(script, made, scope, name)
        if last is None or script.names.resolve(last.func, scope) not in _ACTIVATIONS[word]:
            return None
        found = found or last
    return found


def _new_head(script: Script, made: ast.Call, scope: Scope, name: str) -> ast.Call | None:
    """The end of what replaces the last layer of a ready-made network: net.fc = nn.Sequential(…, nn.Softmax(-1))."""
    if not name.startswith(_READY):
        return None
    names = [dotted(target) for target in targets(scope, made)]
    heads = [store for each in names for word in _HEADS for store in scope.stores.get(f"{each}.{word}", ())]
    last = heads[-1].value if heads else None
    if isinstance(last, ast.Call) and script.names.resolve(last.func, scope) == "torch.nn.Sequential":
        return _last(last, scope)
    return None


def _last(made: ast.Call, scope: Scope) -> ast.Call | None:
    """The last module of an nn.Sequential: written there, in an OrderedDict, or last put into a list of layers."""
    last = made.args[-1] if made.args else None
    match last:
        case ast.Call(func=called, args=[ast.List(elts=[*_, ast.Tuple(elts=[_, entry])])]) if (
            dotted(called).rpartition(".")[2] == "OrderedDict"
        ):
            last = entry
        case ast.Starred(value=ast.Name(id=name)):
            last = _last_put(name, made, scope)
        case ast.Starred(value=ast.List(elts=[*_, entry])):
            last = entry
    return last if isinstance(last, ast.Call) else None


def _last_put(name: str, made: ast.Call, scope: Scope) -> ast.expr | None:
    """The last thing that the list NAME gets before MADE takes it, when it gets that on every way."""
    here = next((call for call in scope.calls if call.node is made), None)
    puts: list[tuple[Call | Store, ast.expr | None]] = [
        (call, call.node.args[0] if call.tail == "append" and call.node.args else None)
        for call in scope.calls
        if dotted(call.receiver) == name
    ]
    for store in scope.stores.get(name, ()):
        given = store.value.elts if isinstance(store.value, ast.List) else []
        puts.append((store, given[-1] if given else None))
    before = [each for each in puts if here is not None and each[0].order < here.order]
    if here is None or not before:
        return None
    last, entry = max(before, key=lambda each: each[0].order)
    return entry if surely(last, here) else None


def _without(script: Script, node: ast.expr) -> tuple[Edit, ...]:
    """The activation replaced by what it is given; users of the model's output may count on probabilities."""
    if not isinstance(node, ast.Call) or node.lineno != node.end_lineno:
        return ()
    kept = _input(script, node)
    if not isinstance(kept, ast.Name | ast.Call | ast.Attribute | ast.Subscript):
        return ()
    return script.replaced("drop-the-activation", node, script.source(kept))


def _input(script: Script, node: ast.Call) -> ast.expr | None:
    """What the activation NODE is applied to; None for the making of a module."""
    name = script.names.resolve(node.func, script.facts.scopes[0])
    first = next(iter(node.args), None)
    if name:
        return first if name.islower() else None
    match node.func:
        case ast.Attribute(value=method, attr="softmax" | "sigmoid") if _is_dimension(node):
            return method
        case ast.Attribute(value=ast.Name(id="self")) | ast.Call():
            return first
    return None
