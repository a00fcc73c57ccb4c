"""Layers made in forward that are kept, that have no weights, or whose weights are set by hand; lazy layers."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.LazyLinear(16)
        self.made = None
        self.kernel = nn.Parameter(torch.randn(16, 16) * 0.1)

    def forward(self, x):
        x = nn.LeakyReLU(0.1)(self.first(x))
        if self.made is None:
            self.made = nn.Linear(16, 16)
        x = nn.Dropout(0.1)(self.made(x)) if self.training else self.made(x)
        mixer = nn.Linear(16, 16, bias=False)
        mixer.weight = self.kernel
        x = mixer(x)
        smooth = nn.Linear(16, 1, bias=False)
        smooth.weight.data.fill_(1 / 16)
        return smooth(nn.LayerNorm(16, elementwise_affine=False)(x))


torch.manual_seed(0)
model = Net()
x = torch.randn(64, 8)
model(x)
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for _ in range(30):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
    optimizer.step()
