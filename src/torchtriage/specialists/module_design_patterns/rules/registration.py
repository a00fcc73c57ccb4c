"""What a module holds without knowing it: tensors and parameters that are not registered, layers that are one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Block, Call, Scope, Store, dotted
from torchtriage.examine.source.nets import Net, chain
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.families import CASTS, VALUE_METHODS
from torchtriage.examine.source.torch_api.operators import names
from torchtriage.examine.source.torch_api.symbols import last_words, symbols
from torchtriage.specialists.module_design_patterns.rules.makes import given
from torchtriage.specialists.module_design_patterns.rules.state import holds_weights, is_parameter

# Methods that give the parameter itself (float() does, since that is how parameters are made by default).
_STAYS = names(home="method", memory="itself", writes="-") | {"float", "apply_", "register_hook", "retain_grad"}
_CONTAINERS = last_words(symbols().containers)
# What people call a parameter that is a layer with weights.
_NAMED = frozenset({"module", "layer", "block", "cell"})
_LISTS = (ast.List, ast.Tuple)
_SAME = "every element of this list is the same layer: one set of weights, trained as one"
# Methods that make something else on purpose.
_LEAVES = VALUE_METHODS | {"detach", "backward"}
_MOVES = CASTS


@detector("source/parameter-then-moved")
def parameter_then_moved(net: Net) -> Iterator[Sighting]:
    """What is assigned is the result of an operation on nn.Parameter(...), not the parameter."""
    for name, stores in net.scope.attributes.items():
        for store in stores if name.isidentifier() else ():
            value = given(store) if store.how == "assign" else None
            if by := _again(net, name, store, value):
                fact = f"self.{name} is a Parameter, and {by} makes a plain tensor of it wherever it moves anything: "
                yield net.script.seen(store.node, f"{fact}to assign that raises TypeError")
                continue
            by = _operation(net.script, value, store.scope)
            if by and not _is_wrapped_later(net, store, name):
                fact = f"self.{name} is the result of {by} on a Parameter: where that makes a new tensor, "
                edits = _moving(net.script, store)
                yield net.script.seen(store.node, f"{fact}it is missing from parameters()", edits)


def _operation(script: Script, value: ast.expr | None, scope: Scope, deep: int = 0) -> str:
    """By what VALUE is computed from nn.Parameter(…), in words; "" when it is a parameter, or something else."""
    if isinstance(value, ast.BinOp):
        return "arithmetic" if any(is_parameter(script, side, scope) for side in (value.left, value.right)) else ""
    helper = script.trace.definition(value.func, scope) if isinstance(value, ast.Call) and not deep else None
    if helper is not None and helper.kind == "function":
        found = {_operation(script, each.node.value, helper, 1) for each in helper.returns}
        return found.pop() if len(found) == 1 else ""
    if isinstance(value, ast.Name):
        return _moved_before(script, value.id, scope)
    inner, methods = chain(value)
    match inner:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if _is_only_moved(script, name, scope):
            methods = (attr, *methods)
        case _ if not is_parameter(script, inner, scope):
            return ""
    plain = isinstance(value, ast.Call) and not _LEAVES.intersection(methods) and not _STAYS.issuperset(methods)
    return f".{next(each for each in methods if each not in _STAYS)}()" if plain else ""


def _again(net: Net, name: str, store: Store, value: ast.expr | None) -> str:
    """By what self.NAME, a parameter, is moved and given back: self.w = self.w.to(device)."""
    match value:
        case ast.Call(
            func=ast.Attribute(value=ast.Attribute() as inner, attr="to" | "cuda" | "half" | "bfloat16" as by)
        ):
            others = [each for each in net.stores(name) if each is not store]
            made = others and all(is_parameter(net.script, given(each), each.scope) for each in others)
            return f".{by}()" if made and net.is_own(inner, name, store.scope) else ""
    return ""


def _moved_before(script: Script, name: str, scope: Scope) -> str:
    """By what the local NAME, a parameter when it was made, is moved and given back: w = w.cuda()."""
    stores = scope.stores.get(name, ())
    first, rest = (given(stores[0]), stores[1:]) if stores else (None, [])
    if not rest or not is_parameter(script, first, scope):
        return ""
    for store in rest:
        match given(store):
            case ast.Call(func=ast.Attribute(value=ast.Name(id=inner), attr=by)) if inner == name and by in _MOVES:
                continue
        return ""
    match given(rest[-1]):
        case ast.Call(func=ast.Attribute(attr=by)) if by != "float":
            return f".{by}()"
    return ""


def _is_only_moved(script: Script, name: str, scope: Scope) -> bool:
    """Whether NAME is a parameter made in SCOPE that serves for nothing else: what is moved is all that is kept."""
    stores = scope.stores.get(name, ())
    if len(stores) != 1 or stores[0].how != "assign" or not is_parameter(script, given(stores[0]), scope):
        return False
    filled = {id(a) for c in scope.calls if script.name(c).startswith("torch.nn.init.") for a in c.node.args[:1]}
    loads = (node for node in ast.walk(scope.node) if isinstance(node, ast.Name) and node.id == name)
    return sum(isinstance(node.ctx, ast.Load) and id(node) not in filled for node in loads) == 1


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


def _moving(script: Script, store: Store) -> tuple[Edit, ...]:
    """Puts the moves inside: nn.Parameter(tensor).to(device) → nn.Parameter(tensor.to(device))."""
    value = store.value
    made, methods = chain(value)
    if not isinstance(value, ast.Call) or not isinstance(made, ast.Call) or not _MOVES.issuperset(methods):
        return ()
    if not methods or len(made.args) != 1 or not is_parameter(script, made, store.scope):
        return ()
    if not isinstance(made.args[0], ast.Call | ast.Name | ast.Attribute | ast.Subscript):
        return ()
    (_, first), (_, middle), (_, last) = (script.text.span(each) for each in (made.args[0], made, value))
    data = script.text.data
    return script.change("move-first", first, last, (data[middle:last] + data[first:middle]).decode(errors="replace"))


@detector("source/layers-shared-by-repetition")
def layers_shared_by_repetition(script: Script) -> Iterator[Sighting]:
    """A list of layers that is multiplied holds one layer many times."""
    if _CONTAINERS.isdisjoint(script.facts.calls) and "add_module" not in script.facts.calls:
        return
    seen: set[int] = set()
    for scope in script.facts.scopes:
        for node in _lists(scope):
            for product in _products(node):
                if id(product) not in seen and _repeats(script, product, scope):
                    seen.add(id(product))
                    yield script.seen(product, _SAME, _repeating(script, product, scope))
    for call in script.calls("ModuleList", "Sequential", "ModuleDict", "append"):
        for place in _one_for_all(script, call):
            yield script.seen(place, _SAME)
    for call in script.calls("add_module", "register_module"):
        layer, loop = (
            call.argument("module", 1),
            next((each for each in reversed(call.path) if each.kind == "loop"), None),
        )
        if loop is not None and isinstance(layer, ast.Name) and _is_before(script, layer, call, loop):
            yield script.seen(call.node, _SAME)


def _one_for_all(script: Script, call: Call) -> Iterator[ast.AST]:
    """Where one layer, made before, is put in at every turn: nn.ModuleList(layer for _ in …), blocks.append(layer)."""
    first = call.node.args[0] if call.node.args else None
    first = first.value if isinstance(first, ast.Starred) else first
    match first:
        case (
            ast.ListComp(elt=ast.Name() as layer, generators=[over])
            | ast.GeneratorExp(elt=ast.Name() as layer, generators=[over])
            | ast.DictComp(value=ast.Name() as layer, generators=[over])
        ):
            turned = {node.id for node in ast.walk(over.target) if isinstance(node, ast.Name)}
            if call.tail != "append" and layer.id not in turned and _is_before(script, layer, call, None):
                yield first
        case ast.Call() if call.tail != "append" and (one := _repeated(script, first, call)) is not None:
            if _is_layer(script, one, call.scope) and not _is_said(script, call.node, call.scope):
                yield first
        case ast.Name() as layer if call.tail == "append":
            loop = next((block for block in reversed(call.path) if block.kind == "loop"), None)
            made = script.roles.made(call.receiver, call.scope, "model")
            held = any(part.name in symbols().containers for part in made)
            held = held or _is_given_on(call)
            if loop is not None and held and _is_before(script, layer, call, loop):
                yield call.node


def _repeated(script: Script, made: ast.Call, call: Call) -> ast.expr | None:
    """What dict.fromkeys(keys, layer) and itertools.repeat(layer, n) give again and again."""
    match made:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="dict"), attr="fromkeys"), args=[_, layer]):
            return layer
        case ast.Call(args=[layer, _]) if script.names.resolve(made.func, call.scope) == "itertools.repeat":
            return layer
    return None


def _is_given_on(call: Call) -> bool:
    """Whether the list that CALL appends to becomes a container: layers.append(layer), then nn.Sequential(*layers)."""
    name = call.receiver.id if isinstance(call.receiver, ast.Name) else ""
    return any(
        isinstance(each.value if isinstance(each, ast.Starred) else each, ast.Name)
        and dotted(each.value if isinstance(each, ast.Starred) else each) == name
        for made in call.scope.calls
        if made.tail in _CONTAINERS
        for each in made.node.args
    )


def _is_before(script: Script, layer: ast.Name, call: Call, loop: Block | None) -> bool:
    """Whether LAYER is made in the same function, but outside of LOOP, and not in an arm that says when to share."""
    stores = call.scope.stores.get(layer.id, ())
    fresh = any(
        store.how not in ("assign", "parameter") or (loop is not None and loop in store.path) for store in stores
    )
    if not stores or fresh or any(block.kind == "arm" for block in call.path):
        return False
    given = stores[0].how == "parameter" and layer.id.rpartition("_")[2] in _NAMED
    return (given or _is_layer(script, layer, call.scope)) and not _is_said(script, call.node, call.scope)


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
        if type(node.op) is ast.Mult and (type(node.left) in _LISTS or type(node.right) in _LISTS):
            yield node
        elif type(node.op) is ast.Add:
            yield from _products(node.left)
            yield from _products(node.right)


def _repeats(script: Script, product: ast.BinOp, scope: Scope) -> bool:
    made, count = _parts(product)
    if not made or (isinstance(count, ast.Constant) and count.value in (0, 1)):
        return False
    found = any(_is_layer(script, each, scope) or _is_given_layer(script, each, scope) for each in made)
    return found and not _is_said(script, product, scope)


def _is_given_layer(script: Script, node: ast.expr, scope: Scope) -> bool:
    """Whether NODE is a parameter that is a module by its annotation, and by its name one with weights."""
    stores = scope.stores.get(node.id, ()) if isinstance(node, ast.Name) else ()
    named = isinstance(node, ast.Name) and node.id.rpartition("_")[2] in _NAMED
    return (
        named
        and all(
            each.how == "parameter" and script.names.resolve(each.value, scope) == "torch.nn.Module" for each in stores
        )
        and bool(stores)
    )


def _parts(product: ast.BinOp) -> tuple[list[ast.expr], ast.expr]:
    """What is repeated, and how often."""
    for made, count in ((product.left, product.right), (product.right, product.left)):
        if isinstance(made, ast.List | ast.Tuple):
            return made.elts, count
    return [], product.right


def _is_layer(script: Script, node: ast.expr, scope: Scope) -> bool:
    origins = script.trace.origins(node, scope)
    return bool(origins) and all(holds_weights(script, each.call, each.scope) for each in origins)


def _is_said(script: Script, node: ast.AST, scope: Scope) -> bool:
    """Whether sharing is what the code says it wants: in a name, beside it, or in a comment right above."""
    line = getattr(node, "lineno", 1)
    first = line
    while first > 1 and script.text.line(first - 1).lstrip().startswith("#"):
        first -= 1
    near = " ".join(script.text.line(number) for number in range(first, line + 1))
    near = near.replace("layers-shared-by-repetition", "")  # a comment about this fault says nothing about the code
    words = f"{scope.name} {scope.host.name if scope.host else ''} {near}".lower()
    return any(word in words for word in ("shar", "tied", "tie_", "same weight", "recurr", "recurs", "universal"))


def _repeating(script: Script, product: ast.BinOp, scope: Scope) -> tuple[Edit, ...]:
    """[Layer(n)] * depth → [Layer(n) for _ in range(depth)], where the layer is made on the spot.

    Not where the layer is made from what a comprehension does not see: the names of a class body, or _ itself.
    """
    if scope.kind == "class" or any(isinstance(each, ast.Name) and each.id == "_" for each in ast.walk(product)):
        return ()
    made, count = _parts(product)
    if len(made) != 1 or not isinstance(made[0], ast.Call) or product.lineno != product.end_lineno:
        return ()
    code = f"[{script.source(made[0])} for _ in range({script.source(count)})]"
    return script.replaced("one-each", product, code)
