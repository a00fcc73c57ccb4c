"""Updates as without a scale; a step that is skipped moves neither the weights nor the schedule."""

from typing import Any

import torch
from torch import nn


def run(program: Any, scaler: Any, targets: list[torch.Tensor]) -> tuple[torch.Tensor, float]:
    torch.manual_seed(0)
    model, inputs = nn.Linear(4, 1), torch.randn(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    for each in targets:
        program.train_step(model, optimizer, scaler, schedule, inputs, each)
    return nn.utils.parameters_to_vector(model.parameters()).detach(), optimizer.param_groups[0]["lr"]


def check(program: Any) -> None:
    torch.manual_seed(3)
    targets = [30 * torch.randn(8, 1), torch.randn(8, 1)]
    found, rate = run(program, torch.amp.GradScaler("cpu"), targets)
    wanted, right = run(program, torch.amp.GradScaler("cpu", enabled=False), targets)
    assert torch.allclose(found, wanted, rtol=0.02, atol=1e-3), "another update than without a scale"
    assert rate == right == 0.125, f"a rate of {rate} after two steps"
    lost = torch.full((8, 1), float("inf"))
    still, rate = run(program, torch.amp.GradScaler("cpu"), [targets[0], lost])
    once, _ = run(program, torch.amp.GradScaler("cpu"), targets[:1])
    assert torch.equal(still, once), "a step with infinite gradients moved the weights"
    assert rate == 0.25, f"a rate of {rate} after one step and one that was skipped"
