"""What goes wrong while a module is being built: its base class, and what is made only once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.nets import Net, nets
from torchtriage.examine.source.script import Script
from torchtriage.specialists.module_design_patterns.rules.makes import given
from torchtriage.specialists.module_design_patterns.rules.state import holds_weights, is_layer, is_module, is_parameter

_REGISTERS = ("register_buffer", "register_parameter", "add_module", "register_module")
_LIGHTNING = frozenset({"pytorch_lightning.LightningModule"})
_OWN_WAYS = ("__new__", "__setattr__", "__getattr__", "__call__", "__init_subclass__")


@detector("source/super-init-missing")
def super_init_missing(net: Net) -> Iterator[Sighting]:
    """A part is assigned to a module before, or without, super().__init__()."""
    if net.init is None or not _is_built_by_init(net):
        return
    stop = _stopped(net)
    if stop is not None:
        fact = f"this constructor calls no super().__init__(): that of nn.Module never runs for {net.scope.name}"
        edits = _beginning(net, stop, [])
        yield net.script.seen(stop.node, fact, edits)
        return
    begun = [event for event in net.building if event.call is not None and _may_begin(net, event.call)]
    held = next((event for event in net.building if _needs_base(net, event)), None)
    if held is not None and not any(event.order < held.order for event in begun):
        when = f"only in line {getattr(begun[0].fact.node, 'lineno', 0)}" if begun else "never"
        fact = f"nn.Module.__init__ runs {when}, so this assignment raises AttributeError"
        yield net.script.seen(held.fact.node, fact, _beginning(net, net.init, begun))
    elif held is None and not begun and "forward" in net.methods and net.scope.attributes:
        fact = "nn.Module.__init__ never runs: calling the module, or asking for its parameters, raises AttributeError"
        yield net.script.seen(net.init.node, fact, _beginning(net, net.init, begun))


def _is_built_by_init(net: Net) -> bool:
    """Whether nothing but its own __init__ can run that of nn.Module: every base is known and plain."""
    script, lineage = net.script, net.script.trace.lineage(net.scope)
    if not (script.trace.is_whole(net.scope) or net.bases >= _LIGHTNING) or any(
        name in each.inner for each in lineage for name in _OWN_WAYS
    ):
        return False
    if any(keyword.arg == "metaclass" for each in lineage for keyword in getattr(each.node, "keywords", ())):
        return False
    return not any(dotted(call.receiver).rpartition(".")[2] == net.scope.name for call in script.calls("__init__"))


def _may_begin(net: Net, call: Call) -> bool:
    """Whether CALL may run the constructor of nn.Module: not Mixin.__init__(self) of a class that is no module."""
    if call.tail != "__init__" or not isinstance(call.receiver, ast.Name):
        return call.tail == "__init__"
    base = net.script.names.definition(call.receiver.id, call.scope)
    return base is None or base.kind != "class" or "torch.nn.Module" in net.script.trace.bases(base)


def _stopped(net: Net) -> Scope | None:
    """The constructor of another class of this file at which the way from net's own to that of nn.Module ends.

    class Agent(Mixin, nn.Module): super().__init__() runs that of Mixin, and that calls no further one.
    """
    lineage, at = net.script.trace.lineage(net.scope), net.init
    if "forward" not in net.methods or not net.scope.attributes or "__init__" in net.script.aside:
        return None
    for _ in lineage:
        calls = [call for call in at.calls if call.tail == "__init__"] if at is not None else []
        if at is None or len(calls) != 1 or not _is_super(calls[0]):
            return at if at is not None and not calls and at is not net.init else None
        places = [place for place, each in enumerate(lineage) if each is at.host]
        later = lineage[places[0] + 1 :] if places else []
        at = next((each.inner["__init__"] for each in later if "__init__" in each.inner), None)
        if at is not None and not _precedes(net, at.host):
            return None
    return None


def _is_super(call: Call) -> bool:
    return isinstance(call.receiver, ast.Call) and dotted(call.receiver.func) == "super"


def _precedes(net: Net, host: Scope | None) -> bool:
    """Whether nn.Module stands behind HOST in the order of the bases: one itself, or class A(Mixin, nn.Module)."""
    trace = net.script.trace
    if host is None or "torch.nn.Module" in trace.bases(host):
        return host is not None
    for each in trace.lineage(net.scope):
        bases = each.node.bases if isinstance(each.node, ast.ClassDef) else []
        own = [net.script.names.definition(base.id, each.parent or each) if isinstance(base, ast.Name) else None
               for base in bases]  # fmt: skip
        if host in own:
            last = bases[-1]
            later = own[-1] is not None and own[-1] is not host and "torch.nn.Module" in trace.bases(own[-1])
            return later or net.script.names.resolve(last, each.parent or each) == "torch.nn.Module"
    return False


def _needs_base(net: Net, event: Event) -> bool:
    """Whether EVENT registers something in the module, or has it registered by assigning it."""
    fact = event.fact
    if fact.scope.host is None or fact.scope.host not in net.script.trace.lineage(net.scope):
        return False
    if isinstance(fact, Call):
        return fact.tail in _REGISTERS and dotted(fact.receiver) == fact.scope.receiver
    root, _, attribute = fact.name.partition(".")
    if root != fact.scope.receiver or not attribute.isidentifier() or fact.how != "assign" or fact.index is not None:
        return False
    return is_parameter(net.script, fact.value, fact.scope) or is_module(net.script, fact.value, fact.scope)


def _beginning(net: Net, init: Scope, begun: list[Event]) -> tuple[Edit, ...]:
    """Puts super().__init__() first; where it comes later, in a line of its own, that line goes."""
    if not isinstance(init.node, ast.FunctionDef):
        return ()
    body = init.node.body
    first = body[1] if len(body) > 1 and ast.get_docstring(init.node) is not None else body[0]
    if not begun:
        return net.script.insertion("call-it-first", first, "super().__init__()")
    late = begun[0].call
    if len(begun) > 1 or late is None or late.statement not in body or not _is_plain(late, init):
        return ()
    code, line = net.script.source(late.node), late.statement.lineno
    edits = net.script.insertion("call-it-first", first, code)
    if not edits or late.statement.end_lineno != line or net.script.text.line(line).strip() != code:
        return ()
    return (*edits, *net.script.line_removed("call-it-first", line))


def _is_plain(call: Call, init: Scope) -> bool:
    """super().__init__(…) as a statement, with nothing but parameters of the constructor in it."""
    given = {each.arg for each in init.parameters}
    names = {node.id for each in call.arguments for node in ast.walk(each) if isinstance(node, ast.Name)}
    stored = {name for name, stores in init.stores.items() if any(store.how != "parameter" for store in stores)}
    return isinstance(call.statement, ast.Expr) and names <= given - stored


@detector("source/module-as-default-argument")
def module_as_default_argument(script: Script) -> Iterator[Sighting]:
    """A layer with weights is made once, as a default argument or class attribute, for all instances."""
    for scope in script.facts.scopes:
        if isinstance(scope.node, ast.FunctionDef) and scope.parent is not None:
            for default in (*scope.node.args.defaults, *scope.node.args.kw_defaults):
                if isinstance(default, ast.Call) and _is_shared(script, default, scope, scope.parent):
                    made = f"{script.source(default)} is made once, when {scope.name} is defined"
                    yield script.seen(default, f"{made}: every call that leaves it out shares its weights")
    yield from _record_defaults(script)
    for net in nets(script):
        for name, stores in net.scope.stores.items():
            if len(stores) == 1 and name not in net.scope.attributes and _is_lost(net, name, stores[0]):
                fact = (
                    f"{name} belongs to the class, not to its instances: parameters() and state_dict() do not hold it"
                )
                yield script.seen(stores[0].node, fact)


def _record_defaults(script: Script) -> Iterator[Sighting]:
    """The modules that are defaults of data classes."""
    for scope in script.classes:
        for name, stores in scope.stores.items() if _is_record(scope) else ():
            if (
                len(stores) == 1
                and isinstance(stores[0].node, ast.AnnAssign)
                and holds_weights(script, stores[0].value, scope)
            ):
                fact = f"the default of {name} is one module, made once: every {scope.name} holds it"
                yield script.seen(stores[0].node, fact)


def _is_record(scope: Scope) -> bool:
    """Whether SCOPE is a data class."""
    made = scope.node.decorator_list if isinstance(scope.node, ast.ClassDef) else []
    return any(dotted(each.func if isinstance(each, ast.Call) else each).endswith("dataclass") for each in made)


def _is_shared(script: Script, default: ast.Call, function: Scope, outer: Scope) -> bool:
    """Of functions outside of modules only torch's own layers count: what they are given is built into a model."""
    if function.host is not None and "torch.nn.Module" in script.trace.bases(function.host):
        return holds_weights(script, default, outer)
    return function.host is None and bool(is_layer(script, default, outer))


def _is_lost(net: Net, name: str, store: Store) -> bool:
    """Whether the class attribute NAME is a layer or parameter that the constructor does not copy or register."""
    value = given(store)
    if not holds_weights(net.script, value, net.scope) and not is_parameter(net.script, value, net.scope):
        return False
    used = (node for event in net.building if event.call is not None for node in ast.walk(event.call.node))
    return not any(isinstance(node, ast.Attribute) and node.attr == name for node in used)
