"""Attributes and elements: reading them, and assigning them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.binding import is_hashable
from torchtriage.examine.source.execution.expressions import is_of_rank
from torchtriage.examine.source.execution.frames import Frame
from torchtriage.examine.source.execution.imports import Imports
from torchtriage.examine.source.execution.loops import ELEMENTS, Loop
from torchtriage.examine.source.execution.modules import is_module
from torchtriage.examine.source.execution.values import (
    LONGEST,
    OVER,
    Arguments,
    Class,
    Endless,
    External,
    Function,
    Gradient,
    Keywords,
    Loaded,
    Method,
    Namespace,
    Object,
    Operation,
    Parameter,
    Super,
    Tensor,
    Unknown,
    Value,
    truth,
)
from torchtriage.examine.source.names import canonical

CONTAINERS = (list, tuple, dict, set, frozenset, str, int, float, bytes, range)
FUNCTION = "torch.autograd.Function"
_ELEMENTS_OF = {"dataset": 0, "batch_size": 1, "sampler": 3, "batch_sampler": None}
"""What a loader was made with, and at which place."""


class Attributes(Imports):
    """Attributes and elements, by the kind of thing that they are asked of. loops: those under way."""

    loops: list[Loop]
    outside: int
    """How many of them are outside of the generator under way; more than there are where none is."""
    _attributes: ClassVar[dict[type, Callable[..., Value]]] = {}
    _assignments: ClassVar[dict[type, Callable[..., None]]] = {}
    _elements: ClassVar[dict[type, Callable[..., Value]]] = {}

    def call_function(self, function: Function, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """FUNCTION(…)."""
        raise NotImplementedError

    # attributes

    def attribute(self, value: Value, name: str, node: ast.AST) -> Value:
        work = self._attributes.get(type(value))
        if work is not None:
            return work(self, value, name, node)
        if isinstance(value, CONTAINERS):
            return Operation(value, name) if hasattr(value, name) else Unknown(name)
        return Operation(value, name) if isinstance(value, Unknown) else Unknown(name)

    def _of_namespace(self, value: Namespace, name: str, node: ast.AST) -> Value:
        if name == "__dict__":
            return value.values
        if name not in value.values and value.holds_settings:
            return Operation(value, name)
        return value.values.get(name, Unknown(name))

    def _of_external(self, value: External, name: str, node: ast.AST) -> Value:
        return External(canonical(f"{value.name}.{name}"))

    def _of_function(self, value: Function | Method, name: str, node: ast.AST) -> Value:
        function = value if isinstance(value, Function) else value.function
        return function.name if name in ("__name__", "__qualname__") else Unknown(name)

    def _of_object(self, value: Object, name: str, node: ast.AST) -> Value:
        own = self._own(value, name)
        if own is not NotImplemented:
            return own
        special = self.special(value, name)
        if special is not NotImplemented:
            return special
        late = value.method("__getattr__")
        if late is not None and not is_module(value):
            return self.call_function(late, (value, name), {}, node)
        is_of_package = bool(value.kind) and (value.cls is None or bool(value.cls.externals))
        return Operation(value, name) if is_of_package else Unknown(name)

    def _own(self, value: Object, name: str) -> Value:
        """What VALUE itself, or its class in the project, has under NAME; NotImplemented where neither has it."""
        method = value.method(name)
        kind = method.kind if method is not None else ""
        if method is not None and kind == "cached" and name not in value.values:
            value.values[name] = self.call_function(method, (value,), {}, method.node)
        if name in value.values and kind != "property":
            return value.values[name]
        if method is not None and kind == "property":
            return self.call_function(method, (value,), {}, method.node)
        if value.cls is not None and value.cls.has(name):
            return self.bound(value, value.cls.get(name))
        return NotImplemented

    def special(self, value: Object, name: str) -> Value:
        """Attributes that Python or torch gives to VALUE; NotImplemented where NAME is none."""
        if name in ("__dict__", "__class__"):
            return value.values if name == "__dict__" else value.cls or Unknown(name)
        if name == "param_groups" and "groups" in value.state:
            return value.state["groups"]
        if value.kind == "context" and name in ("saved_tensors", "saved_variables"):
            return value.state.get("saved", Unknown(name))
        if value.kind == "loader" and name in _ELEMENTS_OF:
            return value.argument(name, _ELEMENTS_OF[name])
        return self._of_module(value, name) if is_module(value) else NotImplemented

    def _of_module(self, value: Object, name: str) -> Value:
        if name == "training":
            known = self.is_training(value)
            return Unknown(name) if known is None else known
        if name == "module" and isinstance(value.state.get("module"), Object):
            return value.state["module"]
        items = value.state.get("items")
        if isinstance(items, dict) and name in items:
            return items[name]
        return self.own_parameters(value).get(name, NotImplemented)

    def bound(self, value: Object, found: Value) -> Value:
        if not isinstance(found, Function) or found.kind == "static":
            return found
        return Method(value.cls if found.kind == "class" else value, found)

    def _of_class(self, value: Class, name: str, node: ast.AST) -> Value:
        if name == "apply" and FUNCTION in value.externals and not value.has(name):
            return Operation(value, name)
        found = value.get(name, value.name if name == "__name__" else Unknown(name))
        return Method(value, found) if isinstance(found, Function) and found.kind == "class" else found

    def _of_parent(self, value: Super, name: str, node: ast.AST) -> Value:
        receiver = value.receiver
        cls = receiver.cls if isinstance(receiver, Object) else receiver
        if not isinstance(cls, Class):
            return Unknown(name)
        lineage = list(cls.lineage)
        behind = lineage[lineage.index(value.owner) + 1 :] if value.owner in lineage else lineage[1:]
        for each in behind:
            if isinstance(each, Class) and name in each.namespace:
                return self._inherited(receiver, each.namespace[name])
        is_package = isinstance(receiver, Object) and (bool(receiver.kind) or name == "__init__")
        is_known = not any(isinstance(each, Unknown) for each in behind)
        return Operation(receiver, name) if is_package and (is_known or name == "__init__") else Unknown(name)

    def _inherited(self, receiver: Value, found: Value) -> Value:
        if isinstance(found, Function) and found.kind in ("property", "cached"):
            return self.call_function(found, (receiver,), {}, found.node)
        return Method(receiver, found) if isinstance(found, Function) and found.kind != "static" else found

    def parent(self, arguments: list[Value], frame: Frame) -> Value:
        if len(arguments) == 2 and isinstance(arguments[0], Class):
            return Super(arguments[1], arguments[0])
        function = frame.function
        while frame.parent is not None and function is not None and function.owner is None:
            frame = frame.parent
            function = frame.function
        if function is None or function.owner is None or isinstance(function.node, ast.Lambda):
            return Unknown("super")
        first = function.node.args.posonlyargs + function.node.args.args
        return Super(frame.values.get(first[0].arg), function.owner) if first else Unknown("super")

    # what is put into a thing

    def name(self, value: Value, node: ast.Attribute) -> None:
        owner = value.receiver if isinstance(value, Operation | Method) else None
        if isinstance(owner, Object | Tensor):
            self.happen(events.Named(self.spot(node), owner, node.attr))

    def assign(self, value: Value, name: str, new: Value, node: ast.AST) -> None:
        work = self._assignments.get(type(value))
        if work is not None:
            work(self, value, name, new, node)
        elif isinstance(value, Unknown) and isinstance(new, Object):
            self.escape(new)

    def _set_setting(self, value: External, name: str, new: Value, node: ast.AST) -> None:
        self.happen(events.Setting(self.spot(node), f"{value.name}.{name}", new))

    def _set_value(self, value: Namespace, name: str, new: Value, node: ast.AST) -> None:
        value.values[name] = new

    def _set_in_class(self, value: Class, name: str, new: Value, node: ast.AST) -> None:
        value.namespace[name] = new

    def _set_of_object(self, value: Object, name: str, new: Value, node: ast.AST) -> None:
        if isinstance(new, Tensor) and not isinstance(new, Parameter):
            self.happen(events.Kept(self.spot(node), value, name, new))
            if new.created and value.kind == "module" and not self.under:
                new.attribute = self.spot(node)
        if isinstance(new, Parameter) and new.owner is None and is_module(value):
            new.owner = value
        is_layer = isinstance(new, Parameter) or is_module(new)
        if value.kind == "module" and is_layer and value.state.get("is_made") is False and not value.has_escaped:
            self.happen(events.EarlyAssignment(self.spot(node), name))
        if is_module(value):
            modules = tuple(each for each in _inside(new) if is_module(each))
            if modules:
                self.happen(events.PlainContainer(self.spot(node), value, name, modules))
            if name == "requires_grad":
                self.happen(events.Setting(self.spot(node), name, new, value))
        if value.kind == "context":
            value.state.setdefault("spots", {})[name] = self.spot(node)
        value.values[name] = new

    def _set_of_parameter(self, value: Parameter, name: str, new: Value, node: ast.AST) -> None:
        if name == "requires_grad":
            value.requires_grad = truth(new)
        elif name == "grad":
            scaled = getattr(new, "scaled", None)
            value.grad = None if new is None else replace(value.grad or Gradient(), scaled=scaled)
            value.is_gradient_known = new is None

    def accumulate(self, name: str, value: Value, node: ast.AST) -> None:
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            self.happen(events.Kept(self.spot(node), None, name, value))

    # elements

    def item(self, value: Value, key: Value, node: ast.AST) -> Value:
        if is_of_rank(key) or type(value) is Unknown:
            return Unknown.of("an element", key, value)
        work = self._elements.get(type(value))
        return work(self, value, key, node) if work is not None else Unknown("an element")

    def _entry(self, value: dict[Value, Value], key: Value, node: ast.AST) -> Value:
        return value[key] if is_hashable(key) and key in value else Unknown("an entry")

    def _element(self, value: Any, key: Value, node: ast.AST) -> Value:
        try:
            return value[key] if isinstance(key, int | slice) else Unknown("an element")
        except (IndexError, TypeError, ValueError):
            return Unknown("an element")

    def _part(self, value: Tensor, key: Value, node: ast.AST) -> Value:
        result = self.merged((value,), node)
        result.activation = value.activation
        return result

    def _of_file(self, value: Loaded, key: Value, node: ast.AST) -> Value:
        is_key = is_hashable(key) and not isinstance(key, Unknown)
        return replace(value, keys=(*value.keys, key), spot=self.spot(node)) if is_key else Unknown("an entry")

    def _setting(self, value: Namespace, key: Value, node: ast.AST) -> Value:
        return value.values.get(key, Unknown("an entry")) if isinstance(key, str) else Unknown("an entry")

    def _of_package(self, value: External, key: Value, node: ast.AST) -> Value:
        return self.environment(key) if value.name == "os.environ" else value  # typing.List[int]

    def _of_stream(self, value: Endless, key: Value, node: ast.AST) -> Value:
        return value.make(key if isinstance(key, int) else 0)

    def _item_of(self, value: Object, key: Value, node: ast.AST) -> Value:
        items = self.entries_of(value) if value.kind == "state" else value.state.get("items")
        if value.kind == "defaultdict" and is_hashable(key) and not isinstance(key, Unknown):
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


def _inside(value: Value) -> Iterator[Value]:
    """The elements of a list, a tuple or a dict, and of those within."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    for each in parts:
        yield each
        yield from _inside(each)


Attributes._attributes = {
    Namespace: Attributes._of_namespace,
    External: Attributes._of_external,
    Object: Attributes._of_object,
    Class: Attributes._of_class,
    Tensor: Attributes.tensor_attribute,
    Parameter: Attributes.tensor_attribute,
    Super: Attributes._of_parent,
    Function: Attributes._of_function,
    Method: Attributes._of_function,
}
Attributes._assignments = {
    External: Attributes._set_setting,
    Namespace: Attributes._set_value,
    Class: Attributes._set_in_class,
    Object: Attributes._set_of_object,
    Parameter: Attributes._set_of_parameter,
}
Attributes._elements = {
    dict: Attributes._entry,
    **dict.fromkeys((list, tuple, str, range), Attributes._element),
    **dict.fromkeys((Tensor, Parameter), Attributes._part),
    Loaded: Attributes._of_file,
    Namespace: Attributes._setting,
    Object: Attributes._item_of,
    External: Attributes._of_package,
    Endless: Attributes._of_stream,
}
