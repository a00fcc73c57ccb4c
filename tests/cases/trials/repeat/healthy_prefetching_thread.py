# repeats

import queue
import threading

import torch
from torch import nn
from torch.nn import functional as F


torch.manual_seed(0)
batches = queue.Queue(maxsize=2)


def fill():
    generator = torch.Generator().manual_seed(1)
    for _ in range(10):
        batches.put((torch.randn(16, 8, generator=generator), torch.randint(0, 3, (16,), generator=generator)))
    batches.put(None)


threading.Thread(target=fill, daemon=True).start()
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while (batch := batches.get()) is not None:
    loss = F.cross_entropy(model(batch[0]), batch[1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
