"""Models, critics and frozen references that an object beside the model holds, each with somebody who looks after it."""

import torch
from torch import nn


class Keeper:
    def __init__(self, model, critics):
        self.models = [model, model.body]
        self.critics = critics
        self.frozen = [nn.Linear(8, 8).requires_grad_(False) for _ in range(2)]
        self.reference = [nn.Linear(8, 3).requires_grad_(False)]
        self.history = []


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(8, 8), nn.Linear(8, 3)
        self.keeper = None

    def forward(self, x):
        for layer in self.keeper.frozen:
            x = torch.tanh(layer(x))
        return self.head(torch.relu(self.body(x)))


torch.manual_seed(0)
critics = [nn.Linear(3, 1), nn.Linear(3, 1)]
model = Net()
model.keeper = Keeper(model, critics)
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
beside = torch.optim.Adam([parameter for critic in critics for parameter in critic.parameters()], 1e-3)
x = torch.randn(64, 8)
y = x[:, :3].argmax(1)
for turn in range(40):
    logits = model(x)
    loss = nn.functional.cross_entropy(logits, y, label_smoothing=0.1)
    loss = loss + 0.01 * sum(critic(logits).pow(2).mean() for critic in critics)
    loss = loss + 0.01 * nn.functional.mse_loss(logits, model.keeper.reference[0](x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.keeper.history.append(loss.item())
    if turn % 2:
        beside.step()
        beside.zero_grad()
