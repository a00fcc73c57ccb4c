"""A loop over the outputs of a model, each a whole tensor."""

import torch
from torch import nn


class Refiner(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(4, 4)

    def forward(self, x, turns: int = 12):
        outputs = []
        for _ in range(turns):
            x = self.cell(x)
            outputs.append(x)
        return outputs


def weighted(outputs, target):
    count = len(outputs)
    total = 0.0
    for i in range(count):
        error = (outputs[i] - target).abs()
        total += 0.8 ** (count - i - 1) * error.mean()
    return total


def train(loader):
    model = nn.DataParallel(Refiner()).cuda()  # expect: data-parallel-used
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        weighted(model(x.cuda()), y.cuda()).backward()
        optimizer.step()
