"""What the source alone shows about Python loops over the elements of tensors."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from msgspec import Struct

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Scope, Store, dotted
from torchtriage.examine.source.flow import loops, reaching
from torchtriage.examine.source.nodes import names_in
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.tensors import Tensors
from torchtriage.examine.source.torch_api.operators import names

_REDUCTIONS = names(home="torch", trait="reduction")
_POINTWISE = names(home="torch", trait="pointwise") | _REDUCTIONS | {"fabs", "float", "item", "dot", "dist"}


_COMPARED = re.compile(r"naive|slow|reference|brute|loopy|(?:^|_)(?:test|ref|loop)(?:_|$)")


class _Loops(Struct):
    """Loops around one statement. counters: the numbers they count; elements: the names they give parts of tensors to.

    over: what they go through. is_of_list: only its len() is asked for, so it may be a list.
    """

    counters: set[str] = set()
    elements: set[str] = set()
    over: list[ast.expr] = []
    is_of_list: bool = False


@detector("source/python-loop-over-tensor")
def python_loop_over_tensor(script: Script) -> Iterator[Sighting]:
    """A Python loop computes a tensor element by element."""
    finder = _Finder(script)
    for scope in script.facts.scopes:
        if _COMPARED.search(scope.name):  # written to be plain, and to test what is fast against it
            continue
        seen: set[int] = set()
        for stores in scope.stores.values():
            for store in stores:
                owner = store.node
                if store.how != "element" or not isinstance(owner, ast.For) or id(owner) in seen:
                    continue
                seen.add(id(owner))
                if finder.is_outermost(store, scope) and finder.is_elementwise(store, scope):
                    yield script.seen(
                        owner,
                        f"line {_last(owner).lineno} runs once for each element, with an operation and a new tensor "
                        "each time; one operation over the whole tensor does the same",
                    )


def _last(statement: ast.stmt) -> ast.stmt:
    while isinstance(statement, ast.For | ast.If):
        statement = statement.body[-1]
    return statement


class _Finder:
    """Finds the loops of one script whose turns could run at once."""

    def __init__(self, script: Script) -> None:
        self.script, self.tensors = script, Tensors(script)

    def is_outermost(self, store: Store, scope: Scope) -> bool:
        """Nested loops over the same elements are one finding, at the outer one."""
        around = loops(store.path)
        outer = around[1].owner if len(around) > 1 else None
        if not isinstance(outer, ast.For) or len(outer.body) != 1:
            return True
        return not self._enter(outer, store, scope, _Loops())

    def is_elementwise(self, store: Store, scope: Scope) -> bool:
        found, body, before = _Loops(), store.node, list[ast.expr]()
        while isinstance(body, ast.For):
            if not self._enter(body, store, scope, found) or not self._prepares(body.body[:-1], found, scope, before):
                return False
            body = body.body[-1]
        tests: list[ast.expr] = []
        if isinstance(body, ast.If):
            tests, body = [body.test], _either(body)
        target, value = _written(body)
        if target is None or value is None or not self._is_pointwise(value, found, scope):
            return False
        if not all(self._is_test(each, found, scope) for each in tests):
            return False
        places = list(_places(target)) if isinstance(target, ast.Subscript) else []
        if places and not (
            all(self._is_place(each, found, scope) for each in places)
            and self.tensors.is_tensor(_base(target), store, scope)
        ):
            return False
        inside = [node for each in (value, *tests, *before, *places) for node in ast.walk(each)]
        # (outputs[i] - target).abs().mean(): elements that are whole tensors, of a list of outputs
        reduces = any(isinstance(node, ast.Attribute) and node.attr in _REDUCTIONS for node in inside)
        is_ragged = any(_is_ragged(node, found.counters) for each in places for node in ast.walk(each))
        if (found.is_of_list and reduces) or is_ragged or any(_is_ragged(node, found.counters) for node in inside):
            return False
        read = [_base(node) for node in inside if isinstance(node, ast.Subscript)]
        chosen = {dotted(each) for each in read} | {n.id for n in inside if isinstance(n, ast.Name)}
        return (
            bool(read or chosen & found.elements)
            and _may_run_at_once(target, chosen, found, body)
            and any(
                self.tensors.is_tensor(each, store, scope) or _is_sized(each, store.node) or self._is_flat(each)
                for each in (*found.over, *read)
            )
        )

    def _prepares(self, statements: list[ast.stmt], found: _Loops, scope: Scope, before: list[ast.expr]) -> bool:
        """Whether the STATEMENTS before the last only compute with the elements: e = abs(x[i] - y[i])."""
        for each in statements:
            match each:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if self._is_pointwise(value, found, scope):
                    before.append(value)
                    if any(dotted(node) == name for one in before for node in ast.walk(one)):
                        return False  # level = 0.9 * level + x[i]: what the turn before left
                    found.elements.add(name)
                case _:
                    return False
        return True

    def _is_place(self, node: ast.expr, found: _Loops, scope: Scope) -> bool:
        """Whether NODE chooses a place by what the loops count or by an element: i, label[i]."""
        return isinstance(node, ast.Slice | ast.Constant) or self._is_pointwise(node, found, scope)

    def _enter(self, owner: ast.For, at: Store, scope: Scope, found: _Loops) -> bool:
        """Notes what a loop counts or goes through; False when it is neither a length nor tensors."""
        length = self._length(owner.iter, at, scope)
        if isinstance(owner.target, ast.Name) and length is not None:
            of, is_len = length
            found.counters.add(owner.target.id)
            found.over.append(of)
            found.is_of_list |= is_len
            return True
        match owner.iter:
            case ast.Call(func=ast.Name(id="zip"), args=parts):
                pass
            case ast.Name():
                parts = [owner.iter]
            case _:
                return False
        names = owner.target.elts if isinstance(owner.target, ast.Tuple) else [owner.target]
        if len(names) != len(parts) or not all(
            self.tensors.is_tensor(each, at, scope) or self._is_flat(each) for each in parts
        ):
            return False
        found.elements.update(dotted(each) for each in names)
        found.over += parts
        return True

    def _is_flat(self, node: ast.expr) -> bool:
        """x.flatten() and x.view(-1), where the file has no arrays but torch's."""
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(), attr="flatten" | "view" | "reshape")):
                return not any(name.split(".")[0] in ("numpy", "jax", "cupy") for name in self.script.facts.imports)
        return False

    def _length(self, node: ast.expr, at: Store, scope: Scope) -> tuple[ast.expr, bool] | None:
        """The tensor that has the length of a range, and whether len() gives it: range(x.size(0)), range(x.shape[1]),
        range(len(x)), range(n).
        """
        if not isinstance(node, ast.Call) or dotted(node.func) != "range" or len(node.args) != 1:
            return None
        length = node.args[0]
        if isinstance(length, ast.Name):
            stores = reaching(scope.stores.get(length.id, ()), at)
            given = stores[0].value if len(stores) == 1 and stores[0].how == "assign" else None
            if given is None:
                return None
            length = given if stores[0].index is None else ast.Subscript(given, ast.Constant(0))
        of = _measured(length)
        return (of, dotted(getattr(length, "func", length)) == "len") if of is not None else None

    def _is_test(self, test: ast.expr, found: _Loops, scope: Scope) -> bool:
        """Whether TEST compares elements: x[i, j] > threshold."""
        if isinstance(test, ast.BoolOp):
            return all(self._is_test(each, found, scope) for each in test.values)
        parts = (test.left, *test.comparators) if isinstance(test, ast.Compare) else ()
        return any(
            isinstance(n, ast.Subscript) or dotted(n) in found.elements for each in parts for n in ast.walk(each)
        ) and all(self._is_pointwise(each, found, scope) for each in parts)

    def _is_pointwise(self, value: ast.expr, found: _Loops, scope: Scope) -> bool:
        """Whether VALUE is arithmetic on the elements that the loops choose."""
        match value:
            case ast.Constant() | ast.Name() | ast.Attribute(value=ast.Name(id="self")):
                return True
            case ast.BinOp(left=one, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() | ast.Pow(), right=other):
                return self._is_pointwise(one, found, scope) and self._is_pointwise(other, found, scope)
            case (
                ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand)
                | ast.Call(func=ast.Name(id="abs" | "float"), args=[operand], keywords=[])
            ):
                return self._is_pointwise(operand, found, scope)
            case ast.Subscript():
                places = list(_places(value))
                fixed = [isinstance(each, ast.Constant) for each in places]
                counted = [isinstance(each, ast.Slice) or _is_counted(each, found.counters) for each in places]
                chosen = any(counted) and all(one or other for one, other in zip(fixed, counted, strict=True))
                return bool(dotted(_base(value))) and chosen
            case ast.Call(func=ast.Attribute(value=of, attr=attr), args=arguments) if attr in _POINTWISE:
                library = self.script.names.resolve(value.func, scope)
                inside = arguments if library else [of, *arguments]
                known = not library or library.startswith(("torch.", "math."))
                return known and all(self._is_pointwise(each, found, scope) for each in inside)
        return False


def _measured(length: ast.expr) -> ast.expr | None:
    """The tensor whose length this is."""
    match length:
        case ast.Call(func=ast.Attribute(value=ast.Name() as of, attr="size" | "numel")):
            return of
        case ast.Subscript(value=ast.Attribute(value=ast.Name() as of, attr="shape")):
            return of
        case ast.Subscript(value=ast.Call(func=ast.Attribute(value=ast.Name() as of, attr="size"), args=[])):
            return of
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name() as of]):
            return of
    return None


def _written(statement: ast.AST) -> tuple[ast.expr | None, ast.expr | None]:
    match statement:
        case ast.Assign(targets=[ast.Subscript() as target], value=value):
            return target, value
        case ast.AugAssign(target=ast.Name() | ast.Subscript() as target, op=ast.Add() | ast.Mult(), value=value):
            return target, value
        case ast.Assign(targets=[ast.Name(id=name) as target], value=ast.BinOp(ast.Name(id=old), ast.Add(), value)):
            return (target, value) if name == old else (None, None)
    return None, None


def _is_ragged(node: ast.AST, counters: set[str]) -> bool:
    """Whether NODE is a slice that is of another length in each turn: out[row, : len(boxes[row])] = boxes[row]."""
    return isinstance(node, ast.Slice) and not counters.isdisjoint(names_in(node))


def _same(one: ast.expr, other: ast.expr) -> bool:
    return ast.dump(one) == ast.dump(other)


def _is_counted(node: ast.expr, counters: set[str]) -> bool:
    """Whether NODE is a place that the loops count: i, -i, i + 1."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _is_counted(inner, counters)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=ast.Constant()):
            return _is_counted(left, counters)
    return dotted(node) in counters


def _either(choice: ast.If) -> ast.stmt:
    """The assignment under an if; of two to the same place, one with both values."""
    match choice.body, choice.orelse:
        case [one], []:
            return one
        case [ast.Assign(targets=[ast.Subscript() as place], value=one)], [ast.Assign(targets=[same], value=other)]:
            if _same(place, same):
                return ast.Assign([place], ast.BinOp(one, ast.Add(), other))
        case [ast.AugAssign(place, ast.Add() as op, one)], [ast.AugAssign(same, ast.Add(), other)]:
            if _same(place, same):
                return ast.AugAssign(place, op, ast.BinOp(one, op, other))
        case [one], [other]:  # total = total + a, or total += a; else: total = total + b
            (target, left), (also, right) = _written(one), _written(other)
            if (
                isinstance(target, ast.Name)
                and left is not None
                and right is not None
                and _same(target, also or target)
            ):
                return ast.AugAssign(target, ast.Add(), ast.BinOp(left, ast.Add(), right))
    return choice


def _base(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _places(node: ast.expr) -> Iterator[ast.expr]:
    """The indices of x[i][j] and x[i, j]."""
    while isinstance(node, ast.Subscript):
        yield from node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        node = node.value


def _may_run_at_once(target: ast.expr, chosen: set[str], found: _Loops, statement: ast.AST) -> bool:
    """Whether no turn needs what another one wrote, and each writes a place of its own or adds to one sum."""
    if isinstance(target, ast.Name):
        return target.id not in chosen
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):  # counts[label[i]] += 1
        return bool(dotted(_base(target))) and dotted(_base(target)) not in chosen
    places = {dotted(each) for each in _places(target)}
    whole = bool(found.counters) and places >= found.counters
    return whole and bool(dotted(_base(target))) and dotted(_base(target)) not in chosen


def _is_sized(node: ast.expr, owner: ast.AST) -> bool:
    """x.size(0): NumPy's size is no method."""
    return isinstance(node, ast.Name) and any(
        isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in ("size", "numel")
        and dotted(each.func.value) == node.id
        for each in ast.walk(owner)
    )  # fmt: skip
