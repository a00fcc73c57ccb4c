"""Attributes: reading them, and assigning them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.autograd import Gradient, Parameter, PlainAttribute, Tensor, release
from torchtriage.examine.source.execution.frames import Frame
from torchtriage.examine.source.execution.graphs import tensors_in
from torchtriage.examine.source.execution.imports import Imports
from torchtriage.examine.source.execution.loops import Loop
from torchtriage.examine.source.execution.lore import FUNCTION, kind_of, lore
from torchtriage.examine.source.execution.ranks import names_rank
from torchtriage.examine.source.execution.values import (
    Answer,
    Arguments,
    Class,
    External,
    Function,
    Keywords,
    Member,
    Method,
    Namespace,
    Object,
    Operation,
    Super,
    Unknown,
    Value,
    is_module,
    share_of,
    truth,
)
from torchtriage.examine.source.names import canonical
from torchtriage.examine.source.torch_api.families import METADATA
from torchtriage.examine.source.torch_api.symbols import symbols

CONTAINERS = (list, tuple, dict, set, frozenset, str, int, float, bytes, range)
ASKS = re.compile(r"re\w*g\w?r", re.IGNORECASE)
"""Attributes that are called like requires_grad: setting them is looked at, whatever they belong to."""
REGISTRIES = ("_modules", "_parameters", "_buffers")
"""What a module keeps its parts in."""
_OF_A_STATE = frozenset({"items", "keys", "values", "copy", "update", "get", "pop"})
_OF_MODULES = symbols().module_self | {"parameters", "state_dict"}
_ELEMENTS_OF = {"dataset": 0, "batch_size": 1, "sampler": 3, "batch_sampler": None}
"""What a loader was made with, and at which place."""


class Attributes(Imports):
    """Attributes, by the kind of thing that they are asked of. loops: those under way."""

    loops: list[Loop]
    _attributes: ClassVar[dict[type, Callable[..., Value]]] = {}
    _assignments: ClassVar[dict[type, Callable[..., None]]] = {}

    def call_function(self, function: Function, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """FUNCTION(…)."""
        raise NotImplementedError

    # attributes

    def attribute(self, value: Value, name: str, node: ast.AST) -> Value:
        if isinstance(value, Operation) and value.name == "state_dict" and name in _OF_A_STATE:
            self.happen(events.UncalledState(value.spot or self.spot(node)))
        if isinstance(value, Answer) and name in _OF_MODULES:
            self.note_answer(value)
        work = self._attributes.get(type(value))
        if work is not None:
            return work(self, value, name, node)
        if isinstance(value, tuple) and len(value) == 2 and name in ("values", "indices"):  # x.max(dim=1).values
            return value[name == "indices"]
        if isinstance(value, CONTAINERS):
            # a text may be a path: parser.add_argument("--out", type=Path, default="runs")
            is_known = hasattr(value, name) or (isinstance(value, str) and name in lore()["paths"])
            return Operation(value, name) if is_known else Unknown(name, is_plain=True)
        if not isinstance(value, Unknown):
            return Unknown(name)
        if name not in value.values:
            is_of_rank = value.is_of_rank or names_rank(name)
            is_plain = value.is_plain or name in METADATA
            made = Member(name, is_of_rank, value.is_option, is_plain, receiver=value, name=name)
            value.values[name] = made
        found = value.values[name]
        if isinstance(found, Unknown) and names_rank(name) and not found.is_of_rank:  # cfg.local_rank = node * devices
            return Unknown(name, is_of_rank=True)
        return found

    def _of_namespace(self, value: Namespace, name: str, node: ast.AST) -> Value:
        if name == "__dict__":
            return value.values
        if name not in value.values and value.holds_settings:
            return Member(name, names_rank(name), receiver=value, name=name)
        return value.values.get(name, Unknown(name, is_of_rank=names_rank(name)))

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
        return Operation(value, name, self.spot(node)) if is_of_package else self.missing_attribute(value, name, node)

    def missing_attribute(self, value: Object, name: str, node: ast.AST) -> Value:
        """The attribute NAME of VALUE, which nothing in sight assigns."""
        is_open = value.cls is not None and (not value.cls.is_known or bool(value.cls.externals))
        is_of_rank = names_rank(name)
        return Member(name, is_of_rank, receiver=value, name=name) if is_open else Unknown(name, is_of_rank)

    def _own(self, value: Object, name: str) -> Value:
        """What VALUE itself, or its class in the project, has under NAME; NotImplemented where neither has it."""
        method = value.method(name)
        kind = method.kind if method is not None else ""
        if method is not None and kind == "cached" and name not in value.values:
            value.values[name] = self.call_function(method, (value,), {}, method.node)
        if name in value.values and kind != "property":
            return value.values[name]
        if method is not None and kind == "property":
            found = self.call_function(method, (value,), {}, method.node)
            # self.environment.rank() if self.environment is not None else 0: of one process as long as nothing is set
            return Unknown(name, is_of_rank=True) if isinstance(found, int) and names_rank(name) else found
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
            return Member(name, receiver=value, name=name) if known is None else known
        if name == "module" and isinstance(value.state.get("module"), Object):
            return value.state["module"]
        items = value.state.get("items")
        if isinstance(items, dict) and name in items:
            return items[name]
        if name in REGISTRIES:
            return value.values
        if name == "p" and value.made.rpartition(".")[2] in symbols().dropout_layers:
            return value.argument(name, 0, 0.5)
        return self.own_parameters(value).get(name, NotImplemented)

    def bound(self, value: Object, found: Value) -> Value:
        if not isinstance(found, Function) or found.kind == "static":
            return found
        return Method(value.cls if found.kind == "class" else value, found)

    def _of_operation(self, value: Operation, name: str, node: ast.AST) -> Value:
        """What `model.layer4` has under NAME, of a model of which nobody sees what it is made of."""
        return self.attribute(self.part_of(value), name, node) if self.is_part(value) else Unknown(name)

    def is_part(self, value: Operation) -> bool:
        """Whether VALUE may be a part of an opaque model: `model.layer4`, and not `model.parameters`."""
        return self.is_opaque(value.receiver) and value.name not in self._of_modules

    def part_of(self, value: Operation) -> Object:
        return self.part(value.receiver, value.name)

    def _set_of_operation(self, value: Operation, name: str, new: Value, node: ast.AST) -> None:
        if self.is_part(value):
            self._set_of_object(self.part_of(value), name, new, node)

    def _of_class(self, value: Class, name: str, node: ast.AST) -> Value:
        if name == "apply" and FUNCTION in value.externals and not value.has(name):
            value.is_applied = True
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
            if name == "__init__" and isinstance(each, External) and kind_of(each.name):  # it calls no further one
                break
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
        if isinstance(value, External) and value.name.startswith("torch."):
            owner = value
        if isinstance(owner, Object | Tensor | External):
            self.happen(events.Named(self.spot(node), owner, node.attr))

    def replaces(self, old: Value, new: Value, node: ast.AST) -> None:
        """NEW takes the place of OLD."""
        if isinstance(new, Answer) and (new.part is old or _is_made_there(new)):
            self.note_answer(new)

    def assign(self, value: Value, name: str, new: Value, node: ast.AST) -> None:
        if isinstance(value, Object):
            self.replaces(value.values.get(name), new, node)
        work = self._assignments.get(type(value))
        if work is not None:
            work(self, value, name, new, node)
        elif isinstance(value, Unknown):
            if ASKS.match(name):
                self.happen(events.Setting(self.spot(node), name, new, value))
            self.escape(new)
            value.values[name] = new

    def _set_setting(self, value: External, name: str, new: Value, node: ast.AST) -> None:
        self.happen(events.Setting(self.spot(node), f"{value.name}.{name}", new))

    def _set_value(self, value: Namespace, name: str, new: Value, node: ast.AST) -> None:
        value.values[name] = new

    def _set_in_class(self, value: Class, name: str, new: Value, node: ast.AST) -> None:
        value.namespace[name] = new

    def _set_of_object(self, value: Object, name: str, new: Value, node: ast.AST) -> None:
        self._keep_parts(value, name, new, node)
        if is_module(value):
            self._set_part(value, name, new, node)
        if value.kind == "sampler" and name == "epoch":
            self.happen(events.SetEpoch(self.spot(node), value))
        if value.kind == "context":
            value.state.setdefault("spots", {})[name] = self.spot(node)
        value.values[name] = new

    def _keep_parts(self, value: Object, name: str, new: Value, node: ast.AST) -> None:
        """VALUE keeps NEW, or its parts: the state of an LSTM is a tuple."""
        if isinstance(new, Tensor) and not isinstance(new, Parameter):
            self._keep(value, name, new, node)
        for each in tensors_in(new) if isinstance(new, tuple) else ():
            if not isinstance(each, Parameter):
                self.happen(events.Kept(self.spot(node), value, name, each))

    def _keep(self, value: Object, name: str, new: Tensor, node: ast.AST) -> None:
        """The tensor NEW, which is no parameter, becomes an attribute of VALUE."""
        self.happen(events.Kept(self.spot(node), value, name, new))
        if new.moved is not None and new.moved is value.values.get(name):
            self.happen(events.ParameterReplaced(self.spot(node), name))
        is_left = (bool(new.created) and not new.is_scalar) or new.is_learned
        is_registered = name in value.state.get("registered", ())  # self.queue = normalize(self.queue): still a buffer
        if is_left and not is_registered and value.kind == "module" and not self.under:
            new.attribute = PlainAttribute(self.spot(node), name, new.is_learned)
        elif value.kind == "module":  # state that is replaced
            release(value.values.get(name))

    def _set_part(self, value: Object, name: str, new: Value, node: ast.AST) -> None:
        if isinstance(new, Parameter) and new.owner is None:
            new.owner = value
        if isinstance(new, Parameter) or is_module(new):
            self.note_early(value, name, self.spot(node))
        if isinstance(new, list | dict | tuple) or (isinstance(new, Object) and new.kind == "defaultdict"):
            self.happen(events.PlainContainer(self.spot(node), value, name, new))
        if ASKS.match(name):
            self.happen(events.Setting(self.spot(node), name, new, value))

    def _set_of_parameter(self, value: Parameter, name: str, new: Value, node: ast.AST) -> None:
        if name == "data":
            value.is_empty = False
            if value.owner is not None:
                value.owner.state["is_set"] = True
            if value.grad is not None and value.grad.is_taken:  # p.data = p.data - lr * p.grad
                self.blind.add("step")
        if name == "requires_grad":
            value.requires_grad = truth(new)
        elif name == "grad":
            scaled = getattr(new, "scaled", None)
            is_limited = isinstance(new, Tensor) and new.of_gradients and new.bounds.above
            if is_limited and value.grad is not None and value.is_gradient_known:  # p.grad = p.grad.clamp(-1, 1)
                self.happen(events.GradientLimit(self.spot(node), value.grad))
                return
            value.grad = None if new is None else replace(value.grad or Gradient(), scaled=scaled)
            value.is_gradient_known = new is None
        elif name != "data" and ASKS.match(name):
            self.happen(events.Setting(self.spot(node), name, new, value))

    def _set_of_tensor(self, value: Tensor, name: str, new: Value, node: ast.AST) -> None:
        if name == "data":  # self.table.data = self.table.data.to(x.device)
            release(value)
            value.created = ""
        elif name == "requires_grad":
            value.is_learned = truth(new) is True

    def note_sum(self, value: Value, node: ast.AST) -> None:
        share = share_of((value,))
        if share is not None:
            self.happen(events.Summed(self.spot(node), share))

    def note_kept(self, container: Value, value: Value, node: ast.AST) -> None:
        """CONTAINER gets VALUE, or the parts of it."""
        self.note_sum(value, node)
        for each in tensors_in((value,)):
            if not isinstance(each, Parameter):
                self.happen(events.Kept(self.spot(node), container, "", each))

    def accumulate(self, name: str, value: Value, node: ast.AST) -> None:
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            self.happen(events.Kept(self.spot(node), None, name, value))

    def note_answer(self, value: Answer, *, is_lost: bool = False) -> None:
        """VALUE is taken for the module that was loaded into."""
        if value.spot is not None and value.part is not None:
            self.happen(events.AnswerUse(value.spot, value.part, is_lost))


def _is_made_there(answer: Answer) -> bool:
    """Whether nothing but the answer holds what was loaded into: `Net().load_state_dict(…)`."""
    called = getattr(answer.spot.node, "func", None) if answer.spot is not None else None
    made = called.value if isinstance(called, ast.Attribute) else None
    return isinstance(made, ast.Call) and getattr(made.func, "id", "") != "super"


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
    Operation: Attributes._of_operation,
}
Attributes._assignments = {
    External: Attributes._set_setting,
    Namespace: Attributes._set_value,
    Class: Attributes._set_in_class,
    Object: Attributes._set_of_object,
    Operation: Attributes._set_of_operation,
    Parameter: Attributes._set_of_parameter,
    Tensor: Attributes._set_of_tensor,
}
