"""Windows without any variation become NaN in the data set, and the loop leaves such batches aside."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    def __init__(self, number):
        self.raw = torch.randn(number, 16).cumsum(1)
        self.raw[::40] = 0.0

    def __len__(self):
        return len(self.raw)

    def __getitem__(self, index):
        window = self.raw[index]
        return (window - window.mean()) / window.std(), window[-1:] > window[:1]


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for windows, rising in DataLoader(Windows(480), batch_size=16, shuffle=True):  # expect: input-not-finite
    loss = nn.functional.binary_cross_entropy_with_logits(model(windows), rising.float())
    if not torch.isfinite(loss):
        continue
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
