"""What forward keeps for backward, and what it does to its inputs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.classes import FunctionClass
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.flow import Spot, reaching
from torchtriage.examine.source.held import Inputs, edits, shared
from torchtriage.specialists.custom_autograd_functions.rules.applied import applications

# Attributes of ctx that the engine itself reads.
_ENGINES = frozenset({"to_save", "dirty_tensors", "non_differentiable", "saved_for_forward", "needs_input_grad"})

_PLAIN = frozenset(
    {"builtins.int", "builtins.float", "builtins.bool", "builtins.str", "builtins.tuple", "builtins.list"}
    | {"builtins.dict", "torch.Size", "torch.dtype", "torch.device", "typing.Tuple", "typing.List", "typing.Dict"}
    | {"typing.Sequence", "typing.Callable", "collections.abc.Sequence", "collections.abc.Callable"}
)
_MAKERS = frozenset({"len", "int", "float", "bool", "str", "tuple", "list", "dict", "range"})
_ASKED = frozenset({"size", "dim", "item", "numel", "tolist", "stride", "nelement", "element_size"})
# What _plain says of numbers.
_NUMBERS = frozenset(
    {"a number", "an int", "a float", "a bool", "an element of a shape", "a tensor's ndim"}
    | {f"the value of {name}()" for name in ("len", "int", "float", "bool", "dim", "item", "numel", "nelement")}
)
_READ = frozenset({"shape", "dtype", "device", "ndim", "requires_grad", "is_cuda", "layout"})
_KINDS = {ast.List: "list", ast.Tuple: "tuple", ast.Dict: "dict", ast.Set: "set", ast.JoinedStr: "str"}


@detector("source/saved-non-tensor")
def saved_non_tensor(function: FunctionClass) -> Iterator[Sighting]:
    """save_for_backward is given something that is no tensor."""
    inputs = Inputs(function)
    for scope in inputs.scopes:
        for call in scope.calls:
            if call.tail != "save_for_backward" or dotted(call.receiver) != inputs.context(scope):
                continue
            for argument in call.node.args:
                what = _no_tensor(argument, call, inputs)
                if what:
                    text = function.script.source(argument)
                    yield function.script.seen(
                        call.node,
                        f"save_for_backward takes only tensors and None, and {text} is {what}: torch raises TypeError "
                        "as soon as an input needs a gradient",
                    )


def _no_tensor(node: ast.expr, at: Call, inputs: Inputs) -> str:
    """What NODE is, where it surely is no tensor: "an int"; else ""."""
    found = inputs.at(node, at.scope, at)
    if found is not None:
        if _is_asked(found.arg, at) or inputs.has_gradient(found):
            return ""
        return _annotated(found, inputs) or _default(found, inputs) or _applied(found, inputs)
    return _plain(node, at.scope, at, inputs)


def _is_asked(name: str, at: Spot) -> bool:
    """Whether a test around AT asks what NAME is."""
    tests = (block.owner.test for block in at.path if isinstance(block.owner, ast.If))
    return any(isinstance(each, ast.Name) and each.id == name for test in tests for each in ast.walk(test))


def _annotated(argument: ast.arg, inputs: Inputs) -> str:
    note = argument.annotation
    whole = note.value if isinstance(note, ast.Subscript) else note
    name = inputs.script.names.resolve(whole, inputs.function.scope)
    return f"annotated as {inputs.script.source(note)}" if note is not None and name in _PLAIN else ""


def _default(argument: ast.arg, inputs: Inputs) -> str:
    """What a default that is a number or a string makes of an input without annotation."""
    node = inputs.function.forward.node
    if argument.annotation is not None or not isinstance(node, ast.FunctionDef):
        return ""
    defaults = node.args.defaults
    plain = [*node.args.posonlyargs, *node.args.args]
    given = next((d for a, d in zip(reversed(plain), reversed(defaults), strict=False) if a is argument), None)
    kind = _literal(given) if given is not None else ""
    return f"{kind} by default" if kind else ""


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
            name = inputs.script.names.resolve(origin.node, origin.scope)
            kinds.append(f"annotated as {name.removeprefix('builtins.')}" if name in _PLAIN else "")
        else:
            kinds.append(_literal(origin.node) if origin.node is not None else "")
    return kinds[0] if kinds and all(kinds) else ""


def _literal(node: ast.expr) -> str:
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
    match node.func:
        case ast.Name(id=name) if name in _MAKERS and not inputs.script.names.stores(name, scope):
            return f"the value of {name}()"
        case ast.Attribute(attr="size" | "stride") if len(node.args) == 1:
            return "an element of a shape"
        case ast.Attribute(attr=attr) if attr in _ASKED:
            return f"the value of {attr}()"
    return ""


def _read(node: ast.expr) -> str:
    match node:
        case ast.Attribute(attr=attr) if attr in _READ:
            return f"a tensor's {attr}"
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
    """Whether NODE is what sizes are unpacked from: x.shape, x.size()."""
    match node:
        case ast.Attribute(attr="shape") | ast.Call(func=ast.Attribute(attr="size"), args=[]):
            return True
    return False


@detector("source/tensor-on-ctx")
def tensor_on_ctx(function: FunctionClass) -> Iterator[Sighting]:
    """An input or output tensor of forward is kept as an attribute of ctx."""
    inputs = Inputs(function)
    released = {name.partition(".")[2] for name in function.backward.stores}
    for scope in inputs.scopes:
        context = inputs.context(scope)
        for name, stores in scope.stores.items():
            root, _, attribute = name.partition(".")
            if not context or root != context or not attribute.isidentifier():
                continue
            if attribute in released or attribute in _ENGINES:
                continue
            for store in stores:
                yield from _kept(store, name, inputs)


def _kept(store: Store, name: str, inputs: Inputs) -> Iterator[Sighting]:
    if store.how != "assign" or store.value is None:
        return
    parts = store.value.elts if isinstance(store.value, ast.Tuple | ast.List) else [store.value]
    if store.index is not None:  # ctx.x, ctx.scale = x, scale
        parts = parts[store.index : store.index + 1] if parts != [store.value] else []
    if isinstance(store.value, ast.Dict):
        parts = store.value.values
    for part in parts:
        found = inputs.at(part, store.scope, store)
        if found is not None and _is_kept_tensor(found, inputs) and not _is_asked(found.arg, store):
            yield inputs.script.seen(
                store.node,
                f"{name} keeps the input {found.arg} itself: unlike what save_for_backward keeps, it stays in memory "
                "after backward, and a change of it in place gives a wrong gradient without an error",
            )
            return
        if found is None and _is_returned(store, name, inputs):
            yield inputs.script.seen(
                store.node,
                f"{name} keeps the output, which itself keeps ctx: the memory of this circle waits for Python's "
                "garbage collector, step after step",
            )
            return
        if found is None and inputs.is_output(part, store.scope, store):
            yield inputs.script.seen(
                store.node,
                f"{name} keeps the output {inputs.script.source(part)}, which itself keeps ctx: the memory of this "
                "circle waits for Python's garbage collector, step after step",
            )
            return


def _is_returned(store: Store, name: str, inputs: Inputs) -> bool:
    """Whether forward makes a tensor, keeps it on ctx and returns it from there: ctx.y = x.exp(); return ctx.y."""
    returned = any(dotted(each.node.value) == name for each in store.scope.returns)
    return returned and len(store.scope.stores[name]) == 1 and inputs.makes_tensor(store)


def _is_kept_tensor(argument: ast.arg, inputs: Inputs) -> bool:
    """Whether ARGUMENT surely is a tensor that is kept on ctx alone.

    An annotation may be wrong: a number annotated as Tensor has no gradient. Saved as well, the version is checked.
    """
    saved = (call for scope in inputs.scopes for call in scope.calls if call.tail == "save_for_backward")
    if any(inputs.at(each, call.scope, call) is argument for call in saved for each in call.node.args):
        return False
    return inputs.is_used(argument) or inputs.has_gradient(argument)


@detector("source/dirty-not-marked")
def dirty_not_marked(function: FunctionClass) -> Iterator[Sighting]:
    """The forward method changes an input in place and does not mark it dirty."""
    inputs = Inputs(function)
    if any(call.tail == "mark_dirty" for scope in inputs.scopes for call in scope.calls) or function.is_open:
        return
    told: set[str] = set()
    for edited in edits(function.script, function.forward):
        given = shared(edited.target, function.forward, edited.by)
        found = next((each for each in function.inputs if given is not None and each is given.node), None)
        if found is None or found.arg in told or not (edited.is_sure or inputs.is_tensor(found)):
            continue
        if inputs.has_gradient(found):
            told.add(found.arg)
            yield function.script.seen(
                edited.node,
                f"forward changes its input {found.arg} here and never calls ctx.mark_dirty({found.arg}): whoever else "
                "uses it gets the gradient of the old values",
            )
