# repeats

import datetime
import time

import torch
from torch import nn
from torch.nn import functional as F


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(10):
    features, labels = torch.randn(16, 8), torch.randint(0, 3, (16,))
    loss = F.cross_entropy(model(features), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(datetime.datetime.now(), time.time(), step, loss.item())
