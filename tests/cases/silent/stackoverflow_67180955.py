"""Each worker draws the same noise, since the generator was made with the data set."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __init__(self):
        self.draws = np.random.RandomState(0)  # expect: dataset-owned-rng

    def __len__(self):
        return 256

    def __getitem__(self, index):
        noise = self.draws.normal(size=8).astype("float32")
        return torch.from_numpy(noise), torch.tensor(float(noise.sum() > 0))


torch.manual_seed(0)
loader = DataLoader(Noisy(), batch_size=16, num_workers=2)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), 1e-2)
for epoch in range(4):
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(net(inputs).squeeze(1), targets).backward()
        optimizer.step()
