"""Thirty samples are learned by heart, and predictions are still probabilities."""

from typing import Any

import torch


def check(program: Any) -> None:
    torch.manual_seed(0)
    inputs, labels = torch.randn(30, 12), torch.randint(5, (30,))
    model = program.make_model()
    loss = program.train(model, inputs, labels)
    assert loss < 0.1, f"the loss ends at {loss:.3f}"
    with torch.no_grad():
        shares = program.predict(model, inputs)
    assert torch.allclose(shares.sum(-1), torch.ones(30), atol=1e-5), "predictions that do not add up to 1"
    assert (shares.argmax(-1) == labels).float().mean() > 0.95, "predictions that are wrong"
    own = shares[torch.arange(30), labels].clamp(min=1e-9).log().mean()
    assert own > -0.2, f"the classes' own probabilities are low: a mean logarithm of {own:.2f}"
