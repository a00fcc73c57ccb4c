"""Through .module every rank keeps the gradients of its own batch."""

from __future__ import annotations

BODY = """
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
torch.manual_seed(rank + 1)
shown.train(model, [(torch.randn(8, 4), torch.randn(8, 1))])
result = model.weight.flatten().tolist()
"""


def test_the_replicas_drift_apart(ranks) -> None:
    found = ranks("wrapper-bypassed", BODY)
    assert found["Bad"][0] != found["Bad"][1]
    assert found["Good"][0] == found["Good"][1]
