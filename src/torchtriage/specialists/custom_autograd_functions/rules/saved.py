"""What forward gives save_for_backward."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.classes import FunctionClass
from torchtriage.examine.source.definitions import Origin
from torchtriage.examine.source.facts import Call, Scope, dotted
from torchtriage.examine.source.flow import Spot, reaching
from torchtriage.examine.source.held import Inputs
from torchtriage.examine.source.returned import starred
from torchtriage.examine.source.torch_api.families import METADATA, SPLITS, VALUE_METHODS
from torchtriage.specialists.custom_autograd_functions.rules.applied import applications

_PLAIN = frozenset(
    {"builtins.int", "builtins.float", "builtins.bool", "builtins.str", "builtins.tuple", "builtins.list"}
    | {"builtins.dict", "torch.Size", "torch.dtype", "torch.device", "typing.Tuple", "typing.List", "typing.Dict"}
    | {"typing.Sequence", "typing.Callable", "collections.abc.Sequence", "collections.abc.Callable"}
)
_MAKERS = frozenset(
    {"len", "int", "float", "bool", "str", "tuple", "list", "dict", "range", "isinstance", "hasattr", "sorted", "type"}
)
# What _plain says of numbers.
_NUMBERS = frozenset(
    {"a number", "an int", "a float", "a bool", "an element of a shape", "a tensor's ndim"}
    | {f"the value of {name}()" for name in ("len", "int", "float", "bool", "dim", "item", "numel", "nelement")}
)
_NUMBER = ("an int", "a float", "a bool", "annotated as int", "annotated as float", "annotated as bool")
_KINDS = {ast.List: "list", ast.Tuple: "tuple", ast.Dict: "dict", ast.Set: "set", ast.JoinedStr: "str"} | {
    ast.ListComp: "list",
    ast.DictComp: "dict",
    ast.GeneratorExp: "generator",
    ast.Lambda: "function",
}


@detector("source/saved-non-tensor")
def saved_non_tensor(function: FunctionClass) -> Iterator[Sighting]:
    """save_for_backward is given something that is no tensor."""
    inputs = Inputs(function)
    for scope in inputs.scopes:
        for call in scope.calls:
            if call.tail != "save_for_backward" or dotted(call.receiver) != inputs.context(scope):
                continue
            for argument in _given(call):
                what = _no_tensor(argument, call, inputs)
                if what:
                    text = function.script.source(argument)
                    yield function.script.seen(
                        call.node,
                        f"save_for_backward takes only tensors and None, and {text} is {what}: torch raises TypeError "
                        "as soon as an input needs a gradient",
                    )


def _given(call: Call) -> list[ast.expr]:
    """The arguments of CALL; of *saved what that was written as."""
    found: list[ast.expr] = []
    for argument in call.node.args:
        match argument:
            case ast.Starred(value=ast.List(elts=parts) | ast.Tuple(elts=parts)):
                found += parts
            case ast.Starred(value=ast.Name(id=name)):
                ways = reaching(call.scope.stores.get(name, []), call)
                whole = len(ways) == 1 and ways[0].how == "assign" and ways[0].index is None
                value = ways[0].value if whole else None
                found += value.elts if isinstance(value, ast.List | ast.Tuple) else []
                found += [
                    each.node.args[0]
                    for each in call.scope.calls
                    if each.tail == "append" and dotted(each.receiver) == name and each.node.args and whole
                ]
            case ast.expr():
                found.append(argument)
    return found


def _no_tensor(node: ast.expr, at: Call, inputs: Inputs) -> str:
    """What NODE is, where it surely is no tensor: "an int"; else ""."""
    found = inputs.at(node, at.scope, at)
    if found is not None:
        if found.arg in starred(inputs.function.forward):
            return "the tuple of all that follows"
        return "" if is_asked(found.arg, at) else _of_input(found, inputs)
    return _plain(node, at.scope, at, inputs)


def _of_input(argument: ast.arg, inputs: Inputs) -> str:
    if inputs.has_gradient(argument):
        return ""
    return _annotated(argument, inputs) or _default(argument, inputs) or _applied(argument, inputs)


def is_asked(name: str, at: Spot) -> bool:
    """Whether a test around AT asks what NAME is."""
    tests = (block.owner.test for block in at.path if isinstance(block.owner, ast.If))
    return any(isinstance(each, ast.Name) and each.id == name for test in tests for each in ast.walk(test))


def _annotated(argument: ast.arg, inputs: Inputs) -> str:
    note = argument.annotation
    whole = note.value if isinstance(note, ast.Subscript) else note
    name = inputs.script.names.resolve(whole, inputs.function.scope)
    own = inputs.script.names.definition(dotted(whole), inputs.function.scope) if whole is not None else None
    if (
        own is not None
        and own.kind == "class"
        and not any(base.startswith("torch") or not base for base in inputs.script.trace.bases(own))
    ):
        return f"annotated as {own.name}"
    return f"annotated as {inputs.script.source(note)}" if note is not None and name in _PLAIN else ""


def _default(argument: ast.arg, inputs: Inputs) -> str:
    """What a default that is a number or a string makes of an input without annotation."""
    kind = _literal(_default_of(argument, inputs.function.forward)) if argument.annotation is None else ""
    return f"{kind} by default" if kind else ""


def _default_of(argument: ast.AST, function: Scope) -> ast.expr | None:
    node = function.node
    if not isinstance(node, ast.FunctionDef):
        return None
    plain = [*node.args.posonlyargs, *node.args.args]
    pairs = [*zip(reversed(plain), reversed(node.args.defaults), strict=False)]
    pairs += [(a, d) for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if d is not None]
    return next((default for each, default in pairs if each is argument), None)


def _applied(argument: ast.arg, inputs: Inputs) -> str:
    """What a literal given to apply makes of it."""
    place = next(i for i, each in enumerate(inputs.function.inputs) if each is argument)
    if argument.annotation is not None or inputs.function.is_open:
        return ""
    for call in applications(inputs.function):
        given = call.node.args[place : place + 1]
        if not given or any(isinstance(each, ast.Starred) for each in call.node.args):
            continue
        kind = _known(given[0], call.scope, inputs)
        if kind:
            return f"{kind} in line {call.node.lineno}"
    return ""


def _known(node: ast.expr, scope: Scope, inputs: Inputs) -> str:
    """What NODE is by all of its origins: literals, and parameters that are annotated as numbers."""
    kinds = []
    for origin in inputs.script.trace.origins(node, scope):
        if origin.is_parameter:
            kinds.append(_of_parameter(origin, inputs))
        else:
            kinds.append(_literal(origin.node) if origin.node is not None else "")
    return kinds[0] if kinds and all(kinds) else ""


def _of_parameter(origin: Origin, inputs: Inputs) -> str:
    name = inputs.script.names.resolve(origin.node, origin.scope)
    if name in _PLAIN:
        return f"annotated as {name.removeprefix('builtins.')}"
    kind = _literal(_default_of(origin.store.node, origin.scope)) if origin.node is None and origin.store else ""
    return f"{kind} by default" if kind else ""


def _literal(node: ast.expr | None) -> str:
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _literal(operand)
        case ast.Constant(value=None):
            return ""
        case ast.Constant(value=value):
            kind = type(value).__name__
            return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
    kind = _KINDS.get(type(node), "")
    return f"a {kind}" if kind else ""


def _plain(node: ast.expr, scope: Scope, at: Spot, inputs: Inputs, deep: int = 0) -> str:
    match node:
        case ast.Name(id=name) if deep < 4:
            return _named(name, scope, at, inputs, deep)
        case ast.Call() if (asked := _called(node, scope, inputs)) or _is_number(node, scope, at, inputs, deep):
            return asked or "a number"
        case ast.BinOp() | ast.UnaryOp() if _is_number(node, scope, at, inputs, deep):
            return _literal(node) or "a number"
        case ast.IfExp(body=one, orelse=other):
            kinds = [_plain(each, scope, at, inputs, deep) for each in (one, other)]
            return kinds[0] if all(kinds) else ""
        case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
            return "a bool"
    return _read(node) or _literal(node)


def _called(node: ast.Call, scope: Scope, inputs: Inputs) -> str:
    name = inputs.script.names.resolve(node.func, scope)
    kind = "a numpy array" if name.startswith("numpy.") else ""
    match node.func:
        case ast.Name(id=word) if word in _MAKERS and not inputs.script.names.stores(word, scope):
            kind = f"the value of {word}()"
        case ast.Attribute(attr="size" | "stride") if len(node.args) == 1:
            kind = "an element of a shape"
        case ast.Attribute(attr=attr) if attr in VALUE_METHODS:
            kind = f"the value of {attr}()"
        case ast.Attribute(attr=attr) if attr in SPLITS and (not name or name.startswith("torch.")):
            kind = f"the tuple that {attr}() gives"
        case ast.Attribute(attr="numpy") if not name:
            kind = "a numpy array"
    return kind or ("" if name else _noted(node, scope, inputs))


def _noted(node: ast.Call, scope: Scope, inputs: Inputs) -> str:
    """What the function of this file that NODE calls says it returns."""
    helper = inputs.script.trace.definition(node.func, scope)
    noted = helper.node.returns if helper is not None and isinstance(helper.node, ast.FunctionDef) else None
    noted_name = inputs.script.names.resolve(noted, scope) if noted is not None else ""
    return f"annotated as {noted_name.removeprefix('builtins.')}" if noted_name in _PLAIN else ""


def _read(node: ast.expr) -> str:
    match node:
        case ast.Attribute(attr=attr) if attr in METADATA:
            return f"a tensor's {attr}"
        case ast.Subscript(value=ast.Attribute(attr="needs_input_grad")) | ast.UnaryOp(op=ast.Not()):
            return "a bool"
        case ast.Attribute(attr="needs_input_grad"):
            return "a tuple of bools"
        case ast.Subscript(value=ast.Attribute(attr="shape"), slice=ast.Slice()):
            return "a part of a shape"
        case ast.Subscript(value=ast.Attribute(attr="shape") | ast.Call(func=ast.Attribute(attr="size"), args=[])):
            return "an element of a shape"
    return ""


def _is_number(node: ast.expr, scope: Scope, at: Spot, inputs: Inputs, deep: int) -> bool:
    """Whether NODE surely computes a plain number of plain numbers: x.size(-1) // 4, 1 / math.sqrt(d)."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float)
        case ast.UnaryOp(operand=operand):
            parts = [operand]
        case ast.BinOp(left=left, right=right):
            parts = [left, right]
        case ast.Call(func=func, args=arguments):
            if inputs.script.names.resolve(func, scope).startswith("math."):
                return True
            word = dotted(func)
            is_same = word in ("min", "max", "abs", "round") and not inputs.script.names.stores(word, scope)
            if not is_same or not arguments:
                return _called(node, scope, inputs) in _NUMBERS
            parts = arguments
        case ast.Name() if (found := inputs.at(node, scope, at)) is not None:
            return _of_input(found, inputs).startswith(_NUMBER)
        case _:
            return _plain(node, scope, at, inputs, deep) in _NUMBERS
    return all(_is_number(each, scope, at, inputs, deep) for each in parts)


def _named(name: str, scope: Scope, at: Spot, inputs: Inputs, deep: int) -> str:
    if name not in scope.stores and scope.parent is not None:
        return _constant(name, scope, inputs)
    ways = reaching(scope.stores.get(name, []), at)
    kinds = [
        _plain(store.value, scope, store, inputs, deep + 1)
        for store in ways
        if store.how == "assign" and store.value is not None and not isinstance(store.value, ast.Tuple | ast.List)
    ]
    whole = [store for store in ways if store.index is None or _is_sizes(store.value)]
    return kinds[0] if kinds and all(kinds) and len(kinds) == len(ways) == len(whole) else ""


def _constant(name: str, scope: Scope, inputs: Inputs) -> str:
    """What a literal that the module's own level gives NAME is."""
    stores = inputs.script.names.stores(name, scope)
    kinds = [_literal(each.value) if each.how == "assign" and each.value is not None else "" for each in stores]
    return kinds[0] if len(kinds) == 1 and stores[0].index is None else ""


def _is_sizes(node: ast.expr | None) -> bool:
    """Whether NODE is what sizes are unpacked from: x.shape, x.size(), x.shape[-2:]."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        return _is_sizes(node.value)
    match node:
        case ast.Attribute(attr="shape") | ast.Call(func=ast.Attribute(attr="size"), args=[]):
            return True
    return False
