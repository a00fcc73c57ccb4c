"""Whether the gradients of a forward pass in evaluation are wanted after all, or already switched off."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from torchtriage.examine.source.events import Event, Ring
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.flow import reaches, reaching
from torchtriage.examine.source.grad_mode import is_decorated, may_switch
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.operators import names
from torchtriage.examine.source.torch_api.symbols import symbols

# Words of code that wants gradients without a training: attacks, saliency, physics, adaptation at test time.
_WANTS = re.compile(
    r"backward|^grad$|autograd|jacobian|hessian|^vjp$|^jvp$|requires_grad|enable_grad|attack|adversar|perturb|pgd|fgsm"
    r"|saliency|gradcam|grad_cam|attribut|explain|^step$|zero_grad|force|adapt"
)

# What gives the module itself, so that model.to(device).eval() is the eval() of model.
_SAME = symbols().module_self


def is_wanted(scope: Scope) -> bool:
    """Whether a function that also trains wants gradients for something else."""
    words = {call.tail.lower() for call in scope.calls} - {"backward", "step", "zero_grad"}
    return any(_WANTS.search(word) for word in words)


def told_model(call: Call) -> str:
    """The model that an eval() or train() is called on: model of model.cuda().eval() and of model = Net().eval()."""
    node = call.receiver
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
        node = node.func.value
    match call.statement:
        case ast.Assign(targets=[target], value=value) if not dotted(node):
            while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value is not call.node:
                value = value.func.value
            return dotted(target) if value is call.node else ""
    stores = call.scope.stores.get(node.id, []) if isinstance(node, ast.Name) else []
    match stores:
        case [Store(how="element", index=None, value=ast.Call(func=ast.Attribute(value=whole, attr="values")))]:
            return dotted(whole)  # for net in nets.values(): net.eval()
    return dotted(node)


def tells(call: Call, on: bool) -> bool:
    """Whether CALL is model.eval() (or, with ON, model.train())."""
    if call.receiver is None:
        return False
    off = any(isinstance(each, ast.Constant) and each.value is False for each in call.arguments)
    if call.tail == "train":
        return off != on
    return call.tail == "eval" and not call.arguments and not on


def wants(fact: Call | Store) -> bool:
    if isinstance(fact, Store):
        return fact.name.endswith((".requires_grad", ".grad")) or _is_volatile(fact.value)
    words = [fact.tail, *(keyword.arg or "" for keyword in fact.node.keywords)]
    return any(_WANTS.search(word.lower()) for word in words) or _is_volatile(fact.node)


def _is_volatile(node: ast.AST | None) -> bool:
    """Variable(x, volatile=True) did before torch 0.4 what no_grad does since."""
    return isinstance(node, ast.Call) and any(keyword.arg == "volatile" for keyword in node.keywords)


def is_frozen(script: Script, call: Call) -> bool:
    """Whether the file switches gradients off for the parameters of a model of that name."""
    last = dotted(call.node.func).rpartition(".")[2]
    for each in script.calls("requires_grad_"):
        off = any(isinstance(given, ast.Constant) and given.value is False for given in each.arguments)
        if off and (
            last in (*dotted(each.receiver).split("."), told_model(each)) or isinstance(each.receiver, ast.Name)
        ):
            return True
    stores = (store for scope in script.facts.scopes for name, found in scope.stores.items()
              if name.endswith(".requires_grad") for store in found)  # fmt: skip
    return any(
        isinstance(block.owner, ast.For) and last in _words(block.owner.iter)
        for store in stores
        for block in store.path
    )


def _words(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr


def is_propagated(script: Script, call: Call) -> bool:
    """Whether a backward comes after the call, in its function or at a caller with what the function returned."""
    scope = call.scope
    again = [each for each in scope.calls if tells(each, on=True)]
    for each in scope.calls:
        between = any(reaches(call, on) and reaches(on, each) for on in again)
        if each.tail in ("backward", "grad") and reaches(call, each) and not between:
            return True
    for site in script.trace.sites(scope) if scope.kind == "function" else ():
        taken = {store.name for stores in site.scope.stores.values() for store in stores if store.value is site.node}
        for each in script.calls("backward"):
            if each.scope is site.scope and taken & set(_words(each.node)):
                return True
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(scope.node) if scope.kind == "function")


def is_read_out(script: Script, call: Call) -> bool:
    """Whether the result goes to NumPy as it is: that would raise if it had a graph, so somebody switched it off."""
    taken = [s for found in call.scope.stores.values() for s in found if s.value is not None and call.node is s.value]
    for each in script.calls("numpy", "asarray", "array"):
        if each.scope is not call.scope or not reaches(call, each):
            continue
        node: ast.expr | None = each.receiver if each.tail == "numpy" else next(iter(each.node.args), None)
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPS:
            node = node.func.value
        if node is call.node:
            return True
        if isinstance(node, ast.Name):
            stores = reaching(call.scope.stores.get(node.id, ()), each)
            if stores and stores[0] in taken:
                return True
    return False


_KEEPS = names(home="method", returns="tensor", gradient="kept")


def is_off_inside(script: Script, call: Call) -> bool:
    """Whether the model's own class in this file switches gradients off, or wants them, in its forward."""
    host = script.trace.instance(call.node.func, call.scope)
    method = script.trace.method(host, "forward") if host is not None else None
    if method is None or host is None:
        return False
    if any(may_switch(block) for each in method.calls for block in each.path):
        return True
    return is_decorated(method) or any(each.tail == "grad" for each in _of(script, method))


def _of(script: Script, scope: Scope) -> Iterable[Call]:
    events: tuple[Event, ...] = script.written.events(Ring(scope.body, scope))
    return (event.call for event in events if event.call is not None)
