"""What the source alone shows about loops that do in pieces what one operation does at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Block, Call, Scope, Store, dotted
from torchtriage.examine.source.flow import loops
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.tensors import Tensors, is_batches

_JOINS = ("torch.cat", "torch.concat", "torch.concatenate", "torch.vstack", "torch.hstack", "torch.stack")
_FEW = 16
_MANY = ("dataset", "data", "batches", "files", "paths", "images", "samples", "chunks", "sequences", "episodes")
# Words of what is read again in every turn, elsewhere: caches of attention, text that is being generated.
_CACHES = ("cache", "past", "key", "value", "memory", "queue", "ids", "tokens", "generated", "context")


@detector("source/grown-by-cat")
def grown_by_cat(script: Script) -> Iterator[Sighting]:
    """A tensor grows by torch.cat in every turn of a loop, so that all of it is copied every time."""
    for call in script.named(*_JOINS):
        name, around = _grown(call), loops(call.path)
        if not name or not around or any(word in name.lower() for word in _CACHES):
            continue
        ring = around[0]
        if _is_long(script, ring, call.scope) and _is_collected(call, name, ring):
            yield script.seen(
                call.node,
                f"each turn of line {getattr(ring.owner, 'lineno', 0)} copies all of {name} to add one part: n turns "
                "copy n²/2 parts, where a list and one cat after the loop copy n",
            )


def _grown(call: Call) -> str:
    """The name that is given itself and something more; else ""."""
    match call.statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            pass
        case _:
            return ""
    if isinstance(value, ast.IfExp):
        value = value.body if value.body is call.node else value.orelse
    while value is not call.node and isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        value = value.func.value  # torch.cat([out, part]).cpu()
    given = call.argument("tensors", 0)
    if value is not call.node or not isinstance(given, ast.List | ast.Tuple) or len(given.elts) < 2:
        return ""
    ends = {dotted(given.elts[0]), dotted(given.elts[-1])}
    return name if name in ends else ""


def _is_long(script: Script, ring: Block, scope: Scope) -> bool:
    """Whether the loop may turn many times: over batches or a range that is not short."""
    owner = ring.owner
    if isinstance(owner, ast.While):
        return True
    if not isinstance(owner, ast.For):
        return False
    if is_batches(script, owner.iter, scope):
        return True
    match owner.iter:
        case ast.Call(func=ast.Name(id="range" | "trange"), args=[last] | [_, last] | [_, last, _]):
            counts = [origin.node.value for origin in script.trace.origins(last, scope)
                      if isinstance(origin.node, ast.Constant) and isinstance(origin.node.value, int)]  # fmt: skip
            text = script.source(last).lower()
            return "layer" not in text and "len(self" not in text and (not counts or max(counts) > _FEW)
    return dotted(owner.iter).rpartition(".")[2].lower().endswith(_MANY)


def _is_collected(call: Call, name: str, ring: Block) -> bool:
    """Whether the loop only adds to NAME: it neither reads it otherwise nor begins it anew."""
    scope = call.scope
    if not any(ring not in store.path for store in scope.stores.get(name, ())):
        return False
    for store in scope.stores[name]:
        if ring in store.path and store.node is not call.statement and not _is_first(store, call):
            return False
    own = {id(node) for node in ast.walk(call.statement)}
    tests = {id(node) for block in call.path if isinstance(block.owner, ast.If) for node in ast.walk(block.owner.test)}
    return not any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        and id(node) not in own and id(node) not in tests
        for node in ast.walk(ring.owner)
    )  # fmt: skip


def _is_first(store: Store, call: Call) -> bool:
    """Whether STORE stands in the other arm: if i == 0: out = part, else: out = torch.cat([out, part])."""
    here, there = store.block, call.block
    return here.kind == "arm" and there.kind == "arm" and here.owner is there.owner and here is not there


_POINTWISE = frozenset(
    {
        "exp",
        "log",
        "sqrt",
        "abs",
        "sin",
        "cos",
        "tanh",
        "sigmoid",
        "relu",
        "pow",
        "max",
        "min",
        "clamp",
        "log1p",
        "item",
    }
    | {"float", "square", "rsqrt", "maximum", "minimum", "fabs"}
)


@detector("source/python-loop-over-tensor")
def python_loop_over_tensor(script: Script) -> Iterator[Sighting]:
    """A Python loop computes a tensor element by element."""
    if not any(tail in script.facts.calls for tail in ("range", "size", "len")):
        return
    tensors = Tensors(script)
    for scope in script.facts.scopes:
        for stores in scope.stores.values():
            for store in stores:
                if store.how == "element" and isinstance(store.node, ast.For) and _is_outermost(store):
                    yield from _elementwise(script, tensors, store)


def _is_outermost(store: Store) -> bool:
    """Nested loops over the same elements are one finding, at the outer one."""
    around = loops(store.path)
    outer = around[1].owner if len(around) > 1 else None
    return not (isinstance(outer, ast.For) and len(outer.body) == 1 and _is_counted(outer))


def _is_counted(owner: ast.For) -> bool:
    return isinstance(owner.target, ast.Name) and _length(owner.iter) is not None


def _length(node: ast.expr) -> ast.expr | None:
    """The tensor whose length a range has: range(x.size(0)), range(x.shape[1]), range(len(x)), range(x.numel())."""
    match node:
        case ast.Call(func=ast.Name(id="range"), args=[length]):
            pass
        case _:
            return None
    match length:
        case ast.Call(func=ast.Attribute(value=ast.Name() as of, attr="size" | "numel")):
            return of
        case ast.Subscript(value=ast.Attribute(value=ast.Name() as of, attr="shape")):
            return of
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name() as of]):
            return of
    return None


def _elementwise(script: Script, tensors: Tensors, store: Store) -> Iterator[Sighting]:
    owner, counters, lengths = store.node, [], []
    body: list[ast.stmt] = [owner] if isinstance(owner, ast.For) else []
    while len(body) == 1 and isinstance(inner := body[0], ast.For) and _is_counted(inner):
        counters.append(dotted(inner.target))
        lengths.append(_length(inner.iter))
        body = inner.body
    if not counters or len(body) != 1:
        return
    target, value = _written(body[0])
    if target is None or value is None or not _is_pointwise(script, value, counters, store.scope):
        return
    read = _subscripts(value)
    if not read or not _may_run_at_once(target, read, counters):
        return
    known = [each for each in (*read, *lengths) if each is not None]
    if any(tensors.is_tensor(each, store, store.scope) or _is_sized(each, owner) for each in known):
        yield script.seen(
            owner,
            f"line {body[0].lineno} runs once for each element, with a kernel or a copy to Python each time; "
            "one operation over the whole tensor does the same",
        )


def _is_sized(node: ast.expr, owner: ast.AST) -> bool:
    """x.size(0): NumPy's size is no method."""
    return isinstance(node, ast.Name) and any(
        isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in ("size", "numel")
        and dotted(each.func.value) == node.id
        for each in ast.walk(owner)
    )  # fmt: skip


def _written(statement: ast.stmt) -> tuple[ast.expr | None, ast.expr | None]:
    match statement:
        case ast.Assign(targets=[ast.Subscript() as target], value=value):
            return target, value
        case ast.AugAssign(target=ast.Name() | ast.Subscript() as target, op=ast.Add() | ast.Mult(), value=value):
            return target, value
    return None, None


def _subscripts(value: ast.expr) -> list[ast.expr]:
    return [node.value for node in ast.walk(value) if isinstance(node, ast.Subscript)]


def _may_run_at_once(target: ast.expr, read: list[ast.expr], counters: list[str]) -> bool:
    """Whether no turn needs what another one wrote."""
    if isinstance(target, ast.Name):
        return all(dotted(each) != target.id for each in read)
    if not isinstance(target, ast.Subscript) or not dotted(target.value):
        return False
    places = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    return {dotted(each) for each in places} >= set(counters) and all(
        dotted(each) != dotted(target.value) for each in read
    )


def _is_pointwise(script: Script, value: ast.expr, counters: list[str], scope: Scope) -> bool:
    """Whether VALUE is arithmetic on elements that the counters choose."""
    match value:
        case ast.Constant() | ast.Name():
            return True
        case ast.BinOp(left=one, right=other):
            pair = (one, other)
            return all(_is_pointwise(script, each, counters, scope) for each in pair) and _is_arithmetic(value.op)
        case ast.UnaryOp(operand=operand):
            return _is_pointwise(script, operand, counters, scope)
        case ast.Subscript(value=of, slice=place):
            places = place.elts if isinstance(place, ast.Tuple) else [place]
            named = all(dotted(each) in counters or isinstance(each, ast.Slice) for each in places)
            return bool(dotted(of)) and named
        case ast.Call(func=ast.Attribute(value=of, attr=attr), args=arguments) if attr in _POINTWISE:
            library = script.names.resolve(value.func, scope)
            inside = arguments if library else [of, *arguments]
            return library.startswith(("torch.", "math.", "")) and all(
                _is_pointwise(script, each, counters, scope) for each in inside
            )
    return False


def _is_arithmetic(operator: ast.operator) -> bool:
    return isinstance(operator, ast.Add | ast.Sub | ast.Mult | ast.Div | ast.Pow)
