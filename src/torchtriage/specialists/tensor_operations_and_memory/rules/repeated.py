"""What the source alone shows about loops that do in pieces what one operation does at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Block, Call, Scope, Store, dotted
from torchtriage.examine.source.flow import loops
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.tensors import is_batches
from torchtriage.examine.source.torch_api.families import JOINS

_FEW = 16
_MANY = ("dataset", "data", "batches", "files", "paths", "images", "samples", "chunks", "sequences", "episodes")
_SHORT = (
    *("layer", "dim", "level", "depth", "stage", "head", "scale", "order", "world_size", "class"),
    *("view", "crop", "modal", "beam", "fold", "branch", "group"),
)
# Words of what is read again in every turn, elsewhere: caches of attention, text that is being generated.
_CACHES = ("cache", "past", "key", "value", "memory", "queue", "ids", "tokens", "generated", "context")


@detector("source/grown-by-cat")
def grown_by_cat(script: Script) -> Iterator[Sighting]:
    """A tensor grows by torch.cat in every turn of a loop, so that all of it is copied every time."""
    for call in script.named(*(f"torch.{name}" for name in JOINS)):
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
        case ast.Assign(targets=[ast.Name() | ast.Attribute() as target], value=value):
            name = dotted(target)
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
    return name if name in ends and len(ends) > 1 else ""  # cat([x, x]) doubles


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
            few = "len(self" in text or any(word in text for word in _SHORT)
            return not few and (not counts or max(counts) > _FEW)
    return dotted(owner.iter).rpartition(".")[2].lower().endswith(_MANY)


def _is_collected(call: Call, name: str, ring: Block) -> bool:
    """Whether the loop only adds to NAME: it neither reads it otherwise nor begins it anew."""
    scope = call.scope
    root, dot, rest = name.partition(".")
    outside = scope.stores.get(name, [])
    if dot and scope.host is not None and root == scope.receiver:
        outside = scope.host.attributes.get(rest, [])
    if not any(ring not in store.path for store in outside):
        return False
    for store in scope.stores[name]:
        if ring in store.path and store.node is not call.statement and not _is_first(store, call):
            return False
    own = {id(node) for node in ast.walk(call.statement)}
    tests = {id(node) for block in call.path if isinstance(block.owner, ast.If) for node in ast.walk(block.owner.test)}
    return not any(
        isinstance(node, ast.Name | ast.Attribute) and dotted(node) == name and isinstance(node.ctx, ast.Load)
        and id(node) not in own and id(node) not in tests
        for node in ast.walk(ring.owner)
    )  # fmt: skip


def _is_first(store: Store, call: Call) -> bool:
    """Whether STORE stands in the other arm: if i == 0: out = part, else: out = torch.cat([out, part])."""
    here, there = store.block, call.block
    return here.kind == "arm" and there.kind == "arm" and here.owner is there.owner and here is not there
