"""What logs and tracebacks say of a crash: error messages that have one meaning."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.core.query import Decoded
from torchtriage.examine.artefact.logs import Logs
from torchtriage.examine.artefact.logs.said import Said, told
from torchtriage.examine.detector import Sighting, detector

_SHAPE_MISMATCH = (
    "matmul-shapes",
    "sizes-must-match",
    "conv-channels",
    "conv-dimensions",
    "batch-sizes",
    "cat-sizes",
    "cat-dimensions",
    "expanded-size",
    "invalid-reshape",
    "matrix-vector",
    "batched-product",
    "batch-must-be-3d",
    "rnn-input-size",
    "rnn-hidden-size",
    "attention-width",
    "attention-mask-shape",
    "normalised-shape",
    "norm-channels",
    "norm-dimensions",
    "einsum-size",
    "stacked-sizes",
    "kernel-too-large",
    "output-too-small",
    "broadcast-in-place",
    "mask-shape",
    "split-sizes",
    "spatial-target",
)
_INDEX_OUT_OF_RANGE = (
    "embedding-index",
    "target-out-of-bounds",
    "class-above-count",
    "index-out-of-bounds",
    "kernel-assertion",
)


@detector("log/shape-mismatch")
def shape_mismatch(logs: Logs) -> Iterator[Sighting]:
    """An operation got tensors whose sizes do not fit together."""
    yield from told(logs, _SHAPE_MISMATCH)


@detector("log/backward-twice")
def backward_twice(logs: Logs) -> Iterator[Sighting]:
    """Backward went a second time through a graph that was already freed."""
    yield from told(logs, ("backward-twice",))


@detector("log/inplace-breaks-autograd")
def inplace_breaks_autograd(logs: Logs) -> Iterator[Sighting]:
    """A tensor that backward needs was written in place."""
    yield from told(logs, ("modified-in-place",))


@detector("log/index-out-of-range")
def index_out_of_range(logs: Logs) -> Iterator[Sighting]:
    """An index is not below the size of its table."""
    yield from told(logs, _INDEX_OUT_OF_RANGE, _is_of_an_index)


@detector("log/loss-detached")
def loss_detached(logs: Logs) -> Iterator[Sighting]:
    """Backward was called on a loss without a graph."""
    yield from told(logs, ("no-gradient-to-follow",))


@detector("log/scheduler-before-optimizer")
def scheduler_before_optimizer(logs: Logs) -> Iterator[Sighting]:
    """The schedule moved on before the first optimizer step."""
    yield from told(logs, ("scheduler-before-optimizer",))


@detector("log/worker-killed")
def worker_killed(logs: Logs) -> Iterator[Sighting]:
    """A worker process of the DataLoader was ended from outside."""
    yield from told(logs, ("worker-bus-error", "shared-memory-full", "worker-killed"))


@detector("log/loss-broadcast")
def loss_broadcast(logs: Logs) -> Iterator[Sighting]:
    """Prediction and target of a loss differ in shape, and were broadcast against each other."""
    yield from told(logs, ("target-size", "target-broadcast"), lambda _, said: said.kind == "warned")


@detector("log/non-finite-origin")
def non_finite_origin(logs: Logs) -> Iterator[Sighting]:
    """The loss that the log prints ceased to be finite, and stayed so."""
    for lost in logs.lost:
        before = f"after {lost.finite} finite values" if lost.finite else "from its first value on"
        fact = f"{lost.name} is {lost.value} {before}, and in the {lost.bad} lines from here to the end"
        yield Sighting(Place(lost.path, lost.line, rank=lost.rank, step=lost.step), fact)
    yield from told(logs, ("backward-made-nan",))


def _is_of_an_index(message: Decoded, _: Said) -> bool:
    """Of the assertions in kernels, those that compare an index with the size of its table."""
    assertion = str(message.fields.get("assertion", ""))
    words = ("index", "Index", "n_classes", "num_classes", "srcSelectDimSize", "numel")
    return message.signature != "kernel-assertion" or any(word in assertion for word in words)
