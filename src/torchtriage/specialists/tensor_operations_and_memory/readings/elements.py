"""What a record says about tensors that are read number by number."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.tensor_operations_and_memory.probes.events import Elements

LOOKS = 2  # steps whose calls were counted: what is read in one of them is no habit


@detector("run/python-loop-over-tensor")
def python_loop_over_tensor(record: RankRecord) -> Iterator[Sighting]:
    """A line reads numbers of a tensor one by one in each step; the share of a step that the reads alone take."""
    events = record.all(Elements)
    steps = [max(row.seconds - row.probes, 1e-9) for row in record.steps if row.seconds]
    if len(events) < LOOKS or len({(each.path, each.line) for each in events}) > 1 or not steps:
        return
    least = min(events, key=lambda each: each.reads * each.seconds)
    share = least.reads * least.seconds / median(steps)
    fact = (
        f"{least.reads:,} numbers are read out of tensors one by one in each step, {least.seconds * 1e6:.2g} \u00b5s "
        f"each: {least.reads * least.seconds * 1e3:.2g} ms of a step of {median(steps) * 1e3:.3g} ms, before what the "
        "loop does with them"
    )
    yield Sighting(Place(path=least.path, line=least.line, rank=record.rank), fact, share, "of the step")
