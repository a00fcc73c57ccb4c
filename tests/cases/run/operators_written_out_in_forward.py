"""The model's own lines multiply large matrices: that is computing, wherever it is written."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(384, 384) * 0.05) for _ in range(6)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for weight in self.weights:
            x = torch.tanh(x @ weight)
        return x.mean(1)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), 0.01)
x = torch.randn(256, 384)
for _ in range(50):
    optimizer.zero_grad()
    (model(x) - x[:, 0]).pow(2).mean().backward()
    optimizer.step()
