"""The graph of a loss, read from its end: kinds and shapes of operations, without touching what they saved.

Saved tensors are left alone: hooks of activation checkpoints and of offloading run when they are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchtriage.examine.run.job.events import Further, Guess

_MOVES = {"Squeeze", "Unsqueeze", "View", "ReshapeAlias", "ToCopy", "Select", "Index", "MaskedSelect", "Clone", "Alias"}
_SUMS = {"Add", "Sub", "Mul", "Div", "Neg", "Mean", "Sum", "Pow", "Abs", "Sqrt", "Stack", "Cat", "Where", "MaskedFill"}
LIMITS = {"Clamp", "ClampMin", "ClampMax", "NanToNum", "Maximum", "Minimum"}
_SHAPES = {"Exp", "Log", "Log1P", "Cosh", "Tanh", "Softplus", "Sigmoid", "LogSigmoid", "Relu", "LeakyRelu"}
JOINTS = frozenset(_MOVES | _SUMS | LIMITS | _SHAPES | {"Expand"})  # between a backward's root and the losses in it
_TERMS = JOINTS - _MOVES - {"Expand", "Sum", "Mean"}  # each number is of one sample: what is summed may be a prediction
SCALES = frozenset(
    {"Mul", "Div", "ToCopy", "Clone", "Squeeze", "View", "Mean"}
)  # a loss times a number is still that loss
VIEWS = frozenset(_MOVES | {"UnsafeView", "Transpose", "T", "Permute", "Slice", "Expand", "Flatten", "Narrow"})
ENTROPIES = frozenset({"NllLoss", "NllLoss2D"})
OURS = "torchtriage-loss"
_MANY = 64  # operations looked at in one backward pass


class Mark:
    """What is noted on an operation: it lives as long as its graph, and holds nothing alive.

    path, line, module: of the call. guess: of a loss, whose numbers may still arrive. given: shapes that were not meant
    to meet. returns: where the model returned one of them. output: it made the output of a module that hides how. ids:
    what an embedding was given, which the graph holds itself.
    """

    path: str | None = None
    line: int | None = None
    module: str | None = None
    guess: Guess | None = None
    given: Sequence[Sequence[int]] | None = None
    returns: Further = ()
    output: bool = False
    ids: Any = None


def kind(node: Any) -> str:
    """The operation's name without its version: MulBackward1 is Mul."""
    return str(node.name()).rstrip("0123456789").removesuffix("Backward")


def shape(node: Any, output: int = 0) -> tuple[int, ...]:
    """Of what the operation gave in the forward pass."""
    return tuple(int(size) for size in node._input_metadata[output].shape)


def source(node: Any, number: int) -> tuple[Any, int]:
    """The operation that made input NUMBER of NODE, below reshapes and copies, and which of its outputs it is;
    (None, 0) for what needs no gradient.
    """
    following = node.next_functions
    found, output = following[number] if number < len(following) else (None, 0)
    while found is not None and kind(found) in VIEWS and found.next_functions:
        found, output = found.next_functions[0]
    return found, output


def near(root: Any) -> Iterator[tuple[Any, bool]]:
    """The operations from ROOT down to the losses in it, each with whether it alone makes the root, but for a scale."""
    queue = [(root, True)]
    seen: set[Any] = set()
    for _ in range(_MANY):
        if not queue:
            return
        node, alone = queue.pop(0)
        yield node, alone
        name = kind(node)
        if name not in JOINTS | {"Rsub"} or (name in ("Sub", "Rsub") and shape(node) and not _shifts(node)):
            continue
        below = {each for each, _ in node.next_functions if each is not None} - seen
        seen |= below
        queue += [(each, alone and len(below) == 1 and name in SCALES) for each in below]


def _shifts(node: Any) -> bool:
    """Whether a difference takes something from a term of a loss, and is not the error that the loss judges."""
    below = [each for each, _ in node.next_functions if each is not None]
    return len(below) == 1 and kind(below[0]) in _TERMS and shape(below[0]) == shape(node)


def is_bare(node: Any) -> bool:
    """Whether it is a negative log-likelihood of something else than the output of a log_softmax."""
    below = source(node, 0)[0] if node is not None and kind(node) in ENTROPIES else None
    return below is not None and kind(below) != "LogSoftmax"


def mark(node: Any) -> Mark:
    """To note something on an operation."""
    made: Mark = node.metadata.setdefault(OURS, Mark())
    return made


def marked(node: Any) -> Mark | None:
    """What was noted on an operation."""
    return node.metadata.get(OURS)  # type: ignore[no-any-return]
