"""Whether a wrapped model is used through its wrapper."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope, dotted
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import TrainingStep
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.examine.source.wrappers import Wrapper, kinds, wrappers
from torchtriage.specialists.distributed_training_strategies.rules.things import is_of, things

_REDUCES = symbols().gradient_reductions


@detector("source/wrapper-bypassed")
def wrapper_bypassed(step: TrainingStep) -> Iterator[Sighting]:
    """The forward pass goes past DistributedDataParallel: no gradient is averaged over the ranks."""
    script = step.script
    replicated = [each for each in wrappers(script) if each.kind == "replicated"]
    if not replicated or not step.backwards or _averages_by_hand(script):
        return
    forwards = [call for event in step.events if (call := event.call) is not None and not _is_off(script, call)]
    if any(_is_wrapped(script, call.node.func, call.scope) for call in forwards):
        return
    for call in forwards:
        wrapper = (
            _inside(script, call.node.func, call.scope) or _left_aside(replicated, call) or _beside(replicated, call)
        )
        if wrapper is not None and _is_propagated(step, call):
            yield script.seen(
                call.node,
                f"the model is called without its wrapper of line {wrapper.lineno}: backward adds up the gradients of "
                "this rank only, and the replicas drift apart",
            )


def _averages_by_hand(script: Script) -> bool:
    """Whether a collective of this file is about gradients; those of a metric or of the loss are not."""
    for call in script.calls(*_REDUCES):
        around = call.scope.node if call.scope.kind == "function" else call.statement
        if any("grad" in word for node in ast.walk(around) for word in (_word(node),)):
            return True
    return any("grad" in tail and "reduce" in tail for tail in script.facts.calls)


def _word(node: ast.AST) -> str:
    match node:
        case ast.Attribute(attr=word) | ast.Name(id=word) | ast.FunctionDef(name=word):
            return "" if word in ("no_grad", "zero_grad", "set_grad_enabled") else word
    return ""


def _is_wrapped(script: Script, node: ast.expr, scope: Scope) -> bool:
    wrapped = any(kind == "replicated" for kind, _ in kinds(script, node, scope))
    return wrapped and _taken_out(script, node, scope) is None


def _inside(script: Script, node: ast.expr, scope: Scope) -> ast.expr | None:
    """The wrapper around the module that NODE is: wrapper.module, or a name for that."""
    if isinstance(node, ast.Attribute) and node.attr != "module":  # model.module.loss(x), as model.module(x)
        owner = _inside(script, node.value, scope) if not script.names.resolve(node, scope) else None
        if owner is not None or node.attr in ("forward", "training_step"):
            return owner
    taken = _taken_out(script, node, scope)
    if taken is not None:
        return taken
    for each in (node, *(origin.node for origin in script.trace.origins(node, scope))):
        if isinstance(each, ast.Attribute) and each.attr == "module":
            home = next((o.scope for o in script.trace.origins(node, scope) if o.node is each), scope)
            found = [call for kind, call in kinds(script, each.value, home) if kind == "replicated"]
            if found:
                return found[0]
    return None


def _taken_out(script: Script, node: ast.expr, scope: Scope) -> ast.expr | None:
    """The wrapper that a name was freed of: net = model.module if hasattr(model, "module") else model."""
    values: list[tuple[ast.expr | None, Scope]] = [(node, scope)] if isinstance(node, ast.Call) else []
    if isinstance(node, ast.Name):
        values = [(store.value, store.scope) for store in script.names.stores(node.id, scope)]
    for value, home in values:
        given = value
        if isinstance(given, ast.Call) and len(given.args) == 1 and (own := script.trace.definition(given.func, home)):
            if not _frees(own):
                continue
            given = given.args[0]
        elif isinstance(given, ast.IfExp) and _is_freed(given):
            given = given.orelse
        else:
            continue
        found = [call for kind, call in kinds(script, given, home) if kind == "replicated"]
        if found:
            return found[0]
    return None


def _frees(own: Scope) -> bool:
    """Whether a function gives its parameter without the wrapper around it."""
    if own.kind != "function" or len(own.parameters) != 1:
        return False
    ends = [each.node.value for each in own.returns]
    if len(ends) == 1 and isinstance(ends[0], ast.IfExp):
        return _is_freed(ends[0])
    name = own.parameters[0].arg
    if any(dotted(store.value) == f"{name}.module" for store in own.stores.get(name, ()) if store.value is not None):
        return {dotted(each) for each in ends} == {name}
    return {dotted(each) for each in ends} == {name, f"{name}.module"}


def _is_freed(node: ast.IfExp) -> bool:
    name = dotted(node.orelse)
    return bool(name) and dotted(node.body) == f"{name}.module"


def _left_aside(replicated: list[Wrapper], call: Call) -> ast.Call | None:
    """The wrapper that was made of what is called here, has another name, and is used nowhere."""
    for each in replicated:
        name = dotted(each.module)
        same = call.scope is each.call.scope or (call.scope.host is each.call.scope.host and "." in name)
        if name and same and each.target not in ("", name) and dotted(call.node.func) == name:
            last = each.target.rpartition(".")[2]
            if last not in each.script.facts.calls and not _is_handed_on(each.script, last):
                return each.call.node
    return None


def _beside(replicated: list[Wrapper], call: Call) -> ast.Call | None:
    """The wrapper around the very model that is called here, when a helper gave back both."""
    for each in replicated:
        script = each.script
        if call.scope is each.call.scope or is_of(script, call.node.func, call.scope, each.call.node):
            continue
        mine = things(script, each.module, each.call.scope)
        called = things(script, call.node.func, call.scope)
        once = len(script.trace.sites(each.call.scope)) == 1
        if once and called and called <= mine:
            return each.call.node
    return None


def _is_handed_on(script: Script, last: str) -> bool:
    given = (a for calls in script.facts.calls.values() for call in calls for a in call.arguments)
    returned = (each.node.value for scope in script.facts.scopes for each in scope.returns)
    return any(
        isinstance(node, ast.Name | ast.Attribute) and dotted(node).rpartition(".")[2] == last
        for value in (*given, *returned)
        for node in (value.elts if isinstance(value, ast.Tuple | ast.List) else [value])
    )


def _is_off(script: Script, call: Call) -> bool:
    """Whether no graph is made there."""
    items = (i.context_expr for b in call.path if isinstance(b.owner, ast.With) for i in b.owner.items)
    called = (item.func if isinstance(item, ast.Call) else item for item in items)
    return any(script.names.resolve(each, call.scope) in symbols().grad_free for each in called)


def _is_propagated(step: TrainingStep, call: Call) -> bool:
    """Whether what CALL gives goes, by the names it passes through, into what this step propagates."""
    wanted: set[int] = set()
    roots = [(each.root, each.call.scope) for each in step.backwards if each.root is not None]
    while roots:
        node, scope = roots.pop()
        for inner in ast.walk(node):
            if inner is call.node:
                return True
            name = dotted(inner) if isinstance(inner, ast.Name | ast.Attribute) else ""
            for store in scope.stores.get(name, ()) if name else ():
                if id(store) not in wanted and store.value is not None and store.how in ("assign", "augment"):
                    wanted.add(id(store))
                    roots.append((store.value, scope))
            if isinstance(inner, ast.Call) and (own := step.script.trace.definition(inner.func, scope)) is not None:
                roots += [(r.node.value, own) for r in own.returns if r.node.value is not None and id(r) not in wanted]
                wanted.update(id(r) for r in own.returns)
    return False
