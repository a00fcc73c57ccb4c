"""Samplers that divide the data among the ranks: whether their order changes from epoch to epoch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Ring
from torchtriage.examine.source.facts import Block, Call, Scope, dotted
from torchtriage.examine.source.flow import loops
from torchtriage.examine.source.ranks import ways
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import training_steps
from torchtriage.specialists.distributed_training_strategies.rules.things import is_of

_SAMPLER = "torch.utils.data.distributed.DistributedSampler"
_WRAPPERS = frozenset({"enumerate", "tqdm", "trange", "zip", "iter", "islice", "track", "list", "next"})
_DEEP = 4


@detector("source/sampler-epoch-not-set")
def sampler_epoch_not_set(script: Script) -> Iterator[Sighting]:
    """A shuffling DistributedSampler is used over several epochs without set_epoch."""
    samplers = [call for call in script.named(_SAMPLER) if _shuffles(call)]
    if not samplers or _is_hidden(script) or not any(script.calls("backward")) or _is_told_aside(script):
        return
    for made in samplers:
        loaders = [call for call in script.named("torch.utils.data.DataLoader") if _takes(script, call, made)]
        if script.shows(made.node, "sampler") or any(script.shows(each.node, "loader") for each in loaders):
            continue
        for loader in loaders:
            again = next(_again(script, loader.node), None)
            if again is None or _is_made_anew(script, again, made):
                continue
            told = [call for call in script.calls("set_epoch") if _may_mean(script, call, made.node, loader.node)]
            if any(_is_told(script, call, again) for call in told):
                continue
            yield script.seen(made.node, _said(again, told))
            break


def _is_hidden(script: Script) -> bool:
    """Whether a framework, or what a star import may have brought into a training step, can set the epoch."""
    if script.names.framework() is not None:
        return True
    stars = script.links.unknown_stars
    steps = training_steps(script) if stars else ()
    return bool(stars) and (not steps or any(step.hidden for step in steps))


def _said(again: Block, told: list[Call]) -> str:
    line = getattr(again.owner, "lineno", 0)
    if told:
        return (
            f"set_epoch in line {told[0].node.lineno} does not go on with the loop in line {line}: "
            "every epoch has the order of the first"
        )
    return f"the epoch loop in line {line} never calls set_epoch: every epoch has the order of the first"


def _shuffles(call: Call) -> bool:
    """The default is to shuffle; a flag may be False, unless it asks whether this is the training set."""
    if any(keyword.arg is None for keyword in call.node.keywords) or len(call.node.args) > 3:
        return False
    match call.argument("shuffle"):
        case None | ast.Constant(value=True):
            return True
        case ast.Compare(ops=[ast.Eq()], comparators=[ast.Constant(value=str(word))]):
            return word.startswith("train")
        case ast.Name(id=word):
            return word in ("train", "is_train", "training", "is_training")
    return False


def _takes(script: Script, loader: Call, made: Call) -> bool:
    given = [loader.argument("sampler", 3)]
    for origin in script.trace.origins(loader.argument("batch_sampler", 4), loader.scope):
        given += origin.call.args[:1] if origin.call is not None else []
    return any(each is not None and is_of(script, each, loader.scope, made.node) for each in given)


# where a loader starts anew


def _again(script: Script, loader: ast.Call) -> Iterator[Block]:
    """The loops that go through the LOADER again and again, for a training."""
    for scope in script.facts.scopes:
        for block, looped in _passes(scope):
            held = [each for each, home in _unwrapped(script, looped, scope) if is_of(script, each, home, loader)]
            for node in held[:1]:
                if _trains(script, block, scope):
                    yield from _around(script, block, scope, _Given(node, loader))
    for call in script.calls("iter"):
        if call.node.args and is_of(script, call.node.args[0], call.scope, loader):
            restarts = any(block.kind == "handler" for block in call.path)
            around = next((each for way in ways(script, call) for step in way for each in loops(step.path)), None)
            if around is not None or restarts:
                yield around or call.path[-1]


def _passes(scope: Scope) -> Iterator[tuple[Block, ast.expr]]:
    """The loops of SCOPE over something, and the places that give on all of something, with what that is."""
    known: set[int] = set()
    for stores in scope.stores.values():
        for store in stores:
            is_pass = store.how == "element" and store.block.kind == "loop" and store.scope is scope
            if is_pass and store.value is not None and id(store.block) not in known:
                known.add(id(store.block))
                yield store.block, store.value
    for call in scope.calls:
        for each in ast.walk(call.statement) if call.statement.lineno else ():
            if isinstance(each, ast.ListComp | ast.GeneratorExp) and each.elt is call.node:
                yield Block("loop", each, (*call.path, Block("loop", each))), each.generators[0].iter
    blocks = {id(block): block for action in scope.actions for block in action.path if block.kind == "loop"}
    for block in blocks.values():
        for each in getattr(block.owner, "body", ()):
            if isinstance(each, ast.Expr) and isinstance(each.value, ast.YieldFrom):
                yield Block("loop", each, (*block.path, Block("loop", each))), each.value.value


def _unwrapped(script: Script, node: ast.expr, scope: Scope, deep: int = 0) -> Iterator[tuple[ast.expr, Scope]]:
    """NODE and what the usual wrappers around a loader hold: of bar = tqdm(enumerate(loader)), the loader."""
    yield node, scope
    inner = [node] if isinstance(node, ast.Call) else []
    if isinstance(node, ast.Name):
        inner = [end.call for end in script.trace.origins(node, scope) if end.call is not None and end.scope is scope]
    for call in inner if deep < _DEEP else ():
        if dotted(call.func).rpartition(".")[2] in _WRAPPERS:
            for each in call.args:
                yield from _unwrapped(script, each, scope, deep + 1)


def _trains(script: Script, block: Block, scope: Scope) -> bool:
    """Whether what runs in BLOCK propagates, or gives the batches on to somebody who may."""
    if isinstance(block.owner, ast.Expr):
        return True
    if isinstance(block.owner, ast.ListComp | ast.GeneratorExp) and isinstance(block.owner.elt, ast.Call):
        own = script.trace.definition(block.owner.elt.func, scope)
        events = script.written.events(Ring(own.body, own)) if own is not None and own.kind == "function" else ()
        return any(each.call is not None and each.call.tail == "backward" for each in events)
    if any(e.call is not None and e.call.tail == "backward" for e in script.written.events(Ring(block, scope))):
        return True
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(block.owner))


class _Given(NamedTuple):
    """What a loop goes through, as the function that it stands in names it, and the loader that it shall be."""

    node: ast.expr
    loader: ast.Call

    def at(self, script: Script, site: Call, scope: Scope) -> _Given | None:
        """The same as the caller at SITE names it; None when that one gives another loader."""
        words = [each.arg for each in scope.parameters]
        if not isinstance(self.node, ast.Name) or self.node.id not in words:
            return self
        given = site.argument(self.node.id, words.index(self.node.id) - (scope.receiver in words[:1]))
        if given is None or not is_of(script, given, site.scope, self.loader):
            return None
        return _Given(given, self.loader)


def _around(script: Script, block: Block, scope: Scope, given: _Given, deep: int = 0) -> Iterator[Block]:
    """The loops around BLOCK, also through the functions that lead there, that turn more than once."""
    yield from (each for each in loops(block.path) if each is not block and _turns(each, scope))
    for site in script.trace.sites(scope) if scope.kind == "function" and deep < _DEEP else ():
        outer = given.at(script, site, scope)
        if outer is None:
            continue
        if site.block.kind == "loop" and _turns(site.block, site.scope):
            yield site.block
        yield from _around(script, site.block, site.scope, outer, deep + 1)


def _turns(block: Block, scope: Scope) -> bool:
    """Whether a loop is one of epochs or steps: not once only, nor over a few things that are written out."""
    owner = block.owner
    written = isinstance(owner, ast.For) and isinstance(owner.iter, ast.Tuple | ast.List)
    return not written and not Ring(block, scope).runs_once


# who tells the epoch


def _is_told_aside(script: Script) -> bool:
    """Whether the file may set an epoch without calling set_epoch: getattr, or a store to sampler.epoch."""
    if "set_epoch" in script.aside:
        return True
    return any(
        name.endswith(".epoch") and name != f"{scope.receiver}.epoch"
        for scope in script.facts.scopes
        for name in scope.stores
    )


def _may_mean(script: Script, call: Call, sampler: ast.Call, loader: ast.Call) -> bool:
    """Whether CALL may tell the epoch to this sampler: it does not when its receiver is surely another one."""
    holder = call.receiver
    while isinstance(holder, ast.Attribute) and holder.attr in ("sampler", "batch_sampler", "dataset"):
        holder = holder.value
        if is_of(script, holder, call.scope, loader):
            return True
    made = [end.call for end in script.trace.origins(holder, call.scope)]
    return not made or any(each is None or each in (sampler, loader) for each in made) or not all(
        script.names.resolve(each.func, call.scope) in (_SAMPLER, "torch.utils.data.DataLoader")
        for each in made if each is not None
    )  # fmt: skip


def _is_told(script: Script, call: Call, again: Block) -> bool:
    """Whether CALL gives another epoch each time the loop AGAIN turns, as far as one can see."""
    if isinstance(call.argument("epoch", 0), ast.Constant):
        return False
    outer = [block for block in again.path if block.kind == "loop"]
    for way in ways(script, call):
        if not outer or any(block.kind == "loop" for step in way for block in step.path):
            return True
        if way[-1].scope.kind != "module" and not any(block in outer for block in way[-1].path):
            inside = any(block.kind == "body" and block is way[-1].scope.body for block in again.path)
            if not inside:
                return True
    return False


def _is_made_anew(script: Script, again: Block, made: Call) -> bool:
    """Whether each epoch makes a sampler of its own, or its seed may be another one each time."""
    seed = next((keyword.value for keyword in made.node.keywords if keyword.arg == "seed"), None)
    if seed is not None and not isinstance(seed, ast.Constant | ast.Name | ast.Attribute):
        return True
    return any(again in step.path for way in ways(script, made) for step in way)
