"""What the source alone shows about custom autograd functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.classes import FunctionClass
from torchtriage.examine.source.facts import Call, Scope, dotted
from torchtriage.examine.source.held import Edited, edits, shared
from torchtriage.examine.source.held import given as held
from torchtriage.examine.source.returned import starred
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.families import DTYPE_CASTS
from torchtriage.examine.source.torch_api.operators import names
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.custom_autograd_functions.rules.applied import applications

# Decorators that leave the signature of forward and backward as it is.
_HARMLESS = symbols().signature_keeping


@detector("source/gradient-count")
def gradient_count(function: FunctionClass) -> Iterator[Sighting]:
    """The backward method returns another number of gradients than forward has inputs."""
    if function.is_open or not function.decorators <= _HARMLESS or _is_never_reached(function):
        return
    most = len(function.inputs)
    least = most - function.optional
    for returned, gradients in function.gradients():
        real = gradients[:most] + [each for each in gradients[most:] if not _is_none(each)]
        if len(gradients) < least or len(real) > most:
            yield function.script.seen(
                returned.node,
                f"backward returns {len(gradients)} {_noun(len(gradients), 'gradient')}, forward takes "
                f"{most} {_noun(most, 'input')}: torch raises RuntimeError here",
            )
        elif len(gradients) < most and (asked := _asking(function, len(gradients))) is not None:
            yield function.script.seen(
                returned.node,
                f"backward returns {len(gradients)} {_noun(len(gradients), 'gradient')}, and line {asked.node.lineno} "
                f"gives forward {len(asked.node.args)} inputs: torch raises RuntimeError here",
            )


def _asking(function: FunctionClass, count: int) -> Call | None:
    """Where more than COUNT inputs are given to forward."""
    calls = (each for each in applications(function) if not each.node.keywords)
    plain = (each for each in calls if not any(isinstance(part, ast.Starred) for part in each.node.args))
    return next((each for each in plain if count < len(each.node.args) <= len(function.inputs)), None)


def _is_never_reached(function: FunctionClass) -> bool:
    """Whether the outputs are marked so that no gradient comes back: indices, counts."""
    methods = (function.forward, function.setup or function.forward)
    return any(call.tail == "mark_non_differentiable" for method in methods for call in method.calls)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _noun(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"


@detector("source/grad-output-edited")
def grad_output_edited(function: FunctionClass) -> Iterator[Sighting]:
    """The backward method changes the gradient that it is given in place."""
    backward, script = function.backward, function.script
    told: set[str] = set()
    for edited in (*edits(script, backward), *_reduced(function)):
        given = shared(edited.target, backward, edited.by)
        if given is None or given.node in backward.parameters[:1] or given.name in told:
            continue
        if given.name in starred(backward) and held(edited.target, backward, edited.by) is not None:
            continue  # the tuple itself: grads += (None,)
        told.add(given.name)
        word = script.source(edited.target)
        also = "" if word == given.name else f" (as {word})"
        yield script.seen(
            edited.node,
            f"{given.name}{also} is changed here, and the engine may hand the very same tensor to other branches of "
            "the graph: their gradients come out wrong",
            _clone(script, edited, given.name),
        )


# Collectives that put their result into their first argument.
_COLLECTIVES = symbols().collectives_in_place


def _reduced(function: FunctionClass) -> Iterator[Edited]:
    """What a collective that backward itself calls overwrites."""
    for call in function.backward.calls:
        tensor = call.argument("tensor", 0)
        if tensor is not None and function.script.name(call) in _COLLECTIVES:
            yield Edited(tensor, call, is_sure=True)


def _clone(script: Script, edited: Edited, name: str) -> tuple[Edit, ...]:
    """A copy made in the line before; only where it is the parameter's own name that is changed."""
    statement = edited.by.statement if isinstance(edited.by, Call) else edited.by.node
    if dotted(edited.target) != name or not isinstance(statement, ast.stmt) or len(edited.by.path) > 1:
        return ()
    return script.insertion("clone-first", statement, f"{name} = {name}.clone()")


@detector("source/not-once-differentiable")
def not_once_differentiable(function: FunctionClass) -> Iterator[Sighting]:
    """The backward method leaves the graph and does not say that it can be differentiated only once."""
    if not function.decorators <= _HARMLESS or "torch.autograd.once_differentiable" in function.decorators:
        return
    backward, script = function.backward, function.script
    left = next(iter(_leaving(function)), None)
    if left is not None:
        node, what = left
        yield script.seen(
            node,
            f"{what} cuts the graph of a second derivative here: with create_graph=True the result is wrong, without "
            "an error",
            _once(script, backward),
        )


def _leaving(function: FunctionClass) -> Iterator[tuple[ast.AST, str]]:
    """Where backward leaves the graph with what it was given or has saved."""
    backward = function.backward
    own = {
        name
        for name, stores in backward.stores.items()
        for store in stores
        if (store.how == "parameter" and store.node not in backward.parameters[:1]) or _is_saved(store.value, backward)
    }
    again = {id(call.receiver) for call in backward.calls if call.tail == "requires_grad_"}  # recomputed below
    for node in ast.walk(backward.node):
        match node:
            case ast.Call(func=called, args=[ast.Constant(value=False)]) if dotted(called).endswith("set_grad_enabled"):
                yield node, "set_grad_enabled(False)"
            case ast.Call(func=called) if _is_without(function, called):
                yield node, f"{dotted(called)}()"
            case ast.Attribute(value=ast.Name(id=name), attr="data", ctx=ast.Load()) if name in own:
                yield node, f"{name}.data"
            case ast.Call(func=ast.Attribute(value=value, attr="numpy" | "detach" as attr)) if _root(value) in own:
                if id(node) not in again:
                    yield node, f"{attr}()"
            case ast.Call(func=ast.Attribute(value=value, attr="detach")) if _is_saved(value, backward):
                yield node, "detach()"
            case ast.Call(func=ast.Name(id=name), args=[given, *_]) if _root(given) in own and _takes_out(
                function, name
            ):
                yield node, f"{name}()"


def _takes_out(function: FunctionClass, name: str) -> bool:
    """Whether the function NAME of this file makes a numpy array of its first parameter."""
    helper = function.script.names.definition(name, function.backward)
    first = helper.parameters[0].arg if helper is not None and helper.parameters else "?"
    calls = helper.calls if helper is not None and helper.kind == "function" else []
    return any(call.tail == "numpy" and call.receiver is not None and _root(call.receiver) == first for call in calls)


def _is_without(function: FunctionClass, called: ast.expr) -> bool:
    name = function.script.names.resolve(called, function.backward)
    return name in symbols().grad_free


def _root(node: ast.expr) -> str:
    """The name that a chain of methods starts at: grad.detach().cpu() → grad."""
    while isinstance(node, ast.Attribute | ast.Call):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return node.id if isinstance(node, ast.Name) else ""


def _is_saved(node: ast.expr | None, backward: Scope) -> bool:
    context = backward.parameters[0].arg if backward.parameters else ""
    node = node.value if isinstance(node, ast.Subscript) else node
    return dotted(node) in (f"{context}.saved_tensors", f"{context}.saved_variables")


def _once(script: Script, backward: Scope) -> tuple[Edit, ...]:
    """The decorator under the others, by its full name; only where the file says `torch`."""
    node = backward.node
    if script.names.resolve(ast.Name("torch"), backward) != "torch" or not isinstance(node, ast.FunctionDef):
        return ()
    return script.line_above("mark-it", node.lineno, "@torch.autograd.function.once_differentiable")


# What autocast computes in half precision, and what takes care of precision by hand.
_MATRIX = names(trait="lowered")
_UNDER_AUTOCAST = symbols().function_modes - {"torch.autograd.once_differentiable"}
_CARED = DTYPE_CASTS | {"is_autocast_enabled", "autocast"}


@detector("source/autocast-not-handled")
def autocast_not_handled(function: FunctionClass) -> Iterator[Sighting]:
    """An autograd function with matrix products is used under autocast, without custom_fwd and custom_bwd."""
    script = function.script
    if not any(_is_on(call) for call in script.named("torch.amp.autocast")):
        return
    known = function.decorators
    if "" in known or not known <= _HARMLESS or known & _UNDER_AUTOCAST:
        return
    both = (function.forward, function.backward)
    if any(call.tail in _CARED for method in both for call in method.calls):
        return
    if all(_multiplies(method) for method in both):
        yield script.seen(
            function.forward.node,
            f"forward of {function.scope.name} runs under autocast, its backward does not: the products get half "
            "precision on one side and float32 on the other, and torch raises RuntimeError",
        )


def _is_on(call: Call) -> bool:
    enabled = call.argument("enabled")
    return not (isinstance(enabled, ast.Constant) and enabled.value is False)


def _multiplies(method: Scope) -> bool:
    if any(call.tail in _MATRIX for call in method.calls):
        return True
    return any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult) for node in ast.walk(method.node))
