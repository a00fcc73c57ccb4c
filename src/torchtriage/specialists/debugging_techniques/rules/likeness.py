"""Whether two expressions are surely one thing, what an optimizer was given, and edits that move a statement."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.source.definitions import Origin
from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Call, Scope, dotted
from torchtriage.examine.source.flow import reaches
from torchtriage.examine.source.roles import Part
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import TrainingStep
from torchtriage.examine.source.torch_api.symbols import symbols

_DEEP = 3
_BEYOND = 1e4
# What is done with a model that says nothing about who trains it.
PLAIN = symbols().module_self | {"zero_grad", "state_dict"}
# Modules of torch.nn that have parameters, by the beginnings of their names.
_LAYERS = tuple(symbols().parameter_layers)


def has_parameters(script: Script, node: ast.expr, scope: Scope, deep: int = 0) -> bool:
    """Whether NODE makes a layer with parameters, a Parameter, a list of such layers, or a network of this file."""
    if not isinstance(node, ast.Call):
        return False
    name = script.names.resolve(node.func, scope)
    if name == "torch.nn.Parameter":
        return not any(keyword.arg == "requires_grad" for keyword in node.keywords)
    if name in symbols().containers:
        inside = (each for given in node.args for each in ast.walk(given) if isinstance(each, ast.Call))
        return any(has_parameters(script, each, scope, deep) for each in inside)
    if name:
        return name.startswith(_LAYERS)
    if deep >= _DEEP or not is_network(script, node, scope):
        return False
    host = script.trace.definition(node.func, scope)
    stored = (
        (store for each in script.trace.lineage(host) for stores in each.attributes.values() for store in stores)
        if host
        else ()
    )
    return any(
        has_parameters(script, inner, store.scope, deep + 1)
        for store in stored
        for inner in ast.walk(store.value or ast.Pass())
        if isinstance(inner, ast.Call)
    )


def is_network(script: Script, made: ast.Call, scope: Scope) -> bool:
    """Whether MADE constructs a module of a class of this file."""
    own = script.trace.definition(made.func, scope)
    return own is not None and own.kind == "class" and "torch.nn.Module" in script.trace.bases(own)


def same(script: Script, one: ast.expr | None, here: Scope, other: ast.expr | None, there: Scope) -> bool:
    """Whether ONE in the scope HERE and OTHER in THERE surely are one object."""
    name = dotted(one)
    if not name or other is None:
        return False
    if here is there and name == dotted(other):
        return True
    if here.host is not None and here.host is there.host:
        own, its = name.removeprefix(f"{here.receiver}."), dotted(other).removeprefix(f"{there.receiver}.")
        if own == its and own != name:
            return True
    ends = script.trace.origins(one, here)
    return len(ends) == 1 and ends == script.trace.origins(other, there)


def apart(script: Script, one: ast.expr | None, here: Scope, other: ast.expr | None, there: Scope) -> bool:
    """Whether ONE in the scope HERE and OTHER in THERE surely are two objects."""
    if one is None or other is None:
        return False
    keys = [each.slice.value for each in (one, other)
            if isinstance(each, ast.Subscript) and isinstance(each.slice, ast.Constant)]  # fmt: skip
    if len(keys) == 2 and keys[0] != keys[1]:
        return True
    ends = [script.trace.origins(one, here), script.trace.origins(other, there)]
    settled = all(side and all(_is_settled(script, end) for end in side) for side in ends)
    return settled and not {_end(each) for each in ends[0]} & {_end(each) for each in ends[1]}


def _is_settled(script: Script, end: Origin) -> bool:
    if end.is_parameter:
        return True
    return end.call is not None and script.roles.of_class(script.names.resolve(end.call.func, end.scope)) is not None


def _end(end: Origin) -> int:
    return id(end.store) if end.is_parameter else id(end.node)


def stepped(script: Script, call: Call) -> ast.expr | None:
    """The optimizer of a step, through a scaler as well."""
    scaled = script.roles.plays(call.receiver, call.scope, "scaler")
    return call.argument("optimizer", 0) if scaled else call.receiver


def given(script: Script, made: ast.Call, scope: Scope) -> list[ast.expr]:
    """The modules whose parameters() MADE, the construction of an optimizer in SCOPE, was given by name."""
    return list(_modules(script, [*made.args, *(keyword.value for keyword in made.keywords)], scope, set()))


def _modules(script: Script, nodes: list[ast.expr], scope: Scope, followed: set[str]) -> Iterator[ast.expr]:
    for node in nodes:
        for inner in ast.walk(node):
            match inner:
                case ast.Call(func=ast.Attribute(value=module, attr="parameters" | "named_parameters")):
                    yield module
                case ast.Name(id=name) if name not in followed and name in scope.stores:
                    followed.add(name)
                    stores = [store.value for store in scope.stores[name] if store.how in ("assign", "augment")]
                    stores += [store.value for store in scope.stores.get(f"{name}[]", ())]
                    puts = (call for call in scope.calls if call.tail in ("extend", "append", "update", "setdefault"))
                    stores += [each for call in puts if dotted(call.receiver) == name for each in call.arguments]
                    yield from _modules(script, [value for value in stores if value is not None], scope, followed)


def optimizers(script: Script) -> list[Part]:
    """The optimizers that this file makes, by the constructors of torch."""
    found = []
    for tail, calls in script.facts.calls.items():
        for call in calls if any(letter.isupper() for letter in tail) else ():
            name = script.name(call)
            if name.startswith(("torch.optim.", "bitsandbytes.optim.")) and script.roles.of_class(name) == "optimizer":
                found.append(Part("optimizer", "made", call.node, name, call.scope))
    return found


def targets(scope: Scope, made: ast.Call) -> list[ast.expr]:
    """What the result of MADE is assigned to in SCOPE."""
    return [
        target
        for stores in scope.stores.values()
        for store in stores
        if store.value is made and isinstance(store.node, ast.Assign)
        for target in store.node.targets
    ]


def is_strange(script: Script, call: Call) -> bool:
    """Whether CALL gives a model, an optimizer or its gradients to code that cannot be seen from here."""
    if script.knows(call):
        return False
    inside = (node for argument in call.arguments for node in ast.walk(argument))
    return any(
        part.role in ("model", "optimizer", "scaler")
        for node in inside
        if isinstance(node, ast.Name | ast.Attribute)
        for part in script.roles.parts(node, call.scope)
    )


def between(step: TrainingStep, first: Event, last: Event) -> Iterator[Call]:
    """The calls that one pass may make after FIRST and before LAST."""
    for event in step.events[first.order + 1 : last.order]:
        if event.call is not None and reaches(first, event) and reaches(event, last):
            yield event.call


def measures(call: Call) -> bool:
    """Whether clip_grad_norm_(parameters, inf) only measures the norm: no gradient is beyond such a bound."""
    bound = call.argument("max_norm", 1) or call.argument("clip_value", 1)
    match bound:
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str(word))]):
            return "inf" in word
        case ast.Constant(value=int() | float() as figure):
            return figure >= _BEYOND
    return dotted(bound).rpartition(".")[2] == "inf" or bound is None


def reads_gradients(script: Script, first: Call, last: Call) -> bool:
    """Whether the code between two calls says ".grad"; in two functions, whether the file does."""
    if first.scope is not last.scope:
        return "grad" in script.aside or any(script.calls("grad"))
    start, end = first.node.lineno, last.node.lineno
    return any(
        isinstance(node, ast.Attribute) and node.attr == "grad" and start <= node.lineno <= end
        for node in ast.walk(first.scope.node)
    )


def is_run_around(step: TrainingStep) -> bool:
    """Whether a generator of batches or a context manager is given an optimizer, and may use it around the step."""
    return any(_takes_optimizer(step, node) for node in _run_around(step))


def _run_around(step: TrainingStep) -> Iterator[tuple[ast.expr, Scope]]:
    """What the loop goes through, and the context managers inside of it."""
    if isinstance(step.ring.block.owner, ast.For | ast.AsyncFor):
        yield step.ring.block.owner.iter, step.ring.scope
    for event in step.events:
        for block in event.path:
            if block.kind == "with" and isinstance(block.owner, ast.With | ast.AsyncWith):
                yield from ((item.context_expr, event.fact.scope) for item in block.owner.items)


def _takes_optimizer(step: TrainingStep, place: tuple[ast.expr, Scope]) -> bool:
    """Whether something is made with an optimizer: a generator of batches, a context manager."""
    calls = [origin for origin in step.script.trace.origins(*place) if origin.call is not None]
    return any(
        step.script.roles.plays(each, origin.scope, "optimizer")
        for origin in calls
        for made in (origin.call,)
        if made is not None
        for each in (*made.args, *(keyword.value for keyword in made.keywords))
    )


def moved(script: Script, remedy: str, statement: ast.stmt, to: ast.stmt, *, after: bool = False) -> tuple[Edit, ...]:
    """The edits that take a one-line STATEMENT from its line and put it before (or AFTER) the one-line statement TO."""
    line, goal = statement.lineno, to.lineno
    alone = all(each.end_lineno == each.lineno and _is_alone(script, each) for each in (statement, to))
    if not alone or statement.col_offset != to.col_offset:
        return ()
    raw = script.text.raw(line)
    if not raw.endswith(b"\n") or not script.text.raw(goal).endswith(b"\n"):
        return ()
    start = script.text.start(goal) + (len(script.text.raw(goal)) if after else 0)
    return (*script.line_removed(remedy, line), *script.change(remedy, start, start, raw.decode(errors="replace")))


def _is_alone(script: Script, statement: ast.stmt) -> bool:
    """Whether STATEMENT begins its line and no other follows on it."""
    raw = script.text.raw(statement.lineno)
    before = raw[: statement.col_offset]
    rest = raw[statement.end_col_offset or 0 :].strip()
    joined = statement.lineno > 1 and script.text.raw(statement.lineno - 1).rstrip(b"\r\n").endswith(b"\\")
    return not before.strip() and (not rest or rest.startswith(b"#")) and not joined
