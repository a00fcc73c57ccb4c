"""What the source alone shows about recurrent states that go from one training step into the next."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.flow import reaches
from torchtriage.examine.source.overridden import overriding
from torchtriage.examine.source.steps import Backward, TrainingStep
from torchtriage.examine.source.torch_api.families import DETACHING
from torchtriage.examine.source.torch_api.operators import names
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.tensor_operations_and_memory.rules.backwards import (
    is_direct,
    is_set,
    repeats,
    start,
    stores_of,
    turns,
)

_OFF = symbols().grad_free
_LETS_GO = DETACHING | names(home="method", memory="itself", gradient="zero") | {"clear", "copy_"}
_LOOKS = symbols().module_self | symbols().module_parts | {"zero_grad"}


@detector("source/hidden-state-not-detached")
def hidden_state_not_detached(step: TrainingStep) -> Iterator[Sighting]:
    """A recurrent state goes from one training step into the next with its graph."""
    if not step.backwards or not repeats(step):
        return
    for event in step.events:
        call = event.call
        if call is None or not (step.script.roles.plays(call.node.func, call.scope, "model") or _unrolls(step, call)):
            continue
        if _is_off(step, event, call):
            continue
        name = _carried(step, call)
        if name and _propagates(step, event, call):
            yield step.script.seen(call.node, _fact(step, name))
        found = _own_state(step, call) if is_direct(step, event) else None
        if found is not None and _propagates(step, event, call):
            yield step.script.seen(found[1], _fact(step, found[0]))


def _unrolls(step: TrainingStep, call: Call) -> bool:
    """Whether a function of this file takes a state, gives it to a model again and again, and returns the last one."""
    helper = step.script.trace.definition(call.node.func, call.scope)
    if helper is None or helper.kind != "function" or not isinstance(call.statement, ast.Assign):
        return False
    words = {each.arg for each in helper.parameters}
    taken = {dotted(each) for each in _targets(call.statement)} & {dotted(each) for each in call.arguments} - {""}
    if not taken or any(each.tail in DETACHING | symbols().grad_switches for each in helper.calls):
        return False
    ends = {name for each in helper.returns for name in _names(each.node)} & words
    return any(
        store.value is inner.node and any(dotted(each) == store.name for each in inner.arguments)
        for inner in helper.calls
        if step.script.roles.plays(inner.node.func, helper, "model")
        for name in ends
        for store in helper.stores.get(name, ())
    )


def _targets(statement: ast.Assign) -> Iterator[ast.expr]:
    for target in statement.targets:
        yield from _flat(target)


def _fact(step: TrainingStep, name: str) -> str:
    line = step.backwards[-1].call.node.lineno
    if any(is_set(each.call, "retain_graph") for each in step.backwards):
        end = "goes through all steps so far, since retain_graph=True keeps them"
    else:
        end = "comes to the graph of the step before, which is freed: it raises the second time"
    return f"{name} goes undetached {turns(step)}; backward in line {line} {end}"


def _is_off(step: TrainingStep, event: Event, call: Call) -> bool:
    contexts = (
        (item.context_expr, call.scope)
        for block in event.path
        if block.kind == "with" and isinstance(block.owner, ast.With)
        for item in block.owner.items
    )
    return any(
        isinstance(each, ast.Call) and step.script.names.resolve(each.func, scope) in _OFF for each, scope in contexts
    )


def _carried(step: TrainingStep, call: Call) -> str:
    """The name that CALL reads and gives a new value, and that nothing else in the step touches; else ""."""
    if call.scope is not step.ring.scope and call.scope.host is None:
        return ""
    if _detaches(step, call):
        return ""
    read = {dotted(each) for argument in call.arguments for each in _flat(argument)}
    for name in sorted(read - {""}):
        stores = stores_of(name, call.scope)
        given = [store for store in stores if _is_given(store, call)]
        local = name.partition(".")[0] != call.scope.receiver
        inside = [e.fact for e in step.events if isinstance(e.fact, Store) and e.fact.name in (name, f"{name}[]")
                  and e.fact.how != "parameter" and (e.fact.scope is call.scope or not local)]  # fmt: skip
        inside += [store for store in stores if step.ring.block in store.path and store not in inside]
        if not given or any(not _is_given(store, call) for store in inside):
            continue
        before = [store for store in stores if store not in inside and store.how in ("assign", "parameter")]
        before += [] if before else _records(step, name, call.scope)
        if local and (call.scope is not step.ring.scope or not any(step.ring.block not in s.path for s in before)):
            continue
        if before and not _is_let_go(step, name) and not name.rpartition(".")[2].startswith("mem"):
            return name
    return ""


def _records(step: TrainingStep, name: str, scope: Scope) -> list[Store]:
    """The dicts, made before the step, of which NAME is an entry: state of state["h"]."""
    root, dot, _ = name.partition(".")
    stores = scope.stores.get(root, []) if dot and root != scope.receiver else []
    return [] if any(step.ring.block in store.path for store in stores) else stores


def _is_given(store: Store, call: Call) -> bool:
    """Whether STORE takes what CALL gave: at once, or under another name that nothing else has (hidden = new)."""
    if call.node in ((store.value.body, store.value.orelse) if isinstance(store.value, ast.IfExp) else (store.value,)):
        return True
    name = dotted(store.value) if isinstance(store.value, ast.Name) and store.index is None else ""
    others = call.scope.stores.get(name, [])
    return bool(others) and all(other.value is call.node for other in others)


def _flat(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Tuple | ast.List):
        for each in node.elts:
            yield from _flat(each)
    else:
        yield node


def _is_let_go(step: TrainingStep, name: str) -> bool:
    """Whether a call may cut NAME off in place: name.detach_(), name[0].detach_(), cut(name) as a statement."""
    for event in step.events:
        call = event.call
        if call is None:
            continue
        if call.tail in _LETS_GO and name in _roots(step, call):
            return True
        if _may_be_another(step, call, name):
            return True
        alone = isinstance(call.statement, ast.Expr) and call.statement.value is call.node and call.tail != "print"
        if alone and any(dotted(each) == name for each in call.arguments):
            return True
    return False


def _roots(step: TrainingStep, call: Call) -> Iterator[str]:
    """What CALL's receiver is, or is a part of: h of h[0].detach_(), of h.cell.detach_(), and of a loop over h."""
    name = _root(call.receiver)
    yield name
    yield name.rpartition(".")[0]
    bound = step.script.facts.bound.get(id(call.receiver))
    stores = [bound] if bound is not None else call.scope.stores.get(name, [])
    for store in stores:
        if store.how == "element" and store.value is not None:
            yield from _names(store.value)


def _may_be_another(step: TrainingStep, call: Call, name: str) -> bool:
    """Whether CALL, self.after_step() alone, may run what lets go of self.x: a method of a class that derives.

    Or one of a base in another file.
    """
    root = name.partition(".")[0]
    own = root != name and root == call.scope.receiver and dotted(call.receiver) == root
    if not own or not isinstance(call.statement, ast.Expr) or call.node is not call.statement.value:
        return False
    method = step.script.trace.definition(call.node.func, call.scope)
    if method is None:
        return not call.arguments
    rest = name.partition(".")[2]
    return any(f"{each.receiver}.{rest}" in each.stores for each in overriding(step.script.trace, method))


def _root(node: ast.expr | None) -> str:
    while isinstance(node, ast.Subscript):
        node = node.value
    return dotted(node)


def _detaches(step: TrainingStep, call: Call) -> bool:
    """Whether the model's own class in this file cuts the state off by itself."""
    host = step.script.trace.instance(call.node.func, call.scope)
    if host is None:
        return False
    inside = [
        each for base in step.script.trace.lineage(host) for each in step.script.facts.scopes if each.host is base
    ]
    return any(each.tail in DETACHING | symbols().grad_switches for scope in inside for each in scope.calls) or any(
        isinstance(node, ast.Attribute) and node.attr == "data" for scope in inside for node in ast.walk(scope.node)
    )


def _propagates(step: TrainingStep, event: Event, call: Call) -> bool:
    """Whether a backward of the step comes after CALL and starts from what it gave."""
    return any(reaches(event, each.event) and _comes_from(each, call) for each in step.backwards)


def _comes_from(backward: Backward, call: Call) -> bool:
    scope = backward.call.scope
    root = start(backward)
    if scope is not call.scope:
        return True
    known, grown = set(_names(root)), -1
    while grown != len(known):
        grown = len(known)
        for name in tuple(known):
            for store in stores_of(name, scope):
                if store.value is not None and _holds(store.value, call.node):
                    return True
                known.update(_names(store.value) if store.value is not None else ())
        for added in scope.calls:
            if added.tail in ("append", "extend") and dotted(added.receiver) in known:
                known.update(name for each in added.arguments for name in _names(each))
    return _holds(root, call.node)


def _holds(node: ast.AST, part: ast.AST) -> bool:
    return any(each is part for each in ast.walk(node))


def _names(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Name | ast.Attribute) and (name := dotted(each)):
            yield name


def _own_state(step: TrainingStep, call: Call) -> tuple[str, ast.AST] | None:
    """self.hidden of the called model's class, if its forward reads and writes it and nothing in the step resets it."""
    script = step.script
    host = script.trace.instance(call.node.func, call.scope)
    method = script.trace.method(host, "forward") if host is not None else None
    hooked = script.facts.calls.keys() & {"register_forward_hook", "register_forward_pre_hook"}
    if host is None or method is None or hooked or _detaches(step, call) or _is_touched(step, call):
        return None
    for name, stores in host.attributes.items():
        own = [store for store in stores if store.scope is method]
        whole = f"{method.receiver}.{name}"
        reads = [store for store in own if _gives_next(store, whole)]
        elsewhere = [store for store in stores if store.scope is not method]
        if reads and len(reads) == len(own) and elsewhere and not _is_reset_in(method):
            return whole, reads[0].node
    return None


def _gives_next(store: Store, name: str) -> bool:
    """Whether STORE takes what a call gives that reads NAME: at once, or by way of local names (self.h = (h, c))."""
    value = store.value
    if store.index is not None and isinstance(value, ast.Tuple) and store.index < len(value.elts):
        value = value.elts[store.index]
    if isinstance(value, ast.Call):
        return _reads(value, name)
    parts = list(_flat(value)) if value is not None else []
    given = [store.scope.stores.get(part.id, []) if isinstance(part, ast.Name) else [] for part in parts]
    return all(len(each) == 1 and isinstance(each[0].value, ast.Call) and _reads(each[0].value, name)
               for each in given) and bool(given)  # fmt: skip


def _reads(call: ast.Call, name: str) -> bool:
    return any(dotted(each) == name for argument in call.args for each in _flat(argument))


def _is_reset_in(method: Scope) -> bool:
    """Whether forward calls a method that may begin the state anew: self.reset(), self.init_hidden(n)."""
    own = f"{method.receiver}."
    words = ("reset", "init", "hidden", "state", "repackage")
    return any(dotted(c.node.func).startswith(own) and any(w in c.tail for w in words) for c in method.calls)


def _is_touched(step: TrainingStep, call: Call) -> bool:
    """Whether the step does more to the model than to call it: model.hidden = …, model.reset()."""
    model = dotted(call.node.func)
    for event in step.events:
        fact = event.fact
        if isinstance(fact, Store):
            touched = fact.name.startswith(f"{model}.")
        elif fact.receiver is not None:
            touched = dotted(fact.receiver) == model and fact.tail not in _LOOKS
        else:
            touched = not step.script.knows(fact) and any(dotted(each) == model for each in fact.arguments)
        if touched:
            return True
    return False
