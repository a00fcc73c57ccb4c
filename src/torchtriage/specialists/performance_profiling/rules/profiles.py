"""What the source alone shows about how a profiler is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.script import Script

_PROFILE = "torch.profiler.profile"
_OWN = frozenset(
    {
        "key_averages",
        "export_chrome_trace",
        "export_stacks",
        "start",
        "stop",
        "events",
        "add_metadata",
        "__enter__",
        "__exit__",
    }
)
_RENAMED = {
    "cuda_time_total": "device_time_total",
    "self_cuda_time_total": "self_device_time_total",
    "cuda_memory_usage": "device_memory_usage",
    "self_cuda_memory_usage": "self_device_memory_usage",
}


@detector("source/profiler-without-step")
def profiler_without_step(script: Script) -> Iterator[Sighting]:
    """A profiler has a schedule, and nothing calls its step(): it stays in the first phase of the schedule."""
    for call in script.named(_PROFILE):
        given = call.argument("schedule", 1) or _option(script, call)
        if given is None or (isinstance(given, ast.Constant) and given.value is None):
            continue
        held = _Held(script, call)
        if held.words and not held.may_step():
            name = min(held.words)
            yield script.seen(
                call.node, f"{name} has a schedule, and nothing calls {name}.step(): it stays in its first phase"
            )


def _option(script: Script, call: Call) -> ast.expr | None:
    """The schedule that profile(**options) has, where the file writes the options out."""
    spread = [each.value for each in call.node.keywords if each.arg is None]
    ends = [end.node for each in spread for end in script.trace.origins(each, call.scope)]
    if len(ends) != 1:
        return None
    match ends[0]:
        case ast.Call(func=ast.Name(id="dict"), keywords=words):
            return next((each.value for each in words if each.arg == "schedule"), None)
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return next(
                (value for key, value in pairs if isinstance(key, ast.Constant) and key.value == "schedule"), None
            )
    return None


class _Held:
    """One profiler, and the last words of all names that may hold it; no word when it is not held by names only."""

    def __init__(self, script: Script, call: Call) -> None:
        self.script, self.call = script, call
        self.words: set[str] = set()
        self._hold(call.node, call.scope)
        if not self.words:
            self._given_back(call)

    def _hold(self, node: ast.AST, scope: Scope) -> None:
        stores = [each for each in scope.actions if isinstance(each, Store) and each.value is node]
        self.words |= {each.name.removesuffix("[]").rpartition(".")[2] for each in stores}

    def _given_back(self, call: Call) -> None:
        """What its callers call it, after `return profile(…)`."""
        if not any(each.node.value is call.node for each in call.scope.returns):
            return
        for site in self.script.trace.sites(call.scope):
            statement = site.statement
            if isinstance(statement, ast.With | ast.AsyncWith):
                self._call(statement.items, site)
            elif isinstance(statement, ast.Assign):
                inside = {id(each) for each in ast.walk(statement.value)}
                if id(site.node) in inside:
                    self.words |= {dotted(each).rpartition(".")[2] for each in statement.targets} - {""}

    def may_step(self) -> bool:
        """Whether it is stepped in this file, or handed to something that may do so."""
        if "step" in self.script.aside or self._is_given_away() or self._is_inherited():  # hook=prof.step
            return True
        self._grow()
        calls = (call for calls in self.script.facts.calls.values() for call in calls)
        return any(self._is_used(call) for call in calls)

    def _is_given_away(self) -> bool:
        """By a function that nothing in this file calls."""
        for scope in self.script.facts.scopes:
            if self._is_yielded(scope):
                return True
            given = any(self._is_it(each.node.value) for each in scope.returns)
            if given and not self._is_closed(scope) and not self.script.trace.sites(scope):
                return True
        return False

    def _is_yielded(self, scope: Scope) -> bool:
        """By a generator, or a context manager: who goes through it, or opens it, may step it."""
        if scope.kind != "function" or not any(name in scope.stores for name in self.words):
            return False
        if not any(isinstance(each, ast.Yield) and self._is_it(each.value) for each in ast.walk(scope.node)):
            return False
        marks = getattr(scope.node, "decorator_list", [])
        sites = self.script.trace.sites(scope)
        if not sites or not any(dotted(each).endswith("contextmanager") for each in marks):
            return True
        for site in sites:
            items = getattr(site.statement, "items", [])
            if all(item.context_expr is not site.node for item in items):
                return True
            self._call(items, site)
        return False

    def _call(self, items: list[ast.withitem], site: Call) -> None:
        """By the names that a with statement gives it."""
        names = [item.optional_vars for item in items if item.context_expr is site.node]
        self.words |= {dotted(each).rpartition(".")[2] for each in names} - {""}

    def _is_inherited(self) -> bool:
        """Whether it is kept by an object with a base that this file does not show."""
        host = self.call.scope.host
        if host is None or self.script.trace.is_whole(host):
            return False
        return any(each.rpartition(".")[2] in self.words for each in host.attributes)

    def _is_closed(self, scope: Scope) -> bool:
        """One that a with statement has closed is given back to be read, not to be stepped."""
        return any(
            each.how == "enter" for name in self.words for each in scope.stores.get(name, ()) if isinstance(each, Store)
        )

    def _grow(self) -> None:
        """The names by which functions of this file, and other names, have it."""
        for _ in range(3):
            for scope in self.script.facts.scopes:
                for action in scope.actions:
                    if isinstance(action, Store) and action.how in ("assign", "enter") and self._is_it(action.value):
                        self.words.add(action.name.rpartition(".")[2])
                    elif isinstance(action, Call):
                        self.words |= set(self._parameters(action))

    def _parameters(self, call: Call) -> Iterator[str]:
        own = self.script.trace.definition(call.node.func, call.scope)
        if own is not None and own.kind == "class":
            own = self.script.trace.method(own, "__init__")
        if own is None:
            return
        words = [each.arg for each in own.parameters]
        words = words[1:] if own.receiver in words[:1] else words
        for place, word in enumerate(words):
            if self._is_it(call.argument(word, place)):
                yield word

    def _is_used(self, call: Call) -> bool:
        """By a method that is none of those that only open, close or read it, or by code that cannot be seen."""
        if call.receiver is not None and self._is_it(call.receiver) and call.tail not in _OWN:
            return True
        given = any(self._is_it(each) for each in call.arguments)
        own = self.script.trace.definition(call.node.func, call.scope)
        return given and own is None and call.tail not in ("enter_context", "print", "isinstance", "nullcontext")

    def _is_it(self, node: ast.expr | None) -> bool:
        """Whether NODE is the profiler, or holds it; of an attribute whatever it is an attribute of."""
        match node:
            case ast.Starred(value=value):
                return self._is_it(value)
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts):
                return any(self._is_it(each) for each in parts)
            case ast.IfExp(body=one, orelse=other):
                return self._is_it(one) or self._is_it(other)
            case ast.Name(id=word) | ast.Attribute(attr=word):
                return word in self.words and not self.script.names.resolve(node, self.call.scope)
        return node is self.call.node


@detector("source/profiler-api-removed")
def profiler_api_removed(script: Script) -> Iterator[Sighting]:
    """A figure of a profiler's event is read by a name that torch 2.13 no longer has."""
    if not any(tail in script.facts.calls for tail in ("key_averages", "events", "profile")):
        return
    for name, new in _RENAMED.items():
        if name not in script.aside or name.encode() not in script.text.data:
            continue
        for node in ast.walk(script.facts.scopes[0].node):
            if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load):
                yield script.seen(
                    node,
                    f"{name} is {new} since torch 2.13: reading it raises AttributeError",
                    _renamed(script, node, new),
                )


def _renamed(script: Script, node: ast.Attribute, new: str) -> tuple[Edit, ...]:
    _, end = script.text.span(node)
    return script.change("rename", end - len(node.attr.encode()), end, new)
