"""What goes wrong each time a module runs: layers made on the way, and dropout that never ends."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.flow import reaching
from torchtriage.examine.source.nets import Net
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.families import CASTS
from torchtriage.examine.source.torch_api.operators import names
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.module_design_patterns.rules.makes import is_none
from torchtriage.specialists.module_design_patterns.rules.state import holds_weights

_DROPOUTS = frozenset(
    f"torch.nn.functional.{name}" for name in names(home="functional", trait="random") if "dropout" in name
)
_TAILS = frozenset(name.rpartition(".")[2] for name in _DROPOUTS)
_LAYERS = symbols().dropout_layers
# Words by which people say that a dropout is to stay on, or that they switch it themselves.
_MEANT = ("train", "eval", "infer", "mc", "monte", "bayes", "uncertain", "stochastic", "determin", "corrupt", "noise")
# Words by which people say that new random weights are the point.
_RANDOM = ("rand", "augment", "noise", "perturb")
_COMMENT = re.compile(rb"#[^\r\n]*")
_MOVES = (symbols().module_self | CASTS) - {"eval"}


@detector("source/dropout-always-on")
def dropout_always_on(net: Net) -> Iterator[Sighting]:
    """A functional dropout in a module is not told whether the module is in training."""
    told: set[int] = set()
    for call in net.calls(*_TAILS):
        if net.script.name(call) in _DROPOUTS and _is_untold(call) and not _is_meant(net, call):
            fact = f"F.{call.tail} without training= drops values in evaluation too: eval() does not reach it"
            yield net.script.seen(call.node, fact, _telling(net.script, call))
    for event in net.running:
        helper = event.call
        if helper is None or helper.tail not in _TAILS or helper.scope.host is not None or id(helper.node) in told:
            continue
        told.add(id(helper.node))
        guarded = any(
            "train" in ast.unparse(block.owner.test) for block in event.path if isinstance(block.owner, ast.If)
        )
        known = net.script.name(helper) in _DROPOUTS and _is_untold(helper) and not _is_meant(net, helper)
        if known and not guarded and helper.scope.kind == "function":
            fact = (
                f"F.{helper.tail} without training= drops values in evaluation too: {helper.scope.name} knows no mode"
            )
            yield net.script.seen(helper.node, fact)
    yield from _kept_functions(net)
    yield from _in_attention(net)


def _in_attention(net: Net) -> Iterator[Sighting]:
    """Attention and layers made on the spot that drop in every mode."""
    for call in net.calls("scaled_dot_product_attention"):
        rate = _attention_rate(net, call)
        if rate is not None and not _is_meant(net, call):
            word, own = net.script.source(rate), call.scope.receiver
            fact = f"dropout_p={word} drops attention in evaluation too: this function knows no mode"
            code = f"{word} if {own}.training else 0.0"
            edits = net.script.replaced("zero-in-evaluation", rate, code) if own not in ("", "cls") else ()
            yield net.script.seen(call.node, fact, edits)
    if "Dropout" not in "".join(net.script.facts.calls):
        return
    for call in (call for method in net.methods.values() for call in method.calls):
        made = _applied(call)
        if made is not None and _is_dropout_layer(net, call, made) and not _is_meant(net, call):
            name = dotted(made.func)
            fact = f"{name} is made anew with every call, in training mode: it drops in evaluation too"
            yield net.script.seen(call.node, fact)


def _kept_functions(net: Net) -> Iterator[Sighting]:
    """Calls of torch.dropout(x, p, True), and of a functional dropout that is kept: self.drop = F.dropout."""
    for call in net.calls("dropout"):
        always = call.argument("train", 2)
        told = isinstance(always, ast.Constant) and always.value is True
        if told and net.script.name(call) == "torch.dropout" and not _is_meant(net, call):
            yield net.script.seen(call.node, "torch.dropout is told True: it drops values in evaluation too")
    if _TAILS.isdisjoint(net.script.aside):
        return
    for name, stores in net.scope.attributes.items():
        kept = stores[0].value if len(stores) == 1 else None
        if isinstance(kept, ast.Call) and net.script.names.resolve(kept.func, stores[0].scope) == "functools.partial":
            told = any(each.arg in ("training", None) for each in kept.keywords)
            kept = kept.args[0] if kept.args and not told else None
        if kept is not None and net.script.names.resolve(kept, stores[0].scope) in _DROPOUTS:
            for call in net.calls(name):
                if net.is_own(call.node.func, name, call.scope) and _is_untold(call) and not _is_meant(net, call):
                    fact = f"self.{name} is a function, no module: without training= it drops in evaluation too"
                    yield net.script.seen(call.node, fact, _telling(net.script, call))


def _attention_rate(net: Net, call: Call) -> ast.expr | None:
    """The rate that attention is given in every mode: a number, or an attribute that only the constructor sets."""
    rate = call.argument("dropout_p", 4)
    match rate:
        case ast.Constant(value=float(value)) if value:
            return rate
        case ast.Attribute(attr=name) if net.is_own(rate, name, call.scope):
            stores = net.stores(name)
            plain = all(isinstance(each.value, ast.Name | ast.Constant | ast.Attribute) for each in stores)
            if stores and plain and all(each.scope is net.init and each.how == "assign" for each in stores):
                return rate
    return None


def _is_untold(call: Call) -> bool:
    """Whether training= keeps its default, True, and something may be dropped."""
    if any(keyword.arg is None for keyword in call.node.keywords) or len(call.node.args) > 2:
        return False
    if call.argument("training") is not None or any(isinstance(each, ast.Starred) for each in call.node.args):
        return False
    rate = call.argument("p", 1)
    return not (isinstance(rate, ast.Constant) and not rate.value)


def _is_dropout_layer(net: Net, call: Call, made: ast.Call) -> bool:
    name = net.script.names.resolve(made.func, call.scope)
    in_method = call.scope.kind == "function" and call.scope.name != "__init__"
    return in_method and name.startswith("torch.nn.") and name.rpartition(".")[2] in _LAYERS


def _is_meant(net: Net, call: Call) -> bool:
    """Whether the dropout is switched by other means, or by its name is to stay on.

    A test anywhere in the method counts: `if not self.training: return x` stands before the dropout, not around it.
    """
    line = call.node.lineno
    said = " ".join(net.script.text.line(each).partition("#")[2].lower() for each in range(max(1, line - 1), line + 1))
    said = said.replace("dropout-always-on", "")  # a comment about this fault says nothing about the code
    if any(word in said for word in ("always", "infer", "stochast", "even in", "even at", "keep", "monte")):
        return True
    scope, rate = call.scope, call.argument("p", 1)
    tests = [node.test for node in ast.walk(scope.node) if isinstance(node, ast.If | ast.IfExp)]
    rates = [rate, *(store.value for store in scope.stores.get(dotted(rate), ()) if store.how == "assign")]
    words = " ".join(
        node.attr if isinstance(node, ast.Attribute) else node.id
        for each in (*tests, *rates)
        for node in (ast.walk(each) if each is not None else ())
        if isinstance(node, ast.Attribute | ast.Name)
    )
    named = f"{net.scope.name} {scope.name} {words}".lower()
    return any(word in named for word in _MEANT if word not in ("mc",)) or named.startswith("mc") or "_mc" in named


def _telling(script: Script, call: Call) -> tuple[Edit, ...]:
    if call.scope.receiver in ("", "cls") or not call.arguments:
        return ()
    (_, end), given = script.text.span(call.node), [script.text.span(each)[1] for each in call.arguments]
    behind = script.text.data[max(given) : end - 1]
    comma = " " if b"," in _COMMENT.sub(b"", behind) else ", "
    return script.change("say-training", end - 1, end - 1, f"{comma}training={call.scope.receiver}.training")


@detector("source/layer-built-in-forward")
def layer_built_in_forward(net: Net) -> Iterator[Sighting]:
    """A layer with weights is made inside forward, anew with every call."""
    seen: set[int] = set()
    told: set[int] = set()
    for event in net.running:
        call = event.call
        if call is None or call.scope.host not in (net.scope, None) or call.scope.name == "__init__":
            continue
        meant = any(word in f"{net.scope.name} {call.scope.name}".lower() for word in _RANDOM)
        made = _applied(call) if id(call.node) not in seen and not meant else None
        if made is not None and id(made) not in told and _is_new_layer(net.script, made, call.scope):
            told.add(id(made))
            fact = f"{dotted(made.func)} is made anew with every call: new weights, which no optimizer ever sees"
            yield net.script.seen(made, fact)
        seen.add(id(call.node))
    for method in net.methods.values():
        for store in _kept_anew(net, method):
            if id(store.value) not in told:
                told.add(id(store.value))
                fact = f"{store.name} gets a new layer with every call: new weights, which no optimizer ever sees"
                yield net.script.seen(store.node, fact)


def _kept_anew(net: Net, forward: Scope) -> Iterator[Store]:
    """The stores of a new layer to self.NAME in FORWARD itself, with no condition around or before them."""
    meant = any(word in net.scope.name.lower() for word in _RANDOM)
    if forward.name != "forward" or meant or any(back.node.value is None for back in forward.returns):
        return
    for name, stores in forward.stores.items():
        root, _, word = name.partition(".")
        others = [each for each in net.stores(word) if not is_none(each.value)]
        own = root == forward.receiver and word.isidentifier() and len(others) == len(stores) == 1
        if own and stores[0].how == "assign" and not any(block.kind == "arm" for block in stores[0].path):
            made = _made(_stored(stores[0]))
            if made is not None and _is_new_layer(net.script, made, forward):
                yield stores[0]


def _is_new_layer(script: Script, made: ast.Call, scope: Scope) -> bool:
    """Whether MADE makes a layer with weights, itself or by a helper that does nothing but return a new one."""
    origins = script.trace.origins(made, scope)
    return bool(origins) and all(
        each.store is None and holds_weights(script, each.call, each.scope) for each in origins
    )


def _applied(call: Call) -> ast.Call | None:
    """The constructor behind what CALL calls: made on the spot, or given to a name that serves for calling only."""
    match call.node.func:
        case ast.Call() as made:
            return _made(made)
        case ast.Name(id=name) if call.scope.kind == "function":
            stores = reaching(call.scope.stores.get(name, ()), call)
            every = call.scope.stores.get(name, [])
            if stores and all(_is_moved(each, name) for each in every[1:]):
                stores = every[:1]
            if len(stores) == 1 and _serves_for_calling(call.scope, name):
                return _made(_turned(stores[0], call) if stores[0].how == "element" else _stored(stores[0]))
    return None


def _is_moved(store: Store, name: str) -> bool:
    """Whether STORE gives NAME itself, moved: layer = layer.to(device)."""
    match store.value:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=inner), attr=attr)):
            return inner == name and attr in _MOVES and store.how == "assign"
    return False


def _stored(store: Store) -> ast.expr | None:
    whole = store.how == "assign" and store.index is None and len(getattr(store.node, "targets", [1])) == 1
    return store.value if whole else None


def _turned(store: Store, call: Call) -> ast.expr | None:
    """The list that a loop goes through: for layer in layers, where layers serves for nothing else."""
    if store.index is None and isinstance(store.value, ast.Name):
        stores = reaching(call.scope.stores.get(store.value.id, ()), store)
        loads = [node for node in ast.walk(call.scope.node) if isinstance(node, ast.Name) and node.id == store.value.id]
        if len(stores) == 1 and sum(isinstance(node.ctx, ast.Load) for node in loads) == 1:
            return _stored(stores[0])
    return store.value if store.index is None else None


def _made(node: ast.expr | None) -> ast.Call | None:
    """The constructor call under moves: nn.Linear(2, 2).to(device)."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES:
        if not isinstance(node.func.value, ast.Call):
            break
        node = node.func.value
    return node if isinstance(node, ast.Call) else None


def _serves_for_calling(scope: Scope, name: str) -> bool:
    """Whether NAME is only ever called: not initialised, loaded, kept, returned or handed on."""
    called = {id(call.node.func) for call in scope.calls}
    called |= {id(call.receiver) for call in scope.calls if call.tail in _MOVES}
    return all(
        id(node) in called
        for node in ast.walk(scope.node)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    )
