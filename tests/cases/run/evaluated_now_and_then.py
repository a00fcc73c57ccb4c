"""One pass over all held-out samples after each epoch, with autograd on, in a method that does not say what it is."""

import torch
from torch import nn
from torch.nn import functional


class Fit:
    def __init__(self, model: nn.Module, points: torch.Tensor):
        self.model, self.points = model, points
        self.optimizer = torch.optim.Adam(model.parameters(), 1e-2)

    def snapshot(self) -> float:
        self.model.eval()
        given = self.model(self.points[256:])  # expect: eval-builds-graph
        self.model.train()
        return functional.mse_loss(given, self.points[256:].sum(1, keepdim=True)).item()

    def run(self) -> None:
        for _ in range(6):
            for part in self.points[:256].split(32):
                loss = functional.mse_loss(self.model(part), part.sum(1, keepdim=True))
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            print(self.snapshot())


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 1))
Fit(model, torch.randn(512, 4)).run()
