"""Tensors that a module computes with and does not know: neither buffers nor parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Scope, Store, dotted
from torchtriage.examine.source.nets import Net
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.families import NEW_METHODS, UPLOADS, VIEW_ATTRIBUTES
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.module_design_patterns.rules.makes import KEEP, is_none, is_tensor, learns, only_built

_PLACES = UPLOADS | NEW_METHODS | {"type_as", "is_cuda", "device", "get_device"}
_REGISTERS = (
    "register_buffer",
    "register_parameter",
    "Parameter",
    "Buffer",
    "ParameterList",
    "setattr",
    "from_pretrained",
)
_MOVERS = ("_apply", "to", "cuda", "__getattr__", "__setattr__")
_DEFAULTS = symbols().device_defaults
_READS = frozenset(
    {"len", "print", "isinstance", "range", "list", "tuple", "str", "repr", "id", "hasattr", "type", "zip"}
)
_COMBINES = symbols().combining_methods
_VIEWS = (KEEP | VIEW_ATTRIBUTES) - (_COMBINES - {"mul", "add", "sub", "div"})  # which may be given a number


@detector("source/unregistered-tensor")
def unregistered_tensor(net: Net) -> Iterator[Sighting]:
    """A tensor that forward computes with is neither a buffer nor a parameter."""
    script = net.script
    if net.init is None or any(script.calls(*_DEFAULTS)) or not net.bases.isdisjoint({"torch.jit.ScriptModule"}):
        return
    if any(name in each.inner for each in script.trace.lineage(net.scope) for name in _MOVERS):
        return
    for name in list(net.scope.attributes):
        stores = [each for each in net.stores(name) if name.isidentifier() and not is_none(each.value)]
        if not only_built(net, stores):
            continue
        learning = all(learns(script, each) for each in stores)
        if not learning and not all(is_tensor(script, each) for each in stores):
            continue
        if not _is_cared_for(net, name, learning) and (use := _use(net, name)) is not None:
            lost = "no optimizer is given it" if learning else "state_dict() does not hold it"
            fact = f"self.{name} is a plain tensor: model.to(device) leaves it where it is, and {lost}"
            where = f"; line {getattr(use, 'lineno', 0)} computes with it"
            yield script.seen(stores[0].node, fact + where, () if learning else _registering(script, stores, name))


def _is_cared_for(net: Net, name: str, learning: bool) -> bool:
    """Whether self.NAME is registered by other means, moved anywhere in the file, or asked for its device.

    What learns must be given to an optimizer: that is seen where something else than the module itself names it.
    """
    script = net.script
    if learning and _is_named_outside(net, name):
        return True
    registered = (argument for call in net.relatives(script.calls(*_REGISTERS)) for argument in call.arguments)
    moves = net.relatives(script.calls("to", "cuda", "type_as")) if not learning else ()
    moved = (call.receiver for call in moves if call.receiver is not None)
    words = {name, *_aliases(net, name)}
    for each in (*registered, *moved):
        for node in ast.walk(each):
            word = (
                node.attr
                if isinstance(node, ast.Attribute)
                else getattr(node, "id", None) or getattr(node, "value", None)
            )
            if isinstance(word, str) and word in words:
                return True
    if learning:
        return False
    placed = (node for node in ast.walk(net.scope.node) if isinstance(node, ast.Attribute) and node.attr in _PLACES)
    return any(isinstance(node.value, ast.Attribute) and node.value.attr == name for node in placed)


def _is_named_outside(net: Net, name: str) -> bool:
    inside = {id(node) for node in ast.walk(net.scope.node)} | net.foreign(name)
    tree = ast.walk(net.script.facts.scopes[0].node)
    return any(isinstance(node, ast.Attribute) and node.attr == name and id(node) not in inside for node in tree)


def _aliases(net: Net, name: str) -> set[str]:
    """The local names that are given something made of self.NAME."""
    found = set()
    for method in net.methods.values():
        for action in method.actions if method is not net.init else ():
            if isinstance(action, Store) and action.value is not None and action.how != "parameter":
                inside = ast.walk(action.value)
                if any(isinstance(node, ast.Attribute) and net.is_own(node, name, method) for node in inside):
                    found.add(action.name)
    return found


def _use(net: Net, name: str) -> ast.AST | None:
    """The first place outside of the constructor where self.NAME meets other tensors."""
    for method in net.methods.values():
        if method is net.init:
            continue
        inside = list(ast.walk(method.node))
        reads: list[ast.AST] = [
            node
            for node in inside
            if isinstance(node, ast.Attribute)
            and node.attr == name
            and isinstance(node.ctx, ast.Load)
            and net.is_own(node, name, method)
        ]
        if reads:
            parents = {id(child): node for node in inside for child in ast.iter_child_nodes(node)}
            aliases = {alias for node in reads for alias in _alias(node, parents)}
            named = (node for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
            reads += [node for node in named if node.id in aliases]
            found = next((node for node in reads if _meets_others(net, node, parents, method)), None)
            if found is not None:
                return found
    return None


def _alias(node: ast.AST, parents: dict[int, ast.AST]) -> Iterator[str]:
    """The local name that a view of NODE is given: mask = self.mask[:n]."""
    at: ast.AST | None = node
    while isinstance(at, ast.Attribute | ast.Subscript | ast.Call) and at is not None:
        above = parents.get(id(at))
        if isinstance(above, ast.Subscript) and above.value is not at:
            return
        at = above
    match at:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.NamedExpr(target=ast.Name(id=name)):
            yield name
        case ast.Tuple(elts=parts):  # cos, sin = self.cos[:n], self.sin[:n]
            match parents.get(id(at)):
                case ast.Assign(targets=[ast.Tuple(elts=names)], value=value) if value is at:
                    yield from (
                        to.id
                        for to, part in zip(names, parts, strict=False)
                        if isinstance(to, ast.Name) and _holds(part, node)
                    )


def _holds(whole: ast.AST, part: ast.AST) -> bool:
    return any(each is part for each in ast.walk(whole))


def _meets_others(net: Net, node: ast.AST, parents: dict[int, ast.AST], method: Scope) -> bool:
    """Whether what is made of NODE by views alone is an operand beside something else than numbers."""
    at = node
    while (above := parents.get(id(at))) is not None:
        match above:
            case ast.BinOp(left=left, right=right) if isinstance(right if at is left else left, ast.Constant):
                pass
            case ast.BinOp():
                return True
            case ast.Attribute(attr=attr) if attr not in _VIEWS:
                return attr in _COMBINES
            case ast.Call(func=func) if func is not at:
                return _is_computing(net, func, method)
            case ast.Subscript(value=value) if value is at:
                pass
            case ast.Attribute() | ast.Call() | ast.UnaryOp() | ast.Compare() | ast.keyword():
                pass
            case _:
                return False
        at = above
    return False


def _is_computing(net: Net, func: ast.expr, method: Scope) -> bool:
    """Whether FUNC is one of torch's functions, a method that combines tensors, or a module of the module's own."""
    name = net.script.names.resolve(func, method)
    if name:
        return name.startswith("torch.") and name.rpartition(".")[2] not in _READS
    if isinstance(func, ast.Attribute) and func.attr in _COMBINES:
        return True
    helper = net.script.trace.definition(func, method)
    if helper is not None and helper.kind == "function":  # an own function that moves nothing and asks for no device
        words = {node.attr for node in ast.walk(helper.node) if isinstance(node, ast.Attribute)}
        return words.isdisjoint(_PLACES) and any(isinstance(n, ast.BinOp | ast.MatMult) for n in ast.walk(helper.node))
    root, _, rest = dotted(func).partition(".")
    return root == method.receiver and rest in net.scope.attributes


def _registering(script: Script, stores: list[Store], name: str) -> tuple[Edit, ...]:
    """self.mask = … → self.register_buffer("mask", …)."""
    node, value = stores[0].node, stores[0].value
    if len(stores) != 1 or value is None or not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return ()
    if node.lineno != node.end_lineno:
        return ()
    code = f'{stores[0].scope.receiver}.register_buffer("{name}", {script.source(value)})'
    return script.replaced("buffer", node, code)
