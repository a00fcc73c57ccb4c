"""What the source alone shows about graphs that backward goes through again, or may not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.carried import Carried
from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.flow import loops, reaches
from torchtriage.examine.source.steps import Backward, TrainingStep
from torchtriage.examine.source.tensors import FACTORIES, Tensors

_NO_GRADIENT = ("zero_grad", "no_grad", "clip_grad", "set_grad_enabled", "requires_grad", "get_grad_norm", "grad_norm_")
_STEP = re.compile(r"step|batch|iter|train|update")
# Names of parameters that two losses may be computed from with one graph.
_MADE = re.compile(r"loss|err|logit|out|pred|feat|hidden|emb|value|log_?p|fake|cost|objective")
_OFF = frozenset({"torch.no_grad", "torch.inference_mode"})
_LETS_GO = frozenset({"detach_", "zero_", "clear", "detach", "fill_", "copy_"})
_LOOKS = frozenset(
    {"train", "eval", "zero_grad", "parameters", "state_dict", "to", "cuda", "named_parameters", "named_modules"}
)


@detector("source/retain-graph-needless")
def retain_graph_needless(step: TrainingStep) -> Iterator[Sighting]:
    """The graph is retained although nothing goes through it a second time."""
    kept = [each for each in step.backwards if _is_set(each.call, "retain_graph")]
    if not kept or not _repeats(step):
        return
    taken = [event for event in step.events if _takes_gradients(event)]
    for each in kept:
        if any(reaches(each.event, event) for event in taken):
            continue
        later = [other for other in step.backwards if other is not each and reaches(each.event, other.event)]
        if (
            any(_share(step, each, other) for other in later)
            or not _is_direct(step, each.event)
            or _is_set(each.call, "create_graph")
        ):
            continue
        if Carried(step, Tensors(step.script)).is_own(_start(each), each.call, each.call.scope):
            yield step.script.seen(
                each.call.node,
                "retain_graph=True keeps every activation alive after this backward, and nothing goes through the "
                f"graph again: {_name(step)} line {_line(step)} builds a new one every time",
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
    waiting: list[tuple[ast.AST, Scope]] = [(_start(backward), backward.call.scope)]
    while waiting:
        node, scope = waiting.pop()
        if isinstance(node, ast.Call):
            tail = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            head, _, last = step.script.names.resolve(node.func, scope).rpartition(".")
            if tail in _CUTS or (head == "torch" and last.removesuffix("_like") in FACTORIES):
                continue
            if tail not in _PASSES:
                found.add(id(node))
            waiting += [(each, scope) for each in (*node.args, *(keyword.value for keyword in node.keywords))]
            waiting += [(node.func.value, scope)] if isinstance(node.func, ast.Attribute) else []
            continue
        name = dotted(node)
        for store in _stores(name, scope) if name else ():
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


_CUTS = frozenset({"detach", "item", "size", "dim", "numel", "tolist", "new_zeros", "new_ones", "new_full"})
_PASSES = frozenset({"to", "cuda", "float", "type", "view", "reshape"})


def _repeats(step: TrainingStep) -> bool:
    """Whether the step is a loop, or a function that by its name is called for every batch."""
    if step.ring.is_loop:
        return not step.ring.runs_once
    return step.ring.scope.kind == "function" and _STEP.search(step.ring.scope.name.lower()) is not None


def _is_direct(step: TrainingStep, event: Event) -> bool:
    """Whether EVENT runs once in each step, not in a loop of its own."""
    around = loops(event.path)
    return around[0] is step.ring.block if around and step.ring.is_loop else not around


def _line(step: TrainingStep) -> int:
    return int(getattr(step.ring.block.owner, "lineno", 0))


def _name(step: TrainingStep) -> str:
    return "the loop in" if step.ring.is_loop else f"{step.ring.scope.name}() in"


def _turns(step: TrainingStep) -> str:
    kind = "turn" if step.ring.is_loop else "call"
    return f"from {kind} to {kind} of {_name(step)} line {_line(step)}"


def _is_set(call: Call, name: str) -> bool:
    given = call.argument(name)
    return isinstance(given, ast.Constant) and given.value is True


def _takes_gradients(event: Event) -> bool:
    """torch.autograd.grad, or a function whose name says that it computes gradients: gradient_penalty(…)."""
    tail = event.call.tail if event.call is not None else ""
    return tail in ("jacobian", "hessian") or ("grad" in tail and not any(word in tail for word in _NO_GRADIENT))


@detector("source/hidden-state-not-detached")
def hidden_state_not_detached(step: TrainingStep) -> Iterator[Sighting]:
    """A recurrent state goes from one training step into the next with its graph."""
    if not step.backwards or not _repeats(step):
        return
    for event in step.events:
        call = event.call
        if call is None or not (step.script.roles.plays(call.node.func, call.scope, "model") or _unrolls(step, call)):
            continue
        if not _is_direct(step, event) or _is_off(step, event, call):
            continue
        name = _carried(step, call)
        if name and _propagates(step, event, call):
            yield step.script.seen(call.node, _fact(step, name))
        found = _own_state(step, call)
        if found is not None and _propagates(step, event, call):
            yield step.script.seen(found[1], _fact(step, found[0]))


def _unrolls(step: TrainingStep, call: Call) -> bool:
    """Whether a function of this file takes a state, gives it to a model again and again, and returns the last one."""
    helper = step.script.trace.definition(call.node.func, call.scope)
    if helper is None or helper.kind != "function" or not isinstance(call.statement, ast.Assign):
        return False
    words = {each.arg for each in helper.parameters}
    taken = {dotted(each) for each in _targets(call.statement)} & {dotted(each) for each in call.arguments} - {""}
    if not taken or any(each.tail in ("detach", "detach_", "no_grad", "inference_mode") for each in helper.calls):
        return False
    ends = {name for each in helper.returns for name in _names(each.node)} & words
    return any(
        store.value is inner.node and any(dotted(each) == store.name for each in inner.arguments)
        for inner in helper.calls
        if step.script.roles.plays(inner.node.func, helper, "model")
        for name in ends
        for store in helper.stores.get(name, ())
    )


def _targets(statement: ast.Assign) -> Iterator[ast.expr]:
    for target in statement.targets:
        yield from _flat(target)


def _fact(step: TrainingStep, name: str) -> str:
    line = step.backwards[-1].call.node.lineno
    if any(_is_set(each.call, "retain_graph") for each in step.backwards):
        end = "goes through all steps so far, since retain_graph=True keeps them"
    else:
        end = "comes to the graph of the step before, which is freed: it raises the second time"
    return f"{name} goes undetached {_turns(step)}; backward in line {line} {end}"


def _is_off(step: TrainingStep, event: Event, call: Call) -> bool:
    contexts = (
        (item.context_expr, call.scope)
        for block in event.path
        if block.kind == "with" and isinstance(block.owner, ast.With)
        for item in block.owner.items
    )
    return any(
        isinstance(each, ast.Call) and step.script.names.resolve(each.func, scope) in _OFF for each, scope in contexts
    )


def _carried(step: TrainingStep, call: Call) -> str:
    """The name that CALL reads and gives a new value, and that nothing else in the step touches; else ""."""
    if call.scope is not step.ring.scope and call.scope.host is None:
        return ""
    if _detaches(step, call):
        return ""
    read = {dotted(each) for argument in call.arguments for each in _flat(argument)}
    for name in sorted(read - {""}):
        stores = _stores(name, call.scope)
        given = [store for store in stores if _is_given(store, call)]
        local = name.partition(".")[0] != call.scope.receiver
        inside = [e.fact for e in step.events if isinstance(e.fact, Store) and e.fact.name in (name, f"{name}[]")
                  and e.fact.how != "parameter" and (e.fact.scope is call.scope or not local)]  # fmt: skip
        inside += [store for store in stores if step.ring.block in store.path and store not in inside]
        if not given or any(not _is_given(store, call) for store in inside):
            continue
        before = [store for store in stores if store not in inside and store.how in ("assign", "parameter")]
        before += [] if before else _records(step, name, call.scope)
        if local and (call.scope is not step.ring.scope or not any(step.ring.block not in s.path for s in before)):
            continue
        if before and not _is_let_go(step, name) and not name.rpartition(".")[2].startswith("mem"):
            return name
    return ""


def _records(step: TrainingStep, name: str, scope: Scope) -> list[Store]:
    """The dicts, made before the step, of which NAME is an entry: state of state["h"]."""
    root, dot, _ = name.partition(".")
    stores = scope.stores.get(root, []) if dot and root != scope.receiver else []
    return [] if any(step.ring.block in store.path for store in stores) else stores


def _is_given(store: Store, call: Call) -> bool:
    """Whether STORE takes what CALL gave: at once, or under another name that nothing else has (hidden = new)."""
    if call.node in ((store.value.body, store.value.orelse) if isinstance(store.value, ast.IfExp) else (store.value,)):
        return True
    name = dotted(store.value) if isinstance(store.value, ast.Name) and store.index is None else ""
    others = call.scope.stores.get(name, [])
    return bool(others) and all(other.value is call.node for other in others)


def _stores(name: str, scope: Scope) -> list[Store]:
    root, dot, rest = name.partition(".")
    if not dot or root != scope.receiver:
        return scope.stores.get(name, [])
    return scope.host.attributes.get(rest, []) if scope.host is not None and root == scope.receiver else []


def _flat(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Tuple | ast.List):
        for each in node.elts:
            yield from _flat(each)
    else:
        yield node


def _is_let_go(step: TrainingStep, name: str) -> bool:
    """Whether a call may cut NAME off in place: name.detach_(), name[0].detach_(), cut(name) as a statement."""
    for event in step.events:
        call = event.call
        if call is None:
            continue
        if call.tail in _LETS_GO and _root(call.receiver) == name:
            return True
        alone = isinstance(call.statement, ast.Expr) and call.statement.value is call.node and call.tail != "print"
        if alone and any(dotted(each) == name for each in call.arguments):
            return True
    return False


def _root(node: ast.expr | None) -> str:
    while isinstance(node, ast.Subscript):
        node = node.value
    return dotted(node)


def _detaches(step: TrainingStep, call: Call) -> bool:
    """Whether the model's own class in this file cuts the state off by itself."""
    host = step.script.trace.instance(call.node.func, call.scope)
    if host is None:
        return False
    inside = [
        each for base in step.script.trace.lineage(host) for each in step.script.facts.scopes if each.host is base
    ]
    return any(each.tail in ("detach", "detach_", "no_grad") for scope in inside for each in scope.calls) or any(
        isinstance(node, ast.Attribute) and node.attr == "data" for scope in inside for node in ast.walk(scope.node)
    )


def _propagates(step: TrainingStep, event: Event, call: Call) -> bool:
    """Whether a backward of the step comes after CALL and starts from what it gave."""
    return any(reaches(event, each.event) and _comes_from(each, call) for each in step.backwards)


def _comes_from(backward: Backward, call: Call) -> bool:
    scope = backward.call.scope
    start = _start(backward)
    if scope is not call.scope:
        return True
    known, grown = set(_names(start)), -1
    while grown != len(known):
        grown = len(known)
        for name in tuple(known):
            for store in _stores(name, scope):
                if store.value is not None and _holds(store.value, call.node):
                    return True
                known.update(_names(store.value) if store.value is not None else ())
    return _holds(start, call.node)


def _start(backward: Backward) -> ast.expr:
    """What is propagated; of F.mse_loss(out, y).backward(), the call."""
    return backward.root or backward.call.receiver or backward.call.node


def _holds(node: ast.AST, part: ast.AST) -> bool:
    return any(each is part for each in ast.walk(node))


def _names(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Name | ast.Attribute) and (name := dotted(each)):
            yield name


def _own_state(step: TrainingStep, call: Call) -> tuple[str, ast.AST] | None:
    """self.hidden of the called model's class, if its forward reads and writes it and nothing in the step resets it."""
    script = step.script
    host = script.trace.instance(call.node.func, call.scope)
    method = script.trace.method(host, "forward") if host is not None else None
    if host is None or method is None or _detaches(step, call) or _is_touched(step, call):
        return None
    for name, stores in host.attributes.items():
        own = [store for store in stores if store.scope is method]
        whole = f"{method.receiver}.{name}"
        reads = [s for s in own if isinstance(s.value, ast.Call) and _reads(s.value, whole)]
        elsewhere = [store for store in stores if store.scope is not method]
        if reads and len(reads) == len(own) and elsewhere and not _is_reset_in(method):
            return whole, reads[0].node
    return None


def _reads(call: ast.Call, name: str) -> bool:
    return any(dotted(each) == name for argument in call.args for each in _flat(argument))


def _is_reset_in(method: Scope) -> bool:
    """Whether forward calls a method that may begin the state anew: self.reset(), self.init_hidden(n)."""
    own = f"{method.receiver}."
    words = ("reset", "init", "hidden", "state", "repackage")
    return any(dotted(c.node.func).startswith(own) and any(w in c.tail for w in words) for c in method.calls)


def _is_touched(step: TrainingStep, call: Call) -> bool:
    """Whether the step does more to the model than to call it: model.hidden = …, model.reset()."""
    model = dotted(call.node.func)
    for event in step.events:
        fact = event.fact
        if isinstance(fact, Store):
            touched = fact.name.startswith(f"{model}.")
        elif fact.receiver is not None:
            touched = dotted(fact.receiver) == model and fact.tail not in _LOOKS
        else:
            touched = not step.script.knows(fact) and any(dotted(each) == model for each in fact.arguments)
        if touched:
            return True
    return False
