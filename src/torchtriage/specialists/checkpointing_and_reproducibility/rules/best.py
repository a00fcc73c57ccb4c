"""What the source alone shows about the state that is kept as the best one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import chain

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Ring
from torchtriage.examine.source.facts import Block, Call, Scope, Store, dotted
from torchtriage.examine.source.flow import loops, reaches, surely
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import training_steps
from torchtriage.specialists.checkpointing_and_reproducibility.rules.outside import (
    entries_given,
    is_loaded_again,
    is_loaded_beside,
)
from torchtriage.specialists.checkpointing_and_reproducibility.rules.places import states_of, unwrapped

# Words of a name or a test by which the better of two states is kept.
_BETTER = re.compile(r"best|improv|lowest|highest|min_|_min\b|max_|_max\b|better|record")
_TRAINS = re.compile(r"train|fit|update|step|learn|optimi[sz]e|epoch")


@detector("source/best-state-aliased")
def best_state_aliased(script: Script) -> Iterator[Sighting]:
    """A state that is kept for later is kept by reference: further training changes it."""
    if not any(script.calls("state_dict")):
        return
    for scope in script.facts.scopes:
        for stores in (*scope.stores.values(), entries_given(script, scope)):
            for store in stores:
                value = states_of(store)
                taken = _alias(script, value, scope) if value is not None else None
                what = _harm(script, store, taken) if taken is not None else None
                if taken is not None and what is not None:
                    name = store.name.removesuffix("[]")
                    fact = f"{name} holds the model's own tensors, not copies: {what}"
                    yield script.seen(taken, fact, edits=_copy(script, value, taken))


def _harm(script: Script, store: Store, taken: ast.Call) -> str | None:
    if _is_chosen(script, store) and _changes_and_returns(script, store, taken):
        return "after further training it is the state of the last step"
    for load in _restores(script, store, taken):
        return f"loading it in line {load.node.lineno} changes nothing, for it has changed with the model"
    return None


def _restores(script: Script, store: Store, taken: ast.Call) -> Iterator[Call]:
    """The loads that are to bring the model back to what it was, after it was trained or got another state."""
    model = taken.func.value if isinstance(taken.func, ast.Attribute) else taken
    name, own = dotted(model), script.calls("load_state_dict")
    if store.how != "assign" or store.name.endswith("[]") or not name or _is_taken_out(store, "deepcopy", "clone"):
        return
    changed = (call for call in script.calls("update", "pop") if dotted(call.receiver) == store.name)
    if any(changed) or f"{store.name}[]" in store.scope.stores:
        return
    loads = [call for call in own if call.scope is store.scope and dotted(call.receiver) == name]
    for load in (call for call in loads if _mentions(call, store) and reaches(store, call)):
        others = (call for call in loads if not _mentions(call, store) and reaches(store, call) and reaches(call, load))
        trained = (
            loop
            for loop in {id(block): block for call in store.scope.calls for block in loops(call.path)}.values()
            if loop not in store.path and (loop in load.path or _lies_between(store, loop, load))
            if _is_trained_in(script, loop, store, model)
        )
        if len(script.names.stores(store.name, store.scope)) == 1 and any(True for _ in chain(others, trained)):
            yield load


def _lies_between(store: Store, loop: Block, load: Call) -> bool:
    inside = [action.order for action in store.scope.actions if loop in action.path]
    return bool(inside) and store.order < min(inside) and max(inside) < load.order


def _alias(script: Script, node: ast.expr, scope: Scope) -> ast.Call | None:
    """The model.state_dict() whose tensors NODE holds: also in a shallow copy, and in an entry of a dictionary."""
    found: ast.Call | None = None
    match node:
        case ast.Call(func=ast.Attribute(value=model, attr="state_dict"), args=[], keywords=[]):
            found = node if _is_plain_model(script, model, scope) else None
        case ast.Call(func=ast.Attribute(value=ast.Call() as inner, attr="copy" | "items"), args=[]):
            found = _alias(script, inner, scope)
        case ast.Call(func=called, args=[ast.Call() as inner]):
            shallow = script.names.resolve(called, scope) in ("builtins.dict", "copy.copy", "collections.OrderedDict")
            found = _alias(script, inner, scope) if shallow else None
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords) if keywords:
            found = _alias(script, ast.Dict([], [each.value for each in keywords]), scope)
        case ast.DictComp(value=ast.Name(id=kept), generators=[ast.comprehension() as over]):
            found = _listed(script, kept, over, scope)
        case ast.Dict(values=values) | ast.Tuple(elts=values):
            every = (_alias(script, value, scope) for value in values if isinstance(value, ast.Call))
            found = next((each for each in every if each is not None), None)
        case ast.Call(func=called) if (helper := script.trace.definition(called, scope)) is not None:
            given = [each.node.value for each in helper.returns if isinstance(each.node.value, ast.Call)]
            if helper.kind == "function" and len(given) == len(helper.returns) == 1:
                found = _alias(script, given[0], helper)
    return found


def _listed(script: Script, kept: str, over: ast.comprehension, scope: Scope) -> ast.Call | None:
    """{k: v for k, v in model.state_dict().items()}: a new dictionary of the same tensors."""
    match over:
        case ast.comprehension(
            target=ast.Tuple(elts=[_, ast.Name(id=name)]),
            iter=ast.Call(func=ast.Attribute(value=ast.Call() as inner, attr="items")),
        ) if name == kept:
            return _alias(script, inner, scope)
    return None


def _is_plain_model(script: Script, model: ast.expr, scope: Scope) -> bool:
    """A model that is not sharded (whose state is gathered anew), and whose state_dict is that of torch."""
    bare = unwrapped(model) or model
    own = script.trace.instance(bare, scope)
    if own is not None and script.trace.method(own, "state_dict") is not None:
        return False
    parts = script.roles.parts(bare, scope)
    return any(part.role == "model" for part in parts) and not any("fsdp" in part.name.lower() for part in parts)


def _is_chosen(script: Script, store: Store) -> bool:
    """Whether it is kept under a test that picks the best: an `if` that compares, with a word for it."""
    tests = [block.owner.test for block in store.path if block.kind == "arm" and isinstance(block.owner, ast.If)]
    tests = [test for test in (*tests, *_passed_before(store)) if not _is_of_one_turn(test)]
    return any(
        _BETTER.search(f"{script.source(test)} {store.name}".lower()) or _is_record(test, store) for test in tests
    )


def _passed_before(store: Store) -> list[ast.expr]:
    """The tests that stand before STORE and leave when they hold: if score <= self.best: return."""
    line = getattr(store.node, "lineno", 0)
    before = (
        each for each in getattr(store.block.owner, "body", []) if isinstance(each, ast.If) and each.lineno < line
    )
    return [each.test for each in before if isinstance(each.body[-1], ast.Return | ast.Continue) and not each.orelse]


def _is_record(test: ast.expr, store: Store) -> bool:
    """Whether the branch sets what its test compares with: if loss < lowest: lowest = loss."""
    if not isinstance(test, ast.Compare):
        return False
    compared = {
        dotted(each).removesuffix("[]") for each in ast.walk(test) if isinstance(each, ast.Name | ast.Attribute)
    }
    beside = {
        each.name.removesuffix("[]")
        for stores in store.scope.stores.values()
        for each in stores
        if each.how == "assign" and each.block is store.block
    }
    return bool(compared & beside)


def _is_of_one_turn(test: ast.expr) -> bool:
    """A test that asks whether this is a certain turn of the loop, or whether there is anything yet."""
    return isinstance(test, ast.Compare) and all(
        isinstance(each, ast.Eq | ast.NotEq | ast.Is | ast.IsNot) for each in test.ops
    )


def _changes_and_returns(script: Script, store: Store, taken: ast.Call) -> bool:
    """Whether the model is trained on after STORE, and what was kept is used after that."""
    model = taken.func.value if isinstance(taken.func, ast.Attribute) else taken
    if store.how != "assign" or _is_taken_out(store) or _is_made_over(store):
        return False
    trained = next((ring for ring in _rounds(store) if _is_trained_in(script, ring, store, model)), None)
    if trained is not None:
        return _is_used_after(script, store, trained)
    if _is_called_in_training(script, store):
        return _is_used_outside(script, store)
    if loops(store.path):
        return False
    is_kept_in_self = store.scope.host is not None and store.name.startswith(f"{store.scope.receiver}.")
    return (is_kept_in_self and is_loaded_again(script, store)) or is_loaded_beside(script, store)


def _rounds(store: Store) -> Iterator[Block]:
    """The loops of which a further turn may follow STORE, the innermost first: not those that its branch leaves."""
    left = False
    for block in reversed(store.path):
        if block.kind == "loop":
            if not left:
                yield block
            left = False
        elif block.kind != "body" and block.leaves == "function":
            return
        elif block.leaves == "loop":
            left = left or _breaks(block, store)


def _breaks(block: Block, store: Store) -> bool:
    """Whether the statements of BLOCK, in which STORE stands, end with a break."""
    line = getattr(store.node, "lineno", 0)
    for body in (getattr(block.owner, "body", []), getattr(block.owner, "orelse", [])):
        if body and body[0].lineno <= line <= (body[-1].end_lineno or 0):
            return isinstance(body[-1], ast.Break)
    return False


def _is_made_over(store: Store) -> bool:
    """Whether the same block gives the name what it makes of this: best = {k: v.clone() for k, v in best.items()}."""
    following = (each for each in store.scope.stores.get(store.name, ()) if each.order > store.order)
    return any(
        each.value is not None
        and store.block in each.path
        and any(dotted(inner) == store.name for inner in ast.walk(each.value))
        for each in following
    )


def _is_called_in_training(script: Script, store: Store) -> bool:
    """Whether a loop that trains calls the function that keeps the state for it: nonlocal, global."""
    if loops(store.path) or store.name.removesuffix("[]") not in store.scope.outside:
        return False
    rings = {id(ring.block): ring for step in training_steps(script) for ring in (step.ring, *step.around)}
    return any(event.fact is store for ring in rings.values() for event in script.written.events(ring))


def _is_used_outside(script: Script, store: Store) -> bool:
    """Whether another function loads or saves what was kept."""
    return any(
        call.scope is not store.scope and _mentions(call, store) for call in script.calls("load_state_dict", "save")
    )


def _is_taken_out(store: Store, *tails: str) -> bool:
    """Whether the same block saves or copies what it has just kept, or keeps it only until it swaps it back."""
    following = (call for call in store.scope.calls if call.order > store.order and store.block in call.path)
    used = [call for call in following if _mentions(call, store)]
    return any(call.tail in (tails or ("deepcopy", "load_state_dict", "clone", "cpu")) for call in used)


def _mentions(call: Call, store: Store) -> bool:
    name = store.name.removesuffix("[]")
    return any(dotted(inner) == name for each in call.arguments for inner in ast.walk(each))


def _is_trained_in(script: Script, loop: Block, store: Store, model: ast.expr) -> bool:
    """Whether LOOP trains the model and does not make a new one in each turn."""
    name = dotted(model)
    ring = Ring(loop, store.scope)
    events = script.written.events(ring)
    stores = (each.fact for each in events if isinstance(each.fact, Store) and each.fact.how != "parameter")
    fresh = {each.name for each in stores if each.scope is store.scope or "." in each.name}
    if not name or fresh & {name, name.partition(".")[0]}:
        return False
    for step in training_steps(script):
        if step.ring.block is loop or any(each.block is loop for each in step.around):
            return True
    return any(
        _TRAINS.search(each.call.tail.lower()) and any(dotted(part) == name for part in each.call.arguments)
        for each in events
        if each.call is not None and script.trace.definition(each.call.node.func, each.call.scope) is None
    )


def _is_used_after(script: Script, store: Store, loop: Block) -> bool:
    """Whether what was kept is loaded, saved or returned when the loop is over, or just before it is left."""
    name = store.name.removesuffix("[]")
    others = [each for each in store.scope.stores.get(name, ()) if each is not store and loop not in each.path]
    for call in script.calls("load_state_dict", "save"):
        if call.scope is store.scope and any(surely(each, call) and each.order > store.order for each in others):
            continue  # state = {…}; torch.save(state): the name has become another one
        elsewhere = call.scope is not store.scope and name.startswith(f"{call.scope.receiver}.") and call.scope.host
        after = call.scope is store.scope and call.order > store.order and loop not in call.path
        leaving = call.scope is store.scope and loop in call.path and call.block.leaves != ""
        if (elsewhere or after or leaving) and store.block not in call.path and _mentions(call, store):
            return True
    returns = (each for each in store.scope.returns if each.order > store.order and each.node.value is not None)
    return any(dotted(inner) == name for each in returns if each.node.value for inner in ast.walk(each.node.value))


def _copy(script: Script, value: ast.expr | None, taken: ast.Call) -> tuple[Edit, ...]:
    """A deep copy where the file knows copy, else clones; only of a state that stands there by itself."""
    whole: ast.expr = taken
    if isinstance(value, ast.Call) and value is not taken:
        if not _is_copy_method(value, taken):
            return ()
        whole = value
    text = script.source(taken)
    if any(store.imported == "copy" and store.name == "copy" for store in script.facts.aliases):
        return script.replaced("copy-the-state", whole, f"copy.deepcopy({text})")
    if any(store.imported == "copy.deepcopy" and store.name == "deepcopy" for store in script.facts.aliases):
        return script.replaced("copy-the-state", whole, f"deepcopy({text})")
    clones = f"{{name: tensor.detach().clone() for name, tensor in {text}.items()}}"
    return script.replaced("copy-the-state", whole, clones)


def _is_copy_method(value: ast.Call, taken: ast.Call) -> bool:
    return isinstance(value.func, ast.Attribute) and value.func.value is taken
