# step: 1
# phase: setup
# module: head
# cause: seed

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(8, 16), nn.Linear(16, 3)
        drawn = np.random.normal(0, 0.1, (3, 16)).astype(np.float32)
        self.head.weight.data.copy_(torch.from_numpy(drawn))

    def forward(self, features):
        return self.head(torch.relu(self.body(features)))


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(10):
    features, labels = torch.randn(16, 8), torch.randint(0, 3, (16,))
    loss = F.cross_entropy(model(features), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
