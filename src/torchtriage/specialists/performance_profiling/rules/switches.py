"""What the source alone shows about switches that cost speed, or promise what they cannot keep."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Block, Scope, Store
from torchtriage.examine.source.script import Script

_SOMETIMES = frozenset({"arm", "handler"})


def _is_sometimes(path: tuple[Block, ...]) -> bool:
    """Under a condition."""
    return any(block.kind in _SOMETIMES for block in path)


@detector("source/benchmark-with-deterministic")
def benchmark_with_deterministic(script: Script) -> Iterator[Sighting]:
    """cudnn.deterministic and cudnn.benchmark are both switched on."""
    if b"cudnn" not in script.text.data:
        return
    for scope in script.facts.scopes:
        chosen = {name: [s for s in stores if not _is_sometimes(s.path)] for name, stores in _cudnn(script, scope)}
        on = {name: stores[-1] for name, stores in chosen.items() if stores and _is_switched_on(stores[-1])}
        if {"benchmark", "deterministic"} <= on.keys():
            yield script.seen(
                on["benchmark"].node,
                f"benchmark measures anew in each run which algorithm is fastest, although line "
                f"{getattr(on['deterministic'].node, 'lineno', 0)} asks for the same result each time",
            )


def _cudnn(script: Script, scope: Scope) -> Iterator[tuple[str, list[Store]]]:
    for name, stores in scope.stores.items():
        head, _, last = name.rpartition(".")
        if last in ("benchmark", "deterministic") and all(word.isidentifier() for word in head.split(".")):
            target = ast.parse(head, mode="eval").body
            if script.names.resolve(target, scope) == "torch.backends.cudnn":
                yield last, stores


def _is_switched_on(store: Store) -> bool:
    return isinstance(store.value, ast.Constant) and store.value.value is True
