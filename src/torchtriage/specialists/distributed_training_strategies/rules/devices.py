"""Which device a rank takes, and where its batches are."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.wrappers import wrappers
from torchtriage.specialists.distributed_training_strategies.rules.values import ends

_GLOBAL = frozenset({"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"})
_READ = re.compile(rb"[\"'](?:RANK|SLURM_PROCID|OMPI_COMM_WORLD_RANK)[\"']")


@detector("source/global-rank-as-device")
def global_rank_as_device(script: Script) -> Iterator[Sighting]:
    """The number of the process in the whole job is taken for that of a device of this machine."""
    if script.hidden or not (any(script.calls("get_rank")) or _READ.search(script.text.data)):
        return
    if any(script.calls("spawn", "start_processes", "Process")):  # of one machine: rank and device are the same there
        return
    told: set[int] = set()
    for call, device in _devices(script):
        rank = _global_rank(script, device, call.scope) if id(call.scope) not in told else None
        if rank is not None:
            told.add(id(call.scope))
            yield script.seen(
                call.node,
                f"{script.source(rank)} counts over all machines: on the second machine of 8 devices it is 8 or more, "
                "and there is no such device",
            )


def _devices(script: Script) -> Iterator[tuple[Call, ast.expr]]:
    """The places that name a device by number."""
    for call in script.named("torch.cuda.set_device", "torch.accelerator.set_device_index"):
        yield from ((call, each) for each in call.arguments[:1])
    for call in script.named("torch.device"):
        yield from ((call, each) for each in call.arguments[:2])
    for wrapper in wrappers(script):
        given = wrapper.call.argument("device_ids", 1)
        for each in given.elts if isinstance(given, ast.List) else ():
            yield wrapper.call, each
    for call in script.calls("cuda", "to"):
        if call.receiver is not None and not script.name(call):
            yield from ((call, each) for each in call.node.args[:1])


def _global_rank(script: Script, node: ast.expr, scope: Scope) -> ast.expr | None:
    """The expression of the global rank that NODE surely is: bare, or in f"cuda:{rank}"."""
    if isinstance(node, ast.JoinedStr):
        parts = [each.value for each in node.values if isinstance(each, ast.FormattedValue)]
        return _global_rank(script, parts[0], scope) if len(parts) == 1 else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):  # "cuda:" + os.environ["RANK"]
        literal = isinstance(node.left, ast.Constant) and str(node.left.value).endswith(":")
        return _global_rank(script, node.right, scope) if literal else None
    if not isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        return None
    found = [_asked(script, end.node, end.scope) for end in ends(script, node, scope) if not _is_single(end.node)]
    return found[0] if found and all(found) else None


def _is_single(node: ast.expr | None) -> bool:
    """Whether this is what a helper answers when there is but one process: 0 or None."""
    return isinstance(node, ast.Constant) and node.value in (0, None)


def _asked(script: Script, node: ast.expr | None, scope: Scope, deep: int = 0) -> ast.expr | None:
    match node:
        case ast.Call(func=ast.Name(id="int"), args=[inner]) if deep < 3:
            found = [_asked(script, end.node, end.scope, deep + 1) for end in ends(script, inner, scope)]
            return node if found and all(found) else None
        case ast.Call(func=called, args=arguments):
            if script.names.resolve(called, scope) == "torch.distributed.get_rank" and not arguments:
                return node
            named = script.names.resolve(called, scope) == "os.getenv" or (
                isinstance(called, ast.Attribute)
                and called.attr == "get"
                and _is_environment(script, called.value, scope)
            )
            return node if named and _is_global(arguments[:1]) else None
        case ast.Subscript(value=value, slice=key):
            return node if _is_global([key]) and _is_environment(script, value, scope) else None
    return None


def _is_environment(script: Script, node: ast.expr, scope: Scope) -> bool:
    """Whether NODE is os.environ, also by another name."""
    ends = [(node, scope), *((end.node, end.scope) for end in script.trace.origins(node, scope))]
    return any(script.names.resolve(each, home) == "os.environ" for each, home in ends)


def _is_global(key: list[ast.expr]) -> bool:
    return any(isinstance(each, ast.Constant) and each.value in _GLOBAL for each in key)
