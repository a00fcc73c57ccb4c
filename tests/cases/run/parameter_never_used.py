"""A second norm that is made, trained by the optimizer's list, and never called."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1, self.mix = nn.LayerNorm(width), nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)  # expect: parameter-never-used module block.norm2
        self.feed = nn.Linear(width, width)

    def forward(self, x):
        x = x + self.mix(self.norm1(x))
        return x + self.feed(torch.relu(self.norm1(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block, self.head = Block(8), nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.block(x))


def main():
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    x = torch.randn(64, 8)
    for _ in range(40):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
        optimizer.step()


main()
