"""What the source alone shows about results that backward needs and that are overwritten before it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Block, Call, Scope, Store, dotted
from torchtriage.examine.source.flow import reaches, reaching
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import TrainingStep
from torchtriage.examine.source.torch_api.families import (
    DETACHING,
    IN_PLACE_METHODS,
    METADATA,
    NEW_METHODS,
    RESULT_SAVING,
    VALUE_METHODS,
)
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.debugging_techniques.rules.stepped import weights_moved
from torchtriage.specialists.debugging_techniques.rules.values import constructions, is_off

# Operations whose derivative is computed from their result, which is therefore saved and must stay as it is: each of
# them was seen to raise after an in-place edit (torch 2.13; the proof of the page tries them all).
_SAVED = RESULT_SAVING
_MODULES = symbols().saving_layers
_EDITS = IN_PLACE_METHODS
_LEARNING = tuple(symbols().parameter_layers)
_LISTS = symbols().containers - {"torch.nn.ModuleDict"}
_CUT = DETACHING | {"data"}
_ABOUT = METADATA | VALUE_METHODS | NEW_METHODS
_DEEP = 5


@detector("source/inplace-breaks-autograd")
def inplace_breaks_autograd(step: TrainingStep) -> Iterator[Sighting]:
    """A result that backward needs is edited in place before backward."""
    if not step.backwards or not step.optimizing():
        return
    look = _Look(step.script)
    for scope in _scopes(step):
        yield from look.sightings(scope, step)
    yield from weights_moved(step)


def _scopes(step: TrainingStep) -> list[Scope]:
    """The functions that the step surely runs with gradients: its own, and the forward of the models that it calls."""
    ends = [backward.event for backward in step.backwards]
    before = [event for event in step.events if any(reaches(event, end) for end in ends)]
    found = list({id(event.fact.scope): event.fact.scope for event in before}.values())
    called = [event.call for event in before if event.call is not None]
    for call in called:
        for run in _run_by(step.script, call) if not is_off(step.script, call.path, call.scope) else ():
            if run not in found:
                found.append(run)
                called += run.calls
    return found


def _run_by(script: Script, call: Call) -> Iterator[Scope]:
    """What CALL runs of this file: a function, or the forward of a model, of one in a ModuleList as well."""
    own = script.trace.definition(call.node.func, call.scope)
    if own is not None and own.kind == "function":
        yield own
        return
    for made, where in _models(script, call):
        host = script.trace.definition(made.func, where)
        forward = script.trace.method(host, "forward") if host and host.kind == "class" else None
        if forward is not None:
            yield forward


def _models(script: Script, call: Call) -> Iterator[tuple[ast.Call, Scope]]:
    """The constructions of what CALL calls; of a Sequential or ModuleList, or a loop over one, those in it."""
    called = call.node.func
    stores = call.scope.stores.get(called.id, []) if isinstance(called, ast.Name) else []
    if [store.how for store in stores] == ["element"] and stores[0].value is not None:
        value = stores[0].value
        value = value.args[0] if isinstance(value, ast.Call) and dotted(value.func) == "enumerate" else value
        called = value
    for made, where in (
        constructions(script, called, call.scope) if isinstance(called, ast.Name | ast.Attribute) else ()
    ):
        yield made, where
        if script.names.resolve(made.func, where) in _LISTS:
            inside = (inner for argument in made.args for inner in ast.walk(argument))
            yield from ((inner, where) for inner in inside if isinstance(inner, ast.Call))


class _Look:
    """Looks for edits in the functions of one file."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def sightings(self, scope: Scope, step: TrainingStep) -> Iterator[Sighting]:
        for edit, name in _edits(scope):
            is_part = isinstance(edit, Store) and edit.how == "augment" and edit.name.endswith("[]")
            stores = [store for store in scope.stores.get(name, ()) if store is not edit and store.how != "augment"]
            given = reaching(stores, edit)
            if len(given) != 1 or given[0].order > edit.order or not self._is_saved(given[0], is_part):
                continue
            if self._is_conditional(edit, given[0]) or not self._is_propagated(edit, name, step):
                continue
            line = getattr(given[0].node, "lineno", 0)
            operation = self._operation(_element(given[0].value, is_part), scope)
            yield self.script.seen(
                edit.node,
                f"{name} is the result of {operation} in line {line}, which backward needs unchanged: after this "
                "edit in place it raises",
            )

    def _is_saved(self, store: Store, is_part: bool) -> bool:
        value = _element(store.value, is_part)
        whole = store.how == "assign" and store.index is None and isinstance(value, ast.Call)
        if not whole or not self._operation(value, store.scope) or is_off(self.script, store.path, store.scope):
            return False
        return self._learns(value, store, 0)

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
        made = [self._last(call, where) for call, where in constructions(self.script, node.func, scope)]
        names = {self.script.names.resolve(call.func, where) for call, where in made}
        return names.pop().rpartition(".")[2] if len(names) == 1 and names <= _MODULES else ""

    def _last(self, made: ast.Call, scope: Scope) -> tuple[ast.Call, Scope]:
        """What gives the result of MADE: of an nn.Sequential, its last module."""
        last = made.args[-1] if made.args and self.script.names.resolve(made.func, scope) in _LISTS else None
        return (last, scope) if isinstance(last, ast.Call) else (made, scope)

    def _learns(self, node: ast.expr | None, use: Store | Call, deep: int) -> bool:
        """Whether NODE is surely computed from something that gets a gradient: a layer, or a model that is called."""
        inside = list(ast.walk(node)) if node is not None and deep < _DEEP else []
        asked = {id(each.value) for each in inside if isinstance(each, ast.Attribute) and each.attr in _ABOUT}
        for inner in inside:
            if id(inner) in asked:
                continue
            layer = isinstance(inner, ast.Call) and self._is_layer(inner, use.scope)
            if layer or (isinstance(inner, ast.Attribute) and self._is_parameter(inner, use.scope)):
                return not any(isinstance(e, ast.Attribute) and e.attr in _CUT for e in inside)
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
                known = use.scope.stores.get(inner.id, ())
                stores = reaching([store for store in known if store.how != "augment"], use)
                if stores and all(self._is_given(store, deep) for store in stores):
                    return True
                if stores and all(
                    store.how == "assign"
                    and store.order < use.order
                    and not is_off(self.script, store.path, store.scope)
                    and self._learns(store.value, store, deep + 1)
                    for store in stores
                ):
                    return True
        return False

    def _is_given(self, store: Store, deep: int) -> bool:
        """Whether every caller in this file gives this parameter something that is learned."""
        if store.how != "parameter":
            return False
        words = [each.arg for each in store.scope.parameters]
        place = words.index(store.name) - (1 if store.scope.receiver in words[:1] else 0)
        sites = self.script.trace.sites(store.scope)
        given = [(call, call.argument(store.name, place)) for call in sites]
        return bool(given) and all(
            argument is not None
            and not is_off(self.script, call.path, call.scope)
            and self._learns(argument, call, deep + 1)
            for call, argument in given
        )

    def _is_parameter(self, node: ast.Attribute, scope: Scope) -> bool:
        """self.scale, where that is an nn.Parameter which is trained."""
        own = scope.receiver and dotted(node.value) == scope.receiver
        made = constructions(self.script, node, scope) if own else []
        return bool(made) and all(
            self.script.names.resolve(call.func, where) == "torch.nn.Parameter"
            and not any(keyword.arg == "requires_grad" for keyword in call.keywords)
            for call, where in made
        )

    def _is_layer(self, node: ast.Call, scope: Scope) -> bool:
        made = constructions(self.script, node.func, scope) if isinstance(node.func, ast.Name | ast.Attribute) else []
        if any(self._has_parameters(call, where) for call, where in made):
            return True
        parts = self.script.roles.parts(node.func, scope)
        return bool(parts) and all(
            part.role == "model" and part.by in ("made", "annotated") and not part.name.startswith("torch.nn.")
            for part in parts
        )

    def _has_parameters(self, made: ast.Call, scope: Scope) -> bool:
        name = self.script.names.resolve(made.func, scope)
        inside = [each for each in made.args if isinstance(each, ast.Call)] if name == "torch.nn.Sequential" else []
        return name.startswith(_LEARNING) or any(self._has_parameters(each, scope) for each in inside)

    def _is_conditional(self, edit: Store | Call, given: Store) -> bool:
        """Whether the edit is made in a branch of its own, which may be there for evaluation only."""
        own = [block for block in edit.path if block.kind in ("arm", "handler") and block not in given.path]
        if any(not _is_for_training(block, edit) for block in own):
            return True
        return any(_asks_mode(block.owner) for block in edit.path if block.kind == "arm" and block not in own)

    def _is_propagated(self, edit: Store | Call, name: str, step: TrainingStep) -> bool:
        """Whether the edited value goes on to a return, or to a backward in the same function."""
        scope = edit.scope
        own = [each for each in step.backwards if each.call.scope is scope]
        if own and not any(reaches(edit, each.call) for each in own):
            return False
        later: list[ast.stmt] = [each.node for each in scope.returns if each.order > edit.order]
        later += [each.statement for each in scope.calls if each.order > edit.order]
        return any(isinstance(n, ast.Name) and n.id == name for node in later for n in ast.walk(node))


def _element(value: ast.expr | None, is_part: bool) -> ast.expr | None:
    """What one entry of a list is: maps[i] += x edits the tensor that the list of maps holds."""
    return value.elt if is_part and isinstance(value, ast.ListComp) else value


def _is_for_training(block: Block, edit: Store | Call) -> bool:
    """Whether BLOCK, which EDIT stands in, is what if self.training runs, whatever else it asks for."""
    owner = block.owner
    if not isinstance(owner, ast.If) or block.kind != "arm":
        return False
    line = edit.node.lineno if isinstance(edit, Call) else getattr(edit.node, "lineno", 0)
    tests = (
        owner.test.values if isinstance(owner.test, ast.BoolOp) and isinstance(owner.test.op, ast.And) else [owner.test]
    )
    asks = any(isinstance(each, ast.Attribute) and each.attr == "training" for each in tests)
    return asks and owner.body[0].lineno <= line <= (owner.body[-1].end_lineno or 0)


def _asks_mode(owner: ast.AST) -> bool:
    """Whether an if depends on self.training."""
    inside = ast.walk(owner.test) if isinstance(owner, ast.If) else ()
    return any(isinstance(node, ast.Attribute) and node.attr == "training" for node in inside)


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
