"""Tensors that a module computes with and does not know: neither buffers nor parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Scope, Store, dotted
from torchtriage.examine.source.nets import Net, chain, replaced
from torchtriage.examine.source.script import Script

_MAKERS = frozenset(
    {"zeros", "ones", "full", "rand", "randn", "randint", "randperm", "arange", "linspace", "logspace", "eye", "empty"}
    | {"tensor", "as_tensor", "from_numpy", "FloatTensor", "LongTensor", "Tensor", "DoubleTensor"}
    | {"hann_window", "hamming_window", "blackman_window"}
)
# Functions and methods that make a tensor of a tensor, and keep it a whole one.
_KEEP = frozenset(
    {
        "tril",
        "triu",
        "exp",
        "log",
        "sin",
        "cos",
        "sqrt",
        "rsqrt",
        "pow",
        "abs",
        "float",
        "double",
        "half",
        "long",
        "int",
    }
    | {"bool", "view", "reshape", "unsqueeze", "squeeze", "transpose", "permute", "t", "repeat", "expand", "flatten"}
    | {"contiguous", "clone", "cumsum", "cumprod", "diag", "outer", "flip", "masked_fill", "clamp", "normal_", "fill_"}
    | {"uniform_", "div", "mul", "add", "sub", "reciprocal", "requires_grad_", "stack", "cat", "meshgrid", "softmax"}
)
_VIEWS = _KEEP | {"T", "mT"}
_PLACES = frozenset({"to", "cuda", "type_as", "new_tensor", "new_zeros", "new_ones", "is_cuda", "device", "get_device"})
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
_DEFAULTS = ("set_default_device", "set_default_tensor_type")
_READS = frozenset(
    {"len", "print", "isinstance", "range", "list", "tuple", "str", "repr", "id", "hasattr", "type", "zip"}
)
_COMBINES = frozenset(
    {"matmul", "mm", "bmm", "mul", "add", "sub", "div", "dot", "mv", "addmm", "lerp", "maximum", "minimum", "where"}
    | {"masked_fill", "masked_fill_", "add_", "mul_", "sub_", "div_", "gather", "index_select", "scatter", "scatter_"}
)


@detector("source/unregistered-tensor")
def unregistered_tensor(net: Net) -> Iterator[Sighting]:
    """A tensor that forward computes with is neither a buffer nor a parameter."""
    script = net.script
    if net.init is None or any(script.calls(*_DEFAULTS)) or not net.bases.isdisjoint({"torch.jit.ScriptModule"}):
        return
    if any(name in each.inner for each in script.trace.lineage(net.scope) for name in _MOVERS):
        return
    for name in list(net.scope.attributes):
        stores = _tensors(net, name)
        if stores and not _is_cared_for(net, name) and (use := _use(net, name)) is not None:
            learns = any(_learns(store.value) for store in stores)
            lost = "no optimizer is given it" if learns else "state_dict() does not hold it"
            fact = f"self.{name} is a plain tensor: model.to(device) leaves it where it is, and {lost}"
            where = f"; line {getattr(use, 'lineno', 0)} computes with it"
            yield script.seen(stores[0].node, fact + where, () if learns else _registering(script, stores, name))


def _tensors(net: Net, name: str) -> list[Store]:
    """The stores to self.NAME when only the constructor gives it a value, a tensor that was put on no device."""
    stores = [each for each in net.stores(name) if name.isidentifier() and not _is_none(each.value)]
    if any(each.scope is not net.init or each.how != "assign" or each.index is not None for each in stores):
        return []
    under = any(block.kind in ("with", "loop") for each in stores for block in each.path)
    made = not under and all(_is_tensor(net.script, each.value, each.scope) for each in stores)
    return stores if made else []


def _is_none(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_tensor(script: Script, node: ast.expr | None, scope: Scope, through: tuple[str, ...] = ()) -> bool:
    """Whether NODE surely is a tensor of at least one dimension, made here and put on no device."""
    match node:
        case ast.Call(func=func) as call:
            return _is_made(script, call, scope) or _is_kept(script, call, func, scope, through)
        case ast.BinOp(left=left, right=right):
            return any(_is_tensor(script, each, scope, through) for each in (left, right))
        case (
            ast.Compare(left=inner)
            | ast.UnaryOp(op=ast.USub() | ast.Invert(), operand=inner)
            | ast.Subscript(value=inner, slice=ast.Slice() | ast.Tuple())
        ):
            return _is_tensor(script, inner, scope, through)
        case ast.Name(id=name) if name not in through:
            given = [each for each in scope.stores.get(name, ()) if each.how != "augment"]
            whole = all(each.how == "assign" and each.index is None for each in given)
            return (
                bool(given) and whole and all(_is_tensor(script, each.value, scope, (*through, name)) for each in given)
            )
    return False


def _is_made(script: Script, call: ast.Call, scope: Scope) -> bool:
    name = script.names.resolve(call.func, scope)
    space, _, last = name.rpartition(".")
    if space != "torch" or last not in _MAKERS or any(each.arg in ("device", None) for each in call.keywords):
        return False
    first = call.args[0] if call.args else None
    if last in ("tensor", "as_tensor"):
        return isinstance(first, ast.List | ast.ListComp | ast.Tuple)
    return not (isinstance(first, ast.List | ast.Tuple) and not first.elts)


def _is_kept(script: Script, call: ast.Call, func: ast.expr, scope: Scope, through: tuple[str, ...]) -> bool:
    tail = func.attr if isinstance(func, ast.Attribute) else ""
    if tail not in _KEEP:
        return False
    if script.names.resolve(func, scope).startswith("torch."):
        first = call.args[0] if call.args else None
        inside = first.elts if isinstance(first, ast.List | ast.Tuple) else [first]
        return any(_is_tensor(script, each, scope, through) for each in inside)
    return isinstance(func, ast.Attribute) and _is_tensor(script, func.value, scope, through)


def _learns(node: ast.expr | None) -> bool:
    inner, methods = chain(node)
    given = inner.keywords if isinstance(inner, ast.Call) else []
    asked = any(
        each.arg == "requires_grad" and isinstance(each.value, ast.Constant) and each.value.value for each in given
    )
    return asked or "requires_grad_" in methods


def _is_cared_for(net: Net, name: str) -> bool:
    """Whether self.NAME is registered by other means, moved anywhere in the file, or asked for its device."""
    script = net.script
    registered = (argument for call in script.calls(*_REGISTERS) for argument in call.arguments)
    moved = (call.receiver for call in script.calls("to", "cuda", "type_as") if call.receiver is not None)
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
    placed = (node for node in ast.walk(net.scope.node) if isinstance(node, ast.Attribute) and node.attr in _PLACES)
    return any(isinstance(node.value, ast.Attribute) and node.value.attr == name for node in placed)


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
        parents = {id(child): node for node in ast.walk(method.node) for child in ast.iter_child_nodes(node)}
        for node in ast.walk(method.node):
            is_read = isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load)
            if is_read and net.is_own(node, name, method) and _meets_others(net, node, parents, method):
                return node
    return None


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
    root, _, rest = dotted(func).partition(".")
    return root == method.receiver and rest in net.scope.attributes


def _registering(script: Script, stores: list[Store], name: str) -> tuple[Edit, ...]:
    """self.mask = … → self.register_buffer("mask", …)."""
    node, value = stores[0].node, stores[0].value
    if len(stores) != 1 or value is None or not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return ()
    if node.lineno != node.end_lineno:
        return ()
    return replaced(
        script, "buffer", node, f'{stores[0].scope.receiver}.register_buffer("{name}", {script.source(value)})'
    )
