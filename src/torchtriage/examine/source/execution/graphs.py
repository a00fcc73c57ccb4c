"""The graph that an operation on tensors records, and the backward pass through it."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.autograd import Gradient, GraphNode, Parameter, Tensor
from torchtriage.examine.source.execution.configuration import Configuration
from torchtriage.examine.source.execution.events import Event
from torchtriage.examine.source.execution.loops import Loop
from torchtriage.examine.source.execution.lore import of_tensors
from torchtriage.examine.source.execution.values import (
    Arguments,
    Function,
    Object,
    Region,
    Spot,
    Unknown,
    Value,
    share_of,
    truth,
)
from torchtriage.examine.source.torch_api.operators import names

BEFORE = -1
"""The age of what is computed ahead of all loops: it is of no iteration."""


@cache
def _functions() -> frozenset[str]:
    """What is called like this gets tensors, or is a method of one."""
    return names(home="torch") | names(home="functional") | of_tensors()


def _is_operation(node: ast.AST) -> bool:
    """Whether NODE is an operator, or calls what gets tensors: not inputs["mask"], inputs.to(device), f(inputs)."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in _functions()
    return isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.AugAssign)


def _has_entries(value: Value) -> bool:
    """Whether VALUE was asked for an entry by its name, as no tensor is: batch["label"]."""
    return isinstance(value, Unknown) and any(name.startswith(("['", '["')) for name in value.values)


class Graphs(Configuration):
    """The graphs of an execution, and what of its state they depend on.

    is_grad: whether graphs are recorded. under: the modules whose forward pass is under way, the outermost first.
    age: counts the iterations of training loops. region: that of autocast under way.
    """

    events: list[Event]
    loops: list[Loop]
    stack: list[Function]
    is_grad: bool
    under: list[Object]
    age: int
    region: Region
    is_unsynced: bool
    """Whether a region of no_sync() is under way."""
    outermost: Spot | None
    blind: set[str]
    left: list[tuple[Spot, str, Tensor | None]] | None = None
    """Where the backward of an autograd function under way has left the graph, and with what."""

    @property
    @abstractmethod
    def turn(self) -> tuple[tuple[int, int], ...]:
        """The loops under way, each with its iteration."""

    @property
    @abstractmethod
    def is_in_model(self) -> bool:
        """Whether a model, or a function of autograd, is being called."""

    @property
    @abstractmethod
    def is_in_function(self) -> bool:
        """Whether a function of autograd is being executed, in which no graph is recorded."""

    @abstractmethod
    def zero(self, parameters: Iterable[Parameter], node: ast.AST) -> None:
        """The gradients of PARAMETERS are dropped."""

    @abstractmethod
    def happen(self, event: Event) -> None:
        """Writes EVENT down."""

    def trained_elsewhere(self) -> frozenset[Parameter]:
        """The parameters that a loss of which nothing is known leads to."""
        return frozenset()

    def merged(self, operands: Iterable[Value], node: ast.AST, own: frozenset[Parameter] = frozenset()) -> Tensor:
        """The tensor that an operation on OPERANDS gives, and on the parameters OWN."""
        given = tuple(operands)
        tensors = tuple(tensors_in(given))
        self.note_used(given, node)
        result = Tensor(self.spot(node))
        if self.under:
            self._note_attributes(given, tensors, result, own)
        for each in tensors:
            result.cut = result.cut or each.cut
            result.flat = result.flat or each.flat
            result.idle |= each.idle
            result.buried |= each.buried
            result.scaled = each.scaled or result.scaled
            result.divided = each.divided or result.divided
            result.regions |= each.regions
            result.device = "cuda" if "cuda" in (result.device, each.device) else each.device or result.device
            result.of_gradients = each.of_gradients or result.of_gradients or ("norm" if each.gradient_of else "")
        result.format = self._common_format(given, tensors, own)
        others = unknown_in(each for each in given if isinstance(each, list | tuple))  # torch.cat([mask, read(path)])
        if tensors and not own and all(each.created for each in tensors) and not any(others):
            result.created, result.birth = tensors[0].created, tensors[0].birth
        if any(each.device == "cuda" for each in (*own, *given) if isinstance(each, Tensor | Unknown)):
            result.device = "cuda"
        result.share = share_of(given)
        result.is_scalar = bool(tensors) and not own and all(each.is_scalar for each in tensors)
        if self.is_grad:
            self._record_graph(result, given, tensors, own)
        elif own or any(each.graph for each in tensors):
            result.cut = self.cut_spot(node)
        if own or any(each.graph and each.flat is None for each in tensors):
            result.flat = None
        return result

    def _record_graph(self, result: Tensor, given: Arguments, tensors: Arguments, own: frozenset[Parameter]) -> None:
        """The graph of RESULT, which is computed of GIVEN, the TENSORS among them, and the parameters OWN."""
        result.graph = own.union(*(each.graph for each in tensors))
        if any(each.dead for each in tensors):
            result.dead = result.graph - own.union(*(each.graph - each.dead for each in tensors))
        unknown = [*unknown_in(given)]
        result.is_open = bool(unknown) or any(each.is_open for each in tensors)
        if not (result.graph or result.is_open):
            return
        result.regions |= {self.region} if self.region.format else frozenset()
        now = self.age if self.loops else BEFORE
        result.ages = frozenset({now}).union(*(each.ages for each in tensors if each.graph))
        is_inner = any(each.graph for each in tensors)  # the gradient of the input is asked for, too
        weights = tuple((each, each.version) for each in own if each.name == "weight") if is_inner else ()
        inputs = tuple(each.grad_fn for each in (*tensors, *unknown) if each.grad_fn is not None)
        result.grad_fn = GraphNode(inputs, weights, is_of_layer=bool(own))

    def _note_attributes(
        self, given: Arguments, tensors: Iterable[Tensor], result: Tensor, own: frozenset[Parameter]
    ) -> None:
        """Whether a plain attribute of a module meets a tensor on the device of the input in a forward pass."""
        held = [each for each in tensors if each.attribute is not None]
        is_met = bool(own) or any(each.attribute is None and not each.created for each in tensors)
        if is_met or any(isinstance(each, Unknown) and not each.is_plain for each in given):
            for each in held:
                self.happen(events.AttributeUse(result.spot or Spot("", ast.Pass()), each))
        elif held:
            result.attribute = held[0].attribute

    def _common_format(self, given: Arguments, tensors: Arguments, own: frozenset[Parameter]) -> str:
        """The format of what is computed of GIVEN, where all tensors among them have the same; "" where autocast, or
        something that is not known, may change it.
        """
        formats = {each.format for each in tensors}
        is_open = any(unknown_in(given))
        return formats.pop() if len(formats) == 1 and not (own or is_open or self.region.is_on) else ""

    def cut_spot(self, node: ast.AST) -> Spot:
        """Where no graph is recorded: the call of the model, where NODE is within it."""
        return self.outermost if self.under and self.outermost is not None else self.spot(node)

    def note_used(self, values: Iterable[Value], node: ast.AST) -> None:
        """NODE, an operation of torch, gets VALUES: they are tensors.

        What a model of a package returned shows nothing by that: a tokenizer's inputs have entries, and to().
        """
        for each in values:
            if isinstance(each, Tensor | Unknown):
                is_output = isinstance(each, Tensor) and each.is_output
                may_be_other = not _is_operation(node) if is_output else _has_entries(each)
                if each.lost is not None and each.lost.spot.node is not node and not may_be_other:
                    each.lost.is_used = True
            elif isinstance(each, list | tuple):
                self.note_used(each, node)

    def note_read(self, values: Iterable[Value], name: str, node: ast.AST) -> None:
        for each in tensors_in(values):
            if each.birth is not None:
                each.birth.is_read = True
            if not each.is_assumed:
                self.happen(events.Read(self.spot(node), each, name))

    def bury(self, result: Tensor, operands: Iterable[Tensor], node: ast.AST) -> None:
        """RESULT of NODE has no gradient for what OPERANDS were computed of."""
        for each in operands if self.is_grad else ():
            if each.graph:
                result.flat, result.dead = self.spot(node), result.graph
                result.buried |= {(parameter, result.flat) for parameter in each.graph}
            result.flat = result.flat or each.flat
            result.buried |= each.buried

    def note_left(self, held: Tensor, result: Tensor | None, name: str, node: ast.AST) -> None:
        """NAME gives RESULT of HELD, without a graph, maybe in the backward of an autograd function."""
        if held.is_of_backward and self.left is not None and name in ("detach", "data", "numpy"):
            self.left.append((self.spot(node), f"{name}()" if name != "data" else ".data", result))

    def note_ungraded(self, node: ast.AST) -> None:
        """A region begins at NODE that may record no graph, maybe in the backward of an autograd function."""
        if not self.is_grad and self.left is not None:
            self.left.append((self.spot(node), "no_grad()", None))

    def backward(self, loss: Tensor, keywords: Mapping[str, Value], node: ast.AST, gradient: Value = None) -> None:
        """LOSS.backward(GRADIENT): gradients are added up in the parameters that its graph leads to."""
        if loss.is_open and not loss.graph:
            loss.graph = self.trained_elsewhere()
        if gradient is not None:
            loss = replace(loss, divided=(*loss.divided, gradient))
        loss.is_assumed = False
        spot, is_retained = self.spot(node), truth(keywords.get("retain_graph")) is not False
        self.happen(events.Backward(spot, loss, self.region.format, is_retained, keywords, self.is_unsynced))
        self._note_stale(loss, node)
        for each in loss.graph:
            before = each.grad or Gradient()
            each.grad = Gradient((*before.by, (spot, loss)), before.used, loss.scaled)
            each.device = each.device or loss.device  # of a model that somebody else has moved

    def _note_stale(self, loss: Tensor, node: ast.AST) -> None:
        """Weights that an optimizer has changed since LOSS was computed with them."""
        used = (each for operation in loss.operations for each in operation.weights)
        stale = next((each for each, version in used if each.version != version), None)
        now = self.turn  # of an earlier iteration it is a state that was not detached
        steps = (
            each
            for each in reversed(self.events)
            if isinstance(each, events.OptimizerStep) and each.loops[: len(now)] == now[: len(each.loops)]
        )
        step = next((each for each in steps if any(one is stale for one, _ in each.gradients)), None) if stale else None
        if stale is not None and step is not None:
            self.happen(events.StaleWeight(self.spot(node), stale, step.spot))


def tensors_in(values: Iterable[Value]) -> Iterator[Tensor]:
    """The tensors among VALUES, and in the lists and dicts among them."""
    for each in values:
        if isinstance(each, Tensor):
            yield each
        elif isinstance(each, list | tuple):
            yield from tensors_in(each)
        elif isinstance(each, dict):
            yield from tensors_in(each.values())


def unknown_in(values: Iterable[Value]) -> Iterator[Unknown]:
    """What may be tensors among VALUES, and in the lists and dicts among them."""
    for each in values:
        if isinstance(each, Unknown) and not each.is_plain:
            yield each
        elif isinstance(each, list | tuple):
            yield from unknown_in(each)
        elif isinstance(each, dict):
            yield from unknown_in(each.values())
