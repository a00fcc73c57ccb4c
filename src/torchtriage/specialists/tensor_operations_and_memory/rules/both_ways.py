"""Functions that train or evaluate, as they are told: run(model, loader, optimizer=None)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from torchtriage.examine.source.facts import Block, Call, Scope, dotted
from torchtriage.examine.source.flow import loops, reaches
from torchtriage.examine.source.grad_mode import is_decorated, is_guarded, may_switch
from torchtriage.examine.source.script import Script

# A test and whether it must hold.
Condition: TypeAlias = tuple[ast.expr, bool]


class Unused(Struct, frozen=True):
    """A forward pass whose backward is left out. line: where the function is told so."""

    call: Call
    line: int


def unused(script: Script) -> Iterator[Unused]:
    """The forward passes of such functions that build a graph also where nothing is propagated."""
    scopes = {id(call.scope): call.scope for call in script.calls("backward") if call.scope.kind == "function"}
    for scope in scopes.values():
        backwards = [call for call in scope.calls if call.tail == "backward"]
        if is_decorated(scope) or not all(_conditions(each) for each in backwards):
            continue
        for told in _tellings(script, scope):
            if not all(told.excludes(each) for each in backwards):
                continue
            forward = next((each for each in _forwards(script, scope, backwards) if not told.excludes(each)), None)
            if forward is not None:
                yield Unused(forward, told.line)
                break


def after_eval(script: Script) -> Iterator[Unused]:
    """The forward passes of functions that are given a model in evaluation, and only read it."""
    for told in script.calls("eval"):
        model = dotted(told.receiver)
        for site in told.scope.calls if model else ():
            helper = script.trace.definition(site.node.func, site.scope)
            if helper is None or helper.kind != "function" or is_decorated(helper) or not _is_evaluating(site):
                continue
            later = any(each.tail in ("backward", "grad") and reaches(site, each) for each in site.scope.calls)
            if later or any(each.tail in ("train", "eval") for each in helper.calls) or is_guarded(script, site, 0):
                continue
            words = [each.arg for each in helper.parameters]
            names = {word for word in words if dotted(site.argument(word, _place(helper, words, word))) == model}
            for call in helper.calls:
                if dotted(call.node.func) in names and loops(call.path) and not any(map(may_switch, call.path)):
                    yield Unused(call, site.node.lineno)
                    break


def _place(scope: Scope, words: list[str], word: str) -> int:
    return words.index(word) - (scope.receiver in words[:1])


def _forwards(script: Script, scope: Scope, backwards: list[Call]) -> Iterator[Call]:
    """The calls of models, outside of no_grad, in the loops around the backward calls."""
    around = {id(block) for each in backwards for block in loops(each.path)[:1]}
    for call in scope.calls:
        if not any(id(block) in around for block in call.path) or any(may_switch(block) for block in call.path):
            continue
        if dotted(call.node.func) and script.roles.plays(call.node.func, scope, "model"):
            yield call


class _Telling(Struct, frozen=True):
    """One way in which a function is told what to do: a call of it, or a turn of its loop over phases.

    values: what its names hold then, as far as this is a constant. evaluates: whether eval() of a model holds.
    """

    scope: Scope
    line: int
    values: dict[str, object]
    evaluates: bool = False

    def excludes(self, call: Call) -> bool:
        """Whether CALL surely does not run then."""
        return any(self.holds(test, 0) is (not wanted) for test, wanted in _conditions(call))

    def holds(self, test: ast.expr, deep: int) -> bool | None:
        """Whether TEST holds then; None when that cannot be told."""
        match test:
            case ast.Name(id=name):
                return bool(self.values[name]) if name in self.values else self._stored(name, deep)
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                found = self.holds(inner, deep)
                return None if found is None else not found
            case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[other]) if name in self.values:
                return _compared(self.values[name], op, other)
            case ast.Attribute(attr="training"):
                return self._training(dotted(test.value), deep)
            case ast.BoolOp(op=op, values=parts):
                all_held = [self.holds(part, deep) for part in parts]
                end = isinstance(op, ast.Or)
                return end if end in all_held else None if None in all_held else not end
        return None

    def _stored(self, name: str, deep: int) -> bool | None:
        """A name of its own: training = optimizer is not None."""
        stores = self.scope.stores.get(name, [])
        alone = len(stores) == 1 and stores[0].how == "assign" and stores[0].index is None and deep < 3
        return self.holds(stores[0].value, deep + 1) if alone and stores[0].value is not None else None

    def _training(self, model: str, deep: int) -> bool | None:
        for call in self.scope.calls:
            if call.tail == "train" and dotted(call.receiver) == model and call.arguments and deep < 3:
                return self.holds(call.arguments[0], deep + 1)
        return False if self.evaluates else None


def _compared(value: object, op: ast.cmpop, other: ast.expr) -> bool | None:
    if not isinstance(other, ast.Constant):
        return None
    match op:
        case ast.Is() | ast.Eq():
            return value == other.value
        case ast.IsNot() | ast.NotEq():
            return value != other.value
    return None


def _tellings(script: Script, scope: Scope) -> Iterator[_Telling]:
    for site in script.trace.sites(scope):
        if not is_guarded(script, site, 0):
            yield _Telling(scope, site.node.lineno, _given(scope, site), _is_evaluating(site))
    for stores in scope.stores.values():
        for store in stores:
            parts = store.value.elts if isinstance(store.value, ast.List | ast.Tuple) else []
            if store.how == "element" and store.index is None and not _is_called_off(script, scope):
                yield from (
                    _Telling(scope, part.lineno, {store.name: part.value})
                    for part in parts
                    if isinstance(part, ast.Constant)
                )


def _is_called_off(script: Script, scope: Scope) -> bool:
    """Whether every call of the function runs where gradients may be switched off."""
    sites = script.trace.sites(scope)
    return bool(sites) and all(is_guarded(script, site, 0) for site in sites)


def _given(scope: Scope, site: Call) -> dict[str, object]:
    """What the parameters of SCOPE hold in a call, as far as these are constants that nothing changes later."""
    node = scope.node
    if not isinstance(node, ast.FunctionDef) or any(isinstance(each, ast.Starred) for each in site.node.args):
        return {}
    if any(keyword.arg is None for keyword in site.node.keywords):
        return {}
    plain = [*node.args.posonlyargs, *node.args.args]
    defaults = dict(zip([each.arg for each in plain][::-1], node.args.defaults[::-1], strict=False))
    defaults |= {
        each.arg: value
        for each, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        if value is not None
    }
    words = [each.arg for each in plain]
    found: dict[str, object] = {}
    for word in (*words, *(each.arg for each in node.args.kwonlyargs)):
        place = words.index(word) - (scope.receiver in words[:1]) if word in words else None
        value = site.argument(word, place) or defaults.get(word)
        if isinstance(value, ast.Constant) and len(scope.stores.get(word, ())) == 1:
            found[word] = value.value
    return found


def _is_evaluating(site: Call) -> bool:
    """Whether eval() of something that the call is given holds at the call."""
    names = {dotted(each) for each in (*site.arguments, site.receiver)} - {""}
    told = [call for call in site.scope.calls if call.tail in ("eval", "train") and reaches(call, site)]
    return bool(told) and told[-1].tail == "eval" and dotted(told[-1].receiver) in names


def _conditions(call: Call) -> list[Condition]:
    """What must hold for CALL to run: the tests of the ifs around it, and those before it that leave the loop."""
    found: list[Condition] = []
    line = call.node.lineno
    for block in call.path:
        owner = block.owner
        if block.kind == "arm" and isinstance(owner, ast.If):
            found.append((owner.test, line <= (owner.body[-1].end_lineno or 0)))
        found += [(test, False) for test in _left(block, line)]
    return found


def _left(block: Block, line: int) -> Iterator[ast.expr]:
    """The tests after which a loop goes on to its next turn, or a function returns, before LINE."""
    body: list[ast.stmt] = getattr(block.owner, "body", []) if block.kind in ("loop", "body") else []
    for each in body:
        if isinstance(each, ast.If) and each.lineno < line and isinstance(each.body[-1], ast.Continue | ast.Return):
            yield each.test
