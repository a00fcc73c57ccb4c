"""What the source alone shows about weights and tensors that are float16 by a cast of one's own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.contents import is_property
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.flow import Spot, reaching
from torchtriage.examine.source.roles import Part
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import TrainingStep
from torchtriage.examine.source.torch_api.families import FACTORIES, LIKE_FACTORIES, VIEW_ATTRIBUTES
from torchtriage.examine.source.torch_api.operators import names
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.mixed_precision_and_optimization.rules.regions import formats, given, regions_of
from torchtriage.specialists.mixed_precision_and_optimization.rules.settings import ends
from torchtriage.specialists.mixed_precision_and_optimization.rules.trained import optimized, starts

_VANISHES = 2.0**-25  # half of the smallest float16: this and less is rounded to 0
_ADAPTERS = ("peft", "bitsandbytes", "loralib", "quanto", "unsloth", "torchao")
_KEEPS = ("master", "fp32", "float32", "lora", "adapter", "full_precision")
_FUNCTIONS = ("torch.", "torch.nn.functional.")
_BOUNDS = symbols().lower_bounds
_CREATED = FACTORIES | LIKE_FACTORIES
_CASTS = frozenset({"half", "to", "type", *_CREATED})
_SHAPES = names(dtype="same") | names(dtype="float") | VIEW_ATTRIBUTES


@detector("source/half-model-trained")
def half_model_trained(step: TrainingStep) -> Iterator[Sighting]:
    """A model is cast to float16 as a whole and then trained."""
    script = step.script
    if not any(word in script.text.data for word in (b"half", b"float16")):
        return
    casts = [call for call in script.calls("half", "to", "type", "from_pretrained") if _is_half_cast(script, call)]
    casts += [call for calls in script.facts.calls.values() for call in calls if _is_made_half(script, call)]
    if not casts or script.names.framework() or _keeps_float32(script):
        return
    parts = [part for _, _, parts in step.optimizing() for part in parts if part.name.startswith("torch.optim.")]
    for call in casts:
        model = _model(script, call)
        if _may_be_frozen(script, model):
            continue
        for part in parts:
            if _is_before(step, call, part) and model & optimized(script, part) and not _is_restored(script, model):
                yield script.seen(call.node, _fact(step, part))
                break


def _is_half_cast(script: Script, call: Call) -> bool:
    """x.half(), x.to(torch.float16), x.to(device, dtype=torch.half)."""
    if call.receiver is None:
        return False
    if call.tail == "half":
        return not call.node.args
    if call.tail in _CREATED:
        return formats(script, call.argument("dtype"), call.scope) == "float16"
    if call.tail == "from_pretrained":
        name, kind = script.name(call), call.argument("torch_dtype") or call.argument("dtype")
        return name.startswith(("transformers.", "diffusers.")) and formats(script, kind, call.scope) == "float16"
    given_types = [*call.node.args, *(k.value for k in call.node.keywords if k.arg == "dtype")]
    return any(formats(script, each, call.scope) == "float16" for each in given_types)


def _is_made_half(script: Script, call: Call) -> bool:
    """Whether CALL makes a layer with float16 weights: nn.Linear(8, 8, dtype=torch.float16)."""
    kind = call.argument("dtype")
    is_layer = kind is not None and call.tail[:1].isupper() and script.name(call).startswith("torch.nn.")
    return is_layer and formats(script, kind, call.scope) == "float16"


def _model(script: Script, cast: Call) -> set[int]:
    """What is cast: the receiver, or the model that is loaded in float16."""
    if cast.scope.receiver and dotted(cast.receiver) == cast.scope.receiver:  # self.half(): every object of the class
        made = cast.scope.host and script.trace.method(cast.scope.host, "__init__")
        return {id(site.node) for site in script.trace.sites(made)} if made else set()
    loaded = cast.tail == "from_pretrained" or cast.tail[:1].isupper()
    return starts(script, cast.node if loaded else cast.receiver, cast.scope)


def _keeps_float32(script: Script) -> bool:
    """Whether something says that float32 weights are kept, or that only a part of the model is trained."""
    if any(name.startswith(_ADAPTERS) for name in script.facts.imports):
        return True
    names = {name for scope in script.facts.scopes for name in scope.stores}
    if any(name.endswith(".requires_grad") for name in names):
        return True
    words = {*names, *script.facts.calls, *(scope.name for scope in script.facts.scopes)}
    return any(mark in word.lower() for word in words for mark in _KEEPS)


def _may_be_frozen(script: Script, model: set[int]) -> bool:
    """Whether a requires_grad_ may be for what is cast, or a part of it: not where it is surely for another model."""
    frozen = (starts(script, each.receiver, each.scope) for each in script.calls("requires_grad_"))
    return any(not each or each & model for each in frozen)


def _is_before(step: TrainingStep, cast: Call, part: Part) -> bool:
    """Whether the cast stands where the training is set up, before its loop: not in an evaluation or an export."""
    is_made = cast.scope.name == "__init__" and dotted(cast.receiver) == cast.scope.receiver
    in_place = isinstance(cast.statement, ast.Expr) and cast.statement.value is cast.node  # net.half() changes net
    is_kept = is_made or in_place or _is_returned(step.script, cast)
    if is_kept and is_property(cast.scope.node) and cast.scope.host is not None:
        words = {node.attr for node in ast.walk(part.made) if isinstance(node, ast.Attribute)} if part.made else set()
        return part.scope is not None and part.scope.host is cast.scope.host and cast.scope.name in words
    made_by = [*step.script.trace.sites(cast.scope)] if is_kept else []
    return any(_precedes(step, each, part) for each in (cast, *made_by))


def _precedes(step: TrainingStep, spot: Call, part: Part) -> bool:
    if any(spot.scope is site.scope for site in step.sites):
        return any(spot.scope is site.scope and spot.order < site.order for site in step.sites)
    if spot.scope is step.ring.scope:
        first = min((event.fact.order for event in step.events if event.fact.scope is spot.scope), default=0)
        return spot.order < first and not _is_left(spot)
    return spot.scope is part.scope and not _is_left(spot)


def _is_left(spot: Call) -> bool:
    """Whether the function is left where SPOT stands: if args.test_only: net.half(); …; return."""
    return any(block.kind == "arm" and block.leaves == "function" for block in spot.path)


def _is_returned(script: Script, cast: Call) -> bool:
    """Whether the function around CAST gives back the model that is cast."""
    model = starts(script, cast.receiver, cast.scope)
    return any(model & starts(script, each.node.value, cast.scope) for each in cast.scope.returns)


def _is_restored(script: Script, model: set[int]) -> bool:
    """Whether the model, or a part of it, is made float32 again somewhere."""
    return any(
        call.tail == "float" or formats(script, given(call.node, "dtype", 0), call.scope) == "bfloat16"
        for call in script.calls("float", "to")
        for each in (call.receiver, call.receiver.value if isinstance(call.receiver, ast.Attribute) else None)
        if model & starts(script, each, call.scope)
    )


def _fact(step: TrainingStep, part: Part) -> str:
    line = part.made.lineno if part.made is not None else 0
    if any(each.scaler is not None for each in step.backwards):
        return (
            f"the optimizer in line {line} trains these float16 weights, and the scaler refuses their gradients: "
            "ValueError: Attempting to unscale FP16 gradients"
        )
    return (
        f"the optimizer in line {line} updates these weights in float16, where a change below 1/4096 of a weight is "
        "lost and Adam's eps of 1e-8 is 0"
    )


@detector("source/eps-vanishes")
def eps_vanishes(script: Script) -> Iterator[Sighting]:
    """A small constant guards a float16 value against 0, and is 0 itself in float16."""
    if not any(word in script.text.data for word in (b"half", b"float16")):
        return
    casts = script.calls("half", "to", "type", *_CREATED)
    scopes = {id(call.scope): call.scope for call in casts if _is_half_cast(script, call)}
    for scope in scopes.values():
        for call in scope.calls:
            eps = _guard(script, call)
            if eps is not None:
                yield from _sighting(script, call, call.node, eps)
        for node, use in _sums(scope):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                eps = _constant(script, other, scope)
                if eps is not None and _is_half(script, one, scope, use):
                    yield from _sighting(script, use, node, eps)


def _sighting(script: Script, use: Spot, node: ast.expr, eps: float) -> Iterator[Sighting]:
    region = regions_of(script).around(use.path)
    if region is None or region.disabled:
        yield script.seen(
            node,
            f"{eps:g} is 0 in float16, whose smallest number is 6e-8: what it guards against gives infinity or NaN",
        )


def _guard(script: Script, call: Call) -> float | None:
    """The eps of a call that guards a half tensor: F.normalize(x), F.cosine_similarity(x, y), x.clamp(min=eps)."""
    name = script.name(call)
    if name in ("torch.nn.functional.normalize", "torch.nn.functional.cosine_similarity"):
        position, default = (3, 1e-12) if name.endswith("normalize") else (3, 1e-8)
        eps = call.argument("eps", position)
        value = default if eps is None else _constant(script, eps, call.scope)
        first = call.argument("input", 0) or call.argument("x1", 0)
        return value if first is not None and _is_half(script, first, call.scope, call) else None
    if call.tail not in _BOUNDS or call.receiver is None or name not in ("", f"torch.{call.tail}"):
        return None
    guarded = call.argument("input", 0) if name else call.receiver
    bound = call.argument("other" if call.tail == "add" else "min", 1 if name else 0)
    half = bound is not None and guarded is not None and _is_half(script, guarded, call.scope, call)
    return _constant(script, bound, call.scope) if half and bound is not None else None


def _constant(script: Script, node: ast.expr, scope: Scope) -> float | None:
    """The number that NODE surely is, when it vanishes in float16."""
    origins = list(ends(script, node, scope))
    if len(origins) != 1 or not isinstance(origins[0].node, ast.Constant):
        return None
    value = origins[0].node.value
    return value if isinstance(value, float) and 0 < value <= _VANISHES else None


def _sums(scope: Scope) -> Iterator[tuple[ast.BinOp, Spot]]:
    seen: set[int] = set()
    for action in (*scope.actions, *scope.returns):
        statement = action.statement if isinstance(action, Call) else action.node
        if id(statement) in seen or not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Return | ast.Expr):
            continue
        seen.add(id(statement))
        for node in ast.walk(statement):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
                yield node, action


def _is_half(script: Script, node: ast.expr, scope: Scope, use: Spot, deep: int = 0) -> bool:
    """Whether NODE is surely float16: cast so, or made of what was cast so by operations that keep the format."""
    if deep > 6:
        return False
    match node:
        case ast.Call(func=ast.Attribute()):
            call = next((each for each in scope.calls if each.node is node), None)
            cast = call is not None and call.tail in _CASTS and _is_half_cast(script, call)
            kept = _kept(script, call) if call is not None else None
            return cast or (kept is not None and _is_half(script, kept, scope, use, deep + 1))
        case ast.Name(id=name):
            return _is_half_name(script, name, scope, use, deep)
        case ast.BinOp(left=left, right=right):
            sides = [each for each in (left, right) if not _is_number(script, each, scope)]
            return bool(sides) and all(_is_half(script, each, scope, use, deep + 1) for each in sides)
        case ast.Subscript(value=value) | ast.Attribute(value=value, attr="values" | "data" | "T" | "mT"):
            return _is_half(script, value, scope, use, deep + 1)
    return False


def _is_number(script: Script, node: ast.expr, scope: Scope) -> bool:
    """Whether NODE is a number of Python, which leaves the format of a tensor as it is."""
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp(operand=inner):
            return _is_number(script, inner, scope)
        case ast.BinOp(left=left, right=right):
            return _is_number(script, left, scope) and _is_number(script, right, scope)
        case ast.Name() | ast.Attribute():
            found = list(ends(script, node, scope))
            return bool(found) and all(isinstance(each.node, ast.Constant) for each in found)
    return False


def _kept(script: Script, call: Call) -> ast.expr | None:
    """What CALL gives back in its own format: x of x.sum(), or of torch.softmax(x, dim=-1)."""
    if call.tail not in _SHAPES or call.argument("dtype") is not None:
        return None
    name = script.name(call)
    place = 1 if call.tail == "einsum" else 0
    return call.receiver if not name else call.argument("input", place) if name.startswith(_FUNCTIONS) else None


def _is_half_name(script: Script, name: str, scope: Scope, use: Spot, deep: int) -> bool:
    """Whether every store that NAME may come from gives it a float16 tensor."""
    found = reaching(scope.stores.get(name, ()), use)
    return bool(found) and all(
        each.how == "assign"
        and (value := _unpacked(each)) is not None
        and _is_half(script, value, scope, each, deep + 1)
        for each in found
    )


def _unpacked(store: Store) -> ast.expr | None:
    """The expression that STORE gives its name: the element itself in a, b = x.half(), y.half()."""
    if store.index is None:
        return store.value
    parts = store.value.elts if isinstance(store.value, ast.Tuple) else []
    return parts[store.index] if store.index < len(parts) else None
