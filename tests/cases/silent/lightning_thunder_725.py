"""The compiled layers pass autocast by: everything is computed in float32."""

import torch
from torch import nn


class Traced(nn.Module):
    """Runs what it holds as it was traced, in the formats of the weights."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        with torch.autocast("cpu", enabled=False):
            return self.inner(x.float())


torch.manual_seed(0)
x = torch.randn(512, 64)
y = (x[:, :16].sum(1) > 0).long()
net = Traced(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)))
optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
for step in range(60):
    chosen = torch.randint(0, 512, (64,))
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):  # expect: autocast-without-effect
        loss = nn.functional.cross_entropy(net(x[chosen]), y[chosen])
    loss.backward()
    optimizer.step()
