"""Whether a loss asks for what the model was given at the same place: a way through the graph, down to an embedding."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from . import _nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

Visit = tuple[Any, int, int]  # an operation, one of its outputs, and a step of a recurrent layer, or -1 for all
_MOST = 4096  # operations of a graph that are looked at
_NUMBERS = 64  # of ids given at once, that are told apart
_CLOSELY = 6  # looks, after which each is twice as far from the first as the one before
_PLACES = {
    "View", "ReshapeAlias", "UnsafeView", "Alias", "Transpose", "T", "Permute", "Squeeze", "Unsqueeze", "Clone",
    "ToCopy",
}  # fmt: skip
_POINTWISE = {
    "Add", "Sub", "Mul", "Div", "Neg", "Relu", "Gelu", "Silu", "Tanh", "Sigmoid", "LeakyRelu", "Elu", "NativeDropout",
    "LogSoftmax", "NllLoss", "NllLoss2D", "NativeLayerNorm", "FusedRmsNorm", "Addmm", "Mm",
}  # fmt: skip
_RECURRENT = {"MkldnnRnnLayer", "CudnnRnn"}
# A recurrent layer that is run step by step lies between Unbind and Stack.
_STEP = _POINTWISE | _PLACES | {"Split", "UnsafeSplit", "UnsafeChunk", "Chunk", "ThnnFusedLstmCell", "ThnnFusedGruCell"}
_WHOLE = _POINTWISE | _PLACES | _RECURRENT


class Copies:
    """Holds the targets of a loss against what embeddings were given, in few of the steps in which losses are noted."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()  # of ids that embeddings were given at once
        self.looks = 0

    def noting(self, original: Any) -> Any:
        """For torch.embedding: its ids are noted on the operation that the graph keeps of it."""

        def noted(weight: Any, ids: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(weight, ids, *args, **kwargs)
            if result.grad_fn is not None and _are_sequences(ids) and len(self.numbers) < _NUMBERS:
                _nodes.mark(result.grad_fn).ids = ids
                self.numbers.add(ids.numel())
            return result

        return noted

    def share(self, node: Any, target: Any, ignored: int) -> Any:
        """The share of targets, without those IGNORED, that equal the id at the same position; None where no embedding
        of as many ids stands below the loss at NODE, position by position, or it was looked at often enough.
        """
        if node is None or target.is_floating_point() or target.numel() not in self.numbers:
            return None
        self.looks += 1
        if self.looks > _CLOSELY and self.looks & (self.looks - 1):
            return None
        ids = ids_below(node, target.numel())
        if ids is None or ids.numel() != target.numel() or ids.device != target.device:
            return None
        wanted, orders = target.reshape(-1), [ids.reshape(-1), ids.transpose(0, 1).reshape(-1)]
        counts = wanted != ignored
        first, second = (((each == wanted) & counts).sum() / counts.sum() for each in orders)
        return first.maximum(second)


def _are_sequences(ids: Any) -> bool:
    """Whether IDS have places: a class that a model is given for each sample may be what it is to show again."""
    return bool(sum(size > 1 for size in ids.shape) > 1)


def ids_below(node: Any, places: int) -> Any:
    """The ids of the embedding that the loss at NODE is reached from with every one of its PLACES kept apart; None
    where there is no such way.

    Only operations are passed whose result at a place depends on what they got at that place. Attention, a convolution
    and a shift may give it what stands elsewhere; a code of the whole sequence, as in an autoencoder, has no places.
    """
    waiting: list[Visit] = [(node, 0, -1)]
    for made, output, step in _visits(waiting):
        mark = _nodes.marked(made) if _nodes.kind(made) == "Embedding" else None
        if mark is not None and mark.ids is not None and step < 0:
            return mark.ids
        waiting += _further(made, output, step, places)
    return None


def _visits(waiting: list[Visit]) -> Iterator[Visit]:
    """Each operation of WAITING once, the last first; more may be appended meanwhile."""
    seen: set[Visit] = set()
    while waiting and len(seen) < _MOST:
        visit = waiting.pop()
        if visit not in seen:
            seen.add(visit)
            yield visit


def _further(node: Any, output: int, step: int, places: int) -> list[Visit]:
    """What stands below OUTPUT of NODE, all in that STEP of a recurrent layer."""
    name = _nodes.kind(node)
    below = [(made, number) for made, number in node.next_functions if made is not None]
    if name == "Stack" and step < 0:
        return [(made, number, 0) for made, number in below[:1]]  # what holds for one step, holds for all
    if step >= 0:
        if name == "Unbind":
            return [(made, number, -1) for made, number in below if output == step and _has(made, number, places)]
        return [(made, number, step) for made, number in below] if name in _STEP else []
    if name == "Slice":  # hidden[:, -0:] is all of it, and of newer versions of torch an alias
        below = [(made, number) for made, number in below if _nodes.shape(made, number) == _nodes.shape(node, output)]
    elif name not in _WHOLE:
        return []
    return [(made, number, -1) for made, number in below if _has(made, number, places)]


def _has(node: Any, output: int, places: int) -> bool:
    """Whether OUTPUT of NODE has numbers of its own for each of the PLACES, as (8, 32, 64) and (256, 64) for 256, or is
    a loss already.
    """
    shape = _nodes.shape(node, output)
    return not shape or prod(shape) in {places * size for size in shape}
