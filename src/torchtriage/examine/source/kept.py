"""Values that a training step puts where they outlive the step, together with the graph that made them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Literal, TypeAlias

from msgspec import Struct

from torchtriage.examine.detector import view
from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Block, Call, Return, Scope, Store, dotted
from torchtriage.examine.source.flow import reaching
from torchtriage.examine.source.names import table
from torchtriage.examine.source.outliving import Outliving
from torchtriage.examine.source.overridden import is_hollow, overriding
from torchtriage.examine.source.puts import Put, inner, put_in
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import TrainingStep, training_steps

What = Literal["loss", "output"]


_DEEP = 6


class Kept(Struct, frozen=True):
    """A tensor with its graph that outlives the step.

    what: the "loss" that was propagated, or an "output" of the model. container: the variable that keeps it.
    is_sum: added up with what was kept before. again: the backward of this step that keeps its buffers
    (retain_graph=True), or None.
    """

    step: TrainingStep
    node: ast.AST
    container: str
    what: What
    is_sum: bool
    again: Call | None


class _End(Struct, frozen=True):
    """Where a function of the file returns what its caller then uses."""

    scope: Scope
    path: tuple[Block, ...]
    order: int


_Use: TypeAlias = Call | Store | _End


@view(Kept, of=Script)
def kept(script: Script) -> Iterator[Kept]:
    for step in training_steps(script):
        graph = _Graph(step)
        yield from graph.collected()
        for event in step.events:
            put = put_in(event)
            if put is None:
                continue
            if not graph.outlives(put, event):
                if (handed := graph.handed(put, event)) is not None:
                    yield Kept(step, handed[0], handed[1], handed[2], put.is_sum, graph.again())
                continue
            what = graph.carries(put.value, event.fact)
            off = put.is_sum and graph.is_off(event.path, event.fact.scope)
            if what is not None and not off and not graph.is_needed(dotted(inner(put.container)), event.fact.scope):
                yield Kept(step, put.node, script.source(put.container), what, put.is_sum, graph.again())
            elif what is None and not off and (site := graph.giver(put, event)) is not None:
                container = f"{script.source(site[0].func)}()"
                yield Kept(step, site[0], container, site[1], put.is_sum, graph.again())


class _Graph(Outliving):
    """What of one step holds a graph, and what the step propagates later."""

    def __init__(self, step: TrainingStep) -> None:
        super().__init__(step)
        self.lore: dict[str, list[str]] = table()["graph"]
        self.stored: dict[int, What | None] = {}
        self.roots: set[int] = set()
        self.terms: set[int] = set()
        self._within: set[int] = set()
        for each in step.backwards:
            self.root(each.root, each.call)

    def again(self) -> Call | None:
        for each in self.step.backwards:
            match each.call.argument("retain_graph"):
                case ast.Constant(value=True):
                    return each.call
        return None

    def root(self, node: ast.expr | None, use: _Use) -> None:
        """Notes the stores that gave NODE, and the terms of a sum behind it: those of a dict, a list, a helper."""
        if node is None or id(node) in self.terms:
            return
        self.terms.add(id(node))
        if isinstance(node, ast.Name):
            for store in reaching(self._stores(node.id, use.scope), use):
                if id(store) not in self.roots:
                    self.roots.add(id(store))
                    whole = store.index is None and store.how in ("assign", "augment")
                    self.root(store.value if whole else None, store)
            return
        for term in _terms(node):
            self.root(term, use)

    def _stores(self, name: str, scope: Scope) -> list[Store]:
        return [store for store in self.script.names.stores(name, scope) if store.scope is scope]

    @cached_property
    def _needed(self) -> set[tuple[str, int]]:
        """The names whose values are themselves propagated somewhere in this file, each with what binds it."""
        calls = (*self.script.calls("backward"), *self.script.named("torch.autograd.grad"))
        found = {self._key(name, call.scope) for call in calls for name in _names(call.node)}
        stores = [(self._key(store.name, store.scope), store) for scope in self.script.facts.scopes
                  for each in scope.stores.values() for store in each]  # fmt: skip
        grown = -1
        while grown != len(found):
            grown = len(found)
            for key, store in stores:
                if key in found:
                    found.update(
                        self._key(name, scope) for value, scope in self._behind(store) for name in _names(value)
                    )
        return found

    def _behind(self, store: Store) -> Iterator[tuple[ast.expr, Scope]]:
        """Where the value of STORE comes from: what it is given, what callers give it, what a helper returns."""
        if store.how == "parameter":
            words = [each.arg for each in store.scope.parameters]
            place = words.index(store.name) - (store.scope.receiver in words[:1])
            for site in self.script.trace.sites(store.scope):
                given = site.argument(store.name, place)
                if given is not None:
                    yield given, site.scope
        if store.value is None or store.how not in ("assign", "element"):
            return
        yield store.value, store.scope
        for each in ast.walk(store.value):
            helper = self.script.trace.definition(each.func, store.scope) if isinstance(each, ast.Call) else None
            for end in helper.returns if helper is not None else ():
                if end.node.value is not None:
                    yield end.node.value, helper or store.scope

    def _key(self, name: str, scope: Scope) -> tuple[str, int]:
        root, dot, _ = name.partition(".")
        if dot and root == scope.receiver:
            return name, id(self.script.trace.lineage(scope.host)[-1]) if scope.host is not None else 0
        return name, id(self.script.names.home(root, scope))

    def is_needed(self, name: str, scope: Scope) -> bool:
        """Whether what NAME holds is itself propagated somewhere."""
        return self._key(name, scope) in self._needed

    # what holds a graph

    def carries(self, node: ast.expr, use: _Use) -> What | None:
        """What NODE holds where it is USEd; None when it holds no graph, or none that can be seen."""
        if isinstance(node, ast.Call):
            return "loss" if id(node) in self.terms else self._called(node, use)
        match node:
            case ast.Name(id=name):
                return self._named(name, use)
            case ast.Subscript(value=whole, slice=ast.Constant(value=key)) if displays := self._displays(whole, use, 0):
                return self._entry(displays, key)
            case ast.UnaryOp(op=ast.USub(), operand=value) | ast.Subscript(value=value) | ast.Starred(value=value):
                return self.carries(value, use)
            case ast.Attribute(value=value, attr=attr) if attr in self.lore["attributes"]:
                return self.carries(value, use)
        return self._any(_terms(node), use)

    def _displays(self, node: ast.expr | None, use: _Use, deep: int) -> list[tuple[ast.Dict, _Use]]:
        """The dicts, written out, that NODE may be; none where it may be something else."""
        if isinstance(node, ast.Dict):
            return [(node, use)]
        ways: list[tuple[ast.expr | None, _Use]] = []
        if isinstance(node, ast.Name):
            stores = reaching(self._stores(node.id, use.scope), use)
            ways = [(store.value if store.how == "assign" and store.index is None else None, store) for store in stores]
        elif isinstance(node, ast.Call) and (helper := self._helper(node, use)) is not None:
            ways = [(each.node.value, _End(helper, each.path, each.order)) for each in helper.returns]
        found = [self._displays(value, at, deep + 1) for value, at in ways if deep < _DEEP]
        return [each for some in found for each in some] if all(found) else []

    def _entry(self, displays: list[tuple[ast.Dict, _Use]], key: object) -> What | None:
        """What the dicts hold under KEY: a graph only when all do."""
        found: list[What | None] = []
        for display, at in displays:
            off = isinstance(at, _End) and self.is_off(at.path, at.scope)
            pairs = zip(display.keys, display.values, strict=True)
            value = next((v for k, v in pairs if isinstance(k, ast.Constant) and k.value == key), None)
            found.append(None if value is None or off else self.carries(value, at))
        return found[0] if None not in found else None

    def _named(self, name: str, use: _Use) -> What | None:
        """A graph only when every store that may have given the name its value gave it one."""
        found: What | None = None
        for store in reaching(self._stores(name, use.scope), use):
            if store.order < use.order:
                what = self._stored(store)
                if what is None:
                    return None
                found = found or what
        return found

    def _stored(self, store: Store) -> What | None:
        """Remembered: a name that is given itself again and again would double the work at every store."""
        if id(store) not in self.stored:
            self.stored[id(store)] = None if self.is_off(store.path, store.scope) else self._made(store)
        return self.stored[id(store)]

    def _made(self, store: Store) -> What | None:
        if id(store) in self.roots:
            return "loss"
        if store.how == "element" and store.index in (None, 1) and (whole := _gone_through(store)) is not None:
            return self.carries(whole, store)
        given = store.value if store.how in ("assign", "augment") else None
        if isinstance(given, ast.Call) and (helper := self._helper(given, store)) is not None:
            return self._returned(helper, store.index)
        if isinstance(given, ast.Call) and store.index:  # a model's second result may be a number: its accuracy
            return None
        return self.carries(given, store) if given is not None else None

    def _helper(self, call: ast.Call, use: _Use) -> Scope | None:
        """The function of this file that CALL runs, unless something wraps it."""
        found = self.script.trace.definition(call.func, use.scope)
        if found is not None and found.host is not None and (others := [*overriding(self.script.trace, found)]):
            found = others[0] if len(others) == 1 and is_hollow(found) else None
        node = found.node if found is not None else None
        decorators = {dotted(each) for each in node.decorator_list} if isinstance(node, ast.FunctionDef) else {None}
        return found if decorators <= {"staticmethod", "classmethod"} else None

    def _returned(self, helper: Scope, index: int | None = None) -> What | None:
        """What HELPER returns (or the part at INDEX of it): a graph only when every return gives one."""
        if id(helper) in self._within:
            return None
        self._within.add(id(helper))
        found: list[What | None] = [self._end(each, helper, index) for each in helper.returns]
        self._within.discard(id(helper))
        return found[0] if found and None not in found else None

    def _end(self, end: Return, helper: Scope, index: int | None) -> What | None:
        value = end.node.value
        if index is not None:
            value = value.elts[index] if isinstance(value, ast.Tuple) and index < len(value.elts) else None
        off = self.is_off(end.path, helper)
        return self.carries(value, _End(helper, end.path, end.order)) if value is not None and not off else None

    def giver(self, put: Put, event: Event) -> tuple[ast.Call, What] | None:
        """The call of meter.update(loss) that gives PUT its value, and what it gives, when the meter outlives the step.

        PUT stands in a method of a class of this file.
        """
        method = put.fact.scope
        words = [each.arg for each in method.parameters]
        if not words or method is self.step.ring.scope or method.kind != "function":
            return None
        after = (each for each in self.step.events if each.order > event.order and each.call is not None)
        for each in after:
            call = each.call
            if call is None or self.script.trace.definition(call.node.func, call.scope) is not method:
                continue
            meter = dotted(call.receiver)
            if method.host is not None and not (meter and self.is_outside(meter, put, each)):
                return None
            return self._through(put, call, words)
        return None

    def collected(self) -> Iterator[Kept]:
        """The comprehensions that keep what the step, a function, returns: losses = [step(x, y) for x, y in loader]."""
        ring = self.step.ring
        if ring.is_loop or ring.scope.kind != "function":
            return
        for site in self.script.trace.sites(ring.scope):
            match site.statement:
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=ast.ListComp(elt=made))
                    | ast.AugAssign(target=ast.Name(id=name), value=ast.ListComp(elt=made))
                ) if made is site.node:
                    what = self._returned(ring.scope)
                    if (
                        what is not None
                        and not self.is_needed(name, site.scope)
                        and not self.is_off(site.path, site.scope)
                    ):
                        yield Kept(self.step, site.node, name, what, is_sum=False, again=self.again())

    def handed(self, put: Put, event: Event) -> tuple[ast.Call, str, What] | None:
        """The call of note(history, loss) that hands over what PUT puts the value into, that thing, and the value.

        PUT stands in a function of this file.
        """
        helper, base = put.fact.scope, inner(put.container)
        words = [each.arg for each in helper.parameters]
        own = isinstance(base, ast.Name) and base.id in words and base.id != helper.receiver
        if not own or not isinstance(base, ast.Name) or helper is self.step.ring.scope or base is put.node:
            return None
        if base is put.container and not isinstance(put.fact, Call):  # total += loss gives the parameter's name away
            return None
        for each in self.step.events[event.order + 1 :]:
            call = each.call
            if call is None or self.script.trace.definition(call.node.func, call.scope) is not helper:
                continue
            target = call.argument(base.id, words.index(base.id) - (helper.receiver in words[:1]))
            name = dotted(inner(target)) if target is not None else ""
            if (
                target is None
                or not name
                or self.is_needed(name, call.scope)
                or self.is_bounded(inner(target), call.scope)
            ):
                return None
            found = self._through(put, call, words) if self.is_outside(name, put, each) else None
            return (found[0], self.script.source(target), found[1]) if found is not None else None
        return None

    def _through(self, put: Put, call: Call, words: list[str]) -> tuple[ast.Call, What] | None:
        """What comes to PUT when the parameters of its function hold what CALL gives."""
        method = put.fact.scope
        own = words[1:] if method.receiver in words[:1] else words
        starred = _starred(method)
        for place, word in enumerate(own):
            if word == starred:
                what = self._any((each.value for each in call.node.keywords if each.arg not in own), call)
            else:
                argument = call.argument(word, place)
                what = self.carries(argument, call) if argument is not None else None
            given = [store for store in method.stores.get(word, ()) if store.how == "parameter"]
            if what is None or not given:
                continue
            known = self.stored
            self.stored = {id(given[0]): what}
            held = self.carries(put.value, put.fact)
            self.stored = known
            if held is not None:
                return call.node, what
        return None

    def _any(self, nodes: Iterable[ast.expr | None], use: _Use) -> What | None:
        for node in nodes:
            what = self.carries(node, use) if node is not None else None
            if what is not None:
                return what
        return None

    def _called(self, node: ast.Call, use: _Use) -> What | None:
        tail = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = self.script.names.resolve(node.func, use.scope)
        if not name and tail in self.lore["methods"] and isinstance(node.func, ast.Attribute):
            return self.carries(node.func.value, use)
        if name.startswith("torch.") and name.rpartition(".")[2] in (*self.lore["methods"], *self.lore["losses"]):
            return self._any(node.args, use)
        if self.script.roles.plays(node.func, use.scope, "criterion"):
            return self._any(node.args, use)
        if name == "builtins.dict" or self._is_record(node, use):
            return self._any((*node.args, *(each.value for each in node.keywords)), use)
        if (helper := self._helper(node, use)) is not None:
            return self._returned(helper)
        is_model = not tail or dotted(node.func).startswith(f"{use.scope.receiver}.")
        return "output" if is_model and self.script.roles.plays(node.func, use.scope, "model") else None

    def _is_record(self, node: ast.Call, use: _Use) -> bool:
        """Whether NODE makes an object of a class of this file that only holds what it is given."""
        made = self.script.trace.definition(node.func, use.scope)
        if made is None or not isinstance(made.node, ast.ClassDef) or self.script.trace.method(made, "__init__"):
            return False
        kinds = {dotted(each.func if isinstance(each, ast.Call) else each).rpartition(".")[2]
                 for each in (*made.node.decorator_list, *made.node.bases)}  # fmt: skip
        return bool(kinds & {"dataclass", "NamedTuple", "define", "Struct"})

    def is_off(self, path: tuple[Block, ...], scope: Scope) -> bool:
        """Whether PATH lies under no_grad or inference_mode."""
        return any(
            self.script.names.resolve(call.func, scope) in self.lore["without"]
            for block in path
            if isinstance(block.owner, ast.With) and block.kind == "with"
            for item in block.owner.items
            if isinstance(call := item.context_expr, ast.Call)
        )


def _terms(node: ast.expr) -> Iterator[ast.expr]:
    """What a sum is made of: both sides, the values of sum(parts.values()), what is stacked and then averaged."""
    match node:
        case ast.BinOp(left=left, right=right):
            yield from (left, right)
        case ast.Dict(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
            yield from parts
        case ast.GeneratorExp(generators=rows) | ast.ListComp(generators=rows):
            yield from (each.iter for each in rows)
        case ast.Call(func=ast.Attribute(value=whole, attr="values" | "items"), args=[]):
            yield whole
        case ast.Call(func=ast.Attribute(value=whole, attr="sum" | "mean" | "backward"), args=[]):
            yield whole
        case ast.Call(func=ast.Name(id="sum"), args=[whole, *_]):
            yield whole
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr="sum" | "mean" | "stack"), args=[whole, *_]):
            yield whole


def _starred(function: Scope) -> str:
    """The name of **kwargs, or ""."""
    node = function.node
    return node.args.kwarg.arg if isinstance(node, ast.FunctionDef) and node.args.kwarg is not None else ""


def _gone_through(store: Store) -> ast.expr | None:
    """The dict or list whose values a loop goes through: for name, value in terms.items()."""
    match store.value:
        case ast.Call(func=ast.Attribute(value=whole, attr="items"), args=[]) if store.index == 1:
            return whole
        case ast.Call(func=ast.Attribute(value=whole, attr="values"), args=[]) if store.index is None:
            return whole
        case ast.Name() as whole if store.index is None:
            return whole
    return None


def _names(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Name | ast.Attribute) and (name := dotted(each)):
            yield name
