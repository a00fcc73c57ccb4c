"""What the source alone shows about tensors that are made in a roundabout way."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, dotted
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.tensors import Tensors, bound_inside
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
    text, wanted = script.source(given), call.argument("dtype")
    if wanted is not None:
        code = f"{text}.to({script.source(wanted)})"
        fact = f"{text} is a tensor already: torch.tensor() warns, and copies it; {code} gives it the format"
        return script.seen(call.node, fact)
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


def _replacement(script: Script, call: Call, code: str, remedy: str) -> tuple[Edit, ...]:
    """CODE instead of the whole CALL, when it stands on one line."""
    return script.replaced(remedy, call.node, code) if call.node.lineno == call.node.end_lineno else ()


@detector("source/checkpoint-reentrant-unset")
def checkpoint_reentrant_unset(script: Script) -> Iterator[Sighting]:
    """Activation checkpointing is not told which of its two ways to go."""
    yield from _prepared(script)
    for call in script.named(*_CHECKPOINTS):
        if any(keyword.arg not in symbols().checkpoint_options for keyword in call.node.keywords):
            continue  # it is set, or the keyword is for the function: that is refused without use_reentrant=False
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
