"""How the gradients of autograd functions are checked."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, dotted
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.custom_autograd_functions.rules.parts import Part
from torchtriage.specialists.custom_autograd_functions.rules.precision import Precision

_CHECKS = symbols().gradient_checks
_EPS = 1e-5
# With such a tolerance nearly any backward passes, whatever the step.
_LAX = 0.05


@detector("source/gradcheck-in-float32")
def gradcheck_in_float32(script: Script) -> Iterator[Sighting]:
    """Gradcheck is given an input that is not float64."""
    tails = {"gradcheck", "gradgradcheck", *_aliases(script)}
    calls = [call for call in script.calls(*sorted(tails)) if _checks(script, call)]
    if not calls or any(script.calls("set_default_dtype", "set_default_tensor_type")):
        return
    for call in calls:
        given = call.argument("inputs", 1)
        if given is None or _is_coarse(call):
            continue
        found = _single(script, call, given)
        if found is not None:
            yield script.seen(
                call.node,
                f"{script.source(found.node)} is in single precision: differences of eps = 1e-6 are lost in rounding: "
                "the check fails for a right backward, or needs tolerances that let a wrong one pass",
            )


def _single(script: Script, call: Call, given: ast.expr) -> Part | None:
    """The input in single precision that asks for a gradient: one that says so, or when no other could be meant."""
    whole = Part(given, call.scope, call)
    parts = Precision(script).elements(whole)
    kinds = []
    for part in [whole] if parts is None else parts:
        precision = Precision(script)
        kind = precision.of(part)
        if kind == "single" and (precision.asks or _asks_later(part, call)):
            return part
        kinds.append((kind, part))
    single = [part for kind, part in kinds if kind == "single"]
    # gradcheck refuses inputs of which none asks for a gradient
    return single[0] if single and all(kind in ("single", "whole", "none") for kind, _ in kinds) else None


def _asks_later(part: Part, call: Call) -> bool:
    name = dotted(part.node)
    sets = part.scope.stores.get(f"{name}.requires_grad", []) if name else []
    if sets and sets[-1].order < call.order:
        return True
    return any(each.tail == "requires_grad_" and name and dotted(each.receiver) == name for each in part.scope.calls)


def _aliases(script: Script) -> set[str]:
    return {store.name for store in script.facts.aliases if store.imported.endswith(("gradcheck",))}


def _checks(script: Script, call: Call) -> bool:
    root = dotted(call.node.func).partition(".")[0]
    if any(not store.imported.startswith("torch") for store in script.names.stores(root, call.scope)):
        return False
    name = script.name(call)
    return name in _CHECKS or name.startswith("torch.autograd.gradcheck.")


def _is_coarse(call: Call) -> bool:
    """Whether the step of the differences was chosen for single precision."""
    eps = call.argument("eps", 2)
    if eps is None:
        return False
    if any(_number(call.argument(name)) >= _LAX for name in ("atol", "rtol")):
        return False
    return not 0 < _number(eps) <= _EPS


def _number(node: ast.expr | None) -> float:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int | float) else 0
