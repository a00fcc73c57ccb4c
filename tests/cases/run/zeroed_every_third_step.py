"""Steps are taken at every batch, and gradients are cleared at every third: most steps use what was used before."""

import torch
from torch import nn
from torch.nn import functional


def train(model: nn.Module, optimizer: torch.optim.Optimizer, every: int) -> None:
    for number in range(40):
        x = torch.randn(32, 8)
        loss = functional.cross_entropy(model(x), (x[:, 0] > 0).long()) / every
        loss.backward()  # expect: gradients-not-zeroed
        optimizer.step()
        if (number + 1) % every == 0:
            optimizer.zero_grad()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
train(model, torch.optim.SGD(model.parameters(), 0.1), 3)
