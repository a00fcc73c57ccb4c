"""Where a training puts its models into training or evaluation mode, and where it calls them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from torchtriage.examine.source.events import Event, Ring
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.flow import reaches
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import TrainingStep
from torchtriage.examine.source.torch_api.symbols import symbols

_WRAPPERS = symbols().transparent_wrappers
# Words in the name of an unknown function that may switch a mode, whatever it is given.
_SWITCHING = frozenset({"mode", "modes", "train", "training", "eval", "evaluation", "freeze", "prepare"})
# Words in the name of an unknown function that looks at a model, or copies it, and leaves it as it is.
_LOOKING = frozenset(
    {"save", "checkpoint", "ckpt", "dump", "export", "log", "print", "summary", "count", "plot", "watch", "ema"}
)
_DEEP = 6


class Switch(Struct, frozen=True):
    """A call of train() or eval(). to: the mode that it sets. models: the roots of what it is called on."""

    event: Event
    call: Call
    to: str
    models: frozenset[object]


class Modes:
    """The modes of one training step, and of everything that runs around it in the same file."""

    def __init__(self, step: TrainingStep) -> None:
        self.step, self.script = step, step.script

    @cached_property
    def whole(self) -> Ring:
        """The body of the outermost function that leads to the step."""
        scope = self.step.sites[-1].scope if self.step.sites else self.step.ring.scope
        return Ring(scope.body, scope)

    @property
    def rings(self) -> list[Ring]:
        """The loops that repeat the step, the innermost first."""
        return [ring for ring in (self.step.ring, *self.step.around) if ring.is_loop and not ring.runs_once]

    @cached_property
    def trained(self) -> list[tuple[Call, frozenset[object]]]:
        """The calls of models in the step that lead to a backward call, and what they call."""
        found = []
        for event, call in self.forwards(self.step.events):
            if any(reaches(event, each.event) for each in self.step.backwards) and not self.is_without(event):
                found.append((call, called(self.script, call)))
        return found

    def forwards(self, events: tuple[Event, ...]) -> Iterator[tuple[Event, Call]]:
        """The calls of models."""
        for event in events:
            call = event.call
            if call is not None and (isinstance(call.node.func, ast.Name | ast.Attribute) or dotted(call.node.func)):
                known = self.script.trace.definition(call.node.func, call.scope) is not None
                own = not known and _module_of(self.script, call.scope) is not None
                own = own and dotted(call.node.func) == call.scope.receiver
                if own or (not known and self.script.roles.plays(call.node.func, call.scope, "model")):
                    yield event, call

    def switches(self, ring: Ring) -> list[Switch]:
        """The calls of train() and eval() in RING, in order."""
        found = []
        for event in self.script.written.events(ring):
            call = event.call
            to = _mode(call) if call is not None else ""
            if call is not None and to and self._is_mode_of_module(call):
                found.append(Switch(event, call, to, roots(self.script, call.receiver, call.scope)))
        return found

    def _is_mode_of_module(self, call: Call) -> bool:
        """Whether train() or eval() is that of modules, or a module's own in its place."""
        own = self.script.trace.definition(call.node.func, call.scope)
        return own is None or (own.host is not None and "torch.nn.Module" in self.script.trace.bases(own.host))

    def is_hidden(self, ring: Ring, models: frozenset[object]) -> bool:
        """Whether code that cannot be seen from here may switch the mode of MODELS in RING."""
        return any(
            event.call is not None and self._may_switch(event.call, models)
            for event in self.script.written.events(ring)
        )

    def _may_switch(self, call: Call, models: frozenset[object]) -> bool:
        if _mode(call) or self.script.knows(call):
            return False
        if not _SWITCHING.isdisjoint(call.tail.lower().split("_")):
            return True
        if not _LOOKING.isdisjoint((*call.tail.lower().split("_"), *dotted(call.receiver).lower().split("."))):
            return False
        given = [each.value if isinstance(each, ast.Starred) else each for each in call.arguments]
        return any(not models.isdisjoint(roots(self.script, each, call.scope)) for each in given if dotted(each))

    def is_without(self, event: Event) -> bool:
        """Whether EVENT runs under no_grad or inference_mode, as a block or a decorator."""
        for block in event.path:
            if isinstance(block.owner, ast.With) and block.kind == "with":
                items = [item.context_expr for item in block.owner.items]
            elif isinstance(block.owner, ast.FunctionDef) and block.kind == "body":
                items = block.owner.decorator_list
            else:
                continue
            names = (each.func if isinstance(each, ast.Call) else each for each in items)
            if any(self.script.names.resolve(name, event.fact.scope) in symbols().grad_free for name in names):
                return True
        return False

    def is_given(self, models: frozenset[object]) -> bool | None:
        """Whether the step's optimizers are given the parameters of MODELS; None where they are made out of sight."""
        made = [
            (part.made, part.scope)
            for _, _, parts in self.step.optimizing()
            for part in parts
            if part.made is not None and part.scope is not None
        ]
        if not made:
            return None
        return any(
            self._holds(each, home, models, 0)
            for call, scope in made
            for each, home in (
                *((arg, scope) for arg in (*call.args, *call.keywords)),
                *self._turned_through(call, scope),
            )
        )

    def _turned_through(self, made: ast.Call, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
        """What a comprehension around the constructor goes through: [Adam(net.parameters()) for net in nets]."""
        last = dotted(made.func).rpartition(".")[2]
        statement = next((call.statement for call in self.script.calls(last) if call.node is made), None)
        for each in ast.walk(statement) if statement is not None else ():
            if isinstance(each, ast.ListComp | ast.GeneratorExp | ast.DictComp):
                part = each.value if isinstance(each, ast.DictComp) else each.elt
                if any(node is made for node in ast.walk(part)):
                    for turned in each.generators:
                        yield turned.iter, scope
                        yield from self._entries(turned.iter, scope)

    def _entries(self, node: ast.expr, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
        """What a list or dictionary that is written out holds: of nets.items(), the models."""
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("items", "values")
        ):
            node = node.func.value
        for origin in self.script.trace.origins(node, scope):
            match origin.node:
                case ast.Dict(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
                    yield from ((part, origin.scope) for part in parts)

    def _holds(self, node: ast.AST, scope: Scope, models: frozenset[object], deep: int) -> bool:
        if isinstance(node, ast.Call) and not models.isdisjoint(roots(self.script, node, scope)):
            return True
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name | ast.Attribute | ast.Subscript) and dotted(inner):
                if not models.isdisjoint(roots(self.script, inner, scope)):
                    return True
                stores = self.script.names.stores(inner.id, scope) if isinstance(inner, ast.Name) and deep < 2 else []
                values = ((each.value, each.scope) for each in stores if each.value is not None)
                if any(self._holds(value, home, models, deep + 1) for value, home in values):
                    return True
        return False


def _mode(call: Call) -> str:
    """The mode that a call sets: "eval" for eval() and train(False), "train" for train(), with whatever mode."""
    if call.receiver is None or len(call.arguments) > 1 or call.tail not in ("train", "eval"):
        return ""
    if call.tail == "eval":
        return "" if call.arguments else "eval"
    given = call.arguments[0] if call.arguments else None
    return "eval" if isinstance(given, ast.Constant) and given.value is False else "train"


def _module_of(script: Script, scope: Scope) -> Scope | None:
    """The module class of this file whose method SCOPE is."""
    host = scope.host
    return host if host is not None and scope.receiver and "torch.nn.Module" in script.trace.bases(host) else None


def called(script: Script, call: Call) -> frozenset[object]:
    """The roots of the model that CALL calls; in a module's own method those of the whole module as well."""
    found = roots(script, call.node.func, call.scope)
    host = _module_of(script, call.scope)
    if host is None or dotted(call.node.func).partition(".")[0] != call.scope.receiver:
        return found
    return found | _made(script, host)


def _made(script: Script, host: Scope) -> frozenset[object]:
    """The roots of all objects of the class HOST."""
    made = (each for each in script.calls(host.name) if script.trace.definition(each.node.func, each.scope) is host)
    return frozenset(id(each.node) for each in made) or frozenset({id(host)})


def roots(script: Script, node: ast.expr | None, scope: Scope, deep: int = 0) -> frozenset[object]:
    """What tells a model from other models: the calls that make it, the parameters that bring it, or its name."""
    host = _module_of(script, scope) if isinstance(node, ast.Name) and node.id == scope.receiver else None
    if host is not None:
        return _made(script, host)
    if isinstance(node, ast.Attribute) and node.attr == "module":
        return roots(script, node.value, scope, deep)
    found: set[object] = set()
    for origin in script.trace.origins(node, scope):
        call = origin.call
        if call is not None:
            found.add(id(call))
            if call.args and deep < _DEEP and script.names.resolve(call.func, origin.scope) in _WRAPPERS:
                found |= roots(script, call.args[0], origin.scope, deep + 1)
        elif origin.store is not None:
            found.add(id(origin.store))
            found |= _turned_through(script, origin.store, deep)
        elif dotted(origin.node):
            found.add(
                (dotted(origin.node), id(origin.scope.host or script.names.home(dotted(origin.node), origin.scope)))
            )
    return frozenset(found)


def _turned_through(script: Script, store: Store, deep: int) -> frozenset[object]:
    """The roots of what a loop goes through: for net in (generator, critic)."""
    parts = store.value.elts if isinstance(store.value, ast.Tuple | ast.List) else []
    if store.how != "element" or store.index is not None or deep > _DEEP:
        return frozenset()
    return frozenset().union(*(roots(script, each, store.scope, deep + 1) for each in parts))
