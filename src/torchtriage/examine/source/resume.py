"""Trainings that start from a checkpoint: what the file restores, what it saves, and what its loop goes on with."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from torchtriage.examine.detector import view
from torchtriage.examine.source.events import Event, Ring
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.flow import reaches
from torchtriage.examine.source.restored import given_states, is_stub
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import TrainingStep, training_steps


class Resume(Struct, frozen=True):
    """A model that gets its weights from a file and is then trained in a loop of epochs.

    load: the torch.load call. saves: the torch.save calls of the file. restored: the roles whose load_state_dict is
    called ("?" for one that is not known), and "epoch" when the loop may start elsewhere than at its beginning.
    words: what the names around the load say, in lower case. partial: the weights may be loaded in part (strict=).
    """

    script: Script
    step: TrainingStep
    load: Call
    saves: tuple[Call, ...]
    restored: frozenset[str]
    words: str
    partial: bool

    @property
    def is_own(self) -> bool:
        """Whether the file that is loaded is one that this script saves, by the same expression."""
        path = self.load.argument("f", 0)
        targets = [(save.argument("f", 1), save.scope) for save in self.saves]
        moves = self.script.named("os.replace", "os.rename", "shutil.move") if targets else ()
        targets += [(move.argument("dst", 1), move.scope) for move in moves]  # written beside it, then renamed
        return path is not None and any(
            target is not None and self._is_same(path, target, scope) for target, scope in targets
        )

    @property
    def is_kept(self) -> bool:
        """Whether this training writes a checkpoint: the file that is loaded, where the script shows who writes that.

        Weights that another function has written are those of another training.
        """
        outer = self.step.around[-1] if self.step.around else self.step.ring
        whole = self.script.written.events(Ring(outer.scope.body, outer.scope))
        inside = {id(event.call) for event in whole if event.call is not None}
        path = self.load.argument("f", 0)
        writes = [(each, each.argument("f", 1), each.scope) for each in self.saves]
        same = [each for each, target, scope in writes if path is not None and target is not None
                and self._is_same(path, target, scope)]  # fmt: skip
        scopes = {id(event.fact.scope) for event in whole} | {id(outer.scope)}
        return any(id(each) in inside or id(each.scope) in scopes for each in same or self.saves) or (
            outer.scope.host is not None and any(each.scope.host is outer.scope.host for each in same or self.saves)
        )

    def _is_same(self, path: ast.expr, target: ast.expr, scope: Scope) -> bool:
        if ast.dump(path) == ast.dump(target):
            return True
        ends = self._ends(path, self.load.scope)
        return bool(ends) and ends == self._ends(target, scope)

    def _ends(self, node: ast.expr, scope: Scope) -> list[str]:
        """The expressions that a path comes from; none when some caller decides."""
        origins = self.script.trace.origins(node, scope)
        known = [ast.dump(each.node) for each in origins if each.node is not None and not each.is_parameter]
        return known if len(known) == len(origins) else []

    def saved(self, role: str) -> bool:
        """Whether a save of this script holds the state of ROLE."""
        return any(self.script.roles.plays(call.receiver, call.scope, role) for call in self.script.calls("state_dict"))


@view(Resume, of=Script)
def resumes(script: Script) -> Iterator[Resume]:
    loads = list(script.named("torch.load"))
    for step in training_steps(script) if loads else ():
        outer = step.around[-1] if step.around else step.ring
        if outer.is_loop:
            yield from _of_step(script, step, outer, loads)


def _of_step(script: Script, step: TrainingStep, outer: Ring, loads: list[Call]) -> Iterator[Resume]:
    before = _before(script, outer)
    found: dict[int, Resume] = {}
    for event in before:
        call = event.call
        if call is None or call.tail != "load_state_dict":
            continue
        load = _loaded(script, call.argument("state_dict", 0), call.scope, loads)
        if load is None or id(load) in found or not _takes_part(script, step, call) or _is_made_anew(outer, call):
            continue
        if script.roles.plays(_bare(call.receiver), call.scope, "model"):
            partial = call.argument("strict", 1) is not None
            words = _words(script, load, event)
            saves = tuple(script.named("torch.save"))
            found[id(load)] = Resume(script, step, load, saves, _restored(script, outer, before), words, partial)
    yield from (each for each in found.values() if not _is_shown(script, each.load, before))


def _bare(node: ast.expr | None) -> ast.expr | None:
    """The wrapper itself, of the module that it holds: model.module."""
    while isinstance(node, ast.Attribute) and node.attr in ("module", "_orig_mod"):
        node = node.value
    return node


def _is_made_anew(outer: Ring, load: Call) -> bool:
    """Whether the loop gives the name of the model that was loaded to another one."""
    name = dotted(load.receiver)
    stores = outer.scope.stores.get(name, ()) if load.scope is outer.scope else ()
    inside = (store.value for store in stores if outer.block in store.path and store.value is not None)
    return any(all(dotted(each) != name for each in ast.walk(value)) for value in inside)


def _takes_part(script: Script, step: TrainingStep, load: Call) -> bool:
    """Whether the step uses or optimizes what LOAD gives its weights: another model may be trained on its outputs."""
    own = _identities(script, _bare(load.receiver), load.scope)
    for call in (event.call for event in step.events if event.call is not None):
        used = (call.node.func, call.receiver, *call.arguments)
        if any(
            own & _identities(script, node, call.scope) for node in used if isinstance(node, ast.Name | ast.Attribute)
        ):
            return True
    made = [(part.made, part.scope) for _, _, parts in step.optimizing() for part in parts]
    return not own or any(
        own & _identities(script, inner, scope)
        for call, scope in made
        if call is not None and scope is not None
        for inner in ast.walk(call)
        if isinstance(inner, ast.Name | ast.Attribute)
    )


def _identities(script: Script, node: ast.expr | None, scope: Scope) -> set[int]:
    """What tells a value apart: where it is made, or the parameter that brings it."""
    return {
        id(origin.store) if origin.is_parameter else id(origin.node)
        for origin in script.trace.origins(node, scope)
        if origin.is_parameter or origin.node is not None
    }


def _before(script: Script, outer: Ring) -> list[Event]:
    """What runs before the loop OUTER: the code above it, and for a method what its object's __init__ does."""
    whole = script.written.events(Ring(outer.scope.body, outer.scope))
    first = next((event for event in whole if outer.block in event.path), None)
    made = outer.scope.host.inner.get("__init__") if outer.scope.host is not None else None
    built = script.written.events(Ring(made.body, made)) if made is not None and made is not outer.scope else ()
    return [*built, *(event for event in whole if first is not None and reaches(event, first))]


def _loaded(script: Script, node: ast.expr | None, scope: Scope, loads: list[Call]) -> Call | None:
    """The load that NODE is a part of: checkpoint["model"] → the torch.load that made checkpoint."""
    while isinstance(node, ast.Subscript) or (isinstance(node, ast.Call) and _is_get(node)):
        node = node.value if isinstance(node, ast.Subscript) else _receiver(node)
    for origin in script.trace.origins(node, scope):
        if isinstance(origin.node, ast.Subscript):
            return _loaded(script, origin.node, origin.scope, loads)
        for load in loads:
            if load.node is origin.node:
                return load
    return None


def _is_get(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "pop")


def _receiver(node: ast.expr) -> ast.expr | None:
    return node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None


def _is_shown(script: Script, load: Call, events: list[Event]) -> bool:
    """Whether the loaded state, or the work of loading, is handed to code that cannot be seen from here."""
    return any(_hides(script, load, event.call) for event in events if event.call is not None)


def _hides(script: Script, load: Call, call: Call) -> bool:
    if script.name(call).startswith("torch.") or call.tail in ("load_state_dict", "get"):
        return False
    own = script.trace.definition(call.node.func, call.scope)
    if own is not None and not is_stub(own.node):
        return False
    if any(word in call.tail.lower() for word in ("load_", "restore", "resume")):
        return True
    if (own is None and script.knows(call)) or isinstance(
        call.receiver, ast.Constant
    ):  # "epoch {}".format(state["epoch"])
        return False
    return any(_loaded(script, argument, call.scope, [load]) is load for argument in call.arguments)


def _restored(script: Script, outer: Ring, before: list[Event]) -> frozenset[str]:
    loads = (call for call in script.calls("load_state_dict") if not _is_never_given(script, call))
    found = {role for call in loads for role in given_states(script, call, _bare(call.receiver))}
    if any(name.startswith("set_") and name.endswith("state_dict") for name in script.facts.calls):
        found.add("?")  # torch.distributed.checkpoint.state_dict.set_optimizer_state_dict(model, optimizer, …)
    if _starts_anywhere(script, outer):
        found.add("epoch")
    if any(_winds_on(script, event.call) for event in before if event.call is not None):
        found.add("scheduler")
    if "scheduler" not in found and _is_wound(script):
        found.add("scheduler")
    return frozenset(found)


def _is_wound(script: Script) -> bool:
    """Whether a scheduler is set to its place by hand, or made with what the file holds: LambdaLR(opt, from_step)."""
    if any(name.endswith(".last_epoch") for scope in script.facts.scopes for name in scope.stores):
        return True
    loads = list(script.named("torch.load"))
    parts = [part for call in script.calls("step") for part in script.roles.parts(call.receiver, call.scope)]
    made = [(part.made, part.scope) for part in parts if part.role == "scheduler"]
    return any(
        _loaded(script, node, scope, loads) is not None
        for call, scope in made
        if call is not None and scope is not None
        for given in (*call.args[1:], *(each.value for each in call.keywords))
        for node in _named_in(script, given, scope)
    )


def _named_in(script: Script, given: ast.expr, scope: Scope) -> Iterator[ast.expr]:
    """The names in GIVEN, and in the function of this file that it names."""
    own = script.trace.definition(given, scope) if isinstance(given, ast.Name) else None
    for each in (given, own.node) if own is not None else (given,):
        yield from (
            inner for inner in ast.walk(each) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)
        )


def _is_never_given(script: Script, load: Call) -> bool:
    """Whether what LOAD is for is a parameter, None where it is left out, that every call in this file leaves out."""
    scope, name = load.scope, dotted(load.receiver)
    sites = script.trace.sites(scope) if name in (each.arg for each in scope.parameters) else ()
    if not sites or not isinstance(scope.node, ast.FunctionDef):
        return False
    spec = scope.node.args
    plain = [*spec.posonlyargs, *spec.args]
    pairs = [*zip(plain[len(plain) - len(spec.defaults) :], spec.defaults, strict=True)]
    pairs += [(each, value) for each, value in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if value]
    absent = any(each.arg == name and isinstance(value, ast.Constant) and value.value is None for each, value in pairs)
    words = [each.arg for each in scope.parameters]
    at = words.index(name) - (scope.receiver in words[:1])
    return absent and all(_leaves_out(site, name, at) for site in sites)


def _leaves_out(site: Call, name: str, at: int) -> bool:
    starred = any(isinstance(each, ast.Starred) for each in site.node.args)
    return not starred and all(each.arg for each in site.node.keywords) and site.argument(name, at) is None


def _winds_on(script: Script, call: Call) -> bool:
    """Whether a scheduler is brought to its place without load_state_dict: by last_epoch=, or by stepping it there."""
    if call.tail == "step":
        return script.roles.plays(call.receiver, call.scope, "scheduler")
    return call.argument("last_epoch") is not None


def _starts_anywhere(script: Script, outer: Ring) -> bool:
    """False only for a loop that always starts at its beginning: for epoch in range(n), range(0, n), range(1, n)."""
    match outer.block.owner:
        case ast.For(target=target, body=body) if any(_passes_over(each, dotted(target)) for each in body):
            return True
        case ast.For(iter=ast.Call(func=ast.Name(id="range" | "trange"), args=[end])):
            ends = [end, *(origin.node for origin in script.trace.origins(end, outer.scope))]
            loads = list(script.named("torch.load"))
            return any(_is_rest(each) or _loaded(script, each, outer.scope, loads) for each in ends)
        case ast.For(iter=ast.Call(func=ast.Name(id="range" | "trange"), args=[start, _, *_])):
            origins = script.trace.origins(start, outer.scope)
            return not origins or not all(isinstance(origin.node, ast.Constant) for origin in origins)
    return True


def _is_rest(node: ast.expr | None) -> bool:
    """Whether it is what is left of the epochs: range(epochs - done)."""
    return node is not None and any(isinstance(each, ast.Sub) for each in ast.walk(node))


def _passes_over(statement: ast.stmt, turn: str) -> bool:
    """Whether an `if` asks how far the loop is: if epoch < start: continue, if epoch >= start: …"""
    match statement:
        case ast.If(body=[*_, ast.Continue()]):
            return True
        case ast.If(test=ast.Compare(ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()]) as test):
            sides = [test.left, *test.comparators]
            return (
                bool(turn)
                and any(dotted(each) == turn for each in sides)
                and not any(isinstance(each, ast.Constant) for each in sides)
            )
    return False


def _words(script: Script, load: Call, event: Event) -> str:
    tests = [block.owner.test for block in event.path if isinstance(block.owner, ast.If)]
    names = [store.name for stores in load.scope.stores.values() for store in stores if _holds(store, load)]
    spoken = [script.source(node) for node in (*tests, *load.arguments)]
    ends = [
        script.source(origin.node)
        for origin in script.trace.origins(load.argument("f", 0), load.scope)
        if origin.node is not None
    ]
    return " ".join([load.scope.name, *names, *spoken, *ends]).lower()


def _holds(store: Store, load: Call) -> bool:
    return store.value is not None and any(inner is load.node for inner in ast.walk(store.value))
