"""What a record says about the autograd graphs of earlier steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.tensor_operations_and_memory.readings.turns import counted

GRAPHS = 8  # of earlier steps: fewer may be a window that the algorithm needs


@detector("run/graph-retained")
def graph_retained(record: RankRecord) -> Iterator[Sighting]:
    """The autograd graphs of earlier steps are still alive."""
    counts = counted(record, "graphs")
    if not counts:
        raise CannotSee(
            f"{len(record.all('step'))} steps, of which ten with a graph are needed", "Let the job run for 20 steps."
        )
    last = counts[-1]
    alive, seen, holder = last["alive"], last["seen"], last.get("holder")
    if alive < GRAPHS or 2 * alive < seen or last.get("bounded"):
        return
    if any(row.get("boundary", "optimizer") != "optimizer" for row in record.every_step[-1:]):
        raise CannotSee(
            f"the graphs of {alive} of {seen} passes are still alive, and no optimizer has stepped: they may be parts "
            "of one step",
            "Let the job run for 20 optimizer steps.",
        )
    held = f"held by {holder}" if holder else "whose holder has no name in the running functions"
    yield Sighting(
        Place(
            path=last["path"] or None, line=last["line"] or None, rank=record.rank, step=last["step"], container=holder
        ),
        f"the autograd graphs of {alive} of {seen} steps are still alive, {held}{_kept(last)}",
        float(alive),
        "graphs",
    )


def _kept(last: dict[str, Any]) -> str:
    kind = last.get("kept")
    if kind is None:
        return ""
    activations = f"{last['bytes'] / 1024:.0f} KiB of tensors" if last["bytes"] > 1024 else "no activations"
    what = {"loss": "a loss after its backward", "output": "an output with its graph", "sum": "a term of a sum"}[kind]
    return f"; each is {what} and keeps {last['nodes']} graph nodes (some 10 KiB per hundred) and {activations}"
