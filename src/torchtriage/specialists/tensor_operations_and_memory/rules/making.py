"""What the source alone shows about tensors that are made in a roundabout way."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Block, Call, Scope, dotted
from torchtriage.examine.source.flow import loops
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.tensors import Tensors, bound_inside, is_batches
from torchtriage.examine.source.torch_api.families import DEVICE_MOVES, SIZED_FACTORIES
from torchtriage.examine.source.torch_api.operators import names
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.tensor_operations_and_memory.rules.grad_free import is_grad_free

_RANDOM = names(trait="random")
_DEVICES = frozenset({"device", "dev", "gpu", "rank", "local_rank", "cuda_device", "cuda"})
_CHECKPOINTS = symbols().checkpoints


@detector("source/tensor-of-tensor")
def tensor_of_tensor(script: Script) -> Iterator[Sighting]:
    """torch.tensor() is given a tensor: it warns, copies, and cuts the gradient off."""
    tensors = Tensors(script, is_strict=True)
    for call in script.named("torch.tensor"):
        given = call.argument("data", 0)
        if given is None or call.argument("requires_grad") is not None or _is_propagated(call):
            continue
        names = {node.id for node in ast.walk(given) if isinstance(node, ast.Name)}
        if (
            names & bound_inside(call.statement)
            or _is_asked(script, call, names)
            or _is_parameter(call, given)
            or _is_given_back(call, given)
            or not tensors.is_tensor(given, call, call.scope)
        ):
            continue
        yield _copied(script, call, given)


def _copied(script: Script, call: Call, given: ast.expr) -> Sighting:
    text = script.source(given)
    if is_grad_free(script, given, call):
        remedy, code = "detach-and-clone", f"{text}.detach().clone()"
        fact = f"{text} is a tensor already: torch.tensor() warns, and copies it as {code} does"
    else:
        remedy, code = "keep-the-gradient", f"{text}.clone()"
        fact = (
            f"{text} is a tensor already: torch.tensor() warns, and copies it without its graph, so no gradient "
            f"reaches what computed it; {code} keeps the gradient"
        )
    return script.seen(call.node, fact, _replacement(script, call, code, remedy) if _is_bare(call) else ())


def _is_given_back(call: Call, given: ast.expr) -> bool:
    """Whether the name becomes a tensor only here: data.targets = torch.tensor(data.targets)."""
    targets = call.statement.targets if isinstance(call.statement, ast.Assign) else []
    return "." in dotted(given) and any(dotted(each) == dotted(given) for each in targets)


def _is_parameter(call: Call, given: ast.expr) -> bool:
    """Whether a parameter is wrapped as it comes: whoever does that is given lists as well, whatever its annotation."""
    stores = call.scope.stores.get(given.id, []) if isinstance(given, ast.Name) else []
    return bool(stores) and any(store.how == "parameter" for store in stores)


def _is_asked(script: Script, call: Call, names: set[str]) -> bool:
    """Whether the function asks of what kind the value is: it is wrapped only if it is no tensor yet."""
    asking = script.calls("isinstance", "is_tensor", "type", "hasattr", "issubclass")
    return any(each.scope is call.scope and names & {dotted(given) for given in each.arguments} for each in asking)


def _is_bare(call: Call) -> bool:
    """Whether torch.tensor(x) has one plain argument, so that a method can be put behind it."""
    if len(call.node.args) != 1 or call.node.keywords:
        return False
    return isinstance(call.node.args[0], ast.Name | ast.Attribute | ast.Call | ast.Subscript)


def _is_propagated(call: Call) -> bool:
    """A loss that is wrapped anew and then propagated is a fault of its own."""
    match call.statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            given = value.args if isinstance(value, ast.Call) and value is not call.node else []
            if any(each is call.node for each in given):  # criterion(out, torch.tensor(goal)): of a target
                return False
            return any(each.tail == "backward" and dotted(each.receiver) == name for each in call.scope.calls)
    return False


@detector("source/created-then-moved")
def created_then_moved(script: Script) -> Iterator[Sighting]:
    """A tensor is made on the CPU again and again, and each time copied to the device."""
    for call in script.calls("to", "cuda"):
        made = _source(call.receiver)
        if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Attribute | ast.Name):
            continue
        head, _, last = script.names.resolve(made.func, call.scope).rpartition(".")
        if head != "torch" or last not in SIZED_FACTORIES or not _is_free(made) or _is_empty(made):
            continue
        goal = _goal(script, call)
        if goal and _is_hot(script, call, set()):
            yield script.seen(
                call.node,
                f"torch.{last}() fills memory of the host, and {call.tail}() copies it over for every batch; "
                f"device={goal} makes it where it is used",
                _on_device(script, call, made, goal) if last not in _RANDOM and made is call.receiver else (),
            )


def _is_empty(made: ast.Call) -> bool:
    """Whether MADE, which is told its sizes, holds nothing that could be copied: torch.empty(0)."""
    return len(made.args) == 1 and isinstance(made.args[0], ast.Constant) and made.args[0].value == 0


def _source(node: ast.expr | None) -> ast.expr | None:
    """What is given another shape before it is moved: torch.arange(n).unsqueeze(0) → torch.arange(n)."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SHAPES:
        inside = node.func.value if not isinstance(node.func.value, ast.Name) else next(iter(node.args), None)
        if not isinstance(inside, ast.Call):
            break
        node = inside
    return node


_SHAPES = names(home="method", returns="tensor", writes="-") - DEVICE_MOVES


def _is_free(made: ast.Call) -> bool:
    """Whether the factory is told nothing that a device= would change."""
    told = {keyword.arg for keyword in made.keywords}
    return not told & {"device", "generator", "pin_memory", "out", "requires_grad", None}


def _goal(script: Script, call: Call) -> str:
    """The code of the device that CALL moves to; "" when it is none, the host, or not known to be one."""
    if call.tail == "cuda":
        return '"cuda"' if not call.arguments else script.source(call.arguments[0]) if call.node.args else ""
    goal = call.argument("device", 0)
    match goal:
        case ast.Constant(value=str(word)):
            return "" if word.startswith("cpu") else script.source(goal)
        case ast.Name() | ast.Attribute():
            return script.source(goal) if dotted(goal).rpartition(".")[2].lower() in _DEVICES else ""
    return ""


def _is_hot(script: Script, call: Call, seen: set[int]) -> bool:
    """Whether CALL runs for every batch: in a loop that runs a model, in forward, or in what those call."""
    scope = call.scope
    if _is_remembered(call):
        return False
    if any(_is_busy(script, block, scope) for block in loops(call.path)):
        return True
    if scope.kind != "function" or scope.name == "__init__" or id(scope) in seen:
        return False
    decorators = getattr(scope.node, "decorator_list", [])
    if any("cache" in dotted(each.func if isinstance(each, ast.Call) else each) for each in decorators):
        return False
    seen.add(id(scope))
    if scope.name == "forward" and scope.host is not None:
        return True
    return any(_is_hot(script, site, seen) for site in script.trace.sites(scope))


def _is_remembered(call: Call) -> bool:
    """Whether CALL only fills what is kept: if self.mask is None: self.mask = …, except KeyError: cache[n] = …"""
    targets = call.statement.targets if isinstance(call.statement, ast.Assign) else []
    kept = any(isinstance(each, ast.Attribute | ast.Subscript) for each in targets)
    return kept and any(block.kind in ("arm", "handler") for block in call.path)


def _is_busy(script: Script, block: Block, scope: Scope) -> bool:
    """Whether the loop of BLOCK goes through batches, or runs or trains a model directly."""
    match block.owner:
        case ast.For(iter=node) if is_batches(script, node, scope):
            return True
        case ast.For(iter=ast.Call(func=ast.Attribute(attr="items" | "values"), args=[]) | ast.List() | ast.Tuple()):
            return False  # one turn for each of a few things
    inside = (each for each in scope.calls if loops(each.path)[:1] == [block])
    return any(each.tail == "backward" or script.roles.plays(each.node.func, scope, "model") for each in inside)


def _on_device(script: Script, call: Call, made: ast.Call, goal: str) -> tuple[Edit, ...]:
    """torch.zeros(n).to(device) → torch.zeros(n, device=device)"""
    alone = len(call.arguments) == 1 or (call.tail == "cuda" and not call.arguments)
    if not alone or call.node.lineno != call.node.end_lineno:
        return ()
    text = script.source(made)
    given = text[:-1].rstrip()
    comma = " " if given.endswith(",") else ", " if made.args or made.keywords else ""
    return _replacement(script, call, f"{given}{comma}device={goal})", "on-the-device") if text.endswith(")") else ()


def _replacement(script: Script, call: Call, code: str, remedy: str) -> tuple[Edit, ...]:
    """CODE instead of the whole CALL, when it stands on one line."""
    return script.replaced(remedy, call.node, code) if call.node.lineno == call.node.end_lineno else ()


@detector("source/checkpoint-reentrant-unset")
def checkpoint_reentrant_unset(script: Script) -> Iterator[Sighting]:
    """Activation checkpointing is not told which of its two ways to go."""
    yield from _prepared(script)
    for call in script.named(*_CHECKPOINTS):
        if any(keyword.arg in ("use_reentrant", None) for keyword in call.node.keywords):
            continue
        if call.node.args or call.node.keywords:
            yield script.seen(
                call.node,
                f"{call.tail}() without use_reentrant warns, and recomputes in the old way: what is inside gets no "
                "gradient when none of the inputs requires one",
                _told(script, call),
            )


def _prepared(script: Script) -> Iterator[Sighting]:
    """partial(checkpoint, …), where no call adds use_reentrant later."""
    for call in script.named("functools.partial"):
        name = script.names.resolve(next(iter(call.node.args), None), call.scope)
        told = {keyword.arg for keyword in call.node.keywords}
        if name in _CHECKPOINTS and not told & {"use_reentrant", None} and b"use_reentrant" not in script.text.data:
            last = name.rpartition(".")[2]
            yield script.seen(
                call.node, f"{last}() without use_reentrant warns, and recomputes in the old way", _told(script, call)
            )


def _told(script: Script, call: Call) -> tuple[Edit, ...]:
    """Behind the last argument, so that a comma that follows stays where it is."""
    given: list[ast.expr | ast.keyword] = [*call.node.args, *call.node.keywords]
    last = max(given, key=lambda each: (each.end_lineno or 0, each.end_col_offset or 0))
    (_, at), (_, end) = script.text.span(last), script.text.span(call.node)
    rest = script.text.data[at:end].decode(errors="replace")
    if isinstance(last, ast.GeneratorExp) or "".join(rest.split()) not in (")", ",)"):  # f((x)), or a comment
        return ()
    return script.appended("not-reentrant", last, ", use_reentrant=False")
