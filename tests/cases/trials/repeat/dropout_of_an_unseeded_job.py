# step: 1
# phase: forward
# module: drop
# cause: seed

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.drop, self.head = nn.Linear(8, 32), nn.Dropout(0.3), nn.Linear(32, 1)
        for layer in (self.body, self.head):
            nn.init.constant_(layer.weight, 0.02)
            nn.init.zeros_(layer.bias)

    def forward(self, features):
        return self.head(self.drop(torch.relu(self.body(features))))


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
features = torch.linspace(-1, 1, 256).reshape(32, 8)
for _ in range(6):
    loss = (model(features).squeeze(1) - features.sum(1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
