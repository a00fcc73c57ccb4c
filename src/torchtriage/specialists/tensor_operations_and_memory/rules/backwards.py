"""What the source alone shows about graphs that backward goes through only once."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.carried import Carried
from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.flow import loops, reaches
from torchtriage.examine.source.overridden import overriding
from torchtriage.examine.source.steps import Backward, TrainingStep
from torchtriage.examine.source.tensors import Tensors
from torchtriage.examine.source.torch_api.families import CASTS, GRAPH_CUTS, LIKE_FACTORIES, RESHAPES, SIZED_FACTORIES

_NO_GRADIENT = ("zero_grad", "no_grad", "clip_grad", "set_grad_enabled", "requires_grad", "get_grad_norm", "grad_norm_")
_STEP = re.compile(r"step|batch|iter|train|update")
# Names of parameters that two losses may be computed from with one graph.
_MADE = re.compile(r"loss|err|logit|out|pred|feat|hidden|emb|value|log_?p|fake|cost|objective")


@detector("source/retain-graph-needless")
def retain_graph_needless(step: TrainingStep) -> Iterator[Sighting]:
    """The graph is retained although nothing goes through it a second time."""
    kept = [each for each in step.backwards if is_set(each.call, "retain_graph")]
    if not kept or not repeats(step):
        return
    taken = [event for event in step.events if _takes_gradients(event)]
    for each in kept:
        if any(reaches(each.event, event) for event in taken) or _is_handed_on(step, each):
            continue
        later = [other for other in step.backwards if other is not each and reaches(each.event, other.event)]
        if (
            any(_share(step, each, other) for other in later)
            or not is_direct(step, each.event)
            or is_set(each.call, "create_graph")
        ):
            continue
        if Carried(step, Tensors(step.script)).is_own(start(each), each.call, each.call.scope):
            yield step.script.seen(
                each.call.node,
                "retain_graph=True keeps every activation alive after this backward, and nothing goes through the "
                f"graph again: {_name(step)} line {_line(step)} builds a new one every time",
            )


def _is_handed_on(step: TrainingStep, backward: Backward) -> bool:
    """Whether what is not followed may go through the graph: a callback that gets the loss, or a method's override."""
    scope, names = backward.call.scope, {dotted(start(backward))} - {""}
    names |= {scope.receiver} if any("." in name for name in names) and scope.receiver else set()
    for name in tuple(names):
        for stores in scope.stores.values():
            names |= {store.name for store in stores if store.how == "assign" and _lists(store.value, name)}
    for event in step.events:
        call = event.call
        if call is None or not reaches(backward.event, event):
            continue
        given = any(_lists(each, name) or dotted(each) == name for each in call.arguments for name in names)
        if given and call.tail not in _NOTES and _is_open(step, call):
            return True
        method = step.script.trace.definition(call.node.func, call.scope)
        for other in overriding(step.script.trace, method) if method is not None else ():
            if any("grad" in each.tail or each.tail == "backward" for each in other.calls):
                return True
    return False


def _is_open(step: TrainingStep, call: Call) -> bool:
    """Whether CALL runs what the function is given, or goes through: a callback, a hook."""
    if step.script.knows(call):
        return False
    name = dotted(call.node.func).partition(".")[0]
    stores = call.scope.stores.get(name, [])
    return (
        bool(stores) and all(store.how in ("parameter", "element") for store in stores) and name != call.scope.receiver
    )


def _lists(node: ast.AST | None, name: str) -> bool:
    """Whether NODE is a dict, list or tuple, written out, with NAME in it."""
    match node:
        case ast.Dict(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
            return any(dotted(each) == name for each in parts)
    return False


# What writes a loss down.
_NOTES = frozenset(
    {"append", "extend", "add", "update", "add_scalar", "log", "info", "debug", "write", "record", "print", "item"}
    | {"set_postfix", "set_description", "log_metrics", "push", "observe", "put"}
)


def _share(step: TrainingStep, one: Backward, other: Backward) -> bool:
    """Whether both may go through what one call gave: a model's, or that of a function which is not known."""
    if one.call.scope is not other.call.scope:
        return True
    return not _sources(step, one).isdisjoint(_sources(step, other))


def _sources(step: TrainingStep, backward: Backward) -> set[int]:
    """The calls behind what is propagated, but those that make tensors out of nothing, and what detach() cuts off."""
    found: set[int] = set()
    seen: set[int] = set()
    waiting: list[tuple[ast.AST, Scope]] = [(start(backward), backward.call.scope)]
    while waiting:
        node, scope = waiting.pop()
        if isinstance(node, ast.Call):
            tail = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            head, _, last = step.script.names.resolve(node.func, scope).rpartition(".")
            if tail in GRAPH_CUTS or (head == "torch" and last in SIZED_FACTORIES | LIKE_FACTORIES):
                continue
            if tail not in _PASSES:
                found.add(id(node))
            waiting += [(each, scope) for each in (*node.args, *(keyword.value for keyword in node.keywords))]
            waiting += [(node.func.value, scope)] if isinstance(node.func, ast.Attribute) else []
            continue
        name = dotted(node)
        for store in stores_of(name, scope) if name else ():
            if id(store) not in seen:
                seen.add(id(store))
                given = _given(step, store)
                found.update({0} if store.how == "parameter" and not given and _MADE.search(store.name) else ())
                waiting += given
        if not name:
            waiting += [(each, scope) for each in ast.iter_child_nodes(node)]
    return found


def _given(step: TrainingStep, store: Store) -> list[tuple[ast.AST, Scope]]:
    """What STORE is given: a parameter, what the callers give it."""
    if store.how != "parameter":
        is_value = store.value is not None and store.how in ("assign", "augment")
        return [(store.value, store.scope)] if is_value and store.value is not None else []
    words = [each.arg for each in store.scope.parameters]
    place = words.index(store.name) - (store.scope.receiver in words[:1])
    given = ((site.argument(store.name, place), site.scope) for site in step.script.trace.sites(store.scope))
    return [(each, scope) for each, scope in given if each is not None]


_PASSES = CASTS | RESHAPES


def repeats(step: TrainingStep) -> bool:
    """Whether the step is a loop, or a function that by its name is called for every batch."""
    if step.ring.is_loop:
        return not step.ring.runs_once
    return step.ring.scope.kind == "function" and _STEP.search(step.ring.scope.name.lower()) is not None


def is_direct(step: TrainingStep, event: Event) -> bool:
    """Whether EVENT runs once in each step, not in a loop of its own."""
    around = loops(event.path)
    return around[0] is step.ring.block if around and step.ring.is_loop else not around


def is_set(call: Call, name: str) -> bool:
    given = call.argument(name)
    return isinstance(given, ast.Constant) and given.value is True


def _takes_gradients(event: Event) -> bool:
    """torch.autograd.grad, or a function whose name says that it computes gradients: gradient_penalty(…)."""
    tail = event.call.tail if event.call is not None else ""
    return tail in ("jacobian", "hessian") or ("grad" in tail and not any(word in tail for word in _NO_GRADIENT))


def stores_of(name: str, scope: Scope) -> list[Store]:
    """The stores to NAME in SCOPE; to self.x, those of all methods."""
    root, dot, rest = name.partition(".")
    if not dot or root != scope.receiver:
        return scope.stores.get(name, [])
    return scope.host.attributes.get(rest, []) if scope.host is not None and root == scope.receiver else []


def start(backward: Backward) -> ast.expr:
    """What is propagated; of F.mse_loss(out, y).backward(), the call."""
    return backward.root or backward.call.receiver or backward.call.node


def _line(step: TrainingStep) -> int:
    return int(getattr(step.ring.block.owner, "lineno", 0))


def _name(step: TrainingStep) -> str:
    return "the loop in" if step.ring.is_loop else f"{step.ring.scope.name}() in"


def turns(step: TrainingStep) -> str:
    """Between which turns of the step's loop, or calls of its function, something goes on."""
    kind = "turn" if step.ring.is_loop else "call"
    return f"from {kind} to {kind} of {_name(step)} line {_line(step)}"
