"""What the source alone shows about the epoch at which a resumed training goes on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Event, Ring
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.nodes import names_in
from torchtriage.examine.source.script import Script
from torchtriage.specialists.checkpointing_and_reproducibility.rules.counters import Counter, counters, offset
from torchtriage.specialists.checkpointing_and_reproducibility.rules.places import parts_of, saves
from torchtriage.specialists.checkpointing_and_reproducibility.rules.schedulers import is_within, late_scheduler

_DEEP = 8


class _Number(Struct, frozen=True):
    """A whole number: an entry of a loaded file (key) or the turn of a loop (turn), plus an offset."""

    node: ast.expr | None
    offset: int = 0
    key: str | None = None
    turn: Store | None = None


class _UnknownError(Exception):
    """A number whose origin cannot be seen."""


@detector("source/resume-off-by-one")
def resume_off_by_one(script: Script) -> Iterator[Sighting]:
    """A resumed training runs the saved epoch again, leaves one out, or has its scheduler one epoch behind."""
    if script.names.framework() or not any(saves(script)) or not any(script.named("torch.load")):
        return
    for turn, start in _loops(script):
        try:
            begun = [each for each in _numbers(script, start, turn.scope) if each.key is not None]
            if begun and begun[0].key is not None:
                yield from _of_loop(script, turn, begun, begun[0].key)
        except _UnknownError:
            continue
    for counter in counters(script):
        try:
            yield from _of_counter(script, counter)
        except _UnknownError:
            continue


def _of_counter(script: Script, counter: Counter) -> Iterator[Sighting]:
    """Raises _UnknownError where a number cannot be seen."""
    begun = [each for store in counter.begun for each in _numbers(script, store.value, store.scope)]
    begun = [each for each in begun if each.key is not None]
    events = script.written.events(Ring(counter.loop, counter.scope))
    added = next((each.order for each in events if each.fact is counter.adds), None)
    if added is None or len({each.key for each in begun}) != 1:
        return
    writes, found = {id(call) for call in saves(script)}, []
    for event in (each for each in events if each.call is not None and id(each.call) in writes):
        entries = parts_of(script, event.call.argument("obj", 0), event.call.scope) if event.call is not None else ()
        values = [(value, scope) for name, value, scope in entries if name == begun[0].key]
        stored = [offset(script, counter, value, scope) for value, scope in values]
        late = is_within(event, counter.loop) or not _is_trained_by(script, events, event)
        if values and (late or any(each is None for each in stored)):
            raise _UnknownError
        found += [(event, each, each + (event.order > added)) for each in stored if each is not None]
    sums = {total + each.offset for _, _, total in found for each in begun}
    if len(sums) == 1 and sums != {1} and begun[0].node is not None:
        event, stored_as, _ = found[0]
        yield script.seen(begun[0].node, _wrong((event, stored_as), sums.pop(), counter.name))
    elif sums == {1}:
        yield from late_scheduler(script, events, (counter.loop, counter.name), [event for event, _, _ in found])


def _of_loop(script: Script, turn: Store, begun: list[_Number], key: str) -> Iterator[Sighting]:
    """Raises _UnknownError where a number cannot be seen."""
    events = script.written.events(Ring(turn.block, turn.scope))
    saved = list(_saved(script, events, turn, key))
    sums = {stored + each.offset for _, stored in saved for each in begun}
    if len(sums) != 1 or len({each.key for each in begun}) != 1:
        return
    (passed,) = sums
    if passed == 1:
        yield from late_scheduler(script, events, (turn.block, turn.name), [event for event, _ in saved])
    elif begun[0].node is not None:
        yield script.seen(begun[0].node, _wrong(saved[0], passed, turn.name), edits=_edit(script, begun, passed))


def _wrong(saved: tuple[Event, int], passed: int, turn: str) -> str:
    event, stored = saved
    line = event.call.node.lineno if event.call is not None else 0
    held = f"{turn} + {stored}" if stored else turn
    what = (
        "the epoch that was finished when it was saved runs again"
        if passed == 0
        else f"{passed - 1} epoch is left out"
        if passed == 2
        else f"the loop starts {abs(passed - 1)} epochs off"
    )
    return f"line {line} saves {held} after that epoch's training; starting from it like this, {what}"


def _edit(script: Script, begun: list[_Number], passed: int) -> tuple[Edit, ...]:
    node = begun[0].node
    alone = len(begun) == 1 and passed == 0 and isinstance(node, ast.Subscript)
    return script.appended("start-after-it", node, " + 1") if alone and node is not None else ()


def _loops(script: Script) -> Iterator[tuple[Store, ast.expr]]:
    """The loops over a range that does not start at a constant: the store of their turn, and their start."""
    for call in script.calls("range", "trange"):
        yield from _skipping(call)
        if len(call.node.args) < 2 or isinstance(call.node.args[0], ast.Constant):
            continue
        if names_in(call.node.args[0]) & names_in(call.node.args[1]):  # range(start, start + 100)
            continue
        for stores in call.scope.stores.values():
            for store in stores:
                owner = store.node
                if store.how != "element" or not isinstance(owner, ast.For) or not isinstance(owner.target, ast.Name):
                    continue
                if call.node is owner.iter or call.node in getattr(owner.iter, "args", ()):
                    yield store, call.node.args[0]


def _skipping(call: Call) -> Iterator[tuple[Store, ast.expr]]:
    """The loop over all epochs that begins with `if epoch < start: continue`."""
    for stores in call.scope.stores.values() if len(call.node.args) == 1 else ():
        for store in stores:
            match store.node:
                case ast.For(iter=over, body=[ast.If(test=ast.Compare() as test, body=[*_, ast.Continue()]), *_]):
                    turns = isinstance(test.left, ast.Name) and test.left.id == store.name and len(test.ops) == 1
                    if over is call.node and store.how == "element" and turns and isinstance(test.ops[0], ast.Lt):
                        yield store, test.comparators[0]


def _saved(script: Script, events: tuple[Event, ...], turn: Store, key: str) -> Iterator[tuple[Event, int]]:
    """The saves of the loop that hold KEY, made when the epoch's training is over, and what they add to its turn."""
    writes = {id(call): call for call in saves(script)}
    found = []
    for event in events:
        call = event.call
        if call is None or id(call) not in writes:
            continue
        entries = parts_of(script, call.argument("obj", 0), call.scope)
        values = [(value, scope) for name, value, scope in entries if name == key]
        if not values or any(block.kind == "handler" for block in event.path):
            continue
        if is_within(event, turn.block) or not _is_trained_by(script, events, event):
            raise _UnknownError
        found += [(event, number) for value, scope in values for number in _numbers(script, value, scope)]
    for event, number in found:
        if number.turn is not turn:
            raise _UnknownError
        yield event, number.offset


def _is_trained_by(script: Script, events: tuple[Event, ...], save: Event) -> bool:
    """Whether all training of the turn runs before SAVE."""
    trained = [event for event in events if event.call is not None and _is_training(script, event.call)]
    return bool(trained) and all(event.order < save.order for event in trained)


def _is_training(script: Script, call: Call) -> bool:
    if call.tail == "backward":
        return True
    if call.tail == "step":
        return script.roles.plays(call.receiver, call.scope, "optimizer")
    return bool(call.arguments) and "train" in call.tail.lower() and not isinstance(call.arguments[0], ast.Constant)


def _numbers(script: Script, node: ast.expr | None, scope: Scope, deep: int = 0) -> Iterator[_Number]:
    """What NODE may be. Raises _UnknownError when that cannot be seen."""
    if node is None or deep > _DEEP:
        raise _UnknownError
    match node:
        case ast.Constant(value=int(value)):
            yield _Number(None, value)
        case ast.BinOp(left=left, op=ast.Add(), right=ast.Constant(value=int(more))):
            yield from _moved(script, left, scope, more, deep)
        case ast.BinOp(left=ast.Constant(value=int(more)), op=ast.Add(), right=right):
            yield from _moved(script, right, scope, more, deep)
        case ast.BinOp(left=left, op=ast.Sub(), right=ast.Constant(value=int(less))):
            yield from _moved(script, left, scope, -less, deep)
        case ast.Call(func=ast.Name(id="int"), args=[inner]):
            yield from _numbers(script, inner, scope, deep + 1)
        case ast.Subscript(value=base, slice=ast.Constant(value=str(key))):
            yield _entry(script, node, base, scope, key)
        case ast.Call(func=ast.Attribute(value=base, attr="get"), args=[ast.Constant(value=str(key)), *_]):
            yield _entry(script, node, base, scope, key)
        case ast.Name() | ast.Attribute() | ast.IfExp() | ast.Call():
            yield from _named(script, node, scope, deep)
        case _:
            raise _UnknownError


def _entry(script: Script, node: ast.expr, base: ast.expr, scope: Scope, key: str) -> _Number:
    if not _is_loaded(script, base, scope):
        raise _UnknownError
    return _Number(node, 0, key)


def _moved(script: Script, node: ast.expr, scope: Scope, by: int, deep: int) -> Iterator[_Number]:
    for each in _numbers(script, node, scope, deep + 1):
        yield _Number(each.node, each.offset + by, each.key, each.turn)


def _named(script: Script, node: ast.expr, scope: Scope, deep: int) -> Iterator[_Number]:
    held = _stores(script, node, scope)
    if any(store.how in ("augment", "delete") for store in held):
        raise _UnknownError
    if isinstance(node, ast.Attribute) and dotted(node).partition(".")[0] != scope.receiver:  # args.start_epoch
        if not held:  # an option: some number, that no file of this script holds
            yield _Number(None)
        for store in held:
            yield from _numbers(script, store.value if store.index is None else None, store.scope, deep + 1)
        return
    for origin in script.trace.origins(node, scope):
        if origin.store is not None and origin.store.how == "element" and origin.node is None:
            yield _Number(None, 0, None, origin.store)
        elif origin.node is node or origin.is_parameter:
            raise _UnknownError
        else:
            yield from _numbers(script, origin.node, origin.scope, deep + 1)


def _stores(script: Script, node: ast.expr, scope: Scope) -> list[Store]:
    """Every store to the name or attribute NODE; of args.start_epoch those of all functions."""
    name = dotted(node)
    if isinstance(node, ast.Name):
        return script.names.stores(name, scope)
    root, _, rest = name.partition(".")
    if root == scope.receiver and scope.host is not None:
        return scope.host.attributes.get(rest, [])
    return [store for each in script.facts.scopes for store in each.stores.get(name, ())] if name else []


def _is_loaded(script: Script, node: ast.expr, scope: Scope, deep: int = 0) -> bool:
    """Whether NODE is what torch.load returns, or an entry of it: also `for key in keys: state = state[key]`."""
    for origin in script.trace.origins(node, scope):
        if origin.call is not None and script.names.resolve(origin.call.func, origin.scope) == "torch.load":
            return True
        base = origin.node.value if isinstance(origin.node, ast.Subscript) and deep < _DEEP else None
        if base is not None and _is_loaded(script, base, origin.scope, deep + 1):
            return True
    return False
