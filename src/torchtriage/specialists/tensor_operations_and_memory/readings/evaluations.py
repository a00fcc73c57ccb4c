"""What a record says about models that are evaluated with autograd switched on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord

PASSES = 16  # whose graphs died unused: fewer may be a look at something


@detector("run/eval-builds-graph")
def eval_builds_graph(record: RankRecord) -> Iterator[Sighting]:
    """Many forward passes in a row recorded graphs that no backward ever went through."""
    latest: dict[tuple[str, int, bool], dict[str, Any]] = {}
    for event in record.all("evaluated-with-graph"):
        latest[_site(event)] = event
    learned = {_site(event) for event in record.all("learned-from")}
    for site, event in latest.items():
        if event["passes"] < PASSES or site in learned:
            continue
        mode = "training" if event["training"] else "evaluation"
        times = f"in {event['phases']} phases" if event["phases"] > 1 else "in a row"
        yield Sighting(
            Place(path=event["path"] or None, line=event["line"] or None, rank=record.rank),
            f"{event['root']} ran {event['passes']} passes {times} here, in {mode} mode and with autograd on: each "
            f"recorded a graph of {event['nodes']} nodes with its activations, and no backward ever went through one",
            float(event["passes"]),
            "passes",
        )


def _site(event: dict[str, Any]) -> tuple[str, int, bool]:
    return event["path"], event["line"], event["training"]
