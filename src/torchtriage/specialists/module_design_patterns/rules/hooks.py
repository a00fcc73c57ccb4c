"""Hooks that are passed by, and hooks that pile up."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.definitions import Origin
from torchtriage.examine.source.facts import Block, Call, Scope, Store, dotted
from torchtriage.examine.source.script import Script

_REGISTERS = (
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
    "register_backward_hook",
)
_INNER = frozenset({"module", "wrapped", "inner", "_orig_mod", "_module", "wrapped_module"})
_NAMED = frozenset({"model", "net", "network", "module", "encoder", "decoder", "backbone", "teacher", "student"})
_DEEP = 3


@detector("source/forward-called-directly")
def forward_called_directly(script: Script) -> Iterator[Sighting]:
    """A module's forward is called by name: its hooks do not run."""
    calls = list(script.calls("forward"))
    if any(name.partition(".")[0] in ("pytest", "unittest") for name in (script.facts.imports if calls else ())):
        return
    for call in calls:
        receiver = call.receiver
        if isinstance(receiver, ast.Name | ast.Attribute) and _is_called_past(script, call, receiver):
            name = script.source(receiver)
            edits = script.replaced("call-it", call.node.func, name)
            yield script.seen(call.node, f"{name}.forward() runs none of the hooks of {name}: {name}() does", edits)


def _is_called_past(script: Script, call: Call, receiver: ast.expr) -> bool:
    scope, words = call.scope, dotted(receiver).split(".")
    if receiver is None or words == [scope.receiver] or words[-1] in _INNER or scope.name == "forward_impl":
        return False
    if words[-1][:1].isupper() or script.names.resolve(receiver, scope) or _has_own_call(script, receiver, scope):
        return False
    parts = script.roles.parts(receiver, scope)
    if not parts and _is_listed(script, receiver, scope):
        return True
    if not parts:
        ends = script.trace.origins(receiver, scope)
        return bool(ends) and all(_is_given_model(each) for each in ends)
    return bool(parts) and all(part.role == "model" and part.by != "unknown" for part in parts)


def _is_listed(script: Script, receiver: ast.expr, scope: Scope) -> bool:
    """Whether a loop over a container of modules gives RECEIVER: for layer in self.layers."""
    stores = script.names.stores(receiver.id, scope) if isinstance(receiver, ast.Name) else []
    lists = (script.roles.made(each.value, each.scope, "model") for each in stores if each.how == "element")
    return (
        bool(stores)
        and all(any(part.name.startswith("torch.nn.") for part in made) for made in lists)
        and all(each.how == "element" and each.index is None for each in stores)
    )


def _is_given_model(origin: Origin) -> bool:
    """Whether ORIGIN is a parameter, of a caller that nobody sees, that is called as models are."""
    store = origin.store
    return origin.is_parameter and store is not None and store.value is None and store.name.lower() in _NAMED


def _has_own_call(script: Script, receiver: ast.expr, scope: Scope) -> bool:
    host = script.trace.instance(receiver, scope)
    return host is not None and script.trace.method(host, "__call__") is not None


@detector("source/hook-handle-dropped")
def hook_handle_dropped(script: Script) -> Iterator[Sighting]:
    """A hook is registered again and again on one module, and never removed."""
    registered = list(script.calls(*_REGISTERS))
    if not registered or _are_cleared(script):
        return
    removing = any(script.calls("remove")) or "remove" in script.aside
    for call in registered:
        if call.receiver is None or not isinstance(call.statement, ast.Expr | ast.Assign) or _is_guarded(call.path):
            continue
        lost = isinstance(call.statement, ast.Expr) and call.statement.value is call.node
        if removing and not lost:  # what nobody keeps, nobody can remove
            continue
        around = _repeats(script, call, _root(call.receiver), 0)
        if around is not None:
            fact = (
                f"{around} registers this hook on {script.source(call.receiver)} once more each time: all of them run"
            )
            yield script.seen(call.node, fact)


def _are_cleared(script: Script) -> bool:
    """Whether the file takes hooks out of the modules' own tables: module._forward_hooks.clear()."""
    if any(dotted(call.receiver).endswith("_hooks") for call in script.calls("clear", "pop", "popitem")):
        return True
    stored = {"_forward_hooks", "_forward_pre_hooks", "_backward_hooks"} & script.aside
    return bool(stored) and any(name.endswith(tuple(stored)) for each in script.facts.scopes for name in each.stores)


def _is_turned_through(script: Script, call: Call, block: Block) -> bool:
    """Whether what CALL is given is another one at each turn of BLOCK: for hook in hooks."""
    words = {node.id for each in call.arguments for node in ast.walk(each) if isinstance(node, ast.Name)}
    stores = (store for word in words for store in script.names.stores(word, call.scope))
    return any(store.how == "element" and store.block is block for store in stores)


def _is_another(script: Script, call: Call, site: Call, words: list[str], bound: bool) -> bool:
    """Whether a loop around SITE hands over another hook at each turn: for hook in hooks: self.add(hook)."""
    used = {node.id for each in call.arguments for node in ast.walk(each) if isinstance(node, ast.Name)}
    handed = [site.argument(word, words.index(word) - bound) for word in words if word in used]
    names = {node.id for each in handed if each is not None for node in ast.walk(each) if isinstance(node, ast.Name)}
    stores = (store for name in names for store in script.names.stores(name, site.scope))
    return any(store.how == "element" and store.block in site.path for store in stores)


def _is_guarded(path: tuple[Block, ...]) -> bool:
    """Whether the call stands under a condition that may change: if epoch == 0, if not self.hooked."""
    return any(block.kind == "arm" and not _is_choice(block.owner) for block in path)


def _is_choice(owner: ast.AST) -> bool:
    """Whether a condition only chooses modules, the same ones each time: if isinstance(module, nn.ReLU)."""
    match owner:
        case ast.If(test=ast.Call(func=ast.Name(id="isinstance"))):
            return True
        case ast.If(test=ast.Compare(left=ast.Name(id="name"), ops=[ast.Eq() | ast.In()])):
            return True
        case ast.If(
            test=ast.Compare(left=ast.Constant(value=str()), ops=[ast.In()], comparators=[ast.Name(id="name")])
        ):
            return True
    return False


def _root(node: ast.expr | None) -> str:
    """The name with which a chain such as model.blocks[0].fc begins; "" where it may be another module each time."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=inner) | ast.Subscript(value=inner, slice=ast.Constant() | ast.UnaryOp()):
            return _root(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr="get_submodule"), args=[ast.Constant()]):
            return _root(inner)
    return ""


def _whole(store: Store) -> str:
    """The model whose modules a loop goes through: for name, module in model.named_modules()."""
    match store.value:
        case ast.Call(func=ast.Attribute(value=whole, attr="modules" | "children")) if store.how == "element":
            return _root(whole)
        case ast.Call(func=ast.Attribute(value=whole, attr="named_modules" | "named_children")) if store.index == 1:
            return _root(whole)
        case ast.Attribute() | ast.Subscript() | ast.Call() if store.how == "assign" and store.index is None:
            return _root(store.value)  # target = model.layer4[-1]
    return ""


def _repeats(script: Script, call: Call, root: str, deep: int, past: Block | None = None) -> str | None:
    """What runs CALL again for the same ROOT, in words; None where nothing surely does."""
    scope = call.scope
    stores = script.names.stores(root, scope)
    if len(stores) == 1 and (whole := _whole(stores[0])) and deep < _DEEP:
        return _repeats(script, call, whole, deep + 1, stores[0].block if stores[0].how == "element" else None)
    for block in reversed(call.path):
        again = block.kind == "loop" and block is not past and root and not any(block in store.path for store in stores)
        if again and (deep or not _is_turned_through(script, call, block)):
            return f"the loop of line {getattr(block.owner, 'lineno', 0)}"
    if scope.kind != "function" or not root or deep > _DEEP:
        return None
    if scope.name in ("forward", "__call__") and root == scope.receiver and scope.host is not None:
        return f"every call of {scope.name}"
    return _called_again(script, call, root, deep)


def _called_again(script: Script, call: Call, root: str, deep: int) -> str | None:
    """What calls the function that CALL stands in again, for the same thing in its parameter ROOT."""
    scope = call.scope
    stores = script.names.stores(root, scope)
    words = [each.arg for each in scope.parameters]
    bound = scope.receiver in words[:1]
    if root not in words or any(store.how != "parameter" for store in stores):
        return None
    sites = script.trace.sites(scope)
    for site in sites:
        given = site.receiver if bound and root == scope.receiver else site.argument(root, words.index(root) - bound)
        if _root(given) and not _is_guarded(site.path) and not _is_another(script, call, site, words, bound):
            found = _repeats(script, site, _root(given), deep + 1)
            if found is not None:
                return found
    return None
