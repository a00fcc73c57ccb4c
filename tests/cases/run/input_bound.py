"""Each sample is decoded by slow Python code while the model waits."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset


class Slow(Dataset):
    def __len__(self) -> int:
        return 800

    def __getitem__(self, index: int) -> torch.Tensor:  # expect: worker-count
        time.sleep(0.001)  # expect: input-bound
        return torch.full((16,), index % 7 / 7)


torch.manual_seed(0)
model = nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), 1e-6)
for batch in DataLoader(Subset(Slow(), range(640)), batch_size=8):
    optimizer.zero_grad()
    model(batch).pow(2).mean().backward()
    optimizer.step()
