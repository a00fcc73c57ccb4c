"""What the source alone shows about copies that are used before they have ended.

Both rules look at one function, from the copy to the first use. Whatever stands between may wait for the device, unless
it is known that it does not: then nothing is said.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeVar

from msgspec import Struct

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope
from torchtriage.examine.source.nodes import names_in, nodes_in
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.families import JOINS, RESHAPES, VALUE_METHODS
from torchtriage.examine.source.torch_api.operators import names
from torchtriage.examine.source.torch_api.symbols import symbols

N = TypeVar("N", bound=ast.AST)
_WAITS = names(home="method", trait="sync") | names(home="torch", trait="sync") | symbols().waits
_METHODS = names(home="method") - _WAITS - {"to", "cuda", "cpu"}
_FUNCTIONS = names(home="torch") | names(home="functional")
_COMPUTING = names(home="method", memory="fresh") | {"item", "tolist"}
"""Methods that read a tensor, and do not only show its memory."""
_QUEUED = frozenset({
    "append", "backward", "extend", "items", "keys", "parameters", "record_stream", "state_dict", "values", "zero_grad",
})  # fmt: skip
"""Methods of lists, modules and optimizers, none of which waits for a device."""
_PLAIN = frozenset(f"builtins.{name}" for name in ("len", "range", "isinstance", "enumerate", "zip", "dict", "tuple"))
_ASKING = frozenset({"torch.cuda.current_stream", "torch.xpu.current_stream", "torch.accelerator.current_stream"})
_READERS = frozenset(
    f"builtins.{name}"
    for name in ("float", "int", "bool", "print", "str", "bytes", "list", "tuple", "sum", "max", "min", "sorted")
)
_SHOWING = frozenset({"asarray", "asanyarray", "frombuffer", "reshape", "squeeze", "transpose", "ravel", "view"})
"""What NumPy has to show the same memory again."""
_VIEWS = RESHAPES | {"numpy", "detach"}
_CONTAINERS = (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp)
_SIDE_STREAMS = tuple(f"torch.{kind}Stream" for kind in ("", "cuda.", "xpu."))
_WITHIN_STREAM = frozenset({"torch.cuda.stream", "torch.xpu.stream"})


class _Use(Struct, frozen=True):
    """NODE reads what a copy has brought, or holds it under a NAME: as it is, or IN_CONTAINER."""

    node: ast.AST
    name: str = ""
    in_container: bool = False


@detector("source/non-blocking-race")
def non_blocking_race(script: Script) -> Iterator[Sighting]:
    """The host reads the result of a non-blocking copy, and nothing waits for the copy in between."""
    for copy in script.calls("to"):
        if not (_is_non_blocking(copy.node) and _is_to_host(script, copy)):
            continue
        use = _first_use(script, copy.scope, copy.node)
        if use is not None and use.name:
            use = _next_use(script, copy, use)
        if use is not None and not use.name and _nothing_waits(script, copy.scope, copy.order, use.node):
            yield script.seen(
                use.node, f"nothing waits for the copy of line {copy.node.lineno}, which is only queued by then"
            )


@detector("source/stream-not-waited")
def stream_not_waited(script: Script) -> Iterator[Sighting]:
    """A copy of another stream is used, and nothing in the function waits for that stream."""
    for scope in script.facts.scopes if b"Stream" in script.text.data else ():
        for block in _own(scope, ast.With):
            stream = _stream_of(script, scope, block)
            if stream and _is_left_alone(script, stream) and (use := _use_after(script, scope, block)) is not None:
                yield script.seen(
                    use, f"the copies of line {block.lineno} are in the stream `{stream}`, for which nothing waits"
                )


def _is_non_blocking(call: ast.Call) -> bool:
    return any(
        each.arg == "non_blocking" and isinstance(each.value, ast.Constant) and each.value.value is True
        for each in call.keywords
    )


def _is_to_host(script: Script, copy: Call) -> bool:
    goal = copy.argument("device", 0)
    if isinstance(goal, ast.Call) and script.names.resolve(goal.func, copy.scope) == "torch.device" and goal.args:
        goal = goal.args[0]
    return isinstance(goal, ast.Constant) and goal.value == "cpu"


def _first_use(script: Script, scope: Scope, node: ast.AST, *, in_container: bool = False) -> _Use | None:
    """What becomes of NODE, which is a tensor on the host, or holds some: None where that is not known."""
    parents, is_array = _parents(scope), False
    while (parent := parents.get(id(node))) is not None:
        above = parents.get(id(parent))
        if isinstance(parent, ast.Attribute) and isinstance(above, ast.Call) and not in_container:
            if parent.attr not in (_SHOWING if is_array else _VIEWS):
                return _Use(above) if is_array or parent.attr in _COMPUTING else None
            is_array, node = is_array or parent.attr == "numpy", above
        elif isinstance(parent, ast.Subscript) and parent.value is node and not in_container:
            node = parent
        elif isinstance(parent, _CONTAINERS) and not is_array:
            node, in_container = parent, True
        else:
            return _last_use(script, scope, parent, node, in_container=in_container, is_array=is_array)
    return None


def _last_use(
    script: Script, scope: Scope, parent: ast.AST, node: ast.AST, *, in_container: bool, is_array: bool
) -> _Use | None:
    """What PARENT does with NODE: reads it, or gives it a name."""
    match parent:
        case ast.BinOp() | ast.Compare() | ast.FormattedValue() if not in_container:
            return _Use(parent)
        case ast.Call() if node in parent.args and _reads(script, scope, parent, in_container=in_container):
            return _Use(parent)
        case ast.Assign(targets=[ast.Name(id=name)]) if not is_array:
            return _Use(parent, name, in_container)
    return None


def _reads(script: Script, scope: Scope, call: ast.Call, *, in_container: bool) -> bool:
    """Whether CALL reads the tensor on the host that it is given, or the tensors in a container."""
    name = script.names.resolve(call.func, scope)
    tail = name.rpartition(".")[2]
    if in_container:
        return name == "torch.save" or (name.startswith("torch.") and tail in JOINS)
    return name in _READERS or name == "torch.save" or (name.startswith("numpy.") and tail not in _SHOWING)


def _next_use(script: Script, copy: Call, held: _Use) -> _Use | None:
    """The first use of what COPY has brought under a name; None where it is given another value before."""
    after = _end(held.node)
    known = [each for each in _own(copy.scope, ast.Name) if each.id == held.name and _begin(each) > after]
    first = min(known, key=_begin, default=None)
    if first is None:
        return None
    return _first_use(script, copy.scope, first, in_container=held.in_container)


def _nothing_waits(script: Script, scope: Scope, begin: int, use: ast.AST) -> bool:
    """Whether no call after the one of number BEGIN, and before USE has read its operands, may wait for a device."""
    inside = nodes_in(use)
    last = max((each.order for each in scope.calls if id(each.node) in inside), default=begin)
    last = max([last, *(each.order for each in scope.calls if _end(each.node) <= _begin(use))])
    between = (each for each in scope.calls if begin < each.order <= last and each.node is not use)
    return all(_is_queued(script, each) or id(each.node) in inside & _receivers(use) for each in between)


def _receivers(use: ast.AST) -> frozenset[int]:
    """The calls that USE is made on: x.view(-1).numpy() in x.view(-1).numpy().mean()."""
    return frozenset(
        id(each)
        for each in ast.walk(use)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == "numpy"
    )


def _is_queued(script: Script, call: Call) -> bool:
    """Whether CALL surely waits for no device."""
    name = script.name(call)
    if name.startswith("torch."):
        return name in _ASKING or (call.tail in _FUNCTIONS and call.tail not in _WAITS)
    if call.tail in ("to", "cuda") and _is_non_blocking(call.node):
        return True
    is_method = call.receiver is not None and not name
    return name in _PLAIN or (is_method and call.tail in _METHODS | _QUEUED)


def _stream_of(script: Script, scope: Scope, block: ast.With) -> str:
    """The name of the stream in which BLOCK works, where the file makes it; else ""."""
    if len(block.items) != 1:
        return ""
    context = block.items[0].context_expr
    if isinstance(context, ast.Call) and script.names.resolve(context.func, scope) in _WITHIN_STREAM and context.args:
        context = context.args[0]
    origins = [each.node for each in script.trace.origins(context, scope)] if isinstance(context, ast.Name) else []
    made = [each for each in origins if isinstance(each, ast.Call)]
    is_made = origins and len(made) == len(origins)
    is_stream = all(script.names.resolve(each.func, scope) in _SIDE_STREAMS for each in made)
    return context.id if isinstance(context, ast.Name) and is_made and is_stream else ""


def _is_left_alone(script: Script, stream: str) -> bool:
    """Whether the file asks for STREAM at the head of `with` blocks and nowhere else: nothing can wait for it."""
    heads = [item.context_expr for each in ast.walk(script.tree) if isinstance(each, ast.With) for item in each.items]
    inside = frozenset[int]().union(*map(nodes_in, heads))
    every = (each for each in ast.walk(script.tree) if isinstance(each, ast.Name) and each.id == stream)
    return all(id(each) in inside for each in every if isinstance(each.ctx, ast.Load))


def _use_after(script: Script, scope: Scope, block: ast.With) -> ast.AST | None:
    """The call or operation behind BLOCK that computes with a copy of it first; None where something may wait before.

    Nor is anything said of a block that does more than to copy and compute.
    """
    inside = nodes_in(block)
    own = [each for each in scope.calls if id(each.node) in inside and each.node is not block.items[0].context_expr]
    copied = _copied(block)
    if not own or not all(_is_queued(script, each) for each in own):
        return None
    known = [each for each in _own(scope, ast.Name) if each.id in copied and _begin(each) > _end(block)]
    begin = max(each.order for each in own)
    for name in sorted(known, key=_begin):
        parents = _parents(scope)
        parent = parents.get(id(name))
        above = parents.get(id(parent)) if parent is not None else None
        if not isinstance(name.ctx, ast.Load):
            return None
        if isinstance(parent, ast.Attribute) and parent.attr == "record_stream":
            continue
        use = above if isinstance(parent, ast.Attribute) and isinstance(above, ast.Call) else parent
        is_use = use is not None and _computes(script, scope, use)
        return use if use is not None and is_use and _nothing_waits(script, scope, begin, use) else None
    return None


def _copied(block: ast.With) -> set[str]:
    """The names that BLOCK gives to non-blocking copies, and to tensors that it computes of them."""
    copied = set[str]()
    for statement in block.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute(attr=attr)) as value):
                is_tensor = attr not in VALUE_METHODS and names_in(value) & copied
                copied |= {name} if _is_non_blocking(value) or is_tensor else set()
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp() as value):
                copied |= {name} if names_in(value) & copied else set()
    return copied


def _computes(script: Script, scope: Scope, use: ast.AST) -> bool:
    """Whether USE computes on the device with what it is given: an operation of torch, or a model."""
    if isinstance(use, ast.Call):
        name = script.names.resolve(use.func, scope)
        is_method = isinstance(use.func, ast.Attribute) and not name and use.func.attr in _METHODS - RESHAPES
        is_of_torch = name.startswith("torch.") and name.rpartition(".")[2] in _FUNCTIONS
        return is_method or is_of_torch or script.roles.plays(use.func, scope, "model")
    return isinstance(use, ast.BinOp)


def _own(scope: Scope, kind: type[N]) -> list[N]:
    """The nodes of KIND in the code of SCOPE, but for those of functions and classes in it."""
    found: list[N] = []
    waiting = list(ast.iter_child_nodes(scope.node))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        found += [node] if isinstance(node, kind) else []
        waiting += ast.iter_child_nodes(node)
    return found


def _parents(scope: Scope) -> dict[int, ast.AST]:
    return {id(child): node for node in ast.walk(scope.node) for child in ast.iter_child_nodes(node)}


def _begin(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _end(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0)
