"""What operations on tensors give: their graph, what it is scaled by, and of which iterations it is."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.configuration import Configuration
from torchtriage.examine.source.execution.events import Event
from torchtriage.examine.source.execution.loops import Loop
from torchtriage.examine.source.execution.lore import lore
from torchtriage.examine.source.execution.values import (
    Arguments,
    Endless,
    Factor,
    Gradient,
    Keywords,
    Object,
    Operation,
    Parameter,
    Spot,
    Tensor,
    Unknown,
    Value,
    truth,
)
from torchtriage.examine.source.names import table

BEFORE = -1
"""The age of what is computed ahead of all loops: it is of no iteration."""
_PAIRS = frozenset({"max", "min", "topk", "sort", "median", "mode", "kthvalue", "cummax", "cummin"})
"""With a dimension they give values and indices."""
_READS = frozenset({"item", "tolist", "numpy", "cpu"})
"""Methods for which the host waits until the device has computed the value."""
_NEEDED = frozenset({"exp", "sigmoid", "tanh", "softmax", "log_softmax", "sqrt", "rsqrt", "relu", "reciprocal"})
"""Operations whose gradient is computed of their result."""
_FLAT = frozenset({"round", "floor", "ceil", "sign", "sgn", "trunc", "fix", "heaviside"})
"""Operations whose gradient is zero everywhere."""
_PIECES = frozenset({"chunk", "split", "unbind", "tensor_split"})
_FACTS = frozenset({
    "shape", "device", "dtype", "ndim", "is_cuda", "grad_fn", "is_leaf", "layout", "names", "itemsize", "nbytes",
})  # fmt: skip


class Tensors(Configuration):
    """The tensors of an execution, and what of its state they depend on.

    is_grad: whether graphs are recorded. under: the modules whose forward pass is under way, the outermost first.
    age: counts the iterations of training loops. autocast: the format of the region under way.
    """

    events: list[Event]
    loops: list[Loop]
    is_grad: bool
    under: list[Object]
    age: int
    autocast: str

    @abstractmethod
    def happen(self, event: Event) -> None:
        """Writes EVENT down."""

    @abstractmethod
    def spot(self, node: ast.AST) -> Spot:
        """Where NODE is being executed."""

    def merged(self, operands: Iterable[Value], node: ast.AST, own: frozenset[Parameter] = frozenset()) -> Tensor:
        """The tensor that an operation on OPERANDS gives, and on the parameters OWN."""
        given = tuple(operands)
        tensors = tuple(tensors_in(given))
        result = Tensor(self.spot(node))
        for each in tensors:
            if each.attribute is not None and self.under:
                self.happen(events.AttributeUse(self.spot(node), each))
            result.cut = result.cut or each.cut
            result.flat = result.flat or each.flat
            result.scaled = each.scaled or result.scaled
            result.divided = each.divided or result.divided
        result.created = "computed" if tensors and not own and all(each.created for each in tensors) else ""
        if self.is_grad:
            result.graph = own.union(*(each.graph for each in tensors))
            unknown = [each for each in given if isinstance(each, Unknown) and not each.is_plain]
            result.is_open = bool(unknown) or any(each.is_open for each in tensors)
            if result.graph or result.is_open:
                now = self.age if self.loops else BEFORE
                result.ages = frozenset({now}).union(*(each.ages for each in tensors if each.graph))
        elif own or any(each.graph for each in tensors):
            result.cut = self.spot(node)
        if own or any(each.graph and each.flat is None for each in tensors):
            result.flat = None
        return result

    def combine(self, operands: Iterable[Value], node: ast.AST, op: ast.operator | None = None) -> Value:
        found = tuple(operands)
        first = next((each for each in found if isinstance(each, Tensor)), None)
        if first is None:
            return Unknown.of("an operation", *found)
        result = self.merged(found, node)
        if isinstance(op, ast.Div) and first is found[0]:
            result.divided = (*first.divided, found[1])
        elif isinstance(op, ast.Mult):
            others = [each for each in found if each is not first and not (isinstance(each, Tensor) and each.graph)]
            result.divided = (*first.divided, *map(Factor, others))
        if isinstance(op, ast.Div | ast.Mult | ast.Add | ast.Sub):
            result.loss = next((each.loss for each in found if isinstance(each, Tensor) and each.loss), "")
        return result

    def loss(self, word: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """What the loss function or layer with that last WORD gives."""
        name = lore()["losses"][word]
        self.happen(events.LossCall(self.spot(node), name, arguments, self.autocast))
        result = self.merged((*arguments, *tensors_in(keywords.values())), node)
        result.loss = name if keywords.get("reduction", "mean") == "mean" else ""
        result.divided = ()
        return result

    def created(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Tensor:
        """What torch.NAME makes from nothing: zeros, randn, tensor …"""
        if name in ("tensor", "as_tensor"):
            self.happen(events.LibraryCall(self.spot(node), f"torch.{name}", arguments, keywords))
        made = Tensor(self.spot(node))
        is_bare = not {"device", "**", "out"} & keywords.keys() and not any(tensors_in(arguments))
        made.created = name if is_bare else ""
        return made

    def tensor_method(self, held: Tensor, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """HELD.NAME(…), or torch.NAME(HELD, …)."""
        rows = lore()["tensors"]
        if name in ("backward", "detach_", "requires_grad_") or (isinstance(held, Parameter) and is_in_place(name)):
            return self._changed(held, name, arguments, keywords, node)
        self._observe(held, name, arguments, node)
        if name in rows["numbers"]:
            return Unknown(name, is_plain=True)
        if name == "detach" or name in rows["cut"] or name.startswith(("new_", "is_")):
            left = Tensor(self.spot(node), cut=self.spot(node) if held.graph else held.cut, flat=held.flat)
            left.state = held.state if name == "detach" else None
            return left
        if name in _PIECES or (name in _PAIRS and (arguments or keywords)):
            return self._several(held, name, node)
        result = self.merged((held, *arguments, *keywords.values()), node)
        self._carry(held, result, name, arguments)
        result.needed = name if name in _NEEDED else ""
        if name.rstrip("_") in _FLAT and result.graph:
            result.flat = self.spot(node)
        if is_in_place(name):
            held.graph, held.is_open, held.ages = result.graph, result.is_open, held.ages | result.ages
            held.divided, held.created = result.divided, "computed" if held.created else ""
            return held
        return result

    def _observe(self, held: Tensor, name: str, arguments: Arguments, node: ast.AST) -> None:
        """Writes down what HELD.NAME(…) is by itself."""
        if name in _READS:
            self.happen(events.Read(self.spot(node), held, name))
        if name == "log" and held.activation:
            self.happen(events.Composed(self.spot(node), name, held.activation))
        if id(node) in self.dropped and name in lore()["tensors"]["pure"] and not held.is_batch:
            self.happen(events.Lost(self.spot(node), held, name))
        if held.created and (name == "cuda" or (name == "to" and _is_device(arguments))):
            self.happen(events.Copy(self.spot(node), held))
        if is_in_place(name):
            self.edit(held, node)

    def edit(self, held: Tensor, node: ast.AST) -> None:
        """NODE changes HELD in place."""
        if held.is_gradient:
            self.happen(events.GradientEdit(self.spot(node)))
        if held.needed and held.graph and self.is_grad:
            self.happen(events.ResultEdit(self.spot(node), held.needed))
        if held.context is not None:
            held.context.state.setdefault("edited", []).append((held, self.spot(node)))

    def _changed(self, held: Tensor, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """What methods do to HELD itself."""
        if name == "backward":
            self.backward(held, keywords, node)
            return None
        if name == "detach_":
            held.graph, held.ages = frozenset(), frozenset()
        elif isinstance(held, Parameter):
            held.is_empty = held.is_empty and name == "requires_grad_"
            if name == "requires_grad_":
                held.requires_grad = truth(arguments[0] if arguments else keywords.get("requires_grad", True))
        else:
            held.is_open = True  # a leaf of its own
        return held

    def _several(self, held: Tensor, name: str, node: ast.AST) -> Value:
        """The pieces of HELD, or values with their indices."""
        if name in _PIECES:
            return Endless(lambda _: self.merged((held,), node))
        return self.merged((held,), node), Tensor(self.spot(node))

    def _carry(self, held: Tensor, result: Tensor, name: str, arguments: tuple[Value, ...]) -> None:
        """What RESULT of the operation NAME still is, of what HELD was."""
        if name in lore()["tensors"]["same"]:
            result.activation, result.loss = held.activation, held.loss
        elif name == "mean":
            result.loss, result.divided = held.loss or "mean", held.divided if held.loss else ()
        elif name in ("div", "div_"):
            result.divided, result.loss = (*held.divided, *arguments[:1]), held.loss
        elif name in ("mul", "mul_", "multiply"):
            result.divided, result.loss = (*held.divided, *map(Factor, arguments[:1])), held.loss
        elif name in lore()["activations"]:
            result.activation = lore()["activations"][name]

    def tensor_attribute(self, held: Tensor, name: str, node: ast.AST) -> Value:
        """HELD.NAME."""
        if name == "data":
            bare = Tensor(self.spot(node), cut=self.spot(node) if held.graph else held.cut)
            return held if isinstance(held, Parameter) and held.is_empty else bare
        if name == "grad":
            has_none = isinstance(held, Parameter) and held.is_gradient_known and held.grad is None
            return Unknown("a gradient") if has_none else Tensor(self.spot(node))
        if name == "requires_grad" and isinstance(held, Parameter) and held.requires_grad is not None:
            return held.requires_grad
        if name in lore()["tensors"]["views"] or name in table()["graph"]["attributes"]:
            return self.merged((held,), node)
        is_fact = name in _FACTS or name == "requires_grad"
        return Unknown(name, is_plain=True) if is_fact else Operation(held, name)

    def backward(self, loss: Tensor, keywords: Mapping[str, Value], node: ast.AST) -> None:
        """LOSS.backward(): gradients are added up in the parameters that its graph leads to."""
        spot, is_retained = self.spot(node), truth(keywords.get("retain_graph")) is not False
        self.happen(events.Backward(spot, loss, self.autocast, is_retained, keywords))
        for each in loss.graph:
            before = each.grad or Gradient()
            each.grad = Gradient((*before.by, (spot, loss)), before.used, loss.scaled)


def is_in_place(name: str) -> bool:
    """Whether the method NAME changes what it is called on."""
    return name.endswith("_") and not name.startswith("_")


def tensors_in(values: Iterable[Value]) -> Iterator[Tensor]:
    """The tensors among VALUES, and in the lists and dicts among them."""
    for each in values:
        if isinstance(each, Tensor):
            yield each
        elif isinstance(each, list | tuple):
            yield from tensors_in(each)
        elif isinstance(each, dict):
            yield from tensors_in(each.values())


def _is_device(arguments: Arguments) -> bool:
    first = arguments[0] if arguments else None
    return first == "cuda" or (isinstance(first, Unknown) and first.is_plain)
