"""Each rank reports the accuracy of its share."""

from __future__ import annotations

BODY = """
# Rank 1 gets the odd samples, and all of these are right; of the even ones every second is.
inputs = torch.zeros(100, 2)
targets = torch.zeros(100, dtype=torch.long)
inputs[:, 0] = 1.0
targets[0::4] = 1
dataset = torch.utils.data.TensorDataset(inputs, targets)
result = shown.evaluate(torch.nn.Identity(), dataset)
"""


def test_the_figures_of_the_ranks_differ_from_that_of_the_set(ranks) -> None:
    found = ranks("metrics-not-reduced", BODY)
    assert found["Bad"] == [0.5, 1.0]
    assert found["Good"] == [0.75, 0.75]
