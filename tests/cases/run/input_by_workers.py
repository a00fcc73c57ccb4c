"""Two workers make samples so slowly that the model waits for them."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self) -> int:
        return 640

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.002)  # expect: input-bound
        return torch.full((16,), index % 7 / 7)


torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), 1e-6)
for batch in DataLoader(Slow(), batch_size=8, num_workers=2):
    optimizer.zero_grad()
    model(batch).pow(2).mean().backward()
    optimizer.step()
