"""Functions of autograd that the project writes: what forward keeps, and what backward gives back."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.autograd import Tensor
from torchtriage.examine.source.execution.elements import Elements
from torchtriage.examine.source.execution.lore import FUNCTION
from torchtriage.examine.source.execution.values import (
    Arguments,
    Class,
    Endless,
    Function,
    Keywords,
    Object,
    Spot,
    Unknown,
    Value,
)

_ENGINES = frozenset({"to_save", "dirty_tensors", "non_differentiable", "saved_for_forward", "needs_input_grad"})
"""Attributes of a context that autograd itself reads."""


class AutogradFunctions(Elements):
    """A call of `apply`: forward, and then at once backward, as the backward pass would."""

    applied: set[int]
    """Those that have been executed already: each is once."""

    def apply(self, cls: Class, arguments: Arguments, node: ast.AST, *, most: int | None = 0) -> Value:
        """CLS.apply(ARGUMENTS), or with MOST arguments at most where nobody in sight calls it; None: any number."""
        forward, backward, setup = cls.method("forward"), cls.method("backward"), cls.method("setup_context")
        result = self.merged(arguments, node)
        if forward is None or backward is None or id(cls) in self.applied or forward.kind != "static":
            return result  # of torch 0.1 it is where it is not static: it keeps tensors on itself, and torch refuses it
        self.applied.add(id(cls))
        self.happen(events.FunctionApplied(self.spot(node), cls, self.region.format or self.region.host))
        arguments = self._differentiated(arguments, backward, node)
        context = Object("context", FUNCTION, None, self.spot(node))
        inputs = [each for each in arguments if isinstance(each, Tensor)]
        for each in inputs:
            each.context = context
        if setup is None:
            output = self.call(forward, (context, *arguments), {}, node)
        else:
            output = self.call(forward, arguments, {}, node)
            self.call(setup, (context, tuple(arguments), output), {}, node)
        for each in inputs:
            each.context = None
        self._note_edits(context)
        outputs = output if isinstance(output, tuple) else (output,)
        gradients = self._gradients_of(output, backward, node)
        for each in (*gradients, *context.state.get("saved", ())):
            if isinstance(each, Tensor):
                each.is_of_backward = True
        outer, self.left = self.left, [*self._left_by_decorators(backward)]
        given = self.call(backward, (context, *gradients), {}, node)
        left, self.left = self.left, outer
        for spot, word, tensor in left if not backward.is_once else ():
            if tensor is None or not tensor.is_learned:  # else it is the input of a forward pass of its own
                self.happen(events.GraphLeft(spot, backward, word))
        self._note_kept(context, arguments, outputs, forward, backward)
        if most is not None:
            self._note_count(given, range(len(arguments), max(most, len(arguments)) + 1), backward)
        return result

    def _left_by_decorators(self, backward: Function) -> Iterator[tuple[Spot, str, Tensor | None]]:
        """@torch.no_grad() above BACKWARD."""
        for each in getattr(backward.node, "decorator_list", ()) if backward.grad is False else ():
            if "no_grad" in ast.unparse(each) or "inference_mode" in ast.unparse(each):
                yield Spot(backward.frame.file.path, each), ast.unparse(each), None

    def _differentiated(self, arguments: Arguments, backward: Function, node: ast.AST) -> Arguments:
        """ARGUMENTS, with tensors for those of which nothing is known but that BACKWARD gives a gradient for them."""
        places = differentiated(backward)
        return tuple(
            Tensor(self.spot(node), is_open=True)
            if place in places and isinstance(each, Unknown) and not each.is_plain
            else each
            for place, each in enumerate(arguments)
        )

    def _gradients_of(self, output: Value, backward: Function, node: ast.AST) -> Arguments:
        """A gradient for each tensor that forward gives; where nobody knows how many, for each that BACKWARD takes."""
        outputs = list(output) if isinstance(output, tuple | list) else [output]
        number = sum(isinstance(each, Tensor | Unknown) for each in outputs)
        wanted = backward.node.args
        if not isinstance(output, tuple | list | Tensor) and wanted.vararg is None:
            number = len(wanted.posonlyargs) + len(wanted.args) - 1
        return tuple(Tensor(self.spot(node), is_gradient=True) for _ in range(number))

    def _note_edits(self, context: Object) -> None:
        dirty = context.state.get("dirty", ())
        for edited, spot in context.state.get("edited", ()):
            if not any(edited is each or edited in each.memory for each in dirty if isinstance(each, Tensor)):
                self.happen(events.DirtyInput(spot))

    def _note_kept(
        self, context: Object, inputs: Arguments, outputs: Arguments, forward: Function, backward: Function | None
    ) -> None:
        saved = [each for each in context.state.get("saved", ()) if isinstance(each, Tensor)]
        tensors = [each for each in inputs if isinstance(each, Tensor)] + [*filter(_may_be_tensor, outputs)]
        alone = [each for each in tensors if not any(each is one for one in saved)]
        called = _names_called(forward) | (_names_called(backward) if backward is not None else set())
        for name, value in context.values.items():
            spot = context.state.get("spots", {}).get(name) or Spot(forward.frame.file.path, forward.node)
            if name in _ENGINES or not called.isdisjoint((name, _name_assigned(spot.node))):  # ctx.run = function
                continue
            if any(one is each for one in _shared(value) for each in alone):
                self.happen(events.ContextValue(spot, name))

    def _note_count(self, given: Value, wanted: range, backward: Function) -> None:
        if isinstance(given, Unknown):
            return
        gradients = list(given) if isinstance(given, tuple | list) else [given]
        returned = [*_returns(backward)]
        if not isinstance(given, tuple | list) and any(_gives_several(each.value) for each in returned):
            return
        if any(_is_joined(each.value) for each in returned):
            return
        if (
            wanted[-1] == 0
            or not gradients
            or any(isinstance(each, Endless) or _is_several(each) for each in gradients)
        ):
            return
        while len(gradients) > wanted[-1] and gradients[-1] is None:  # torch takes too many as long as they are None
            gradients.pop()
        number = len(gradients)
        is_of_indices = all(each is None for each in gradients)  # of points that are near: what it gives are integers
        if number not in wanted and not is_of_indices:
            at: list[ast.AST] = [backward.node, *returned, *(each for each in returned if _length(each) == number)]
            spot = Spot(backward.frame.file.path, at[-1])
            self.happen(events.GradientCount(spot, number, wanted[0]))

    def context_method(self, held: Object, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """HELD.NAME(…) of the context of an autograd function."""
        if name == "save_for_backward":
            for each in arguments:
                is_plain = isinstance(each, Unknown) and each.is_plain
                if is_plain or isinstance(each, int | float | str | list | tuple | dict):
                    self.happen(events.SavedValue(self.spot(node), each))
            held.state["saved"] = arguments
        elif name == "mark_dirty":
            held.state["dirty"] = arguments
        return None


def differentiated(backward: Function) -> set[int]:
    """The places of the inputs for which BACKWARD returns a gradient: they are tensors."""
    if isinstance(backward.node, ast.Lambda):
        return set()
    nothing, found = _only_none(backward.node), set[int]()
    for each in _returns(backward):
        whole = each.value.left if _is_joined(each.value) else each.value
        parts = whole.elts if isinstance(whole, ast.Tuple) else [whole] if whole is not None else []
        if isinstance(each.value, ast.Tuple | ast.BinOp | ast.Name | ast.Call):
            starred = next((place for place, part in enumerate(parts) if isinstance(part, ast.Starred)), len(parts))
            found |= {place for place, part in enumerate(parts[:starred]) if not _is_nothing(part, nothing)}
    return found


def _returns(function: Function) -> Iterator[ast.Return]:
    """The return statements of FUNCTION itself, and of no function in it."""
    waiting: list[ast.AST] = [*ast.iter_child_nodes(function.node)]
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, ast.Return):
            yield each
        if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(each)


def _is_joined(node: ast.expr | None) -> TypeGuard[ast.BinOp]:
    """Whether NODE is a tuple that others are added to: (None, None) + gradients, as many as there are."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and isinstance(node.left, ast.Tuple)


def _is_nothing(node: ast.expr, nothing: set[str]) -> bool:
    is_none = isinstance(node, ast.Constant) and node.value is None
    return is_none or (isinstance(node, ast.Name) and node.id in nothing)


def _only_none(node: ast.AST) -> set[str]:
    """The names that NODE never gives anything but None: grad_size = None."""
    given: dict[str, set[bool]] = {}
    for each in ast.walk(node):
        if isinstance(each, ast.Assign):
            is_none = isinstance(each.value, ast.Constant) and each.value.value is None
            for target in each.targets:
                parts = ast.walk(target)
                for one in (part for part in parts if isinstance(part, ast.Name)):
                    given.setdefault(one.id, set()).add(is_none)
    return {name for name, kinds in given.items() if kinds == {True}}


def _may_be_tensor(value: Value) -> bool:
    return isinstance(value, Tensor) or (type(value) is Unknown and not value.is_plain and value.why not in ("", "*"))


def _shared(value: Value) -> Iterator[Value]:
    """VALUE, what it shares its memory with, and the same of the elements of a list, a tuple or a dict."""
    if isinstance(value, Tensor):
        yield from value.memory
    elif isinstance(value, list | tuple | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _shared(each)
    else:
        yield value


_SEVERAL = frozenset(
    {"apply", "broadcast", "broadcast_coalesced", "scatter", "split", "chunk", "unbind", "tuple", "map"}
)
"""What a call that may give several tensors calls."""


def _is_several(value: Value) -> bool:
    """Whether VALUE stands for what is not known, or for several things."""
    return isinstance(value, Unknown) and (value.why == "*" or not value.why)


def _gives_several(node: ast.expr | None) -> bool:
    """Whether the call NODE may give several tensors: Broadcast.apply(ctx.devices, grad), comm.scatter(grad)."""
    called = node.func if isinstance(node, ast.Call) else None
    word = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    return word in _SEVERAL


def _names_called(function: Function) -> set[str]:
    """The names that FUNCTION calls: function(…), ctx.run_function(…)."""
    calls = (each.func for each in ast.walk(function.node) if isinstance(each, ast.Call))
    return {each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "") for each in calls} - {""}


def _name_assigned(node: ast.AST) -> str:
    """The name whose value the assignment NODE stores."""
    value = node.value if isinstance(node, ast.Assign) else None
    return value.id if isinstance(value, ast.Name) else ""


def _length(node: ast.Return) -> int:
    """How many values NODE gives, as it is written."""
    return len(node.value.elts) if isinstance(node.value, ast.Tuple) else 1
