"""Elements of lists, dicts, tensors, datasets …: reading them, and going over them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.arithmetic import format_of
from torchtriage.examine.source.execution.attributes import REGISTRIES, Attributes
from torchtriage.examine.source.execution.autograd import Parameter, Tensor
from torchtriage.examine.source.execution.binding import ANY_KEY, is_hashable
from torchtriage.examine.source.execution.loops import ELEMENTS
from torchtriage.examine.source.execution.ranks import is_of_rank
from torchtriage.examine.source.execution.values import (
    LONGEST,
    MASK,
    OVER,
    Endless,
    External,
    Loaded,
    Member,
    Namespace,
    Object,
    Operation,
    Unknown,
    Value,
    is_module,
)


class Elements(Attributes):
    """Elements, by the kind of thing that they are asked of."""

    outside: int
    """How many of the loops under way are outside of the generator under way; more than there are where none is."""
    _elements: ClassVar[dict[type, Callable[..., Value]]] = {}

    def item(self, value: Value, key: Value, node: ast.AST) -> Value:
        if isinstance(value, Operation) and value.name == "state_dict":
            self.happen(events.UncalledState(value.spot or self.spot(node)))
        is_bare = isinstance(value, Unknown) and type(value) in (Unknown, Member)
        if isinstance(value, Unknown) and is_bare and isinstance(key, str) and not value.is_plain:
            return value.values.setdefault(f"[{key!r}]", Unknown.of("an element", value))
        if (is_of_rank(key) and not isinstance(value, Tensor)) or type(value) in (Unknown, Member):
            return Unknown.of("an element", key, value)
        work = self._elements.get(type(value))
        return work(self, value, key, node) if work is not None else Unknown("an element")

    def _entry(self, value: dict[Value, Value], key: Value, node: ast.AST) -> Value:
        if isinstance(key, Unknown) and value:  # one of them: they are made alike, but for {"fp16": torch.float16, …}
            first = value.get(ANY_KEY, self._one_of([*value.values()]))
            is_format = isinstance(first, External) and bool(format_of((first,)))
            return Unknown.of("an entry", key) if is_format else first
        if key in REGISTRIES and key not in value:  # vars(self)["_parameters"]: all of them stand in one dict here
            return value
        return value[key] if is_hashable(key) and key in value else Unknown("an entry")

    def _one_of(self, values: Sequence[Value]) -> Value:
        """One of VALUES, and in the next iteration the next one: heads[task] of a loop over several tasks."""
        return values[max(self.loops[-1].count, 0) % len(values) if self.loops else 0]

    def _element(self, value: Any, key: Value, node: ast.AST) -> Value:
        if isinstance(key, Unknown) and isinstance(value, list | tuple) and value and is_module(value[0]):
            return self._one_of(value)
        try:
            return value[key] if isinstance(key, int | slice) else Unknown("an element")
        except (IndexError, TypeError, ValueError):
            return Unknown("an element")

    def _part(self, value: Tensor, key: Value, node: ast.AST) -> Value:
        if isinstance(key, Tensor) and key.format == MASK:
            self.note_read((key if key.device else value,), "mask", node)
        result = self.merged((value,), node)
        if not (isinstance(key, Tensor) and key.format == MASK):  # p[p > 0] leaves out what a logarithm cannot take
            result.activation, result.activated = value.activation, value.activated
        result.bounds, result.is_largest, result.is_positive = value.bounds, value.is_largest, value.is_positive
        result.base = value if _is_basic(key) else None
        result.is_assumed = value.is_output or value.is_assumed
        return result

    def _of_file(self, value: Loaded, key: Value, node: ast.AST) -> Value:
        is_key = is_hashable(key) and not isinstance(key, Unknown)
        return replace(value, keys=(*value.keys, key), spot=self.spot(node)) if is_key else Unknown("an entry")

    def _setting(self, value: Namespace, key: Value, node: ast.AST) -> Value:
        return value.values.get(key, Unknown("an entry")) if isinstance(key, str) else Unknown("an entry")

    def _of_package(self, value: External, key: Value, node: ast.AST) -> Value:
        if value.name == "sys.argv":
            return Unknown(value.name)
        return self.environment(key) if value.name == "os.environ" else value  # typing.List[int]

    def _of_stream(self, value: Endless, key: Value, node: ast.AST) -> Value:
        return value.make(key if isinstance(key, int) else 0)

    def _item_of_operation(self, value: Operation, key: Value, node: ast.AST) -> Value:
        """`model.blocks[-1]`; of a slice a model again."""
        return self.part(self.part_of(value), key) if self.is_part(value) else Unknown("an element")

    def _item_of(self, value: Object, key: Value, node: ast.AST) -> Value:
        if self.is_opaque(value):
            return self.part(value, key)
        items = self.entries_of(value) if value.kind == "state" else value.state.get("items")
        if value.kind == "defaultdict" and is_hashable(key):
            key = ANY_KEY if isinstance(key, Unknown) else key
            if key not in value.state["items"] and value.state["make"] is not None:
                value.state["items"][key] = self.call(value.state["make"], (), {}, node)
            return value.state["items"].get(key, Unknown("an entry"))
        if isinstance(items, list | dict):
            found = self.item(items, key, node)
            if not isinstance(found, list):
                return found
            return Object(value.kind, value.made, None, value.spot, state={**value.state, "items": found})
        if value.method("__getitem__"):
            return self.call(self.attribute(value, "__getitem__", node), (key,), {}, node)
        return Unknown("an entry")

    def items(self, value: Value, node: ast.AST) -> Iterator[Value]:
        if self.worker is not None:
            self.happen(events.Passage(self.spot(node), value))
        known, most = self.entries(value), LONGEST
        if known is not None:
            around = sum(isinstance(each.node, ast.comprehension) for each in self.loops[:-1])
            self._note_endless(isinstance(value, range) and len(value) > ELEMENTS >> 2 * around)
            yield from known
            return
        loader = value if isinstance(value, Object) and value.kind == "loader" else self.source_of(value)
        if loader is not None:
            is_cycled = any(isinstance(each.node, ast.While) for each in self.loops[self.outside :])
            self.happen(events.Iteration(self.spot(node), loader, is_cycled))
            most = 2 if is_cycled else most
        elif isinstance(value, Object) and value.method("__iter__"):
            yield from self.items(self.call(self.attribute(value, "__iter__", node), (), {}, node), node)
            return
        self._note_endless(True)
        for number in range(most):
            is_iterator = isinstance(value, Object) and value.kind == "iterator"
            found = self.next_of((value,), {}, node) if is_iterator else self.element(value, number, node)
            if found is OVER or (isinstance(found, tuple) and OVER in found):
                return
            yield found

    def _note_endless(self, is_endless: bool) -> None:
        if self.loops and is_endless:
            self.loops[-1].is_endless = True


def _is_basic(key: Value) -> bool:
    """Whether indexing with KEY gives a view, and no copy: numbers, slices, None and `...`, alone or in a tuple."""
    if isinstance(key, tuple):
        return all(map(_is_basic, key))
    is_number = isinstance(key, int | slice) and not isinstance(key, bool)
    return is_number or key is None or key is ... or (isinstance(key, Unknown) and key.is_plain)


Elements._elements = {
    dict: Elements._entry,
    **dict.fromkeys((list, tuple, str, range), Elements._element),
    **dict.fromkeys((Tensor, Parameter), Elements._part),
    Loaded: Elements._of_file,
    Namespace: Elements._setting,
    Object: Elements._item_of,
    Operation: Elements._item_of_operation,
    External: Elements._of_package,
    Endless: Elements._of_stream,
}
