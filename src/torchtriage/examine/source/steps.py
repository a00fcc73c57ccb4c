"""Training steps: the innermost loop that calls backward and steps, with the functions that it calls written out."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice

from msgspec import Struct

from torchtriage.examine.detector import view
from torchtriage.examine.source.events import Event, Ring
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.flow import loops, reaches, reaching
from torchtriage.examine.source.nodes import nodes_in
from torchtriage.examine.source.roles import Part
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.families import FACTORIES, LIKE_FACTORIES

_DEEP, _WAYS = 4, 16
_MADE = FACTORIES | LIKE_FACTORIES
_WRAPPERS = frozenset({"enumerate", "tqdm", "trange", "zip", "iter", "islice", "cycle", "track", "list"})


class Backward(Struct, frozen=True, eq=False):
    """One backward call: what is propagated, and the scaler that multiplied it (None when nothing did)."""

    event: Event
    call: Call
    root: ast.expr | None
    scaler: ast.expr | None


class TrainingStep:
    """ring: the loop (or function body) that is the step; around: the loops outside of it, innermost first.

    sites: the calls through which the ring is reached from those loops. events: everything the step evaluates, in
    order, with the functions of this file written out where they are called.
    """

    def __init__(self, script: Script, ring: Ring, way: _Way) -> None:
        self.script, self.ring, self.sites = script, ring, way.sites
        self.around = _outside(way, ring)
        self.events = events = script.written.events(ring)
        self.backwards = tuple(_backwards(script, events))

    @cached_property
    def hidden(self) -> str | None:
        """What may do the thing that a "missing X" rule looks for out of sight: a framework, or a star import.

        A star import hides only the steps that call something it may have brought.
        """
        owner = self.script.names.framework()
        if owner is not None or not self.script.links.unknown_stars:
            return owner
        bare = (event.call for event in self.events if event.call is not None and event.call.receiver is None)
        starred = (c for c in bare if c.tail and self.script.names.home(c.tail, c.scope) is None)
        return self.script.hidden if any(not self.script.name(call) for call in starred) else None

    @property
    def epochs(self) -> Ring | None:
        """The loop that repeats the step's whole loop, unless it turns only once."""
        return next((ring for ring in self.around if not ring.runs_once), None) if self.ring.is_loop else None

    @property
    def repeats(self) -> bool:
        """Whether the step is a loop, or the body of a function that comprehensions repeat."""
        sites = self.script.trace.sites(self.ring.scope) if not self.ring.is_loop else ()
        return self.ring.is_loop or (bool(sites) and all(_is_comprehended(site) for site in sites))

    def calls(self, *tails: str) -> Iterator[tuple[Event, Call]]:
        """The calls whose last word is one of TAILS, in order."""
        for event in self.events:
            if isinstance(event.fact, Call) and event.fact.tail in tails:
                yield event, event.fact

    def named(self, names: Iterable[str]) -> Iterator[tuple[Event, Call]]:
        """The calls of the things with these real NAMES, in order."""
        wanted = frozenset(names)
        for event in self.events:
            if isinstance(event.fact, Call) and self.script.name(event.fact) in wanted:
                yield event, event.fact

    def stores(self, ending: str) -> Iterator[Event]:
        """The stores to a name that ends so: ".grad"."""
        yield from (each for each in self.events if isinstance(each.fact, Store) and each.fact.name.endswith(ending))

    def before(self, last: Event, *tails: str) -> Call | None:
        """A call of one of TAILS that some way through the step passes before it comes to LAST."""
        return next((call for event, call in self.calls(*tails) if reaches(event, last)), None)

    def optimizing(self) -> list[tuple[Event, Call, list[Part]]]:
        """The optimizer steps: the call, and what is known of the optimizer; through a scaler as well."""
        found = []
        for event, call in self.calls("step"):
            if self.script.roles.plays(call.receiver, call.scope, "scaler"):
                target = call.argument("optimizer", 0)
            else:
                target = call.receiver
            parts = [part for part in self.script.roles.parts(target, call.scope) if part.role == "optimizer"]
            if parts:
                found.append((event, call, parts))
        return found

    def loaders(self) -> Iterator[Part]:
        """The constructor calls of the loaders that the step goes through."""
        owner = self.ring.block.owner
        if isinstance(owner, ast.For | ast.AsyncFor):
            for node, scope in self._looped(owner.iter):
                yield from self.script.roles.made(node, scope, "loader")

    def _looped(self, node: ast.expr) -> Iterator[tuple[ast.expr, Scope]]:
        """What a loop over NODE goes through, as the callers give it: of bar = tqdm(loader), the loader."""
        for each in _unwrapped(node):
            given, scope = self._given(each)
            yield given, scope
            for origin in (
                self.script.trace.origins(given, scope) if given is each and isinstance(each, ast.Name) else ()
            ):
                inner = _unwrapped(origin.call) if origin.call is not None else iter(())
                yield from ((part, origin.scope) for part in islice(inner, 1, None))

    def _given(self, node: ast.expr) -> tuple[ast.expr, Scope]:
        """What NODE is at the calls that lead to this step: a parameter is followed to these callers, not to all."""
        scope = self.ring.scope
        for site in self.sites:
            words = [each.arg for each in scope.parameters]
            if not isinstance(node, ast.Name) or node.id not in words:
                break
            given = site.argument(node.id, words.index(node.id) - (scope.receiver in words[:1]))
            if given is None:
                break
            node, scope = given, site.scope
        return node, scope


def _is_made(script: Script, host: Scope | None) -> bool:
    """Whether the class HOST itself is used in this file: what its methods leave open, nobody fills in."""
    return host is not None and host.name in script.facts.calls


def _outside(way: _Way, ring: Ring) -> tuple[Ring, ...]:
    past = way.rings.index(ring) + 1 if ring in way.rings else 0
    return tuple(each for each in way.rings[past:] if each.is_loop)


def _flat(nodes: Iterable[ast.expr]) -> Iterator[ast.expr]:
    for node in nodes:
        if isinstance(node, ast.Tuple | ast.List):
            yield from _flat(node.elts)
        else:
            yield node.value if isinstance(node, ast.Starred) else node


def _unwrapped(node: ast.expr) -> Iterator[ast.expr]:
    """NODE and what the usual wrappers around a loader hold: enumerate(tqdm(loader)) → loader."""
    yield node
    if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in _WRAPPERS:
        for argument in node.args:
            yield from _unwrapped(argument)


def _propagates(script: Script, call: Call) -> bool:
    if call.tail != "backward" or call.receiver is None or len(call.node.args) > 1:
        return False
    if isinstance(call.receiver, ast.Call) and dotted(call.receiver.func) == "super":
        return False
    owner = call.scope.host or call.scope.parent  # a static method has no host
    return owner is None or owner.kind != "class" or "torch.autograd.Function" not in script.trace.bases(owner)


def _backwards(script: Script, events: Iterable[Event]) -> Iterator[Backward]:
    for event in events:
        if event.call is not None and _propagates(script, event.call):
            yield _backward(script, event, event.call)


def _backward(script: Script, event: Event, call: Call) -> Backward:
    scaling = _scale(script, call.receiver, call) if call.receiver is not None else None
    if scaling is not None and isinstance(scaling.func, ast.Attribute):
        return Backward(event, call, next(iter(scaling.args), None), scaling.func.value)
    on_self = bool(call.scope.receiver) and dotted(call.receiver) == call.scope.receiver
    own = script.name(call) or on_self or (call.node.args and not _is_gradient(script, call))
    return Backward(event, call, call.argument("tensors", 0) if own else call.receiver, None)


def _is_gradient(script: Script, call: Call) -> bool:
    """Whether what backward is given is where the gradient starts, and no loss that an engine propagates."""
    given = call.node.args[0]
    name = script.names.resolve(given.func, call.scope) if isinstance(given, ast.Call) else ""
    return name.startswith("torch.") and name.rpartition(".")[2] in _MADE


def _scale(script: Script, node: ast.expr, use: Call) -> ast.Call | None:
    """The scaler.scale(...) call that NODE is, or that the name NODE was last given."""
    if isinstance(node, ast.Name):
        stores = reaching(script.names.stores(node.id, use.scope), use)
        values = [store.value for store in stores if store.scope is use.scope]
        return next((_scale(script, v, use) for v in values if isinstance(v, ast.Call)), None)
    match node:
        case ast.Call(func=ast.Attribute(value=scaler, attr="scale")):
            return node if script.roles.plays(scaler, use.scope, "scaler") else None
    return None


def _is_comprehended(call: Call) -> bool:
    """Whether a comprehension repeats CALL: sum(step(x, y) for x, y in loader)."""
    if not isinstance(call.statement, ast.Expr | ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return):
        return False
    return any(
        isinstance(each, ast.ListComp | ast.GeneratorExp | ast.SetComp) and id(call.node) in nodes_in(each.elt)
        for each in ast.walk(call.statement)
    )


class _Way(Struct, frozen=True):
    """From a backward call outwards: the loops around it, last the body of the outermost function, and the calls."""

    rings: tuple[Ring, ...]
    sites: tuple[Call, ...]


class _Finder:
    """Finds the steps of one script."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def steps(self) -> Iterator[TrainingStep]:
        found: dict[tuple[int, ...], TrainingStep] = {}
        for call in self.script.calls("backward"):
            for way in islice(self.ways(call, call.scope, 0), _WAYS) if _propagates(self.script, call) else ():
                ring = self.choose(way, call)
                sites = way.sites[self.depth(way, ring) :]
                key = (id(ring.block), *map(id, sites))
                if key not in found:
                    found[key] = TrainingStep(self.script, ring, _Way(way.rings, sites))
        yield from found.values()

    def ways(self, at: Call, scope: Scope, deep: int) -> Iterator[_Way]:
        """Through every place where the function that the call stands in is called itself."""
        own = tuple(Ring(block, scope) for block in loops(at.path))
        sites = self.sites(scope) if scope.kind in ("function", "lambda") and deep < _DEEP else ()
        if not sites:
            yield _Way((*own, Ring(scope.body, scope)), ())
        for site in sites:
            if _is_comprehended(site):  # [step(x) for x in loader]: the function itself is what is repeated
                yield _Way((*own, Ring(scope.body, scope)), ())
                continue
            for way in self.ways(site, site.scope, deep + 1):
                yield _Way((*own, *way.rings), (site, *way.sites))

    def depth(self, way: _Way, ring: Ring) -> int:
        """How many calls lie inside of RING."""
        return next((count for count, site in enumerate(way.sites, start=1) if site.scope is ring.scope), 0)

    def sites(self, scope: Scope) -> tuple[Call, ...]:
        handed = (
            call
            for call in self.script.calls("step")
            if any(self.script.written.function(argument, call.scope) is scope for argument in call.arguments)
        )
        return (*self.script.trace.sites(scope), *handed)

    def choose(self, way: _Way, call: Call) -> Ring:
        """The innermost loop that steps an optimizer; else the innermost loop, or the function's own body."""
        rings = [ring for ring in way.rings if ring.is_loop]
        for ring in rings:
            if any(self.optimizes(event) for event in self.script.written.events(ring)):
                return ring
        return rings[0] if rings else Ring(call.scope.body, call.scope)

    def optimizes(self, event: Event) -> bool:
        call = event.call
        if call is None or call.tail != "step":
            return False
        roles = self.script.roles
        return any(roles.plays(call.receiver, call.scope, role) for role in ("optimizer", "scaler"))


@view(TrainingStep, of=Script)
def training_steps(script: Script) -> tuple[TrainingStep, ...]:
    return tuple(_Finder(script).steps())
