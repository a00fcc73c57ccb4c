"""Tensors, and what autograd keeps of them: graphs, gradients, parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torchtriage.examine.source.execution.bounds import FREE, Bounds
from torchtriage.examine.source.execution.values import Object, Region, Sampled, Spot, Value


@dataclass(eq=False, repr=False)
class PlainAttribute:
    """A tensor that a module keeps under NAME since SPOT, and that is neither a parameter nor a buffer.

    is_learned: it asks for a gradient. is_cared_for: it is replaced, moved or registered by other means.
    """

    spot: Spot
    name: str
    is_learned: bool = False
    is_cared_for: bool = False


@dataclass
class Birth:
    """Where a tensor was made. loops: those around it, by identity, with their iterations, the outermost first.

    is_in_model: whether a model was being called. is_read: whether the host has looked at its values, or at what was
    computed of them.
    """

    loops: tuple[tuple[int, int], ...]
    is_in_model: bool
    is_read: bool = False


@dataclass(eq=False, repr=False)
class GraphNode:
    """An operation that a graph of autograd records. inputs: the operations that its operands come out of.

    weights: the parameters that it needs as they are for the gradient of its input, each with its version then.
    """

    inputs: tuple[GraphNode, ...] = ()
    weights: tuple[tuple[Parameter, int], ...] = ()
    is_of_layer: bool = False
    """Whether it keeps its input for the gradient of a layer's own parameters."""


@dataclass(eq=False, repr=False)
class Tensor(Sampled):
    """A tensor.

    spot: where it was made. graph: the parameters that its graph leads to; is_open: it may lead to more. scaled: the
    scaler by which it is multiplied. activation: the function that it comes out of as it is ("softmax"), activated:
    where. loss: the function of which it is the mean over a batch. divided: by what it was divided since. ages: the
    iterations, by number, in which the operations of its graph were executed.
    """

    spot: Spot | None = None
    graph: frozenset[Parameter] = frozenset()
    is_open: bool = False
    scaled: Object | None = None
    activation: str = ""
    activated: Spot | None = None
    loss: str = ""
    divided: tuple[Value, ...] = ()
    ages: frozenset[int] = frozenset()
    has_escaped: bool = False
    created: str = ""
    """The function that made it from nothing ("randn"), where it still stands on the CPU as that left it."""
    birth: Birth | None = None
    """Where it was made so."""
    attribute: PlainAttribute | None = None
    """As what a module keeps it, or what it was computed of alone."""
    is_empty: bool = False
    """Nothing has written to the memory that it was made of."""
    moved: Parameter | None = None
    """The parameter of which it is the copy on another device, or in another format."""
    is_scalar: bool = False
    """Whether it has, or may have, no dimensions: such a tensor may stay on the CPU."""
    is_learned: bool = False
    """Whether it is no parameter, and asks for a gradient."""
    cut: Spot | None = None
    """Where it, or what it was computed of, has lost a graph."""
    needed: str = ""
    """The operation that gave it, and needs it for its own gradient ("exp")."""
    context: Object | None = None
    """Of the autograd function whose input it is."""
    is_leaf: bool = False
    """Whether it was made of numbers, and gets a gradient of its own."""
    is_entry: bool = False
    """Whether the caller of the function that is executed gives it."""
    loader: Object | None = None
    """Which one gave it, as a batch or as a part of one."""
    is_batch: bool = False
    """Whether a loader gave it as it is: it may be a batch of a class of its own, whose to() moves it in place."""
    is_of_backward: bool = False
    """Whether it is what a backward of an autograd function is given, or what forward has saved for it."""
    is_gradient: bool = False
    """Whether autograd has given it to the backward of an autograd function."""
    flat: Spot | None = None
    """Where its gradient has become zero everywhere, by rounding and the like."""
    idle: frozenset[Spot] = frozenset()
    """Where the gradient of a term of it, a loss, has become zero everywhere."""
    dead: frozenset[Parameter] = frozenset()
    """Of its graph the parameters that get a gradient of zero everywhere."""
    buried: frozenset[tuple[Parameter, Spot]] = frozenset()
    """The parameters that it was computed of through an operation without a gradient, and where that is."""
    layer: str = ""
    """The class of the layer with weights that it comes out of as it is ("Linear")."""
    state: Object | None = None
    """The state of a module or optimizer that it is an entry of, as long as it shares its memory."""
    gradient_of: Parameter | None = None
    """Whose gradient it is."""
    memory_of: Parameter | None = None
    """Whose memory it is: `p.data`."""
    regions: frozenset[Region] = frozenset()
    """Those of autocast in which the operations of its graph were executed."""
    format: str = ""
    """Of its elements: "float16" …, where a cast, or the function that made it, says so."""
    same_as: Tensor | None = None
    """The tensor whose values it has: that of detach(), cpu() …"""
    of_gradients: str = ""
    """"norm" where it was computed of gradients, "inverse" where something was divided by that: a factor that clips."""
    bounds: Bounds = FREE
    is_positive: bool = False
    """Whether none of its elements is near 0: the sigmoid of what is bounded."""
    is_largest: bool = False
    """Whether it is the largest of the elements of something."""
    base: Tensor | None = None
    """The tensor whose memory it shares, or may share: it is a view of that."""
    grad_fn: GraphNode | None = None
    """The operation that it comes out of, where a graph is recorded."""
    lost: Any = None
    """The event that the result of an operation on it was dropped."""
    is_output: bool = False
    """Whether a model of which nothing is known has returned it: it may be a tuple or a dict."""
    is_assumed: bool = False
    """Whether it may be a number as well: `loss, accuracy = model(batch)`."""

    @property
    def memory(self) -> Iterator[Tensor]:
        """Itself and the tensors whose memory it shares."""
        each: Tensor | None = self
        while each is not None:
            yield each
            each = each.base

    @property
    def operations(self) -> set[GraphNode]:
        """Every operation of its graph."""
        found: set[GraphNode] = set()
        waiting = [self.grad_fn] if self.grad_fn is not None else []
        while waiting:
            each = waiting.pop()
            if each not in found:
                found.add(each)
                waiting += each.inputs
        return found


@dataclass(eq=False, repr=False)
class Gradient:
    """What stands in the .grad of a parameter. by: the losses of the backward passes that were added up, with their
    places. used: how many of them an optimizer has stepped with already. scaled: by which scaler it is multiplied.
    """

    by: tuple[tuple[Spot, Tensor], ...] = ()
    used: int = 0
    scaled: Object | None = None
    is_taken: bool = False
    """Whether the program has read it."""


@dataclass(eq=False, repr=False)
class Parameter(Tensor):
    """A parameter. owner: the module that it was made for. name: within it."""

    owner: Object | None = None
    name: str = "weight"
    requires_grad: bool | None = True
    grad: Gradient | None = None
    is_gradient_known: bool = True
    copied: Parameter | None = None
    """Of which one it is a copy."""
    version: int = 0
    """How often an optimizer has changed it."""
    zeroed: Spot | None = None
    """Where every element of it was set to 0, and not to anything else since."""
    is_updated: bool = False
    """Whether the program changes its values itself: the copy that a moving average makes."""


def release(value: Value) -> None:
    """VALUE, where a module keeps it as a plain attribute, is looked after by other means."""
    if isinstance(value, Tensor) and value.attribute is not None:
        value.attribute.is_cared_for = True
