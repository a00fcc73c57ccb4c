"""A loss with weights for the classes that a property makes anew for every batch; settings of cuDNN in a `with`."""

from functools import cached_property

import torch
from torch import nn


class Trainer:
    def __init__(self, loader, frequencies):
        self.loader, self.frequencies = loader, frequencies
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = nn.Linear(8, 5).to(self.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    @property
    def criterion(self):
        weights = torch.tensor(self.frequencies, dtype=torch.float32)
        return nn.CrossEntropyLoss(weight=weights).to(self.device)  # expect: built-in-loop

    @cached_property
    def kept(self):
        return nn.CrossEntropyLoss(weight=torch.tensor(self.frequencies)).to(self.device)

    def batch(self, x, y):
        x, y = x.to(self.device, non_blocking=True), y.to(self.device, non_blocking=True)
        loss = self.criterion(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run(self, epochs):
        with torch.backends.cudnn.flags(enabled=True, benchmark=True, deterministic=True):  # expect: benchmark-with-deterministic
            for _ in range(epochs):
                losses = [self.batch(x, y) for x, y in self.loader]
                print(torch.stack(losses).mean().item())


if __name__ == "__main__":
    Trainer([(torch.randn(4, 8), torch.randint(5, (4,))) for _ in range(5)], [0.1, 0.2, 0.3, 0.2, 0.2]).run(10)
