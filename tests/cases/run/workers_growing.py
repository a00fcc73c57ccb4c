"""Each sample that a worker has read stays in its copy of the dataset, epoch after epoch."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Signals(Dataset):
    def __init__(self):
        self.log = []

    def __len__(self):
        return 32

    def __getitem__(self, index):
        signal = np.full(65536, index / 32, dtype=np.float32)
        self.log.append((index, signal))  # expect: host-memory-growth
        return torch.from_numpy(signal[:1024].copy())


torch.manual_seed(0)
model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(4)))
optimizer = torch.optim.SGD(model.parameters(), 1e-6)
loader = DataLoader(Signals(), batch_size=8, num_workers=1, persistent_workers=True)
for _ in range(30):
    for batch in loader:
        optimizer.zero_grad()
        model(batch).pow(2).mean().backward()
        optimizer.step()
