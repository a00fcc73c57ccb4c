"""The body is unfrozen after a while, and given to the optimizer."""

import torch
from torch import nn
from torch.nn import functional


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
        self.head = nn.Linear(16, 2)

    def forward(self, x):
        return self.head(self.body(x))


torch.manual_seed(0)
net = Net()
net.body.requires_grad_(False)
optimizer = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], 1e-2)
for number in range(80):
    if number == 20:
        net.body.requires_grad_(True)
        optimizer.add_param_group({"params": net.body.parameters(), "lr": 1e-3})
    x = torch.randn(32, 8)
    optimizer.zero_grad()
    functional.cross_entropy(net(x), (x[:, 0] > 0).long()).backward()
    optimizer.step()
