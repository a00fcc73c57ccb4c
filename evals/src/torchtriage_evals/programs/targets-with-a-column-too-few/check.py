"""Each output is compared with its own target, and the fit is good."""

from typing import Any

import torch


def check(program: Any) -> None:
    torch.manual_seed(0)
    inputs = torch.randn(48, 3)
    targets = inputs @ torch.tensor([1.0, -2.0, 0.5])
    model = program.make_model()
    loss = program.train(model, inputs, targets)
    with torch.no_grad():
        error = float(((model(inputs).reshape(-1) - targets) ** 2).mean() / targets.var())
    assert error < 0.05, f"{100 * error:.0f} % of the targets' variance is left"
    assert abs(loss - error * float(targets.var())) < 0.05, f"a loss of {loss:.3f} for a fit of {error:.3f}"
    assert model(inputs).shape in {(48, 1), (48,)}
