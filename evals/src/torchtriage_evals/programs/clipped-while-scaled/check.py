"""The update is what the same step gives without a scale, for gradients above the threshold and below it."""

from typing import Any

import torch
from torch import nn


def moved(program: Any, reach: float, scaler: Any) -> float:
    """The norm of one update of SGD at rate 1."""
    torch.manual_seed(0)
    model = nn.Linear(8, 1)
    before = [each.detach().clone() for each in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    program.train_step(model, optimizer, scaler, torch.randn(16, 8), reach * torch.randn(16, 1))
    change = [after.detach() - each for after, each in zip(model.parameters(), before, strict=True)]
    return float(torch.cat([each.flatten() for each in change]).norm())


def check(program: Any) -> None:
    for reach in (20.0, 0.5):
        wanted = moved(program, reach, torch.amp.GradScaler("cpu", enabled=False))
        assert wanted <= 1.001, f"an update of norm {wanted:.3g} with the scale off: nothing is clipped"
        found = moved(program, reach, program.make_scaler())
        assert abs(found - wanted) <= 0.02 * wanted, f"an update of norm {found:.3g}, without a scale {wanted:.3g}"
    assert program.make_scaler().get_scale() > 1, "there is no scale any more"
