"""What the source alone shows about how often the host waits for the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.steps import TrainingStep
from torchtriage.examine.source.torch_api.families import UPLOADS
from torchtriage.examine.source.torch_api.operators import names
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.performance_profiling.rules.batches import Repeats, is_full_batch, selects
from torchtriage.specialists.performance_profiling.rules.computed import Computed
from torchtriage.specialists.performance_profiling.rules.lasting import turn

_WAITS, _READS = frozenset({"item", "cpu", "tolist", "numpy"}), frozenset({"float", "int", "bool", "print", "str"})
_FINITE = symbols().finite_tests
_MATHS = frozenset({"math.isnan", "math.isfinite", "math.isinf", "math.exp", "math.log", "math.sqrt", "builtins.round"})
# How many elements these give is known only when they are done.
_SIZES = names(home="method", trait="sync") - _WAITS - names(trait="lowered")
_SHOWN = frozenset(
    {"print", "set_postfix", "set_postfix_str", "set_description", "set_description_str", "write", "info"}
)
_TENSORS = frozenset({"cuda", "non_blocking"})
# What is called beside a synchronize() by those who measure: its wait is meant.
_CLOCKS = ("time", "clock", "prof", "bench", "record", "elapsed", "memory", "watch", "measure", "tic", "toc", "lap")
_SAME = frozenset({"detach", "clone", "cpu", "float"})  # of one number: the number itself
_AGAIN = "again"
_SHORT = 40  # columns of a call that is quoted
_NOW_AND_THEN = frozenset({"rank", "verbose", "debug", "log", "is_main", "main_process", "quiet"})


@detector("source/sync-bound")
def sync_bound(step: TrainingStep) -> Iterator[Sighting]:
    """Every batch makes the host wait for the device."""
    finder = _finder(step)
    waits = finder.found() if finder else []
    if finder is None or not finder.is_worth_telling(waits):
        return
    lines = sorted({node.lineno for node in waits})
    times = max(len(lines), finder.values_read(waits))
    often = "once" if times == 1 else f"{times} times"
    often += f" (line {lines[0]})" if len(lines) == 1 else f" (lines {_words(lines)})"
    fact = f"every {turn(step)} waits for the device {often}"
    if all(finder.is_synchronize(node) for node in waits):
        fact = f"`torch.cuda.synchronize()` makes every {turn(step)} wait for the device, and no clock is read"
    yield Sighting(step.script.place(waits[0]), fact)


@detector("source/printed-every-step")
def printed_every_step(step: TrainingStep) -> Iterator[Sighting]:
    """One value is read off the device in every step, for a line of a log."""
    finder = _finder(step)
    waits = finder.found() if finder else []
    if finder is None or finder.is_worth_telling(waits):
        return
    for shown in filter(finder.is_shown, waits):
        what = ast.unparse(shown)
        named = f"`{what}`" if len(what) <= _SHORT else "this line"
        yield Sighting(step.script.place(shown), f"{named} makes every {turn(step)} wait for the device once")
        return


def _finder(step: TrainingStep) -> _Waits | None:
    """What looks for waits in STEP; None where nobody waits for an accelerator, or everybody means to."""
    data = step.script.text.data
    if not step.ring.is_loop or step.ring.runs_once or not any(word.encode() in data for word in _TENSORS):
        return None
    if _is_searched(step) or not _is_on_device(step) or is_full_batch(step):
        return None
    finder = _Waits(step)
    return None if finder.is_measured() else finder


def _words(lines: list[int]) -> str:
    return ", ".join(map(str, lines))


def _is_searched(step: TrainingStep) -> bool:
    """Whether the optimizer reads the loss itself: step(closure)."""
    return any(call.arguments for _, call, parts in step.optimizing() if any("LBFGS" in part.name for part in parts))


def _is_on_device(step: TrainingStep) -> bool:
    """Whether the step surely runs on an accelerator: by its model, or by what it moves there."""
    devices, roles = Computed(step).devices, step.script.roles
    for event in step.events:
        call = event.call
        if call is None:
            continue
        if call.tail in UPLOADS and (_is_unblocked(call) or devices.is_move(call.node, call.scope)):
            return True
        model = roles.plays(call.node.func, call.scope, "model")
        if model and any(devices.is_moved(each, call.scope) for each in (call.node.func, *call.node.args)):
            return True
    return False


def _is_unblocked(call: Call) -> bool:
    """A copy to an accelerator: on a CPU there is nothing that could go on meanwhile."""
    return any(
        each.arg == "non_blocking" and isinstance(each.value, ast.Constant) and each.value.value is True
        for each in call.node.keywords
    )


class _Waits:
    """The places of a step where the host must know a value of the device, in every turn."""

    def __init__(self, step: TrainingStep) -> None:
        self.step, self.script, self.computed = step, step.script, Computed(step)
        self.guards: dict[int, int] = {}
        self.repeats = Repeats(step)
        self.calls = {id(event.call.node): event.call for event in step.events if event.call is not None}

    def is_measured(self) -> bool:
        """Whether the loop is a measurement, which must wait: a synchronize() now and then, or beside a clock."""
        waits = [
            call
            for call in self.script.calls("synchronize")
            if call.scope is self.step.ring.scope or id(call.node) in self.calls
        ]
        if not waits:
            return False
        always = {id(event.call.node) for event in self._every_turn() if event.call}
        if not all(id(call.node) in always and self.is_synchronize(call.node) for call in waits):
            return True
        names = (dotted(call.node.func).lower() for call in self.calls.values())
        return any(word in name for name in names for word in _CLOCKS)

    def is_synchronize(self, node: ast.expr) -> bool:
        call = self.calls.get(id(node))
        return call is not None and self.script.name(call) == "torch.cuda.synchronize"

    def is_worth_telling(self, waits: list[ast.expr]) -> bool:
        """Whether WAITS are more than one number. The same number read again waits for nothing any more."""
        read = {each for node in waits if not isinstance(node, ast.Subscript) for each in self._read(node)}
        return len(read) + any(isinstance(node, ast.Subscript) for node in waits) > 1

    def values_read(self, waits: list[ast.expr]) -> int:
        """How many values WAITS are waits for, also where several stand in one line."""
        return len({each for node in waits for each in self._read(node) if each[-1] != _AGAIN})

    def is_shown(self, node: ast.expr) -> bool:
        """Whether what is read is for people only: a print, a progress bar, a line of a log."""
        call = self.calls.get(id(node))
        shown = call.statement.value if call is not None and isinstance(call.statement, ast.Expr) else None
        return isinstance(shown, ast.Call) and dotted(shown.func).rpartition(".")[2] in _SHOWN

    def _read(self, node: ast.expr) -> set[tuple[object, ...]]:
        """What is read: one entry for each number; two where whole tensors are copied, or elements are sought.

        A guard against a loss that is no number is worth its wait: one entry.
        """
        one: set[tuple[object, ...]] = {(id(node),)}
        two = one | {(id(node), _AGAIN)}
        if any(isinstance(each, ast.Attribute) and each.attr in _FINITE for each in ast.walk(node)):
            return one
        call = self.calls.get(id(node))
        if call is None or self.repeats.holds(call):
            return two
        tensors = self._numbers(call)
        return {self._value(each, call) for each in tensors} if tensors else two

    def _numbers(self, call: Call) -> list[ast.expr]:
        """The tensors of which CALL reads one number each; none where it copies, seeks, or waits for everything."""
        if call.tail == "item" and call.receiver is not None:
            return [call.receiver]
        if call.tail in _WAITS and call.receiver is not None:
            losses = {ast.unparse(each.root) for each in self.step.backwards if each.root is not None}
            return [call.receiver] if ast.unparse(_bare(call.receiver)) in losses else []
        if call.tail in _READS - {"print", "str"}:
            return call.node.args[:1]
        if call.tail in _SIZES or call.tail == "to" or self.is_synchronize(call.node):
            return []
        parts = [part for each in call.arguments for part in _written(each)]
        return [each for each in parts if self._is(each, call)]

    def _value(self, node: ast.expr, call: Call) -> tuple[object, ...]:
        """The same for what surely is the same value: as it is written, and how often its name was given before."""
        bare = _bare(node)
        name = next((each.id for each in ast.walk(bare) if isinstance(each, ast.Name)), "")
        earlier = [each for each in call.scope.stores.get(name, ()) if getattr(each.node, "lineno", 0) < node.lineno]
        return ast.unparse(bare), id(call.scope), len(earlier)

    def found(self) -> list[ast.expr]:
        acts = [
            call.node.end_lineno or 0 for _, call in self.step.calls("step") if "env" in dotted(call.receiver).lower()
        ]  # an action must be known before the environment can go on
        always = [event for event in self._every_turn() if getattr(event.fact.node, "lineno", 0) > max(acts, default=0)]
        calls = [event.call for event in always if event.call is not None]
        waits: list[ast.expr] = [
            each.node for each in calls if self.is_synchronize(each.node) or self._is_awaited(each)
        ]
        scopes = {id(event.fact.scope): event.fact.scope for event in always}
        waits += [
            node
            for scope in scopes.values()
            for statement in self._always(scope)
            for node in _decided(statement)
            if node.lineno > max(acts, default=0) and self._is_decided(node, scope)
        ]
        lines = {id(node): node for node in waits}
        return sorted(lines.values(), key=lambda node: (node.lineno, node.col_offset))

    def _every_turn(self) -> list[Event]:
        return [event for event in self.step.events if not self._is_sometimes(event)]

    def _is_sometimes(self, event: Event) -> bool:
        """Under a condition, or behind one that skips most turns: if step % 50: continue."""
        ring, path = self.step.ring.block, event.path
        inside = path[path.index(ring) + 1 :] if ring in path else path
        if any(
            block.kind == "handler" or (block.kind == "arm" and not selects(tuple(inside), block)) for block in inside
        ):
            return True
        return getattr(event.fact.node, "lineno", 0) > self._guard(event.fact.scope)

    def _guard(self, scope: Scope) -> int:
        """The line behind which SCOPE goes on only now and then."""
        if id(scope) not in self.guards:
            lines = [each.lineno for each in self._own(scope) if isinstance(each, ast.If) and _skips(each)]
            self.guards[id(scope)] = min(lines, default=10**9)
        return self.guards[id(scope)]

    def _own(self, scope: Scope) -> list[ast.stmt]:
        owner = self.step.ring.block.owner if scope is self.step.ring.scope else scope.node
        body = getattr(owner, "body", [])
        return body if isinstance(body, list) else []

    def _always(self, scope: Scope) -> Iterator[ast.stmt]:
        """The statements that every turn comes to."""
        waiting = list(self._own(scope))
        while waiting:
            each = waiting.pop()
            if each.lineno > self._guard(scope):
                continue
            yield each
            if isinstance(each, ast.With | ast.For | ast.While | ast.Try):
                waiting.extend(each.body)

    def _is_awaited(self, call: Call) -> bool:
        """loss.item() and its kin, float(loss), print(loss), and what a string is made of."""
        if call.receiver is not None and call.tail in _WAITS and not call.node.args:
            if self.script.roles.plays(call.receiver, call.scope, "model") or _is_module(call):
                return False
            return self._is(call.receiver, call)
        if call.tail == "to" and call.receiver is not None and _names_host(call):
            return self._is(call.receiver, call)
        name = self.script.name(call)
        if call.tail in _SIZES and (not name or name.startswith("torch.")):
            return any(self._is(each, call) for each in (call.receiver, *call.node.args))
        if name in _MATHS or (call.tail in _READS and name == f"builtins.{call.tail}"):
            return any(self._is(part, call) for each in call.node.args for part in _written(each))
        return any(self._is(part, call) for each in call.arguments for part in _formatted(each))

    def _is(self, node: ast.expr | None, call: Call) -> bool:
        if self.computed(node, call.scope, call):
            return True
        grads = (each for each in ast.walk(node) if isinstance(each, ast.Attribute)) if node is not None else ()
        return any(each.attr == "grad" for each in grads) and self.repeats.holds(call)

    def _is_decided(self, node: ast.expr, scope: Scope) -> bool:
        """Whether Python must know a value of the device to go on from NODE, a test or an index."""
        at = next((each for each in scope.actions if getattr(each.node, "lineno", 0) >= node.lineno), None)
        if at is None or _is_of_text(node):
            return False
        match node:
            case ast.Subscript(value=value, slice=index):
                return self._is_mask(index, scope) and (
                    self.computed(value, scope, at) or self.computed(index, scope, at)
                )
            case ast.BoolOp(values=parts):
                return any(self._is_decided(each, scope) for each in parts)
            case ast.UnaryOp(op=ast.Not(), operand=value):
                return self._is_decided(value, scope)
            case ast.Name() | ast.Attribute():
                return False  # as a rule a flag, a list, or None
        return self.computed(node, scope, at)

    def _is_mask(self, index: ast.expr, scope: Scope) -> bool:
        match index:
            case ast.Compare(ops=[ast.Gt() | ast.GtE() | ast.Lt() | ast.LtE() | ast.Eq() | ast.NotEq(), *_]):
                return True
            case ast.UnaryOp(op=ast.Invert()):
                return True
            case ast.Name(id=name):
                values = [each.value for each in scope.stores.get(name, []) if isinstance(each, Store)]
                return bool(values) and all(value is not None and self._is_mask(value, scope) for value in values)
        return False


def _is_of_text(node: ast.expr) -> bool:
    """Whether NODE compares with a text: what it compares is none of the device."""
    sides = (node.left, *node.comparators) if isinstance(node, ast.Compare) else ()
    return any(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in sides)


def _skips(test: ast.If) -> bool:
    """Whether TEST is as `if step % 50: continue` and `if rank != 0: return`."""
    if not isinstance(test.body[-1], ast.Continue | ast.Return):
        return False
    return any(
        (isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mod))
        or (isinstance(each, ast.Name | ast.Attribute) and any(word in dotted(each).lower() for word in _NOW_AND_THEN))
        for each in ast.walk(test.test)
    )


def _decided(statement: ast.stmt) -> Iterator[ast.expr]:
    """The tests of a statement, and what its own expressions select with."""
    if isinstance(statement, ast.If | ast.While | ast.Assert):
        yield statement.test
    elif isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return | ast.Expr):
        for node in ast.walk(statement):
            if isinstance(node, ast.IfExp):
                yield node.test
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                yield node


def _written(node: ast.expr) -> list[ast.expr]:
    """What print() must know the value of: its arguments, and what a string is made of."""
    return list(_formatted(node)) if isinstance(node, ast.JoinedStr) else [node, *_formatted(node)]


def _formatted(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.JoinedStr(values=parts):
            yield from (each.value for each in parts if isinstance(each, ast.FormattedValue))
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="format"), args=given):
            yield from given
        case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod(), right=right):
            yield from right.elts if isinstance(right, ast.Tuple) else [right]
        case ast.Dict(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
            yield from (each for part in parts if part is not None for each in _formatted(part))


def _bare(node: ast.expr) -> ast.expr:
    """NODE without what leaves one number as it is: loss.detach().cpu() is loss."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr=attr), args=[]) if attr in _SAME:
            return _bare(value)
        case ast.Attribute(value=value, attr="data"):
            return _bare(value)
    return node


def _is_module(call: Call) -> bool:
    """Whether what is moved is asked for its parameters: no tensor."""
    return any(
        isinstance(each, ast.Attribute) and each.value is call.node and each.attr in ("parameters", "state_dict")
        for each in ast.walk(call.statement)
    )


def _names_host(call: Call) -> bool:
    goal = call.argument("device", 0)
    return isinstance(goal, ast.Constant) and goal.value == "cpu"
