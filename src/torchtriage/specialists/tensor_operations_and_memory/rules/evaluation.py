"""What the source alone shows about forward passes of which no gradient is wanted."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import takewhile

from msgspec import Struct

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Ring
from torchtriage.examine.source.facts import Block, Call, Scope, Store, dotted
from torchtriage.examine.source.flow import loops, reaches
from torchtriage.examine.source.grad_mode import is_decorated, is_guarded, may_switch
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.tensors import is_batches
from torchtriage.specialists.tensor_operations_and_memory.rules.both_ways import Unused, after_eval, unused
from torchtriage.specialists.tensor_operations_and_memory.rules.gradients import (
    is_frozen,
    is_off_inside,
    is_propagated,
    is_read_out,
    is_wanted,
    tells,
    told_model,
    wants,
)

_NAMED = re.compile(r"_*(?:eval|evaluate|evaluation|val|valid|validate|validation|test|predict|inference)(?:_|\d|$)")

# Those that leave the loop over the evaluation to its author, and autograd as it is.
_LEAVE_IT = frozenset({None, "Accelerate", "apex", "Horovod", "DeepSpeed", "Opacus", "Ray Train"})

# Parts and methods of modules whose call is a forward pass.
_PARTS = frozenset(
    {"forward", "module", "encoder", "decoder", "backbone", "features", "classifier", "head", "forward_features"}
    | {"encode_image", "encode_text", "get_image_features", "get_text_features", "extract_features", "fc", "unet"}
)


class _Forward(Struct, frozen=True):
    """A forward pass of a model in evaluation: the call, the eval() before it, and the loop or function it stands in.

    region: None for a comprehension over batches.
    """

    script: Script
    call: Call
    told: Call | None
    region: Ring | None

    @property
    def place(self) -> int:
        """What one finding is made for."""
        if self.region is None:
            return id(self.call.statement)
        return id(self.told) if self._begins_inside() else id(self.region.block)

    @property
    def facts(self) -> Iterable[Call | Store]:
        """What the region evaluates from eval() to train(); of a comprehension, the calls of its statement."""
        if self.region is None:
            return [call for call in self.call.scope.calls if call.statement is self.call.statement]
        facts = [event.fact for event in self.script.written.events(self.region)]
        if not self._begins_inside():
            return facts
        after = facts[next(place for place, fact in enumerate(facts) if fact is self.told) :]
        return takewhile(lambda fact: not (isinstance(fact, Call) and tells(fact, on=True)), after)

    def _begins_inside(self) -> bool:
        told, region = self.told, self.region
        return told is not None and region is not None and region.block.kind == "loop" and region.block in told.path


@detector("source/eval-builds-graph")
def eval_builds_graph(script: Script) -> Iterator[Sighting]:
    """A model is evaluated outside of no_grad and inference_mode."""
    if script.names.framework() not in _LEAVE_IT or _is_switched_off(script):
        return
    for each in unused(script):
        if not (is_frozen(script, each.call) or is_read_out(script, each.call) or is_wanted(each.call.scope)):
            yield script.seen(each.call.node, _left_out(each))
    if not {"eval", "train"} & script.facts.calls.keys():
        return
    yield from _read_only(script)
    seen: set[int] = set()
    for scope in script.facts.scopes:
        for forward in _forwards(script, scope) if scope.kind in ("function", "module") else ():
            if forward.place in seen or not _builds(forward):
                continue
            seen.add(forward.place)
            yield script.seen(forward.call.node, _fact(forward), _decorator(forward))


def _is_elsewhere(script: Script, scope: Scope) -> bool:
    """Whether code that is not followed may call the function of SCOPE, under no_grad.

    It is handed over as a value, bound anew, or the method of a class whose base stands in another file.
    """
    if scope.kind != "function" or scope.parent is None:
        return False
    if any(store.how == "assign" for store in scope.parent.stores.get(scope.name, ())):
        return True
    if script.trace.sites(scope):
        return False
    if scope.host is not None and scope.host is scope.parent and not script.trace.is_whole(scope.host):
        return True
    given = (argument for calls in script.facts.calls.values() for call in calls for argument in call.arguments)
    return any(dotted(each).rpartition(".")[2] == scope.name for each in given)


def _is_off_by_batches(forward: _Forward) -> bool:
    """Whether the batches come from a generator of this file that switches gradients off while it gives them."""
    for block in loops(forward.call.path):
        node = block.owner.iter if isinstance(block.owner, ast.For) else None
        made = forward.script.trace.definition(node.func, forward.call.scope) if isinstance(node, ast.Call) else None
        if made is not None and any("grad" in call.tail for call in made.calls):
            return True
    return False


def _fact(forward: _Forward) -> str:
    told = f" (eval() in line {forward.told.node.lineno} does not stop that)" if forward.told else ""
    return (
        f"{dotted(forward.call.node.func)}(…) keeps the activations of every layer for a backward that never comes: "
        f"no torch.no_grad() or inference_mode() holds here{told}"
    )


def _left_out(found: Unused) -> str:
    return (
        f"{dotted(found.call.node.func)}(…) keeps the activations of every layer also for line {found.line}, where no "
        "backward follows: neither torch.no_grad() nor set_grad_enabled() holds then"
    )


def _read_only(script: Script) -> Iterator[Sighting]:
    """Functions that are given a model after its eval()."""
    seen: set[int] = set()
    for each in after_eval(script):
        scope = each.call.scope
        facts = [event.fact for event in script.written.events(Ring(scope.body, scope))]
        named = _NAMED.match(scope.name) is not None  # looked at by itself
        if id(scope) in seen or named or any(wants(fact) for fact in facts) or is_frozen(script, each.call):
            continue
        seen.add(id(scope))
        if not (is_read_out(script, each.call) or is_off_inside(script, each.call)):
            yield script.seen(each.call.node, _left_out(each))


def _decorator(forward: _Forward) -> tuple[Edit, ...]:
    """@torch.no_grad() above a function that only evaluates, by its name and by what it does."""
    script, scope = forward.script, forward.call.scope
    node = scope.node
    if not isinstance(node, ast.FunctionDef) or node.decorator_list or not _NAMED.match(scope.name):
        return ()
    ring = Ring(scope.body, scope)
    known = script.names.resolve(ast.Name("torch", ast.Load()), scope) == "torch"
    if not known or any(wants(event.fact) for event in script.written.events(ring)):
        return ()
    return script.line_above("no-grad", node.lineno, "@torch.no_grad()")


def _is_switched_off(script: Script) -> bool:
    """Whether a call that is no context manager switches gradients off for the whole program."""
    switches = (*script.calls("set_grad_enabled"), *script.calls("__enter__"))
    return any(isinstance(each.statement, ast.Expr) for each in switches)


def _forwards(script: Script, scope: Scope) -> Iterator[_Forward]:
    told = [call for call in scope.calls if tells(call, on=False)]
    named = scope.kind == "function" and _NAMED.match(scope.name) is not None and bool(script.trace.sites(scope))
    if not (told or named) or (scope.host is not None and scope.name.startswith(("forward", "__call__"))):
        return
    for call in scope.calls:
        name = dotted(call.node.func)
        before = next((each for each in reversed(told) if _runs(script, call, each) and _holds(each, call)), None)
        if not name or (before is None and (told or not script.roles.plays(call.node.func, scope, "model"))):
            continue  # what has an eval() and is called is a module, whatever its name
        whole = _is_comprehended(script, call)
        region = None if whole else _region(script, call, before)
        if region is not None or whole:
            yield _Forward(script, call, before, region)


def _runs(script: Script, call: Call, told: Call) -> bool:
    """Whether CALL is that of the model which TOLD has put into eval mode, or of a helper that calls it."""
    model = told_model(told)
    if not model or _is_part(dotted(call.node.func), model, call):
        return bool(model)
    helper = script.trace.definition(call.node.func, call.scope)
    if helper is None or helper.kind != "function" or is_decorated(helper):
        return False
    words = [each.arg for each in helper.parameters]
    bound = helper.receiver in words[:1]
    given = {word for place, word in enumerate(words) if dotted(call.argument(word, place - bound)) == model}
    inner = [each for each in helper.calls if dotted(each.node.func) in given | {model} and each.arguments]
    if any(loops(each.path) for each in inner) or any(tells(each, on=False) for each in helper.calls):
        return False  # the helper is looked at by itself
    return bool(inner) and not any(may_switch(block) for each in inner for block in each.path)


def _is_part(called: str, model: str, call: Call) -> bool:
    """Whether CALLED is the model, one of several under a key, or what it does forward with."""
    if called == model:
        return True
    rest = called.removeprefix(f"{model}.") if called.startswith(f"{model}.") else ""
    return rest in _PARTS or (bool(rest) and isinstance(call.node.func, ast.Subscript))


def _holds(told: Call, call: Call) -> bool:
    """Whether the eval() of TOLD still holds where CALL stands: no train() in between."""
    back = [each for each in call.scope.calls if tells(each, on=True) and told_model(each) == told_model(told)]
    return reaches(told, call) and not any(reaches(told, each) and reaches(each, call) for each in back)


def _region(script: Script, call: Call, told: Call | None) -> Ring | None:
    """The outermost loop around CALL that eval() stands outside of, or the innermost with both; else the function.

    A function counts only when a loop calls it.
    """
    around = [block for block in loops(call.path) if not _is_short(block)]
    if told is not None:
        outer = [block for block in around if block not in told.path]
        if outer or around:
            return Ring(outer[-1] if outer else around[0], call.scope)
    elif not any(isinstance(b.owner, ast.For) and is_batches(script, b.owner.iter, call.scope) for b in around):
        return None
    if call.scope.kind == "function" and (around or _is_repeated(script, call.scope, set())):
        return Ring(call.scope.body, call.scope)
    return None


def _is_short(block: Block) -> bool:
    """Whether a loop goes through a few things that are written out."""
    return isinstance(block.owner, ast.For) and isinstance(block.owner.iter, ast.List | ast.Tuple)


def _is_comprehended(script: Script, call: Call) -> bool:
    """Whether CALL runs for each batch of a comprehension: sum(loss(model(x), y) for x, y in loader)."""
    return any(
        isinstance(each, ast.ListComp | ast.GeneratorExp | ast.SetComp)
        and is_batches(script, each.generators[0].iter, call.scope)
        and any(node is call.node for node in ast.walk(each.elt))
        for each in ast.walk(call.statement)
    )


def _is_repeated(script: Script, scope: Scope, seen: set[int]) -> bool:
    if id(scope) in seen:
        return False
    seen.add(id(scope))
    return any(loops(site.path) or _is_repeated(script, site.scope, seen) for site in script.trace.sites(scope))


def _builds(forward: _Forward) -> bool:
    script, call = forward.script, forward.call
    if is_guarded(script, call, 0) or is_frozen(script, call):
        return False
    if any(wants(fact) for fact in forward.facts):
        return False
    if _is_elsewhere(script, call.scope) or _is_off_by_batches(forward):
        return False
    return not (is_propagated(forward.script, forward.call) or is_read_out(script, call) or is_off_inside(script, call))
