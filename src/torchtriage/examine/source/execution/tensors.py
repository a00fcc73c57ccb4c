"""What operations on tensors give, and what they do to a tensor in place."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.arithmetic import (
    LARGEST,
    LIMITS,
    SHIFTED,
    carry,
    cast_by,
    compose,
    composition,
    device_of,
    format_of,
    is_largest,
    names_device,
    vanishing,
)
from torchtriage.examine.source.execution.autograd import Birth, Gradient, Parameter, Tensor
from torchtriage.examine.source.execution.bounds import BOTH, FREE
from torchtriage.examine.source.execution.graphs import Graphs, tensors_in
from torchtriage.examine.source.execution.lore import lore, of_tensors
from torchtriage.examine.source.execution.values import (
    Arguments,
    Endless,
    External,
    Factor,
    Keywords,
    Operation,
    Unknown,
    Value,
    share_of,
    truth,
)
from torchtriage.examine.source.names import table
from torchtriage.examine.source.torch_api.families import CASTS, DETACHING, DEVICE_MOVES, RESHAPES, SPLITS
from torchtriage.examine.source.torch_api.operators import names
from torchtriage.examine.source.torch_api.symbols import symbols

_PAIRS = frozenset({"max", "min", "topk", "sort", "median", "mode", "kthvalue", "cummax", "cummin"})
"""With a dimension they give values and indices."""
_READS = frozenset({"item", "tolist", "numpy", "cpu"})
_COUNTED = names(home="method", trait="sync") - names(trait="lowered") - _READS
"""Of these the host must know how many elements they give, or whether there are any: nonzero, unique, equal."""
"""Methods for which the host waits until the device has computed the value."""
_NEEDED = frozenset({"exp", "sigmoid", "tanh", "softmax", "log_softmax", "sqrt", "rsqrt", "relu", "reciprocal"})
"""Operations whose gradient is computed of their result."""
_FLAT = frozenset({"round", "floor", "ceil", "sign", "sgn", "trunc", "fix", "heaviside"})
"""Operations whose gradient is zero everywhere."""
_EMPTY = frozenset({"empty", "empty_like", "empty_strided"})
"""Functions that make a tensor of whatever stands in memory."""
_BY_PLACE = ("scatter", "index_", "masked_")
_PLACES = frozenset(each for each in names(home="method", writes="0") if each.startswith(_BY_PLACE))
"""What writes where other tensors say."""
_MOVES = DEVICE_MOVES | {"type_as"}
_DETACHES = frozenset({"detach", "new_tensor"})
_FACTS = frozenset({
    "shape", "device", "dtype", "ndim", "is_cuda", "grad_fn", "is_leaf", "layout", "names", "itemsize", "nbytes",
})  # fmt: skip


class Tensors(Graphs):
    """The operations on tensors."""

    def combine(self, operands: Iterable[Value], node: ast.AST, op: ast.operator | None = None) -> Value:
        found = tuple(operands)
        if isinstance(op, ast.Div) and found:
            self.note_average(found[0], node)
        first = next((each for each in found if isinstance(each, Tensor)), None)
        if first is None:
            is_shifted = isinstance(op, ast.Sub) and len(found) == 2 and is_largest(found[1])
            return Unknown.of(SHIFTED if is_shifted else "an operation", *found)
        result = self.merged(found, node)
        compose(result, found, op)
        self._compose(found, op, node)
        result.is_assumed = all(each.is_assumed for each in found if isinstance(each, Tensor))
        if isinstance(op, ast.Div) and first is found[0]:
            result.divided = (*first.divided, found[1])
        elif isinstance(op, ast.Mult):
            others = [each for each in found if each is not first and not (isinstance(each, Tensor) and each.graph)]
            result.divided = (*first.divided, *map(Factor, others))
        if isinstance(op, ast.Div | ast.Mult | ast.Add | ast.Sub):
            result.loss = next((each.loss for each in found if isinstance(each, Tensor) and each.loss), "")
        if isinstance(op, ast.Add) and result.loss and result.graph:  # a term of a loss
            result.idle |= {each.flat for each in found if isinstance(each, Tensor) and each.flat is not None}
        return result

    def loss(self, word: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """What the loss function or layer with that last WORD gives."""
        name = lore()["losses"][word]
        self.happen(events.LossCall(self.spot(node), name, arguments, self.region.format))
        result = self.merged((*arguments, *tensors_in(keywords.values())), node)
        result.loss = name if keywords.get("reduction", "mean") == "mean" else ""
        result.divided = ()
        if result.flat is not None:
            result.idle |= {result.flat}
        return result

    def created(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Tensor:
        """What torch.NAME makes from nothing: zeros, randn, tensor …"""
        if name in ("tensor", "as_tensor"):
            self.happen(events.LibraryCall(self.spot(node), f"torch.{name}", arguments, keywords))
        made = Tensor(self.spot(node))
        is_placed = {"device", "**", "out", "generator", "pin_memory"} & keywords.keys()
        is_like = name.endswith("_like")  # it lies where the other one does
        is_bare = not (is_placed or is_like or any(tensors_in(arguments))) and arguments != (0,)
        made.created = name if is_bare else ""
        made.birth = Birth(self.turn, self.is_in_model)
        made.format, made.device = format_of((keywords.get("dtype"),)), device_of((keywords.get("device"),))
        made.share = share_of(arguments)
        made.bounds = BOTH if name in lore()["bounds"]["constants"] else FREE
        made.is_empty = name in _EMPTY
        made.is_learned = truth(keywords.get("requires_grad", False)) is True
        data = arguments[0] if arguments else keywords.get("data")
        is_sized = isinstance(data, list | tuple | Tensor) or (isinstance(data, Unknown) and data.is_sized)
        made.is_scalar = name in ("tensor", "as_tensor") and not is_sized
        first = arguments[0] if arguments else None
        is_of_numbers = not isinstance(first, Unknown) or first.is_plain or first.why == "an operation"
        made.is_leaf = is_of_numbers and truth(keywords.get("requires_grad", False)) is True
        return made

    def tensor_method(self, held: Tensor, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """HELD.NAME(…), or torch.NAME(HELD, …)."""
        rows = lore()["tensors"]
        is_of_gradient = held.gradient_of is not None and name == "zero_"
        is_same = name == "float" and held.format in ("", "float32")  # as torch makes parameters
        is_of_parameter = isinstance(held, Parameter) and (is_in_place(name) or is_same)
        if name in ("backward", "detach_", "requires_grad_") or is_of_parameter or is_of_gradient:
            return self._changed(held, name, arguments, keywords, node)
        self._observe(held, name, arguments, keywords, node)
        if name in rows["numbers"] or name.startswith("is_"):
            return Unknown(name, is_plain=True, share=held.share) if name != "is_tensor" else True
        if name == "detach" or name in rows["cut"] or name.startswith("new_"):
            left = Tensor(self.spot(node), share=held.share, device=held.device)
            if name in _DETACHES:  # what is rounded is taken out of the graph on purpose: x + (x.round() - x).detach()
                left.cut = self.spot(node) if held.graph else held.cut
                self.note_left(held, left, name, node)
            else:  # a number, a place, a comparison: no gradient is possible
                left.cut = held.cut
                self.bury(left, () if name.startswith("new_") else (held,), node)
            left.state = held.state if name == "detach" else None
            left.base = held if name in DETACHING else None
            left.created = held.created if not name.startswith("new_") else ""
            left.birth = held.birth
            left.attribute = held.attribute
            if name == "detach":
                self._carry(held, left, name, arguments)
            return left
        others = (*arguments, *keywords.values())
        is_of_two = any(isinstance(each, Tensor) for each in others)  # torch.min(surrogate, clipped)
        several = self._several(held, name, node, is_along=bool(others) and not is_of_two)
        if several is not None:
            return several
        is_move = name in _MOVES and not (name == "to" and all(map(_is_format, (*arguments, *keywords.values()))))
        result = self.merged((held,) if is_move else (held, *arguments, *keywords.values()), node)
        self._carry(held, result, name, arguments)
        result.format = cast_by(name, (*arguments, *keywords.values())) or result.format
        result.device = moved_to(name, (*arguments, *keywords.values())) or result.device
        result.needed = name if name in _NEEDED else ""
        if is_move:
            result.created, result.attribute = "", held.attribute if held.is_learned else None
        result.is_learned = held.is_learned and name in _MOVES
        result.is_scalar &= name not in RESHAPES
        result.is_output = held.is_output and (name in CASTS or name not in of_tensors())  # prepared.to(device)
        result.moved = held if isinstance(held, Parameter) and name in CASTS - {"float"} else held.moved
        result.is_of_backward = held.is_of_backward and name in CASTS | RESHAPES
        result.is_empty = held.is_empty and name in CASTS | RESHAPES
        if name.rstrip("_") in _FLAT and result.graph:
            self.bury(result, (held,), node)
        result.base = held if name in RESHAPES else None
        if is_in_place(name):
            held.graph, held.is_open, held.ages = result.graph, result.is_open, held.ages | result.ages
            held.grad_fn = result.grad_fn
            held.divided, held.bounds = result.divided, result.bounds
            return held
        return result

    def note_average(self, value: Value, node: ast.AST) -> None:
        """NODE makes one figure of VALUE."""
        share = share_of((value,))
        if share is not None:
            self.happen(events.Averaged(self.spot(node), share))

    def _observe(self, held: Tensor, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> None:
        """Writes down what HELD.NAME(…) is by itself."""
        self._note_copy(held, name, arguments, keywords, node)
        if name == "numpy":
            self.note_left(held, None, name, node)
        if name in ("mean", "item", "tolist"):
            self.note_average(held, node)
        if name == "full_tensor":  # of a DTensor: every rank has a part of it
            self.happen(events.Collective(self.spot(node), name))
        if name == "log" and not held.is_positive:
            self.happen(events.Composed(self.spot(node), name, held.activation, held.activated, self.is_grad))
        if name in symbols().lower_bounds:
            self._note_small(held, (*arguments[:1], keywords.get("min"), keywords.get("other")), node)
        is_written = any(each.arg in ("out", "inplace") for each in getattr(node, "keywords", ()))
        is_dropped = id(node) in self.dropped and name in lore()["tensors"]["pure"]
        if is_dropped and not is_written and not held.is_batch:
            self.note_lost(held, name, node)
        like = next(tensors_in((*arguments[:1], keywords.get("other"))), None) if name == "to" else None
        is_given = like is not None and like.is_entry and not like.created  # mask.to(x): where the caller has put x
        if held.created and (is_given or moved_to(name, (*arguments, *keywords.values())) == "cuda"):
            self.happen(events.Copy(self.spot(node), held, self.is_in_model, like is not None))
        if is_in_place(name):
            self.edit(held, node, name, arguments)
            if name in _PLACES:  # torch.zeros(n, classes).scatter_(1, labels, 1): by labels that the host has
                held.birth = None

    def _note_copy(self, held: Tensor, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> None:
        """Whether HELD.NAME(…) brings something to the host, or a batch to an accelerator."""
        is_queued = any(each is True for each in (*arguments, keywords.get("non_blocking")))  # and not waited for here
        is_to_host = name == "to" and device_of((*arguments[:1], keywords.get("device"))) == "cpu"
        if name in _READS | _COUNTED or (is_to_host and not is_queued):
            self.happen(events.Read(self.spot(node), held, name))
        loader = next((each.loader for each in held.memory if each.loader is not None), None)
        if loader is not None and moved_to(name, (*arguments, *keywords.values())) == "cuda":
            self.happen(events.Upload(self.spot(node), loader, "non_blocking" in keywords or len(arguments) > 1))

    def _note_small(self, held: Tensor, values: Arguments, node: ast.AST) -> None:
        """Whether one of VALUES, which HELD is guarded by, is 0 in its format."""
        small = vanishing(held.format, values)
        if small is not None and not self.region.is_on:
            self.happen(events.SmallConstant(self.spot(node), small, held.format))

    def note_lost(self, value: Tensor | Unknown, name: str, node: ast.AST) -> None:
        """The result of the operation NAME on VALUE is dropped.

        What was made here may have served its time, a copy that is timed, a tensor that wakes the device up; what a
        model of which nothing is known returned, and what is not known, may be no tensor: use as one tells.
        """
        spot = self.spot(node)
        if isinstance(value, Tensor):
            is_made_here = value.spot is not None and len(value.spot.calls) == len(spot.calls) and not value.is_entry
            is_result = is_made_here and isinstance(_operand(node), ast.Name | ast.Call)
            has_none = name == "detach" and not value.is_open and value.grad_fn is None and not value.is_entry
            is_tensor = not value.is_output or name in symbols().unmistakable_methods
            is_sure = not is_result and is_tensor and not has_none
        else:
            is_sure = value.why == "an operation" and name in symbols().unmistakable_methods
        value.lost = events.Lost(spot, value, name, is_used=is_sure)
        self.happen(value.lost)

    def fill(self, held: Tensor, node: ast.AST) -> None:
        if held.gradient_of is not None:
            self.zero((held.gradient_of,), node)
        elif isinstance(held, Parameter):
            held.is_empty = False
        else:
            self.edit(held, node)

    def take_in(self, held: Tensor, part: Tensor, node: ast.AST) -> None:
        """HELD gets PART as some of its elements, with the graph of that: output[chosen] = hidden * weights."""
        result = self.merged((held, part), node)
        held.graph, held.is_open, held.ages = result.graph, result.is_open, result.ages
        held.grad_fn, held.flat, held.dead = result.grad_fn, result.flat, result.dead

    def edit(self, held: Tensor, node: ast.AST, name: str = "", given: Arguments = ()) -> None:
        """NODE changes HELD in place, by the method NAME with what is GIVEN."""
        self.overwrite(held, node)
        if held.needed and held.graph and self.is_grad and not self.is_in_function:
            self.happen(events.ResultEdit(self.spot(node), held.needed, replace(held)))
        if held.gradient_of is not None:
            is_factor = name in symbols().scalings and any(
                isinstance(each, Tensor) and each.of_gradients == "inverse" for each in given
            )
            if held.gradient_of.grad is not None and (is_factor or name in LIMITS):
                self.happen(events.GradientLimit(self.spot(node), held.gradient_of.grad))
            else:
                held.gradient_of.grad, held.gradient_of.is_gradient_known = Gradient(), False
        if held.memory_of is not None:  # p.data.add_(…): the program updates the parameter itself
            self.blind.add("step")
            held.memory_of.is_updated = True
            held.memory_of.zeroed = self.spot(node) if name == "zero_" else None

    def overwrite(self, held: Tensor, node: ast.AST) -> None:
        """NODE writes to the memory of HELD, which may be that of what an autograd function is given."""
        for each in held.memory:
            each.is_empty = False
            if each.moved is not None:  # Parameter(torch.empty(8)).to(device)
                each.moved.is_empty = False
            if each.is_gradient:
                self.happen(events.GradientEdit(self.spot(node)))
            if each.context is not None:
                each.context.state.setdefault("edited", []).append((each, self.spot(node)))

    def overwritten(self, name: str, arguments: Arguments, keywords: Keywords) -> Iterator[Tensor]:
        """The tensor that the function NAME of torch writes to: F.relu(x, inplace=True), torch.mul(…, out=x)."""
        place = table()["inplace"].get(name)
        if place is not None:
            asked = keywords.get("inplace", arguments[place] if place < len(arguments) else None)
            yield from tensors_in(arguments[:1]) if asked is True else ()
        yield from tensors_in((keywords.get("out"),))
        if name in symbols().collectives_in_place:
            yield from tensors_in((arguments[0] if arguments else keywords.get("tensor"),))

    def view(self, held: Tensor, node: ast.AST) -> Tensor:
        """A part of HELD, or all of it in another shape, in the same memory."""
        result = self.merged((held,), node)
        result.base = held
        return result

    def _changed(self, held: Tensor, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """What methods do to HELD itself."""
        if name == "backward":
            self.backward(held, keywords, node, arguments[0] if arguments else keywords.get("gradient"))
            return None
        if held.gradient_of is not None:
            self.zero((held.gradient_of,), node)
        elif name == "detach_":
            held.graph, held.ages, held.grad_fn = frozenset(), frozenset(), None
        elif isinstance(held, Parameter):
            held.is_empty = held.is_empty and name in ("requires_grad_", "float")
            if is_in_place(name) and name != "requires_grad_":
                held.zeroed = self.spot(node) if name == "zero_" else None
            if name == "requires_grad_":
                held.requires_grad = truth(arguments[0] if arguments else keywords.get("requires_grad", True))
        else:
            held.is_open = True  # a leaf of its own
            held.is_learned = name == "requires_grad_"
        return held

    def _several(self, held: Tensor, name: str, node: ast.AST, *, is_along: bool) -> Value:
        """The pieces of HELD, or values with their indices; None where NAME gives one tensor."""
        if name in SPLITS:
            return Endless(lambda _: self.view(held, node))
        if name == "values" and held.is_output:
            return Endless(lambda _: self.merged((held,), node))
        if name == "items" and held.is_output:  # the losses that detectors return
            return Endless(lambda _: (Unknown("a name", is_plain=True), self.merged((held,), node)))
        if name not in _PAIRS or not is_along:
            return None
        values, places = self.merged((held,), node), Tensor(self.spot(node), device=held.device)
        values.is_largest = name in LARGEST
        self.bury(places, (held,), node)
        return values, places

    def _carry(self, held: Tensor, result: Tensor, name: str, arguments: tuple[Value, ...]) -> None:
        """What RESULT of the operation NAME still is, of what HELD was."""
        carry(held, result, name, arguments)
        if name in lore()["tensors"]["same"]:
            result.loss, result.layer = held.loss, held.layer
        elif name == "mean":
            result.loss, result.divided = held.loss or "mean", held.divided if held.loss else ()
        elif name in ("div", "div_"):
            result.divided, result.loss = (*held.divided, *arguments[:1]), held.loss
        elif name in ("mul", "mul_", "multiply"):
            result.divided, result.loss = (*held.divided, *map(Factor, arguments[:1])), held.loss

    def _compose(self, operands: Arguments, op: ast.operator | None, node: ast.AST) -> None:
        """Writes down what the arithmetic OP on OPERANDS is by itself."""
        name = composition(operands, op)
        if name:
            origins = (each.activated for each in operands if isinstance(each, Tensor) and each.activated)
            self.happen(events.Composed(self.spot(node), name, "exp", next(origins, None), self.is_grad))
        if isinstance(op, ast.Add):
            for held in operands:
                if isinstance(held, Tensor):
                    self._note_small(held, operands, node)

    def tensor_attribute(self, held: Tensor, name: str, node: ast.AST) -> Value:
        """HELD.NAME."""
        if name == "data":
            bare = Tensor(self.spot(node), cut=self.spot(node) if held.graph else held.cut, device=held.device)
            bare.gradient_of = held.gradient_of
            bare.memory_of = held if isinstance(held, Parameter) else None
            bare.base = held
            self.note_left(held, bare, name, node)
            return held if isinstance(held, Parameter) and held.is_empty else bare
        if name == "grad":
            if not isinstance(held, Parameter):
                return Tensor(self.spot(node))
            if held.grad is not None:
                held.grad.is_taken = True
            has_none = held.is_gradient_known and held.grad is None
            return Unknown("a gradient") if has_none else Tensor(self.spot(node), gradient_of=held, device=held.device)
        if name == "requires_grad" and isinstance(held, Parameter) and held.requires_grad is not None:
            return held.requires_grad
        if name in lore()["tensors"]["views"] or name in table()["graph"]["attributes"]:
            result = self.view(held, node)
            result.bounds = held.bounds if name in lore()["tensors"]["views"] else FREE
            result.loss = "mean" if name == "loss" else ""  # of a model of transformers: over the tokens
            return result
        is_fact = name in _FACTS or name == "requires_grad"
        return Unknown(name, is_plain=True) if is_fact else Operation(held, name)


def moved_to(name: str, given: Arguments) -> str:
    """The device to which the method NAME moves a tensor, with what it is GIVEN."""
    if name in ("cuda", "cpu"):
        return name
    if name == "type" and any(isinstance(each, External) and each.name.startswith("torch.cuda.") for each in given):
        return "cuda"
    if name != "to":
        return ""
    like = next((each.device for each in given if isinstance(each, Tensor)), "")
    is_direct = any(each is True for each in given)  # non_blocking=True: a copy to an accelerator
    return device_of(given) or like or ("cuda" if is_direct or names_device(given) else "")


def is_in_place(name: str) -> bool:
    """Whether the method NAME changes what it is called on."""
    return name.endswith("_") and not name.startswith("_") and name not in symbols().harmless_methods


def _operand(node: ast.AST) -> ast.AST | None:
    """What the call NODE is an operation on: x in x.to(device), and in torch.clamp(x, 0)."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    is_of_torch = isinstance(node.func.value, ast.Name) and node.func.value.id in ("torch", "F")
    return next(iter(node.args), None) if is_of_torch else node.func.value


def _is_format(value: Value) -> bool:
    """Whether VALUE, an argument of to(), says nothing of a device: torch.float32, copy=True."""
    return (isinstance(value, External) and value.name.startswith("torch.")) or isinstance(value, bool)
