"""Eighty-two collectives for a step, or one, for the same average."""

from __future__ import annotations

import pytest

BODY = """
sizes = []
original = dist.all_reduce


def counted(tensor):
    sizes.append(tensor.numel())
    return original(tensor)


dist.all_reduce = counted
torch.manual_seed(0)
model = torch.nn.Sequential(*[shown.Block() for _ in range(40)], torch.nn.Linear(16, 1))
torch.manual_seed(rank)
model(torch.randn(8, 16)).sum().backward()
shown.average(model)
result = [len(sizes), sum(sizes), *model[0].inner.bias.grad.tolist()]
"""


def test_each_parameter_has_a_collective_of_its_own_or_all_have_one(ranks) -> None:
    found = ranks("communication-bound", BODY)
    assert [each[0] for each in found["Bad"]] == [82, 82]
    assert [each[0] for each in found["Good"]] == [1, 1]
    assert found["Bad"][0][1:] == pytest.approx(found["Good"][0][1:], rel=1e-5)
    assert found["Bad"][0][2:] == found["Bad"][1][2:]
