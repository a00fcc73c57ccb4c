"""What the source alone shows about tensors and memory."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.kept import Kept

# Measured on torch 2.13: after backward a kept loss holds only graph nodes, its activations are gone.
_HELD = {
    "loss": "each step's loss with its graph, about 10 KB a step (backward has freed the activations)",
    "output": "each step's model output with its graph: at least the output itself, one activation a step",
}


@detector("source/graph-retained")
def graph_retained(kept: Kept) -> Iterator[Sighting]:
    """A loss or output is kept over the steps together with its graph."""
    if kept.again is not None:
        held = "each step's whole graph, activations included, because backward runs with retain_graph=True"
    elif kept.is_sum:
        held = f"one graph that grows with every step, since the {kept.what} is added with its graph attached"
    else:
        held = _HELD[kept.what]
    yield kept.step.script.seen(kept.node, f"{kept.container} keeps {held}")
