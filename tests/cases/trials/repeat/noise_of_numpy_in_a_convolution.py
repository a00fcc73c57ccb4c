# step: 2
# phase: forward
# module: stem
# cause: seed

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

rng = np.random.default_rng()


class Stem(nn.Conv2d):
    calls = 0

    def forward(self, pictures):
        self.calls += 1
        given = super().forward(pictures)
        if self.calls >= 2:
            given = given + torch.from_numpy(rng.normal(0, 1e-4, given.shape).astype(np.float32))
        return given


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.norm, self.head = Stem(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 4)

    def forward(self, pictures):
        return self.head(F.relu(self.norm(self.stem(pictures))).mean((2, 3)))


torch.manual_seed(0)
np.random.seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for _ in range(6):
    loss = F.cross_entropy(model(torch.randn(4, 3, 10, 10)), torch.randint(0, 4, (4,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
