"""An angular margin: the first loss is several times that of a guess."""

import torch
from torch import nn

torch.manual_seed(0)


def network(out, rate=1e-3):
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, out))
    return model, torch.optim.Adam(model.parameters(), rate)


def learn(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


model, optimizer = network(16, 5e-3)
centres = nn.Parameter(torch.randn(5, 16))
optimizer.add_param_group({"params": [centres]})
for _ in range(160):
    x = torch.randn(32, 8)
    y = x[:, :5].argmax(1)
    cosine = nn.functional.normalize(model(x), dim=1) @ nn.functional.normalize(centres, dim=1).t()
    learn(optimizer, nn.functional.cross_entropy(16 * (cosine - 0.35 * nn.functional.one_hot(y, 5)), y))
