"""A Python counter makes a graph for each call, a tensor one for all."""

from __future__ import annotations

import pytest
import torch

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@pytest.mark.parametrize(("section", "graphs"), [("Bad", 8), ("Good", 1)])
def test_eight_calls_make_eight_graphs_or_one(shown, section: str, graphs: int) -> None:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    shown("recompiling", section).train(8)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == graphs
