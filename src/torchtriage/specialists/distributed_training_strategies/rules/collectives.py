"""Communication between ranks: who takes part, and who waits for it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Ring
from torchtriage.examine.source.facts import Call, Scope, dotted
from torchtriage.examine.source.ranks import Guard, guards, is_then, ways
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.wrappers import kinds, wrappers

HOME = "torch.distributed."
# Every rank of the group must call these; the place of the argument `group`, from 0 (None: there is none).
_PLACES = {
    None: "new_group",
    0: "barrier monitored_barrier",
    2: "all_reduce all_gather all_gather_object all_gather_into_tensor broadcast broadcast_object_list all_to_all",
    3: "reduce reduce_scatter reduce_scatter_tensor scatter gather gather_object scatter_object_list",
    4: "all_to_all_single",
}
COLLECTIVES = {name: place for place, names in _PLACES.items() for name in names.split()}
_ALONE = re.compile(r"_?(?:on_?)?(?:run_?on_?)?(?:rank_?(?:zero|0)|(?:main|master)_(?:process|rank|only))(?:_only)?")
_CHECKPOINTS = "torch.distributed.checkpoint."
_STATES = frozenset({"get_state_dict", "get_model_state_dict", "get_optimizer_state_dict"})


@detector("source/collective-on-some-ranks")
def collective_on_some_ranks(script: Script) -> Iterator[Sighting]:
    """Only some ranks reach a collective: they wait for the others until the time runs out."""
    guarded = [
        (call, guard)
        for call in _collectives(script)
        for way in ways(script, call)
        if (guard := next((g for step in reversed(way) for g in guards(script, step)), None)) is not None
    ]
    yield from _decorated(script)
    seen: set[int] = set()
    for call, guard in guarded:
        if id(guard.call) in seen or _is_single(guard.node.test) or _is_left_open(script, guard):
            continue
        if not any(other.tail == call.tail and _answers(script, theirs, guard, call) for other, theirs in guarded):
            seen.add(id(guard.call))
            yield script.seen(guard.call.node, _said(script, call, guard))


def _decorated(script: Script) -> Iterator[Sighting]:
    """Collectives of a function that a decorator lets only the first rank run."""
    for call in _collectives(script):
        marks = [each for each in getattr(call.scope.node, "decorator_list", ()) if not isinstance(each, ast.Call)]
        for mark in marks:
            if _ALONE.fullmatch(dotted(mark).rpartition(".")[2]):
                fact = f"{dotted(mark)} lets only rank 0 run {call.scope.name}, while every rank must reach this"
                yield script.seen(call.node, fact)


def _answers(script: Script, theirs: Guard, guard: Guard, call: Call) -> bool:
    """Whether the other ranks may come to the same collective under a test of their own."""
    if theirs.node is guard.node and is_then(theirs.node, theirs.call) == is_then(guard.node, guard.call):
        return False
    scope = guard.call.scope
    return call.tail == "barrier" or theirs.call.scope is scope or _reaches(script, theirs.call, scope)


def _said(script: Script, call: Call, guard: Guard) -> str:
    what = dotted(call.node.func) or call.tail
    if guard.call is not call:
        what = f"{what} in line {call.node.lineno}, which this calls,"
    which = {"main": "rank 0", "other": "all ranks but the first", "some": "some ranks"}[guard.who]
    verb = "reaches" if guard.who == "main" else "reach"
    test = script.source(guard.node.test)
    return f"by the test in line {guard.node.lineno} (if {test}) only {which} {verb} {what} while every rank must"


def _collectives(script: Script) -> Iterator[Call]:
    for tail, place in COLLECTIVES.items():
        for call in script.facts.calls.get(tail, ()):
            if script.name(call).startswith(HOME) and not _is_grouped(call, place):
                yield call
    yield from _hidden_collectives(script)


def _hidden_collectives(script: Script) -> Iterator[Call]:
    """Calls that talk to the other ranks though their names do not say so."""
    for call in script.calls("save", "async_save", "load", *_STATES):
        if script.name(call).startswith(_CHECKPOINTS) and not _is_alone(call):
            yield call
    flat = any(each.kind == "flattened" for each in wrappers(script))
    for call in script.calls("state_dict") if flat else ():
        if any(kind == "flattened" for kind, _ in kinds(script, call.receiver, call.scope)):
            yield call
    yield from (call for call in script.calls("full_tensor", "wait_for_everyone") if call.receiver is not None)


def _is_alone(call: Call) -> bool:
    """Whether a checkpoint is read or written by one process on purpose."""
    return any(keyword.arg in ("no_dist", "process_group", None) for keyword in call.node.keywords)


def _is_grouped(call: Call, place: int | None) -> bool:
    """Whether the collective belongs to a group of its own: then the others need not come."""
    if any(keyword.arg in ("group", None) for keyword in call.node.keywords):
        return True
    return place is not None and call.argument("group", place) is not None


def _reaches(script: Script, other: Call, scope: Scope) -> bool:
    return any(event.fact is other for event in script.written.events(Ring(scope.body, scope)))


def _is_single(test: ast.expr) -> bool:
    """Whether a test also asks for a job of one process, which waits for nobody: world_size == 1 and rank == 0."""
    values = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else []
    return any(
        isinstance(each, ast.Compare)
        and isinstance(each.ops[0], ast.Eq | ast.LtE)
        and isinstance(each.comparators[0], ast.Constant)
        and each.comparators[0].value == 1
        for each in values
    )


def _is_left_open(script: Script, guard: Guard) -> bool:
    """Whether the other branch of the guard calls unknown code, which may hold the same collective."""
    branch = guard.node.orelse if is_then(guard.node, guard.call) else guard.node.body
    if not branch:
        return False
    first, last = branch[0].lineno, branch[-1].end_lineno or 0
    for other in guard.call.scope.calls:
        if first <= other.node.lineno <= last and guard.call is not other:
            own = script.trace.definition(other.node.func, other.scope)
            if own is None and not script.knows(other) and not _is_harmless(other):
                return True
    return False


_SPEAKS = frozenset({"info", "debug", "warning", "error", "write", "log", "add_scalar", "append", "print"})


def _is_harmless(call: Call) -> bool:
    return call.tail in _SPEAKS
