"""What the source alone shows about single operations that are written so that they do nothing, or too much."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.tensors import Tensors
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.tensor_operations_and_memory.rules.operations import (
    FUNCTIONS,
    LIKELY,
    METHODS,
    NOT_TENSORS,
    SURE,
    TAILS,
)

_HARMLESS = symbols().harmless_contexts | symbols().grad_switches

_CLOCKS = frozenset({"time", "perf_counter", "monotonic", "synchronize", "record", "perf_counter_ns", "elapsed_time"})


@detector("source/result-dropped")
def result_dropped(script: Script) -> Iterator[Sighting]:
    """An operation that gives a new tensor stands alone, so its result is lost."""
    tensors = Tensors(script)
    found = [
        *((call, call.receiver) for call in script.calls(*METHODS) if _is_alone(call)),
        *(
            (call, next(iter(call.node.args), None))
            for call in script.calls(*TAILS)
            if _is_alone(call) and script.name(call) in FUNCTIONS
        ),
    ]
    for call, operand in found:
        name = _place(operand)
        if operand is None or not name or script.name(call).startswith("torch.") != (operand is not call.receiver):
            continue
        if {"out", "inplace"} & {keyword.arg for keyword in call.node.keywords} or _is_tried(call):
            continue
        if script.roles.plays(operand, call.scope, "model") or _is_shown(script, call):
            continue
        known = (
            _is_weight(call, operand)
            or _gone_through(tensors, call, operand) is not None
            or tensors.is_tensor(operand, call, call.scope)
            or _is_by_use(script, call, operand)
        )
        surely = _is_sure(call) or tensors.is_tensor(operand, call, call.scope)
        lost = known and (_is_weight(call, operand) or (surely and "." in name))
        later = _next_use(call, operand) or (call.statement.lineno if lost else 0)
        if (whole := _gone_through(tensors, call, operand)) is not None:
            later = _next_use(call, whole) or later
        if later and (known or _is_tested(script, call, name)):
            rest = (
                f"line {later} goes on with the old {name}" if later > call.node.lineno else f"{name} stays as it was"
            )
            yield script.seen(
                call.node,
                f"{call.tail}() gives a new tensor, which nothing takes: {rest}",
                _assignment(script, call, operand) if known else (),
            )


def _is_weight(call: Call, operand: ast.expr) -> bool:
    """What is not read again here, but by the model: p of model.parameters(), and p.data."""
    if call.tail not in ("clamp", "clip", "clamp_min", "clamp_max", "masked_fill"):
        return False
    if isinstance(operand, ast.Attribute) and operand.attr == "data":
        return True
    stores = call.scope.stores.get(dotted(operand), [])
    given = [store.value for store in stores if store.how == "element" and isinstance(store.value, ast.Call)]
    return bool(given) and all(dotted(each.func).endswith((".parameters", ".named_parameters")) for each in given)


def _gone_through(tensors: Tensors, call: Call, operand: ast.expr) -> ast.expr | None:
    """The tensors that a loop goes through to call a method on each: batch of for x in batch.values(): x.to(device)."""
    match call.statement:
        case ast.Expr(value=ast.ListComp(elt=made, generators=[each])) if made is call.node:
            whole = each.iter if dotted(each.target) == dotted(operand) else None
            return whole if whole is not None and tensors.is_whole(whole, call, call.scope) else None
    stores = call.scope.stores.get(operand.id, []) if isinstance(operand, ast.Name) else []
    return _looped(tensors, call, stores[0]) if len(stores) == 1 and stores[0].how == "element" else None


def _looped(tensors: Tensors, call: Call, store: Store) -> ast.expr | None:
    match store:
        case (
            Store(value=ast.Call(func=ast.Attribute(value=whole, attr="values"), args=[]), index=None)
            | Store(value=ast.Call(func=ast.Attribute(value=whole, attr="items"), args=[]), index=1)
            | Store(value=ast.Name() as whole, index=None)
        ):
            return whole if tensors.is_whole(whole, call, call.scope) else None
        case Store(value=ast.Tuple(elts=[first, *_] as parts) | ast.List(elts=[first, *_] as parts), index=None):
            return first if all(dotted(each) and tensors.is_tensor(each, call, call.scope) for each in parts) else None
    return None


def _is_by_use(script: Script, call: Call, operand: ast.expr) -> bool:
    """Whether the method is one that only tensors have, or one that they have and the operand is computed with."""
    own = script.trace.instance(operand, call.scope) is not None or script.names.resolve(operand, call.scope)
    if call.receiver is not operand or own or not any(name.split(".")[0] == "torch" for name in script.facts.imports):
        return False
    if any(call.tail in scope.inner for scope in script.classes):  # a batch of the file's own may have such a method
        return False
    if _is_noted(script, call, operand):
        return False
    if _is_sure(call):
        return True
    if call.tail not in LIKELY:
        return False
    is_part = call.tail == "detach" or _is_part(script, call, operand)
    return any(_computes(script, node, call.scope, operand, is_part) for node in ast.walk(call.scope.node))


def _is_noted(script: Script, call: Call, operand: ast.expr) -> bool:
    """Whether an annotation or an imported class says that OPERAND is something else than a tensor."""
    for origin in script.trace.origins(operand, call.scope):
        note = origin.node if origin.is_parameter else origin.call.func if origin.call is not None else None
        name = note.value if isinstance(note, ast.Constant) else script.names.resolve(note, origin.scope)
        if isinstance(name, str) and name.rpartition(".")[2][:1].isupper() and "Tensor" not in name:
            return True
    return False


def _is_sure(call: Call) -> bool:
    """Whether only a tensor is called so: x.clamp(0, 1), x.unsqueeze(-1); a constraint may have clamp(model)."""
    if call.tail not in SURE or not call.arguments:
        return False
    if call.node.keywords or len(call.node.args) > 1:
        return True
    return not isinstance(call.node.args[0], ast.Name | ast.Attribute)


def _computes(script: Script, node: ast.AST, scope: Scope, operand: ast.expr, is_part: bool) -> bool:
    """Whether NODE is arithmetic on OPERAND, or a function of torch that is given it: F.mse_loss(operand, y).

    is_part: a model or a criterion that is given it is enough.
    """
    name = _place(operand)
    match node:
        case ast.BinOp(left=left, right=right, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() | ast.MatMult()):
            return name in (_place(left), _place(right))
        case ast.Call(func=func, args=args, keywords=keywords):
            given = (*args, *(each.value for each in keywords if each.arg))
            if name not in {_place(each) for whole in given for each in getattr(whole, "elts", (whole,))}:
                return False
            head, _, last = script.names.resolve(func, scope).rpartition(".")
            if head in ("torch", "torch.nn.functional"):
                return last.islower() and last not in NOT_TENSORS
            return is_part and any(script.roles.plays(func, scope, role) for role in ("model", "criterion"))
    return False


def _is_part(script: Script, call: Call, operand: ast.expr) -> bool:
    """Whether OPERAND is one part of what a loop goes through: x of x, y, batch["x"] of batch.

    Not where it may be a whole batch with a to() of its own, which moves it in place.
    """
    root = operand.value if isinstance(operand, ast.Subscript) else operand
    stores = call.scope.stores.get(root.id, []) if isinstance(root, ast.Name) else []
    given = [each for each in stores if each.how == "element" and (each.index is not None or root is not operand)]
    mixed = ("torch_geometric", "dgl", "pytorch3d", "tensordict", *(("transformers",) if root is operand else ()))
    return bool(given) and len(given) == len(stores) and not any(i.startswith(mixed) for i in script.facts.imports)


def _is_alone(call: Call) -> bool:
    """Whether CALL is a statement, or the chain of which a statement consists: x.float().to(device)."""
    if not isinstance(call.statement, ast.Expr):
        return False
    node = call.statement.value
    if isinstance(node, ast.ListComp):  # [x.to(device) for x in batch]
        return node.elt is call.node
    if isinstance(node, ast.Tuple):  # x.to(device), y.to(device)
        return call.node in node.elts
    while isinstance(node, ast.Call) and node is not call.node and isinstance(node.func, ast.Attribute):
        if node.func.attr not in METHODS:
            return False
        node = node.func.value
    return node is call.node and bool(
        dotted(call.receiver) or isinstance(call.receiver, ast.Subscript) or call.node.args
    )


def _place(node: ast.expr | None) -> str:
    """The text of a variable that could take the result: x, self.x, batch["x"]; else an empty string."""
    match node:
        case ast.Subscript(value=value, slice=ast.Constant(value=key)):
            return f"{dotted(value)}[{key!r}]" if dotted(value) else ""
        case ast.Subscript(value=value, slice=ast.Name(id=key)):
            return f"{dotted(value)}[{key}]" if dotted(value) else ""
    return dotted(node)


def _is_tried(call: Call) -> bool:
    """Whether it may stand there for its effect: to see whether it raises, how long it takes, what it allocates."""
    for block in call.path:
        if block.kind == "try":
            return True
        if block.kind == "with" and isinstance(block.owner, ast.With | ast.AsyncWith):
            called = [item.context_expr for item in block.owner.items]
            tails = (dotted(each.func if isinstance(each, ast.Call) else each).rpartition(".")[2] for each in called)
            if any(tail not in _HARMLESS for tail in tails):
                return True
    return any(_is_clock(each) for each in _beside(call))


def _is_shown(script: Script, call: Call) -> bool:
    """Whether CALL is a line of a notebook's cell: the last one of a cell is shown."""
    return bool(script.text.cells) and call.scope.kind == "module" and len(call.path) == 1


def _beside(call: Call) -> list[ast.stmt]:
    """The statements just before and after CALL's."""
    for _, value in ast.iter_fields(call.block.owner):
        if isinstance(value, list) and call.statement in value:
            place = value.index(call.statement)
            return [*value[max(place - 1, 0) : place], *value[place + 1 : place + 2]]
    return []


def _is_clock(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Expr | ast.Assign):
        return False
    calls = (node for node in ast.walk(statement) if isinstance(node, ast.Call))
    return any(dotted(call.func).rpartition(".")[2] in _CLOCKS for call in calls)


def _next_use(call: Call, operand: ast.expr) -> int:
    """The first line after CALL's statement that reads OPERAND again; 0 when none does."""
    root = operand.value if isinstance(operand, ast.Subscript) else operand
    name, end = dotted(root), call.statement.end_lineno or call.statement.lineno
    lines = [
        node.lineno
        for node in ast.walk(call.scope.node)
        if isinstance(node, ast.Name | ast.Attribute)
        and node.lineno > end
        and isinstance(node.ctx, ast.Load)
        and dotted(node) == name
    ]
    return min(lines, default=0)


def _is_tested(script: Script, call: Call, name: str) -> bool:
    """Whether CALL runs only if its operand is a tensor: if isinstance(value, torch.Tensor)."""
    for block in call.path:
        match block.owner:
            case ast.If(test=ast.Call(args=[tested, *rest]) as test) if dotted(tested) == name:
                kind = script.names.resolve(test.func, call.scope)
                if kind == "torch.is_tensor" or (
                    kind == "builtins.isinstance" and script.names.resolve(rest[0], call.scope) == "torch.Tensor"
                ):
                    return call.statement in block.owner.body
    return False


def _assignment(script: Script, call: Call, operand: ast.expr) -> tuple[Edit, ...]:
    """Only where the name is the scope's own, and the tensor no leaf whose gradient is wanted."""
    name = dotted(operand)
    stores = call.scope.stores.get(name, [])
    if not isinstance(operand, ast.Name) or not stores or name in call.scope.outside or _is_weight(call, operand):
        return ()
    if not isinstance(call.statement, ast.Expr) or not isinstance(call.statement.value, ast.Call):
        return ()
    if any(store.value is not None and "grad" in script.source(store.value) for store in stores):
        return ()
    start, _ = script.text.span(call.statement)
    return script.change("take-the-result", start, start, f"{name} = ")
