"""Trainings whose tensors lie on several devices; `python placed.py JOB` runs one in real time."""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
from torch import nn

from torchtriage import simulation
from torchtriage.simulation import Costs

WIDTH, BATCH = 16, 8


class Split(nn.Module):
    def __init__(self, first: str, second: str) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()).to(first)
        self.head = nn.Linear(WIDTH, WIDTH).to(second)
        self.second = second


class Moved(Split):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x).to(self.second))


class NotMoved(Split):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.body(x)
        return self.head(hidden)  # fails here


def train(model: nn.Module, steps: int = 3, *, home: str = "sim:0", target: str = "sim:0") -> None:
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        outputs = model(torch.randn(BATCH, WIDTH).to(home))
        targets = torch.zeros(BATCH, WIDTH).to(target)
        loss = nn.functional.mse_loss(outputs, targets)  # fails here
        loss.backward()
        optimizer.step()


def brought_back() -> None:
    """The loss is computed on the host, which has the targets."""
    model = nn.Linear(WIDTH, WIDTH).to("sim:0")
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(torch.randn(BATCH, WIDTH).to("sim:0")).cpu(), torch.zeros(BATCH, WIDTH)).backward()
        optimizer.step()


JOBS: dict[str, Callable[[], None]] = {
    "halves on two devices": lambda: train(NotMoved("sim:0", "sim:1"), target="sim:1"),
    "targets left behind": lambda: train(nn.Linear(WIDTH, WIDTH).to("sim:0"), target="cpu"),
    "halves with a move": lambda: train(Moved("sim:0", "sim:1"), target="sim:1"),
    "outputs brought back": brought_back,
}

if __name__ == "__main__":
    torch.set_num_threads(1)
    simulation.start(devices=2, costs=Costs.free(), realtime=True)
    JOBS[sys.argv[1]]()
