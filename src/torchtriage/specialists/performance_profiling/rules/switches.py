"""What the source alone shows about switches that cost speed, or promise what they cannot keep."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Block, Scope, Store, dotted
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
    everywhere = [(scope, last, store) for scope in script.facts.scopes for last, stores in _cudnn(script, scope)
                  for store in stores]  # fmt: skip
    found: dict[int, dict[str, Store]] = {}
    for scope, last, store in everywhere:
        if not _is_sometimes(store.path):
            found.setdefault(id(scope), {})[last] = store
        else:
            found.setdefault(id(store.block), {})[last] = store
    both = [chosen for chosen in found.values() if {"benchmark", "deterministic"} <= chosen.keys()]
    for chosen in both:
        if all(map(_is_switched_on, chosen.values())):
            yield _both(script, chosen["benchmark"], chosen["deterministic"])
    if not both and all(_is_switched_on(store) and not _is_sometimes(store.path) for _, _, store in everywhere):
        on = {last: store for scope, last, store in everywhere if _is_run(script, scope)}
        if {"benchmark", "deterministic"} <= on.keys():
            yield _both(script, on["benchmark"], on["deterministic"])


def _both(script: Script, benchmark: Store, deterministic: Store) -> Sighting:
    return script.seen(
        benchmark.node,
        f"benchmark measures anew in each run which algorithm is fastest, although line "
        f"{getattr(deterministic.node, 'lineno', 0)} asks for the same result each time",
    )


def _is_run(script: Script, scope: Scope) -> bool:
    """Whether the file surely runs SCOPE: its own body, or a function that is called under no condition."""
    if scope.kind == "module":
        return True
    sites = script.trace.sites(scope) if scope.kind == "function" else ()
    return any(not _is_sometimes(site.path) or _is_main(site.path) for site in sites)


def _is_main(path: tuple[Block, ...]) -> bool:
    owners = [block.owner for block in path if block.kind in _SOMETIMES]
    return all(
        isinstance(each, ast.If) and isinstance(each.test, ast.Compare) and dotted(each.test.left) == "__name__"
        for each in owners
    )


def _cudnn(script: Script, scope: Scope) -> Iterator[tuple[str, list[Store]]]:
    for name, stores in scope.stores.items():
        head, _, last = name.rpartition(".")
        if last in ("benchmark", "deterministic") and all(word.isidentifier() for word in head.split(".")):
            target = ast.parse(head, mode="eval").body
            if script.names.resolve(target, scope) == "torch.backends.cudnn":
                yield last, stores


def _is_switched_on(store: Store) -> bool:
    value = store.value
    if isinstance(value, ast.Tuple) and store.index is not None and store.index < len(value.elts):
        value = value.elts[store.index]
    return isinstance(value, ast.Constant) and value.value is True
