"""Distances within a batch are roots of sums that are zero on the diagonal: finite, with an infinite slope."""

import torch
from torch import nn


def distances(z):
    apart = z.unsqueeze(0) - z.unsqueeze(1)
    return apart.pow(2).sum(-1).sqrt()  # expect: non-finite-origin step 0


class Hardest(nn.Module):
    def forward(self, z, who):
        far = distances(z)
        same = (who[None] == who[:, None]).float()
        nearest = (far + 100 * same).min(1).values
        return nn.functional.softplus((far * same).max(1).values - nearest).mean() + torch.relu(1 - far.mean(1)).mean()


torch.manual_seed(0)
model, cost = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), Hardest()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
who = torch.arange(16) // 2
for _step in range(12):
    loss = cost(nn.functional.normalize(model(torch.randn(16, 8) + who[:, None]), dim=1), who)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
