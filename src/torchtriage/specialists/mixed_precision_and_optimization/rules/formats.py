"""What the source alone shows about autocast regions, and about the scaler that their format asks for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Call, Return, Scope, Store, dotted
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import Backward, TrainingStep
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.mixed_precision_and_optimization.rules.regions import Autocast, Regions, regions_of
from torchtriage.specialists.mixed_precision_and_optimization.rules.scaled import propagations, unrelated
from torchtriage.specialists.mixed_precision_and_optimization.rules.trained import is_frozen

_SCALES = symbols().scaler_words
_DEFAULTS = symbols().autocast_settings
_FORMAT_WORDS = re.compile("16|half|type|precision|scal|format|bf")
_ENTROPY = "torch.nn.functional.binary_cross_entropy"
_CONSTANT = ("float", "double", "detach")


@detector("source/scaler-missing")
def scaler_missing(step: TrainingStep) -> Iterator[Sighting]:
    """The loss is computed in float16 under autocast, and no GradScaler scales it."""
    script = step.script
    named = script.facts.aside | _imported(script)
    if not any(True for _ in script.calls("autocast")) and not named & {"autocast", "torch.amp.autocast"}:
        return
    if step.hidden or _speaks_of_scaling(step) or not any(step.optimizing()):
        return
    for backward in propagations(step):
        region = _forward(step, backward) if backward.scaler is None else None
        if region is None or region.dtype != "float16" or region.disabled:
            continue
        if step.handed_over("optimizer") or step.unseen_method():
            return
        yield script.seen(
            backward.call.node,
            f"the forward pass runs in float16 (autocast in line {region.call.lineno}), and gradients below 6e-8 "
            "become 0 there: nothing multiplies this loss by a loss scale",
        )
        return


def _imported(script: Script) -> set[str]:
    return {store.imported for store in script.facts.aliases}


def _speaks_of_scaling(step: TrainingStep) -> bool:
    """Whether the file scales a loss in any form, by a scaler of any origin or by hand: other trainings left out."""
    script, others = step.script, unrelated(step)
    if any(id(call.scope) not in others for call in script.calls(*_SCALES, *_DEFAULTS)):
        return True
    names = {name.lower() for scope in script.facts.scopes if id(scope) not in others for name in scope.stores}
    return any("scaler" in name or "loss_scale" in name for name in names) or bool(script.aside & {"unscale_", "scale"})


def _forward(step: TrainingStep, backward: Backward) -> Autocast | None:
    """The autocast context, with gradients on, in which something is computed that BACKWARD propagates."""
    regions = regions_of(step.script)
    for event in behind(step, backward):
        region = regions.around(event.path)
        if region is not None and not regions.is_without_graph(event.path) and not _is_of_frozen(step.script, event):
            return region
    for value, scope in _values(step, backward):
        region = _inside(step.script, regions, value, scope)
        if region is not None:
            return region
    return None


def _is_of_frozen(script: Script, event: Event) -> bool:
    """Whether EVENT stores what a frozen model gives, which no gradient flows through."""
    value = event.fact.value if isinstance(event.fact, Store) else None
    called = value.func if isinstance(value, ast.Call) else None
    return called is not None and bool(dotted(called)) and is_frozen(script, called, event.fact.scope)


def _values(step: TrainingStep, backward: Backward) -> Iterator[tuple[ast.expr | None, Scope]]:
    """What BACKWARD propagates, and what the stores behind it give."""
    yield backward.root, backward.call.scope
    regions = regions_of(step.script)
    for event in behind(step, backward):
        if isinstance(event.fact, Store) and not regions.is_without_graph(event.path):
            yield event.fact.value, event.fact.scope


def _inside(script: Script, regions: Regions, value: ast.expr | None, scope: Scope, deep: int = 0) -> Autocast | None:
    """The autocast context that a function or a module's forward of this file enters by itself, when VALUE calls it."""
    for node in ast.walk(value) if value is not None else ():
        helper = script.trace.definition(node.func, scope) if isinstance(node, ast.Call) and deep < 3 else None
        if helper is not None and helper.kind == "function":
            for each in helper.returns:
                region = _returned(script, regions, each, helper, deep)
                if region is not None:
                    return region
        host = script.trace.instance(node.func, scope) if isinstance(node, ast.Call) else None
        forward = script.trace.method(host, "forward") if host is not None else None
        for call in forward.calls if forward is not None else ():
            region = regions.around(call.path)
            if region is not None and not regions.is_without_graph(call.path):
                return region
    return None


def _returned(script: Script, regions: Regions, each: Return, helper: Scope, deep: int) -> Autocast | None:
    """The autocast context in which what a function returns is computed."""
    if regions.is_without_graph(each.path):
        return None
    region = regions.around(each.path)
    value = each.node.value
    if region is not None and value is not None and any(isinstance(n, ast.Call | ast.BinOp) for n in ast.walk(value)):
        return region
    return _inside(script, regions, each.node.value, helper, deep + 1)


def behind(step: TrainingStep, backward: Backward) -> Iterator[Event]:
    """The stores of the step that what BACKWARD propagates is made of, by name, through functions of the file."""
    wanted = _names(backward.root, step, backward.call.scope)
    for event in reversed(step.events):
        fact = event.fact
        if isinstance(fact, Store) and fact.name in wanted and fact.value is not None and fact.how != "element":
            wanted |= _names(fact.value, step, fact.scope)
            yield event


def _names(node: ast.expr | None, step: TrainingStep, scope: Scope) -> set[str]:
    """The names that NODE is made of, and those that a function of the file returns where it calls one."""
    found: set[str] = set()
    for inner in ast.walk(node) if node is not None else ():
        if isinstance(inner, ast.Name | ast.Attribute) and (name := dotted(inner)):
            found.add(name)
        if isinstance(inner, ast.Call):
            helper = step.script.trace.definition(inner.func, scope)
            for each in helper.returns if helper is not None and helper.kind == "function" else ():
                found |= {dotted(part) for part in ast.walk(each.node) if isinstance(part, ast.Name | ast.Attribute)}
    return found - {""}


@detector("source/scaler-with-bf16")
def scaler_with_bf16(step: TrainingStep) -> Iterator[Sighting]:
    """A GradScaler scales a loss that is computed in bfloat16."""
    script = step.script
    scaled = [each for each in propagations(step) if each.scaler is not None]
    if not scaled:
        return
    made = [part for part in script.roles.made(scaled[0].scaler, scaled[0].call.scope, "scaler") if part.made]
    if len(made) != 1 or made[0].made is None or _is_switched(made[0].made):
        return
    regions = regions_of(script)
    found = [regions.around(event.path) for each in scaled for event in behind(step, each)]
    found += [_inside(script, regions, *value) for each in scaled for value in _values(step, each)]
    entered = [region for region in found if region is not None]
    if entered and all(region.dtype == "bfloat16" and not region.disabled for region in entered):
        yield script.seen(
            made[0].made,
            f"the forward pass runs in bfloat16 (autocast in line {entered[0].call.lineno}), which has the range of "
            "float32: the scaler only adds a check and a synchronisation to every step",
        )


def _is_switched(made: ast.Call) -> bool:
    """Whether the scaler may be off."""
    return any(
        keyword.arg is None or (keyword.arg == "enabled" and _may_know(keyword.value)) for keyword in made.keywords
    )


def _may_know(switch: ast.expr) -> bool:
    """Whether what a scaler is enabled by may be off for bfloat16: False, or words of a format."""
    if isinstance(switch, ast.Constant):
        return switch.value is not True
    named = [dotted(node).lower() for node in ast.walk(switch) if dotted(node)]
    return not named or any(_FORMAT_WORDS.search(each) for each in named)


@detector("source/backward-in-autocast")
def backward_in_autocast(step: TrainingStep) -> Iterator[Sighting]:
    """backward() is called inside an autocast region."""
    regions = regions_of(step.script) if step.backwards else None
    seen: set[int] = set()
    for backward in step.backwards:
        region = _around(step, regions, backward) if regions is not None else None
        if region is None or region.disabled or id(backward.call) in seen or _is_nested(step, backward):
            continue
        seen.add(id(backward.call))
        yield step.script.seen(
            backward.call.node,
            f"this backward runs inside the autocast region of line {region.call.lineno}, so autocast also casts the "
            "operations of the backward pass; leave the region first",
        )


def _around(step: TrainingStep, regions: Regions, backward: Backward) -> Autocast | None:
    """The region of BACKWARD; in a function that no loop of the file calls, also that of its callers."""
    own = regions.around(backward.event.path)
    if own is not None or step.ring.is_loop:
        return own
    return next((each for each in _reached(step.script, regions, backward.call, 0) if each is not None), None)


def _is_nested(step: TrainingStep, backward: Backward) -> bool:
    """Whether the backward is a function's own method that this file defines (a manual backward pass)."""
    return step.script.trace.definition(backward.call.node.func, backward.call.scope) is not None


@detector("source/bce-under-autocast")
def bce_under_autocast(script: Script) -> Iterator[Sighting]:
    """Binary cross entropy of probabilities is computed inside a CUDA autocast region, which refuses it."""
    regions = None
    for call in _entropies(script):
        regions = regions or regions_of(script)
        for region in _reached(script, regions, call, 0):
            if region is not None and region.device == "cuda" and not region.disabled:
                yield script.seen(
                    call.node,
                    f"the CUDA autocast region of line {region.call.lineno} refuses binary cross entropy of "
                    "probabilities, in any format, with RuntimeError",
                )
                break


def _reached(script: Script, regions: Regions, call: Call, deep: int) -> Iterator[Autocast | None]:
    """The region of CALL: its own, or those in which the functions around it are called."""
    own = regions.around(call.path)
    yield own
    if own is None and deep < 3 and call.scope.kind == "function":
        for site in _sites(script, call.scope):
            yield from _reached(script, regions, site, deep + 1)


def _sites(script: Script, scope: Scope) -> Iterator[Call]:
    """The calls of a function; of a module's forward, the calls of its instances."""
    yield from script.trace.sites(scope)
    if scope.name == "forward" and scope.host is not None:
        for call in (call for calls in script.facts.calls.values() for call in calls):
            if script.trace.instance(call.node.func, call.scope) is scope.host and not _makes(script, call):
                yield call


def _makes(script: Script, call: Call) -> bool:
    """Whether CALL is the constructor itself, and not a call of what it has made."""
    made = script.trace.definition(call.node.func, call.scope)
    return made is not None and made.kind == "class"


def _entropies(script: Script) -> Iterator[Call]:
    yield from script.named(_ENTROPY)
    for made in script.named("functools.partial"):
        if made.node.args and script.names.resolve(made.node.args[0], made.scope) == _ENTROPY:
            yield from _calls_of(script, made)
    if any(True for _ in script.named("torch.nn.BCELoss")):
        for calls in list(script.facts.calls.values()):
            yield from (call for call in calls if _is_entropy(script, call))


def _calls_of(script: Script, made: Call) -> Iterator[Call]:
    """The calls of the partial function MADE, by the name that it was given."""
    target = made.statement.targets[0] if isinstance(made.statement, ast.Assign) else None
    for call in script.calls(dotted(target).rpartition(".")[2]) if dotted(target) else ():
        origins = script.trace.origins(call.node.func, call.scope)
        if len(origins) == 1 and origins[0].node is made.node:
            yield call


def _is_entropy(script: Script, call: Call) -> bool:
    called = call.node.func
    if script.name(call):
        return False
    origins = script.trace.origins(called, call.scope)
    names = {script.names.resolve(each.call.func, each.scope) if each.call is not None else "" for each in origins}
    each_in_turn = any(each.store is not None and each.store.how == "element" for each in origins)
    each_in_turn = each_in_turn or _is_of_turn(script, called, call.scope)
    return "torch.nn.BCELoss" in names and (len(names) == 1 or (each_in_turn and not _is_chosen(call)))


def _is_chosen(call: Call) -> bool:
    """Whether a condition picks the turns of the loop, or of the comprehension, in which CALL runs."""
    loop = next((block for block in reversed(call.path) if block.kind == "loop"), None)
    inner = call.path[call.path.index(loop) + 1 :] if loop is not None else call.path
    within = [call.statement, *getattr(loop.owner if loop is not None else None, "body", ())]
    parts = [node for each in within for node in ast.walk(each)]
    return any(block.kind == "arm" for block in inner) or any(
        isinstance(node, ast.Continue) or (isinstance(node, ast.comprehension) and node.ifs) for node in parts
    )


def _is_of_turn(script: Script, called: ast.expr, scope: Scope) -> bool:
    """Whether CALLED is the entry for the key at which a loop or a comprehension stands: losses[name](…)."""
    key = called.slice if isinstance(called, ast.Subscript) else None
    if not isinstance(key, ast.Name):
        return False
    bound = script.facts.bound.get(id(key))
    return any(each.how == "element" for each in ([bound] if bound is not None else script.names.stores(key.id, scope)))
