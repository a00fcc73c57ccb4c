"""Values that a training step puts where they outlive the step, together with the graph that made them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from torchtriage.examine.detector import view
from torchtriage.examine.source.carrying import Carrying, What
from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Call, Scope, dotted
from torchtriage.examine.source.puts import Put, inner, put_in
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import TrainingStep, training_steps


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


class _Graph(Carrying):
    """Where the values of one step that hold a graph are put."""

    def again(self) -> Call | None:
        for each in self.step.backwards:
            match each.call.argument("retain_graph"):
                case ast.Constant(value=True):
                    return each.call
        return None

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


def _starred(function: Scope) -> str:
    """The name of **kwargs, or ""."""
    node = function.node
    return node.args.kwarg.arg if isinstance(node, ast.FunctionDef) and node.args.kwarg is not None else ""
