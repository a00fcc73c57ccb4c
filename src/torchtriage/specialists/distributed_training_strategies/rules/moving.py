"""Whether a model is on its device before it is wrapped."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope, dotted
from torchtriage.examine.source.flow import reaches
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.families import UPLOADS
from torchtriage.examine.source.wrappers import Wrapper
from torchtriage.specialists.distributed_training_strategies.rules.things import comes_after, holds, is_of, things


@detector("source/moved-after-wrapping")
def moved_after_wrapping(wrapper: Wrapper) -> Iterator[Sighting]:
    """The model is moved to its device only after DistributedDataParallel has wrapped it."""
    script, call = wrapper.script, wrapper.call
    if wrapper.kind != "replicated" or wrapper.module is None:
        return
    moves = [each for each in script.calls("to", "cuda") if _is_move(script, each)]
    late = [each for each in moves if _is_late(wrapper, each)]
    if not late or _is_placed(wrapper, [each for each in moves if each not in late]):
        return
    what = wrapper.target or "the model"
    fact = f"{what} was wrapped in line {call.node.lineno}, when its parameters were not there yet"
    yield script.seen(late[0].node, fact, edits=_swapped(wrapper, late[0]))


def _is_late(wrapper: Wrapper, move: Call) -> bool:
    """Whether MOVE surely moves the wrapper, or the module in it, after the wrapping."""
    script, call = wrapper.script, wrapper.call
    if move.receiver is call.node:
        return True
    if not _is_statement(move):
        return False
    name = dotted(move.receiver)
    names = {dotted(wrapper.module), wrapper.target, f"{wrapper.target}.module"} - {"", ".module"}
    if move.scope is call.scope:
        return reaches(call, move) and (name in names or is_of(script, move.receiver, move.scope, call.node))
    return is_of(script, move.receiver, move.scope, call.node) and comes_after(script, move, call)


def _is_move(script: Script, call: Call) -> bool:
    """Whether CALL moves to a device other than the CPU, as far as one can read it."""
    if call.receiver is None:
        return False
    if call.tail == "cuda":
        return True
    target = call.argument("device", 0)
    if target is None or (isinstance(target, ast.Constant) and target.value == "cpu"):
        return False
    name = script.names.resolve(target, call.scope)
    is_dtype = name.startswith("torch.") or "dtype" in dotted(target) or "dtype" in ast.unparse(target)
    return not is_dtype or (isinstance(target, ast.Call) and name != "torch.device")


def _is_statement(move: Call) -> bool:
    """Whether the move stands for itself, model.to(device), or gives a name to what it moved."""
    match move.statement:
        case ast.Expr(value=value) | ast.Return(value=value):
            return value is move.node
        case ast.Assign(targets=[target], value=value):
            return value is move.node and bool(dotted(target) or isinstance(target, ast.Subscript))
    return False


def _is_placed(wrapper: Wrapper, others: list[Call]) -> bool:
    """Whether the model may be on its device already when it is wrapped: by one of the OTHERS moves, or as made."""
    script, call = wrapper.script, wrapper.call
    inner = dotted(wrapper.module)
    if any(script.calls("set_default_device", "set_default_tensor_type", "to_empty")) or any(
        isinstance(each.statement, ast.With) for each in script.named("torch.device")
    ):
        return True
    mine = things(script, wrapper.module, call.scope) - {id(call.node)}
    if any(_is_same(script, each, mine) or holds(script, wrapper.module, call.scope, each.node) for each in others):
        return True
    if any(inner and dotted(each.receiver) == inner and each.scope is call.scope for each in others):
        return True
    for origin in script.trace.origins(wrapper.module, call.scope):
        if origin.node is call.node or origin.is_parameter:
            continue
        if origin.call is None or _makes_there(script, origin.call, origin.scope):
            return True
    return _is_passed_before(wrapper, inner)


def _is_same(script: Script, move: Call, mine: set[int]) -> bool:
    """Whether MOVE moves one of MINE; what is moved where it is made, build().to(device), is a thing of its own."""
    return not isinstance(move.receiver, ast.Call) and bool(things(script, move.receiver, move.scope) & mine)


def _makes_there(script: Script, value: ast.Call, scope: Scope) -> bool:
    """Whether a value may come with its device: .to() in it, device= among its arguments, or a function unseen."""
    for node in ast.walk(value):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in UPLOADS:
                return True
            if any(keyword.arg in ("device", "device_map", "gpu", None) for keyword in node.keywords):
                return True
            if any("device" in dotted(each).lower() for each in node.args):
                return True
    own = script.trace.definition(value.func, scope)
    if own is not None:
        return any(call.tail in UPLOADS and not _is_inside_forward(call) for call in _calls_in(script, own))
    name = script.names.resolve(value.func, scope)
    word = dotted(value.func).rpartition(".")[2]
    is_class = word[:1].isupper() or dotted(value.func).rpartition(".")[0].rpartition(".")[2][:1].isupper()
    return not (name.startswith(("torch.", "torchvision.", "timm.")) or is_class)


def _is_inside_forward(call: Call) -> bool:
    return call.scope.name == "forward"


def _calls_in(script: Script, own: Scope) -> Iterator[Call]:
    scopes = [own] if own.kind == "function" else [each for each in script.facts.scopes if each.host is own]
    for scope in scopes:
        yield from scope.calls


def _is_passed_before(wrapper: Wrapper, inner: str) -> bool:
    """Whether other code gets the model in its hands before it is wrapped, and may move it."""
    script, call = wrapper.script, wrapper.call
    for other in call.scope.calls if inner else ():
        if other is call or not reaches(other, call):
            continue
        if any(dotted(each) == inner for each in other.arguments):
            own = script.trace.definition(other.node.func, other.scope)
            if own is not None and any(each.tail in UPLOADS for each in _calls_in(script, own)):
                return True
            if own is None and not script.knows(other):
                return True
    return False


def _swapped(wrapper: Wrapper, move: Call) -> tuple[Edit, ...]:
    """The two statements in each other's place, where nothing stands between them and both speak of one name."""
    script, first, second = wrapper.script, wrapper.call.statement, move.statement
    alike = wrapper.target != "" and wrapper.target == dotted(wrapper.module) == dotted(move.receiver)
    near = first.lineno == first.end_lineno == second.lineno - 1 and second.end_lineno == second.lineno
    if not (alike and near and first.col_offset == second.col_offset):
        return ()
    return (
        *script.replaced("move-first", first, script.source(second)),
        *script.replaced("move-first", second, script.source(first)),
    )
