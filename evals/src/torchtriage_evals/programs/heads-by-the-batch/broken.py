"""Trains a model with two heads on several processes; each batch says which head it is for."""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class TwoTasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(4, 8)
        self.heads = nn.ModuleDict({"depth": nn.Linear(8, 1), "pose": nn.Linear(8, 3)})

    def forward(self, inputs, task):
        return self.heads[task](torch.relu(self.trunk(inputs)))


def make_model():
    torch.manual_seed(0)
    return DistributedDataParallel(TwoTasks())


def train(model, batches, lr=0.1):
    """One step for each (inputs, targets, task) of this rank; ranks may have different tasks at the same step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for inputs, targets, task in batches:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs, task), targets)
        loss.backward()
        optimizer.step()
