"""A pass before the training shows a shape, in evaluation mode."""

import torch
from torch import nn


def run_epoch(student, loader, optimizer):
    student.train()
    for x, y in loader:
        loss = nn.functional.cross_entropy(student(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main(loader, epochs):
    student = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    student.eval()
    print(student(torch.randn(2, 4)).shape)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for _ in range(epochs):
        run_epoch(student, loader, optimizer)
