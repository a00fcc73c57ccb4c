"""Each rank sees a norm of its own."""

from __future__ import annotations

import math

import pytest

BODY = """
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
torch.manual_seed(rank)
batch = (torch.randn(8, 4), torch.randn(8, 1))
result = shown.train(model, [batch], torch.device("cpu"))[0]
"""


def test_the_norm_of_the_whole_is_made_of_those_of_the_ranks(ranks) -> None:
    found = ranks("clip-on-sharded", BODY)
    one, other = found["Bad"]
    assert (one, other) == pytest.approx((0.446, 0.431), abs=5e-4)
    assert found["Good"][0] == pytest.approx(0.620, abs=5e-4)
    assert found["Good"][0] == found["Good"][1]
    assert math.isclose(found["Good"][0], math.hypot(one, other), rel_tol=1e-4)
