"""What the source alone shows about results that backward needs and that are overwritten before it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.flow import reaches, reaching
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import TrainingStep
from torchtriage.specialists.debugging_techniques.rules.values import constructions, is_off

# Operations whose derivative is computed from their result, which is therefore saved and must stay as it is: each of
# them was seen to raise after an in-place edit (torch 2.13; the proof of the page tries them all).
_SAVED = frozenset(
    {"sigmoid", "tanh", "exp", "exp2", "expm1", "relu", "sqrt", "rsqrt", "reciprocal", "softmax", "log_softmax"}
)
_MODULES = frozenset(f"torch.nn.{name}" for name in ("Sigmoid", "Tanh", "ReLU", "Softmax", "LogSoftmax"))
_EDITS = frozenset(
    {"add_", "sub_", "mul_", "div_", "clamp_", "clamp_min_", "clamp_max_", "masked_fill_", "fill_", "zero_", "copy_"}
    | {"relu_", "sigmoid_", "tanh_", "exp_", "pow_", "neg_", "sqrt_", "index_add_", "scatter_", "scatter_add_"}
)
_LEARNING = tuple(
    f"torch.nn.{name}" for name in ("Linear", "Conv", "BatchNorm", "LayerNorm", "GroupNorm", "Embedding", "PReLU")
)
_DEEP = 5


@detector("source/inplace-breaks-autograd")
def inplace_breaks_autograd(step: TrainingStep) -> Iterator[Sighting]:
    """A result that backward needs is edited in place before backward."""
    if not step.backwards or not step.optimizing():
        return
    look = _Look(step.script)
    for scope in _scopes(step):
        yield from look.sightings(scope, step)


def _scopes(step: TrainingStep) -> list[Scope]:
    """The functions that the step surely runs with gradients: its own, and the forward of the models that it calls."""
    ends = [backward.event for backward in step.backwards]
    before = [event for event in step.events if any(reaches(event, end) for end in ends)]
    found = list({id(event.fact.scope): event.fact.scope for event in before}.values())
    called = [event.call for event in before if event.call is not None]
    for call in called:
        for made, where in constructions(step.script, call.node.func, call.scope) if call.tail else ():
            host = step.script.trace.definition(made.func, where)
            forward = step.script.trace.method(host, "forward") if host and host.kind == "class" else None
            if forward is not None and forward not in found and not is_off(step.script, call.path, call.scope):
                found.append(forward)
                called += forward.calls
    return found


class _Look:
    """Looks for edits in the functions of one file."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def sightings(self, scope: Scope, step: TrainingStep) -> Iterator[Sighting]:
        for edit, name in _edits(scope):
            stores = [store for store in scope.stores.get(name, ()) if store is not edit and store.how != "augment"]
            given = reaching(stores, edit)
            if len(given) != 1 or given[0].order > edit.order or not self._is_saved(given[0]):
                continue
            if self._is_conditional(edit, given[0]) or not self._is_propagated(edit, name, step):
                continue
            line = getattr(given[0].node, "lineno", 0)
            operation = self._operation(given[0].value, scope)
            yield self.script.seen(
                edit.node,
                f"{name} is the result of {operation} in line {line}, which backward needs unchanged: after this "
                "edit in place it raises",
            )

    def _is_saved(self, store: Store) -> bool:
        whole = store.how == "assign" and store.index is None and isinstance(store.value, ast.Call)
        if not whole or not self._operation(store.value, store.scope) or is_off(self.script, store.path, store.scope):
            return False
        return self._learns(store.value, store, 0)

    def _operation(self, node: ast.expr | None, scope: Scope) -> str:
        """The name of the operation whose result NODE is, when that result is saved."""
        if not isinstance(node, ast.Call):
            return ""
        name = self.script.names.resolve(node.func, scope)
        if name:
            last = name.rpartition(".")[2]
            return last if name.startswith(("torch.nn.functional.", "torch.")) and last in _SAVED else ""
        plain = all(isinstance(each, ast.Constant | ast.UnaryOp) for each in node.args)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _SAVED and plain:
            own = scope.receiver
            return node.func.attr if not own or dotted(node.func.value) != own else ""
        made = constructions(self.script, node.func, scope)
        names = {self.script.names.resolve(call.func, where) for call, where in made}
        return names.pop().rpartition(".")[2] if len(names) == 1 and names <= _MODULES else ""

    def _learns(self, node: ast.expr | None, use: Store, deep: int) -> bool:
        """Whether NODE is surely computed from something that gets a gradient: a layer, or a model that is called."""
        for inner in ast.walk(node) if node is not None and deep < _DEEP else ():
            if isinstance(inner, ast.Call) and self._is_layer(inner, use.scope):
                return not any(isinstance(e, ast.Attribute) and e.attr == "detach" for e in ast.walk(node or inner))
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
                stores = reaching(use.scope.stores.get(inner.id, ()), use)
                if stores and all(
                    store.how == "assign"
                    and store.order < use.order
                    and not is_off(self.script, store.path, store.scope)
                    and self._learns(store.value, store, deep + 1)
                    for store in stores
                ):
                    return True
        return False

    def _is_layer(self, node: ast.Call, scope: Scope) -> bool:
        made = constructions(self.script, node.func, scope) if isinstance(node.func, ast.Name | ast.Attribute) else []
        if any(self.script.names.resolve(call.func, where).startswith(_LEARNING) for call, where in made):
            return True
        parts = self.script.roles.parts(node.func, scope)
        return bool(parts) and all(
            part.role == "model" and part.by in ("made", "annotated") and not part.name.startswith("torch.nn.")
            for part in parts
        )

    def _is_conditional(self, edit: Store | Call, given: Store) -> bool:
        """Whether the edit is made in a branch of its own, which may be there for evaluation only."""
        return any(block.kind in ("arm", "handler") and block not in given.path for block in edit.path)

    def _is_propagated(self, edit: Store | Call, name: str, step: TrainingStep) -> bool:
        """Whether the edited value goes on to a return, or to a backward in the same function."""
        scope = edit.scope
        own = [each for each in step.backwards if each.call.scope is scope]
        if own and not any(reaches(edit, each.call) for each in own):
            return False
        later: list[ast.stmt] = [each.node for each in scope.returns if each.order > edit.order]
        later += [each.statement for each in scope.calls if each.order > edit.order]
        return any(isinstance(n, ast.Name) and n.id == name for node in later for n in ast.walk(node))


def _edits(scope: Scope) -> Iterator[tuple[Store | Call, str]]:
    """What is edited in place in SCOPE: y += 1, y[0] = 1, y.mul_(2)."""
    for name, stores in scope.stores.items():
        for store in stores:
            part = store.how == "assign" and name.endswith("[]")
            if "." not in name and (part or store.how == "augment"):
                yield store, name.removesuffix("[]")
    for call in scope.calls:
        if call.tail in _EDITS and isinstance(call.receiver, ast.Name):
            yield call, call.receiver.id
