"""What trains one model in several processes: DistributedDataParallel, fully sharded modules, DataParallel."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from torchtriage.examine.detector import view
from torchtriage.examine.source.facts import Call, Scope, dotted
from torchtriage.examine.source.script import Script

Kind = Literal["replicated", "flattened", "sharded", "scattered"]

_KINDS: dict[str, Kind] = {
    "torch.nn.parallel.DistributedDataParallel": "replicated",
    "torch.distributed.fsdp.FullyShardedDataParallel": "flattened",
    "torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel": "flattened",
    "torch.distributed.fsdp.fully_shard": "sharded",
    "torch.distributed._composable.fsdp.fully_shard": "sharded",
    "torch.nn.DataParallel": "scattered",
    "torch.nn.parallel.DataParallel": "scattered",
    "torch.nn.parallel.data_parallel.DataParallel": "scattered",
}


class Wrapper(Struct, frozen=True):
    """A call that wraps a model.

    kind: "replicated" by DistributedDataParallel, "flattened" by FullyShardedDataParallel, "sharded" in place by
    fully_shard, "scattered" over the devices of one process by DataParallel. module: the model. target: the name that
    the wrapper is given, "" for none.
    """

    script: Script
    call: Call
    kind: Kind
    name: str

    @property
    def module(self) -> ast.expr | None:
        return self.call.argument("module", 0)

    @property
    def target(self) -> str:
        statement = self.call.statement
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and statement.value is self.call.node:
            return dotted(statement.targets[0])
        return ""


@view(Wrapper, of=Script)
def wrappers(script: Script) -> Iterator[Wrapper]:
    tails = {name.rpartition(".")[2] for name in _KINDS}
    aliases = {store.name for store in script.facts.aliases if store.imported.rpartition(".")[2] in tails}
    for call in script.calls(*sorted(tails | aliases)):
        name = script.name(call)
        if name in _KINDS:
            yield Wrapper(script, call, _KINDS[name], name)


def kinds(script: Script, node: ast.expr | None, scope: Scope, deep: int = 0) -> list[tuple[Kind, ast.expr]]:
    """The wrappers that NODE may be, each with the call that made it, or the annotation of the parameter that it is.

    A compiled wrapper is one, too.
    """
    found: list[tuple[Kind, ast.expr]] = []
    for origin in script.trace.origins(node, scope):
        if origin.is_parameter and origin.node is not None:
            noted = _KINDS.get(script.names.resolve(origin.node, origin.scope))
            if noted is not None:
                found.append((noted, origin.node))
        if origin.call is None:
            continue
        name = script.names.resolve(origin.call.func, origin.scope)
        if name in _KINDS:
            found.append((_KINDS[name], origin.call))
        elif name == "torch.compile" and origin.call.args and deep < 3:
            found.extend(kinds(script, origin.call.args[0], origin.scope, deep + 1))
    return found
