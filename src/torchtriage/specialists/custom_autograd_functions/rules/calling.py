"""How autograd functions are declared and called."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.definitions import Origin
from torchtriage.examine.source.facts import Call, Scope, dotted
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.symbols import last_words, symbols
from torchtriage.specialists.custom_autograd_functions.rules.parts import default

_FUNCTION = "torch.autograd.Function"


def _is_function(script: Script, scope: Scope | None) -> bool:
    """Whether SCOPE is an autograd function that does not say itself what calling it means."""
    if scope is None or scope.kind != "class" or _FUNCTION not in script.trace.bases(scope):
        return False
    return not any({"__call__", "__new__"} & each.inner.keys() for each in script.trace.lineage(scope))


@detector("source/function-called-directly")
def function_called_directly(script: Script) -> Iterator[Sighting]:
    """An autograd function is called as an object, or its forward by hand, instead of through apply."""
    if not any(_is_function(script, scope) for scope in script.classes):
        return
    told: set[int] = set()
    for called in [call for calls in script.facts.calls.values() for call in calls]:
        made = _made(script, called)
        if made is not None:
            name = dotted(made.func)
            once = (
                script.replaced("call-apply", made, f"{name}.apply")
                if id(made) not in told and not _is_more(made)
                else ()
            )
            told.add(id(made))
            yield script.seen(
                called.node,
                f"{name}(…) makes an object and calls it, which torch refuses with RuntimeError (legacy autograd "
                f"function): the way in is {name}.apply",
                once,
            )
        elif (named := _class_behind(script, called)) is not None:
            yield script.seen(
                called.node,
                f"{script.source(called.node.func)} is the class {named}: this makes an object that is no tensor, and "
                f"the way in is {named}.apply",
            )
        elif _is_given(script, called):
            yield script.seen(
                called.node,
                f"{called.tail}(…) makes an object that is no tensor, and computes nothing: the way in is "
                f"{called.tail}.apply",
                script.replaced("call-apply", called.node.func, f"{called.tail}.apply"),
            )
    yield from _forwards(script)


def _class_behind(script: Script, called: Call) -> str | None:
    """The autograd function without __init__ that another name stands for, where CALLED gives it what apply takes.

    spike = SpikeFunction; self.quantize = Quantize; Layer.quantize, from the body of the class.
    """
    func = called.node.func
    is_name = isinstance(func, ast.Name) and script.names.definition(func.id, called.scope) is None
    if not (is_name or isinstance(func, ast.Attribute | ast.Subscript)) or not called.arguments:
        return None
    for node, scope in _ends(script, func, called.scope):
        host = script.names.definition(node.id, scope) if isinstance(node, ast.Name) else None
        if host is not None and _is_function(script, host) and not _has_init(script, host):
            return host.name
    return None


def _has_init(script: Script, host: Scope) -> bool:
    return any("__init__" in each.inner for each in script.trace.lineage(host))


def _ends(script: Script, node: ast.expr, scope: Scope, deep: int = 0) -> Iterator[tuple[ast.expr, Scope]]:
    """Where NODE may come from; of an entry under any key, all that its dictionary or list holds."""
    held = _container(node)
    if deep > 3:
        return
    if isinstance(node, ast.Name) and script.names.definition(node.id, scope) is not None:
        yield node, scope
    elif held is not None:
        for origin in script.trace.origins(held, scope):
            for part in _held_by(origin.node):
                yield from _ends(script, part, origin.scope, deep + 1)
    else:
        for origin in script.trace.origins(node, scope):
            yield from _end(script, node, origin, deep)


def _end(script: Script, node: ast.expr, origin: Origin, deep: int) -> Iterator[tuple[ast.expr, Scope]]:
    if origin.is_parameter and origin.store is not None:
        given = default(origin.store)
        if given is not None:
            yield given.node, given.scope
    elif origin.node is None:
        if origin.store is not None and origin.store.how == "define":
            yield ast.Name(origin.store.name, ast.Load()), origin.store.scope
    else:
        yield origin.node, origin.scope
        if origin.node is not node and _container(origin.node) is not None:
            yield from _ends(script, origin.node, origin.scope, deep + 1)


def _container(node: ast.expr) -> ast.expr | None:
    """What NODE takes an entry of, under a key that is not written out."""
    match node:
        case ast.Subscript(value=held, slice=key) if not isinstance(key, ast.Constant):
            return held
        case ast.Call(func=ast.Attribute(value=held, attr="get")):
            return held
    return None


def _held_by(node: ast.expr | None) -> list[ast.expr]:
    match node:
        case ast.Dict(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
            return parts
    return []


def _is_given(script: Script, called: Call) -> bool:
    """Whether CALLED makes an object of an autograd function without __init__, out of what belongs to apply."""
    if called.receiver is not None or not called.arguments:
        return False
    host = script.names.definition(called.tail, called.scope)
    if host is None or not _is_function(script, host) or _has_init(script, host):
        return False
    return all(node.func is not called.node for node in ast.walk(called.statement) if isinstance(node, ast.Call))


def _made(script: Script, called: Call) -> ast.Call | None:
    """The call that made the autograd function which CALLED calls; None for anything else."""
    if isinstance(called.node.func, ast.Call):
        made = called.node.func
        return made if _is_function(script, script.trace.definition(made.func, called.scope)) else None
    func = called.node.func
    if isinstance(func, ast.Name) and script.names.definition(func.id, called.scope) is not None:
        return None
    for node, scope in _ends(script, _of_class(called) or func, called.scope):
        inner = node if isinstance(node, ast.Call) and node is not called.node else None
        if inner is not None and _is_function(script, script.trace.definition(inner.func, scope)):
            return inner
    return None


def _of_class(called: Call) -> ast.expr | None:
    """What a class gives the attribute of its own that CALLED calls: binarize = Binarize(), then self.binarize(x)."""
    host = called.scope.host
    if host is None or called.receiver is None or called.tail in host.attributes:
        return None
    stores = host.stores.get(called.tail, ())
    return stores[0].value if len(stores) == 1 and stores[0].how == "assign" and stores[0].index is None else None


def _is_more(made: ast.Call) -> bool:
    return bool(made.args or made.keywords)


def _forwards(script: Script) -> Iterator[Sighting]:
    """Calls of Fn.forward from outside of autograd functions."""
    for call in script.calls("forward"):
        receiver = call.receiver
        named = receiver.func if isinstance(receiver, ast.Call) else receiver
        host = script.names.definition(named.id, call.scope) if isinstance(named, ast.Name) else None
        if host is None or not _is_function(script, host) or not isinstance(named, ast.Name):
            continue
        forward = host.inner.get("forward")
        if forward is None or _is_inside(script, call) or any(isinstance(e, ast.Starred) for e in call.node.args):
            continue
        spare = 0 if "setup_context" in host.inner else 1
        least, most = _bounds(forward)
        given = len(call.node.args) + len(call.node.keywords)
        if spare and given < least and given >= least - 1:
            yield script.seen(
                call.node,
                f"{named.id}.forward needs a ctx that only apply can give: TypeError, one argument is missing",
                script.replaced("call-apply", call.node.func, f"{named.id}.apply"),
            )
        elif spare and _is_none(call) and _uses_context(forward):
            yield script.seen(
                call.node,
                f"{named.id}.forward is called by hand with None for ctx, which it writes to: AttributeError, and the "
                f"way in is {named.id}.apply",
            )
        elif least <= given <= most and _is_never_applied(script, named.id) and not _is_without_gradient(call):
            yield script.seen(
                call.node,
                f"{named.id}.forward is called by hand, so {named.id}.backward is never used: the way in is "
                f"{named.id}.apply",
            )


def _is_none(call: Call) -> bool:
    first = call.node.args[0] if call.node.args else None
    return isinstance(first, ast.Constant) and first.value is None


def _uses_context(forward: Scope) -> bool:
    """Whether FORWARD surely asks its ctx for something: ctx.save_for_backward(…), ctx.n = n."""
    word = forward.parameters[0].arg if forward.parameters else ""
    calls = any(dotted(call.receiver) == word and len(call.path) == 1 for call in forward.calls)
    return bool(word) and (calls or any(name.startswith(f"{word}.") for name in forward.stores))


def _bounds(forward: Scope) -> tuple[int, int]:
    node = forward.node
    if not isinstance(node, ast.FunctionDef):
        return 0, 0
    count = len(node.args.posonlyargs) + len(node.args.args)
    return count - len(node.args.defaults), 99 if node.args.vararg or node.args.kwarg else count


def _is_inside(script: Script, call: Call) -> bool:
    scope: Scope | None = call.scope
    while scope is not None:
        if _is_function(script, scope):
            return True
        scope = scope.parent
    return False


def _is_never_applied(script: Script, name: str) -> bool:
    """Whether the file nowhere uses NAME but to call its forward: not NAME.apply, not by handing NAME on."""
    for node in ast.walk(script.facts.scopes[0].node):
        match node:
            case ast.Attribute(value=ast.Name(id=own), attr=attr) if own == name and attr != "forward":
                return False
            case ast.Constant(value=str(text)) if text == name:
                return False
            case ast.Call(args=arguments) if any(isinstance(e, ast.Name) and e.id == name for e in arguments):
                return False
            case ast.ClassDef(bases=bases) if any(isinstance(e, ast.Name) and e.id == name for e in bases):
                return False
    return True


def _is_without_gradient(call: Call) -> bool:
    owners = [block.owner for block in call.path if isinstance(block.owner, ast.With)]
    words = {dotted(each) for owner in owners for item in owner.items for each in ast.walk(item.context_expr)}
    node = call.scope.node
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    words |= {dotted(each) for decorator in decorators for each in ast.walk(decorator)}
    return any(word.rpartition(".")[2] in last_words(symbols().grad_free) for word in words)


@detector("source/backward-not-static")
def backward_not_static(script: Script) -> Iterator[Sighting]:
    """A method of an autograd function is not static."""
    for scope in script.classes:
        if not _is_function(script, scope):
            continue
        for name in ("forward", "backward", "setup_context"):
            method = scope.inner.get(name)
            if method is None or len(scope.stores.get(name, ())) != 1 or not isinstance(method.node, ast.FunctionDef):
                continue
            known = {_plain(script, each, scope) for each in method.node.decorator_list}
            if not known <= _BESIDE:
                continue
            yield script.seen(
                method.node,
                f"{name} of {scope.name} lacks @staticmethod: it works through apply only, its first argument is "
                "ctx and never the object, and what __init__ sets is not there",
                _static(script, scope, method.node),
            )
            break


_BESIDE = symbols().function_modes


def _plain(script: Script, decorator: ast.expr, scope: Scope) -> str:
    return script.names.resolve(decorator.func if isinstance(decorator, ast.Call) else decorator, scope)


def _static(script: Script, scope: Scope, node: ast.FunctionDef) -> tuple[Edit, ...]:
    """A line with @staticmethod; only for a class that never meant to have objects."""
    if "__init__" in scope.inner:
        return ()
    line = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    return script.line_above("make-static", line, "@staticmethod")
