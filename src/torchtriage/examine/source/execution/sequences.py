"""What Python iterates over: lists, streams without a known end, and what is made of them by zip, map and the like."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.autograd import Tensor
from torchtriage.examine.source.execution.binding import is_hashable
from torchtriage.examine.source.execution.frames import Raised
from torchtriage.examine.source.execution.loops import ACCUMULATED, ROUNDS, Loop
from torchtriage.examine.source.execution.operators import ASSUMED, LENGTH, counts_batches
from torchtriage.examine.source.execution.statements import Statements
from torchtriage.examine.source.execution.values import (
    LONGEST,
    Arguments,
    Endless,
    Keywords,
    Loaded,
    Object,
    Operation,
    Unknown,
    Value,
    is_concrete,
    truth,
)

BATCHES = 2
"""Batches of an epoch, where the code waits for its end: `try: next(batches)`, `except StopIteration: batches = …`."""


class Sequences(Statements):
    """Elements that are known are a list; of the others there is one for each number."""

    growing: dict[int, tuple[list[Value], Loop]]
    """Lists, by identity, that a loop without a known end has filled: nobody knows how long they become."""

    def _range(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """Also one that goes on where a training was broken off."""
        first = arguments[0] if arguments else None
        if len(arguments) == 1 and counts_batches(first):
            return range(ASSUMED)
        if isinstance(first, Loaded) and any(isinstance(each, Loaded) for each in arguments[1:]):
            return Unknown("a range")  # range(start, start + 100): where it starts only names the epochs
        if isinstance(first, Loaded):
            return Endless(lambda number: replace(first, offset=first.offset + number))
        try:
            return range(*arguments) if is_concrete(list(arguments)) else Unknown.of("a range", *arguments)
        except (TypeError, ValueError):
            return Unknown("a range")

    def _length(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        value = arguments[0] if arguments else None
        if isinstance(value, list) and self._is_filled(value):
            return Unknown(LENGTH, is_plain=True)
        if isinstance(value, list | tuple | dict | set | str | range):
            return len(value)
        if isinstance(value, Object):
            items = value.state.get("items")
            if isinstance(items, list | dict):
                return len(items)
            if value.method("__len__") is not None:
                return self.call(self.attribute(value, "__len__", node), (), {}, node)
        if isinstance(value, Unknown):
            value.is_sized = True
        return Unknown(LENGTH, is_plain=True)

    def note_growth(self, held: list[Value]) -> None:
        """HELD gets an element more: for line in open(path): rows.append(line)"""
        if self.loops and self.loops[-1].is_endless:
            self.growing.setdefault(id(held), (held, self.loops[-1]))

    def _is_filled(self, held: list[Value]) -> bool:
        """Whether a loop without a known end has filled HELD, and is over."""
        found = self.growing.get(id(held))
        return found is not None and found[1] not in self.loops

    def _sequence(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return self.listed(arguments[0], node) if arguments else []

    def _tuple_of(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        found = self._sequence(arguments, keywords, node)
        return tuple(found) if isinstance(found, list) else found

    def listed(self, value: Value, node: ast.AST) -> Value:
        """The elements of VALUE as a list; Unknown where there is no telling how many."""
        if isinstance(value, Endless | Unknown | Tensor) or (isinstance(value, range) and len(value) > LONGEST):
            return Unknown("a list")
        if isinstance(value, Object) and value.method("__iter__") is not None:
            value = self.call(self.attribute(value, "__iter__", node), (), {}, node)
        known = self.entries(value)
        return list(known) if known is not None else Unknown("a list")

    def _zipped(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        known = [self.entries(each) for each in arguments]
        lists = [each if found is None else list(found) for each, found in zip(arguments, known, strict=True)]
        if all(isinstance(each, list) for each in lists):
            return [tuple(each) for each in zip(*lists, strict=False)]

        def one(over: Value, number: int) -> Value:
            return over[number % len(over)] if isinstance(over, list) and over else self.element(over, number, node)

        def make(number: int) -> Value:
            return tuple(one(each, number) for each in lists)

        return Endless(make, next((each for each in arguments if self.source_of(each) is not None), None))

    def _reversed(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        found = arguments[0] if arguments else Unknown()
        if not isinstance(found, range):
            found = self.listed(found, node)
        return found[::-1] if isinstance(found, list | range) else Unknown("reversed")

    def _enumerated(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        over = arguments[0] if arguments else Unknown()
        start = keywords.get("start", arguments[1] if len(arguments) > 1 else 0)
        first = start if isinstance(start, int) else 0
        if isinstance(over, list | tuple | range | str | dict) or (isinstance(over, Object) and "items" in over.state):
            found = list(self.items(over, node))
            return [(first + place if isinstance(start, int) else Unknown(), each) for place, each in enumerate(found)]
        return Endless(
            lambda number: (first + number if isinstance(start, int) else Unknown(), self.element(over, number, node)),
            over,
        )

    def element(self, over: Value, number: int, node: ast.AST) -> Value:
        """The element NUMBER of something without a known end."""
        if isinstance(over, Endless):
            return over.make(number)
        if isinstance(over, Object) and over.kind == "loader":
            return self.batch(over, node)
        if isinstance(over, Operation) and self.is_part(over):  # for block in model.blocks
            return self.part(self.part_of(over), number)
        if isinstance(over, Object) and self.is_opaque(over):
            return self.part(over, number)
        if isinstance(over, Tensor):
            return self._row(over, number, node)
        return Unknown.of("an element", over)

    def _row(self, over: Tensor, number: int, node: ast.AST) -> Value:
        """OVER[NUMBER], where a loop goes over it; made elsewhere, as OVER may be a list in fact."""
        found = self.item(over, number, node)
        if isinstance(found, Tensor):
            found.base, found.spot = over, None
        return found

    def is_part(self, value: Operation) -> bool:
        """Whether VALUE may be a part of a model of which nobody sees what it is made of."""
        raise NotImplementedError

    def is_opaque(self, held: Value) -> bool:
        """Whether HELD is such a model."""
        raise NotImplementedError

    def part_of(self, value: Operation) -> Object:
        """That part."""
        raise NotImplementedError

    def part(self, held: Object, name: Value) -> Object:
        """The part NAME of such a model."""
        raise NotImplementedError

    def batch(self, loader: Object, node: ast.AST) -> Value:
        raise NotImplementedError

    def entries_of(self, state: Object) -> dict[Value, Value]:
        """The entries of what state_dict() gave."""
        raise NotImplementedError

    def source_of(self, value: Value) -> Object | None:
        """The loader that VALUE iterates over, through enumerate, zip and the like."""
        while isinstance(value, Endless):
            value = value.source
        return value if isinstance(value, Object) and value.kind == "loader" else None

    def _mapped(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        if len(arguments) != 2:
            return Unknown("map")
        work, over = arguments
        found = self.listed(over, node)
        if isinstance(found, list):
            return [self.call(work, (each,), {}, node) for each in found]
        if isinstance(over, Unknown):
            first = self.call(work, (Unknown.of("an element", over),), {}, node)
            if isinstance(first, Object):  # list(map(lambda width: nn.Linear(width, 1), widths))
                others = [self.call(work, (Unknown.of("an element", over),), {}, node) for _ in range(ROUNDS - 1)]
                return [first, *others]
        return Endless(lambda number: self.call(work, (self.element(over, number, node),), {}, node), over)

    def _filtered(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        found = self.listed(arguments[1], node) if len(arguments) == 2 else Unknown()
        if not isinstance(found, list):
            return Unknown("filter")
        kept = [(each, each if arguments[0] is None else self.call(arguments[0], (each,), {}, node)) for each in found]
        return [each for each, known in kept if truth(known) is not False]

    def _summed(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """sum(losses); sum(groups, [])."""
        found = self.listed(arguments[0], node) if arguments else []
        total = arguments[1] if len(arguments) > 1 else keywords.get("start", 0)
        for each in found if isinstance(found, list) else [Unknown.of("sum", *arguments)]:
            total = self.binary(ast.Add(), total, each, node)
        return total

    def _chained(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """itertools.chain(first, second)."""
        found = [self.listed(each, node) for each in arguments]
        is_known = all(isinstance(each, list) for each in found)
        return [each for one in found for each in one] if is_known else Unknown("itertools.chain")

    def _chained_from(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """itertools.chain.from_iterable(lists)."""
        parts = arguments[0] if arguments else None
        return self._chained(tuple(parts) if isinstance(parts, list | tuple) else (Unknown(),), {}, node)

    def _repeating(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """itertools.repeat(value, n)."""
        value, count = (*arguments, Unknown(), Unknown())[:2]
        if not isinstance(value, Object):
            return Endless(lambda _: value)
        self.note_repeated((value,), node)
        return [value] * (min(count, ACCUMULATED) if isinstance(count, int) else ROUNDS)

    def _of_keys(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """dict.fromkeys(keys, value)."""
        keys, value = (*arguments, None, None)[:2]
        found = self.listed(keys, node)
        self.note_repeated((value,), node)
        known = found if isinstance(found, list) else [Unknown("a key") for _ in range(ROUNDS)]
        return {each: value for each in known if is_hashable(each)}

    def _counted(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        start = arguments[0] if arguments and isinstance(arguments[0], int) else 0
        return Endless(lambda number: start + number)

    def _cycled(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        over = arguments[0] if arguments else Unknown()
        return Endless(lambda number: self.element(over, number, node), over)

    def next_of(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        over = arguments[0] if arguments else Unknown()
        if isinstance(over, Object) and over.kind == "iterator":
            place = over.state["place"]
            over.state["place"] = place + 1
            held = over.state["over"]
            if isinstance(held, list):
                return held[place] if place < len(held) else Unknown("next")
            self._note_next(held, place, node)
            return self.element(held, place, node)
        if isinstance(over, Endless):
            over.place += 1
            return over.make(over.place - 1)
        return over[0] if isinstance(over, list) and over else Unknown("next")

    def _note_next(self, over: Value, place: int, node: ast.AST) -> None:
        """What next() of a loader shows: that an epoch begins, and where the code waits for it, that one has ended."""
        loader = self.source_of(over)
        if loader is not None and place == 0:
            self.happen(events.Iteration(self.spot(node), loader, is_cycled=True))
        if loader is not None and place >= BATCHES and self.awaited > 0:
            raise Raised

    def _iterator(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        over = arguments[0] if arguments else Unknown()
        if isinstance(over, list | tuple | range | dict | str):
            over = list(over)
        return Object("iterator", state={"over": over, "place": 0})

    def entries(self, value: Value) -> Iterator[Value] | None:
        """The elements of VALUE where they are all known; else None."""
        if isinstance(value, list | tuple):
            return iter(list(value))
        if isinstance(value, dict | set | frozenset | str | range):
            return iter(value if isinstance(value, range) else list(value))
        items = value.state.get("items") if isinstance(value, Object) else None
        return iter(list(items)) if isinstance(items, list | dict) else None
