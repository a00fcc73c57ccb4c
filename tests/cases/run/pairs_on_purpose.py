"""Tables of all pairs that are meant: quantiles, ranks, distances, contrasts; and a batch of one."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
x = torch.randn(32, 8)
y = x.sum(1)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
wide = nn.Linear(8, 32)
codes, weights, moments = nn.Parameter(torch.randn(32, 32)), torch.rand(32), torch.linspace(0, 1, 32)
optimizer = torch.optim.Adam([*model.parameters(), *wide.parameters(), codes], 1e-2)
levels = (torch.arange(32) + 0.5) / 32
for _ in range(12):
    optimizer.zero_grad()
    score = model(x).squeeze(1)
    ranks = functional.relu(1 - (score[:, None] - score[None, :]) * torch.sign(y[:, None] - y)).mean()
    apart = ((score.unsqueeze(1) - score) ** 2).mean()  # all scores among themselves
    quantiles = wide(x[:1]).squeeze(0)
    wrong = y[:, None] - quantiles
    pinball = (torch.abs(levels - (wrong < 0).float()) * functional.huber_loss(
        wrong, torch.zeros_like(wrong), reduction="none"
    )).mean()
    kernel = torch.exp(-((score[:, None] - y[None, :]) ** 2)).mean()
    features = functional.normalize(wide(x), dim=1)
    contrast = functional.cross_entropy(features @ features.T / 0.1, torch.arange(32))
    one = functional.mse_loss(model(x[:1]), y[:1, None])
    centred = ((score - score.mean()) ** 2).mean() + functional.mse_loss(model(x), y[:, None])
    centred = centred + ((wide(x).view(32, 1, 32) - codes.detach()) ** 2).sum(-1).min(1).values.mean()
    centred = centred + ((wide(x) - 1) ** 2 * weights).mean() + ((wide(x) - 1) ** 2 * weights[:, None]).mean()
    centred = centred + (torch.exp(-model(x)[:, None] * moments).sum(-1) - 8).pow(2).mean()
    (ranks + 0.1 * apart + pinball + kernel + contrast + one + centred).backward()
    optimizer.step()
