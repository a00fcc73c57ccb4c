"""The update over pieces is that of the whole batch at once, clipped once."""

from typing import Any

import torch
from torch import nn


def check(program: Any) -> None:
    for reach in (0.4, 30.0):
        torch.manual_seed(1)
        pieces = [(torch.randn(8, 6), reach * torch.randn(8, 1)) for _ in range(4)]
        whole = torch.cat([x for x, _ in pieces]), torch.cat([y for _, y in pieces])
        found, wanted = changed(program, pieces), alone(whole)
        off = float((found - wanted).norm() / wanted.norm())
        assert off < 0.03, f"the update is off by {100 * off:.0f} % of the whole batch's, targets of {reach}"


def changed(program: Any, pieces: Any) -> torch.Tensor:
    torch.manual_seed(0)
    model = nn.Linear(6, 1)
    nn.init.zeros_(model.weight)
    before = nn.utils.parameters_to_vector(model.parameters()).detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    program.train_step(model, optimizer, torch.amp.GradScaler("cpu", init_scale=1024.0), pieces)
    return nn.utils.parameters_to_vector(model.parameters()).detach() - before


def alone(batch: Any) -> torch.Tensor:
    torch.manual_seed(0)
    model = nn.Linear(6, 1)
    nn.init.zeros_(model.weight)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs = model(batch[0])
    nn.functional.mse_loss(outputs.float(), batch[1]).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    return -torch.cat([each.grad.flatten() for each in model.parameters() if each.grad is not None])
