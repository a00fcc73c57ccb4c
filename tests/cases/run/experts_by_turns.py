"""Four experts of which a gate chooses one for each sample, and a head that is zero at first: all of them live."""

import torch
from torch import nn

torch.manual_seed(0)


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8)) for _ in range(4))
        self.head = nn.Linear(8, 1)
        nn.init.zeros_(self.head.weight)

    def forward(self, x):
        weight, chosen = self.gate(x).softmax(1).max(1)
        mixed = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            mine = chosen == number
            mixed[mine] = weight[mine, None] * expert(x[mine])
        return self.head(x + mixed)


model = Mixture()
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
for _ in range(80):
    x = torch.randn(64, 8)
    loss = nn.functional.mse_loss(model(x), x.abs().sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
