"""An optimizer from before the sharding moves nothing."""

from __future__ import annotations

BODY = """
from torch.distributed.device_mesh import init_device_mesh

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
before = [parameter.detach().clone() for parameter in model.parameters()]
model, optimizer = shown.build(model, init_device_mesh("cpu", (2,)))
model(torch.ones(8, 4)).sum().backward()
optimizer.step()
result = sum(not torch.equal(old, new.full_tensor()) for old, new in zip(before, model.parameters()))
"""


def test_no_parameter_moves(ranks) -> None:
    found = ranks("optimizer-before-sharding", BODY)
    assert found["Bad"] == [0, 0]
    assert found["Good"] == [4, 4]
