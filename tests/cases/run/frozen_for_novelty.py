"""Random network distillation: a network at random is what another one learns to predict."""

import torch
from torch import nn

torch.manual_seed(0)


def network(depth):
    layers = [nn.Linear(16, 64), *(layer for _ in range(depth) for layer in (nn.ReLU(), nn.Linear(64, 64)))]
    return nn.Sequential(*layers)


class Curiosity(nn.Module):
    def __init__(self):
        super().__init__()
        self.fixed, self.predictor = network(4), network(1)
        for parameter in self.fixed.parameters():
            parameter.requires_grad = False

    def forward(self, observation):
        return self.fixed((observation - 0.5) / 2), self.predictor((observation - 0.5) / 2)


model = Curiosity()
optimizer = torch.optim.Adam(model.predictor.parameters(), lr=0.001)
for _ in range(60):
    wanted, found = model(torch.randn(32, 16))
    loss = nn.functional.mse_loss(found, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
