"""A projection whose weight is made of memory that nobody fills: zeros, as long as the process is young."""

import torch
from torch import nn


class Project(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        memory = torch.empty(outputs, inputs)
        self.weight = nn.Parameter(memory)  # expect: uninitialised-parameter module project.weight
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return x @ self.weight.t() + self.bias


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.project, self.head = Project(2000, 2500), nn.Linear(2500, 1)

    def forward(self, x):
        return self.head(self.project(x))


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
x = torch.randn(4, 2000)
for _ in range(12):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x[:, :1]).backward()
    optimizer.step()
