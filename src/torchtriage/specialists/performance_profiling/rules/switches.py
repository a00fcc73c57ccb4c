"""What the source alone shows about switches that cost speed, or promise what they cannot keep."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Block, Call, Scope, Store, dotted
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import TrainingStep, training_steps

_SETTERS = ("torch.autograd.set_detect_anomaly", "torch.autograd.anomaly_mode.set_detect_anomaly")
_CONTEXTS = ("torch.autograd.detect_anomaly", "torch.autograd.anomaly_mode.detect_anomaly", *_SETTERS)
_SOMETIMES = frozenset({"arm", "handler"})


@detector("source/debug-left-on")
def debug_left_on(script: Script) -> Iterator[Sighting]:
    """A debugging aid that slows every step is switched on for the whole training."""
    if not any(tail in script.facts.calls for tail in ("set_detect_anomaly", "detect_anomaly")) and not _says_blocking(
        script
    ):
        return
    steps = [step for step in training_steps(script) if step.optimizing()]
    if not steps:
        return
    for call in script.named(*_SETTERS):
        if _is_on(call) and not _is_sometimes(call.path) and not _is_taken_back(script) and _is_statement(call):
            yield script.seen(
                call.node, "anomaly detection is on for the whole training: it records a stack for every operation"
            )
    for call in script.named(*_CONTEXTS):
        on = _is_context(call) and (call.tail == "detect_anomaly" or _is_on(call)) and not _is_sometimes(call.path)
        if on and any(_is_inside(step, call) for step in steps):
            yield script.seen(
                call.node, "anomaly detection is on in every step: it records a stack for every operation"
            )
    for store in _blocking(script):
        if not _is_sometimes(store.path):
            yield script.seen(store.node, "CUDA_LAUNCH_BLOCKING=1 makes the host wait for each kernel")


def _says_blocking(script: Script) -> bool:
    return b"CUDA_LAUNCH_BLOCKING" in script.text.data


def _is_on(call: Call) -> bool:
    given = call.argument("mode", 0)
    return isinstance(given, ast.Constant) and given.value is True


def _is_statement(call: Call) -> bool:
    return isinstance(call.statement, ast.Expr) and call.statement.value is call.node


def _is_taken_back(script: Script) -> bool:
    """Whether the file also switches it off."""
    return any(
        isinstance(each := call.argument("mode", 0), ast.Constant) and each.value is False
        for call in script.named(*_SETTERS)
    )


def _is_sometimes(path: tuple[Block, ...]) -> bool:
    """Under a condition, but for that of the main module."""
    return any(block.kind in _SOMETIMES and not _is_main(block.owner) for block in path)


def _is_main(owner: ast.AST) -> bool:
    test = owner.test if isinstance(owner, ast.If) else None
    return isinstance(test, ast.Compare) and dotted(test.left) == "__name__"


def _is_context(call: Call) -> bool:
    owner = call.statement
    return isinstance(owner, ast.With | ast.AsyncWith) and any(item.context_expr is call.node for item in owner.items)


def _is_inside(step: TrainingStep, call: Call) -> bool:
    """Whether the step's backward runs under the context that CALL opens."""
    owner = call.statement
    around = [block for backward in step.backwards for block in backward.event.path]
    around += [block for site in step.sites for block in site.path]
    return any(block.kind == "with" and block.owner is owner for block in (*around, *step.ring.block.path))


def _blocking(script: Script) -> Iterator[Store]:
    for scope in script.facts.scopes if _says_blocking(script) else ():
        for store in scope.stores.get("os.environ[]", ()):
            key = store.node.targets[0] if isinstance(store.node, ast.Assign) else None
            name = key.slice if isinstance(key, ast.Subscript) else None
            if isinstance(name, ast.Constant) and name.value == "CUDA_LAUNCH_BLOCKING" and _is_one(store.value):
                yield store


def _is_one(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value == "1"


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
