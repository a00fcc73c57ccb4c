"""What goes wrong while a module is being built: its base class, and what is made only once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Call, Scope, dotted
from torchtriage.examine.source.nets import Net, between
from torchtriage.specialists.module_design_patterns.rules.state import is_module, is_parameter

_REGISTERS = ("register_buffer", "register_parameter", "add_module", "register_module")
_OWN_WAYS = ("__new__", "__setattr__", "__getattr__", "__call__", "__init_subclass__")


@detector("source/super-init-missing")
def super_init_missing(net: Net) -> Iterator[Sighting]:
    """A part is assigned to a module before, or without, super().__init__()."""
    if net.init is None or not _is_built_by_init(net):
        return
    begun = [event for event in net.building if event.call is not None and event.call.tail == "__init__"]
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
    if not script.trace.is_whole(net.scope) or any(name in each.inner for each in lineage for name in _OWN_WAYS):
        return False
    if any(keyword.arg == "metaclass" for each in lineage for keyword in getattr(each.node, "keywords", ())):
        return False
    return not any(dotted(call.receiver).rpartition(".")[2] == net.scope.name for call in script.calls("__init__"))


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
    start = net.script.text.start(line)
    return (*edits, *between(net.script, "call-it-first", start, start + len(net.script.text.raw(line)), ""))


def _is_plain(call: Call, init: Scope) -> bool:
    """super().__init__(…) as a statement, with nothing but parameters of the constructor in it."""
    given = {each.arg for each in init.parameters}
    names = {node.id for each in call.arguments for node in ast.walk(each) if isinstance(node, ast.Name)}
    stored = {name for name, stores in init.stores.items() if any(store.how != "parameter" for store in stores)}
    return isinstance(call.statement, ast.Expr) and names <= given - stored
