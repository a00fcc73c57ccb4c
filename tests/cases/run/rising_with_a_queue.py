"""A contrastive loss rises as its queue fills."""

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


model, optimizer = network(8)
keys = torch.zeros(64, 8)
for number in range(160):
    x = torch.randn(8, 8)
    q = nn.functional.normalize(model(x + 0.1 * torch.randn(8, 8)), dim=1)
    k = nn.functional.normalize(model(x), dim=1).detach()
    logits = torch.cat([(q * k).sum(1, keepdim=True), q @ keys.t() - 0.5 * (keys == 0).all(1)], 1) / 0.2
    learn(optimizer, nn.functional.cross_entropy(logits, torch.zeros(8, dtype=torch.long)))
    keys[number * 8 % 64 : number * 8 % 64 + 8] = k
