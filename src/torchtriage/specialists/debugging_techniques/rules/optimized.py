"""What the source alone shows about parameters that no optimizer holds."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.definitions import Origin
from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Call, Scope, dotted
from torchtriage.examine.source.flow import reaches
from torchtriage.examine.source.roles import Part
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import TrainingStep, training_steps
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.debugging_techniques.rules.late import made_late
from torchtriage.specialists.debugging_techniques.rules.likeness import given, has_parameters, optimizers
from torchtriage.specialists.debugging_techniques.rules.values import is_off

_FIXED = ("teacher", "target", "fixed", "frozen", "random", "ref", "ema", "vgg", "percept", "clip", "prior", "pretrain")


@detector("source/parameters-not-in-optimizer")
def parameters_not_in_optimizer(script: Script) -> Iterator[Sighting]:
    """Parameters are made after the optimizer was given the model's, or never given to one."""
    if not any("optim" in name or name == "torch" for name in script.facts.imports):
        return
    made = optimizers(script)
    if not made or any(script.calls("add_param_group")):
        return
    for part in made:
        yield from made_late(script, part)
    yield from _forgotten(script, made)


# models that no optimizer was given


_HARMLESS = frozenset(
    {f"builtins.{name}" for name in ("print", "len", "isinstance", "type", "id", "hasattr", "next", "repr", "str")}
    | {"torch.save", "copy.deepcopy"}
)
_CLIPS = symbols().clips
_WRAPS = symbols().transparent_wrappers


def _forgotten(script: Script, made: list[Part]) -> Iterator[Sighting]:
    """A model that is called in the step, beside those that an optimizer holds."""
    held: set[int] = set()
    for part in made:
        modules = given(script, part.made, part.scope) if part.made and part.scope else []
        for each in modules:
            ends = [*script.trace.origins(each, part.scope)] if part.scope else []
            wholes = [*_wholes(script, each, part.scope)]
            if any(end.call is None and not end.is_parameter for end in (wholes or ends)):
                return
            wrapped = (inner for end in ends if end.call for inner in _wrapped(script, end.call, end.scope))
            held |= {id(end.call) for end in (*ends, *wholes, *wrapped)}
        if not modules:
            return
    said: set[int] = set()
    for step in training_steps(script):
        parts = [part for _, _, parts in step.optimizing() for part in parts]
        if step.hidden or not parts or any(part.made is None for part in parts):
            continue
        for event in step.events:
            whole = _left_out(script, step, event, held) if event.call is not None else None
            if whole is not None and event.call is not None and id(whole) not in said and parts[0].made is not None:
                said.add(id(whole))
                name = script.source(event.call.node.func)
                yield script.seen(
                    parts[0].made,
                    f"{name} is {_mode(script, whole)}called in line {event.call.node.lineno}, and no optimizer of "
                    "this file has its parameters",
                )


def _wholes(script: Script, node: ast.expr, scope: Scope | None) -> Iterator[Origin]:
    """What NODE is a part of: of model.head.weight, model.head and model."""
    while isinstance(node, ast.Attribute | ast.Subscript) and scope is not None:
        node = node.value
        yield from script.trace.origins(node, scope)


def _wrapped(script: Script, made: ast.Call, scope: Scope) -> Iterator[Origin]:
    """What MADE is given: the model in DistributedDataParallel(model), the parts in Pair(encoder, decoder)."""
    for each in _listed((*made.args, *(keyword.value for keyword in made.keywords))):
        yield from script.trace.origins(each, scope)


def _listed(nodes: Iterable[ast.expr]) -> Iterator[ast.expr]:
    """NODES, and what the lists, tuples and dictionaries among them hold, at any depth."""
    for node in nodes:
        yield node
        match node:
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts):
                yield from _listed(parts)
            case ast.Starred(value=value) | ast.NamedExpr(value=value):
                yield from _listed((value,))
            case ast.IfExp(body=one, orelse=other):
                yield from _listed((one, other))


def _left_out(script: Script, step: TrainingStep, event: Event, held: set[int]) -> ast.Call | None:
    """The construction of the model that EVENT calls, when it surely gets gradients, and no optimizer holds it."""
    call = event.call
    if call is None or not isinstance(call.node.func, ast.Name | ast.Attribute | ast.Subscript):
        return None
    if script.name(call) or script.trace.definition(call.node.func, call.scope) is not None or not call.arguments:
        return None
    ends = script.trace.origins(call.node.func, call.scope)
    whole = ends[0].call if len(ends) == 1 else None
    if whole is None or id(whole) in held or not has_parameters(script, whole, ends[0].scope):
        return None
    host = ends[0].scope.host
    if host is not None and any(base not in ("", "builtins.object", "abc.ABC") for base in script.trace.bases(host)):
        return None  # a part of a module, which may be given as a whole
    if is_off(script, event.path, call.scope) or not _is_propagated(script, step, event):
        return None
    return whole if _is_only_run(script, whole, dotted(call.node.func)) else None


def _is_propagated(script: Script, step: TrainingStep, event: Event) -> bool:
    """Whether the result of a model may go on to backward: it is neither dropped nor detached."""
    call = event.call
    if call is None or not any(reaches(event, backward.event) for backward in step.backwards):
        return False
    statement = call.statement
    if isinstance(statement, ast.Expr) and statement.value is call.node:
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    names = {dotted(node) for target in targets for node in ast.walk(target)} - {""}
    if any(dotted(backward.root) in names for backward in step.backwards):
        return True
    cuts = (each for each in script.calls("detach", "detach_", "numpy") if each.scope is call.scope)
    return not any(
        inner is call.node or dotted(inner) in names for cut in cuts for inner in ast.walk(cut.receiver or ast.Pass())
    )


def _is_only_run(script: Script, whole: ast.Call, name: str) -> bool:
    """Whether nothing that is done with the model that WHOLE makes can train, freeze or hold it out of sight."""
    is_trained = any(_is(script, call.receiver, call, whole) and not call.arguments for call in script.calls("train"))
    if any(_nests(script, whole, call) for calls in script.facts.calls.values() for call in calls):
        return False
    for tail in ("parameters", "named_parameters", "children", "named_children", "modules", "named_modules"):
        for call in script.calls(tail):
            if _is(script, call.receiver, call, whole):
                if not _is_clipped(script, call) and not _is_counted(call):
                    return False
                is_trained = is_trained or _is_clipped(script, call)
    if any(_is(script, call.receiver, call, whole) for call in script.calls("requires_grad_", "get_parameter")):
        return False
    if is_trained:
        return True
    fixed = any(_is(script, call.receiver, call, whole) for call in script.calls("eval", "load_state_dict"))
    return not fixed and not any(word in name.lower() for word in _FIXED)


def _is(script: Script, node: ast.expr | None, call: Call, whole: ast.Call) -> bool:
    return node is not None and any(end.call is whole for end in script.trace.origins(node, call.scope))


def _nests(script: Script, whole: ast.Call, call: Call) -> bool:
    """Whether CALL puts the model into another one, or gives it to code that cannot be seen from here."""
    if call.node is whole:
        return False
    inside = list(_listed(call.arguments))
    mine = any(inner is whole for argument in call.arguments for inner in ast.walk(argument))
    mine = mine or any(
        isinstance(each, ast.Name | ast.Attribute | ast.Subscript | ast.Starred) and _is(script, each, call, whole)
        for each in inside
    )
    if not mine or any(call.node.func is each for each in (whole.func,)):
        return False
    own = script.trace.definition(call.node.func, call.scope)
    if own is not None:
        return own.kind == "class" and "torch.nn.Module" in script.trace.bases(own)
    name = script.name(call)
    return (
        name not in _HARMLESS | _WRAPS | _CLIPS
        and name.rpartition(".")[2] not in ("summary", "watch")
        and not (_is_record(script, call))
    )


def _is_record(script: Script, call: Call) -> bool:
    """Whether CALL makes a namedtuple or a plain namespace, in which the model is followed."""
    ends = script.trace.origins(call.node.func, call.scope) if isinstance(call.node.func, ast.Name) else ()
    made = [script.names.resolve(end.call.func, end.scope) for end in ends if end.call is not None]
    return made == ["collections.namedtuple"] or script.name(call) in ("types.SimpleNamespace", "builtins.dict")


def _is_clipped(script: Script, call: Call) -> bool:
    return any(
        inner is call.node for clip in script.named(*_CLIPS) for each in clip.arguments for inner in ast.walk(each)
    )


def _is_counted(call: Call) -> bool:
    """sum(p.numel() for p in model.parameters()), next(model.parameters()).device."""
    return any(
        isinstance(node, ast.Attribute) and node.attr in ("numel", "device", "dtype", "nelement")
        for node in ast.walk(call.statement)
    ) and isinstance(call.statement, ast.Expr | ast.Assign | ast.Return)


def _mode(script: Script, whole: ast.Call) -> str:
    lines = [call.node.lineno for call in script.calls("train") if _is(script, call.receiver, call, whole)]
    return f"put into training mode in line {lines[0]} and " if lines else ""
