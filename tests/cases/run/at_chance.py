"""Inputs are scaled to nothing by a second division: the network sees the same image every time."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(0)
        self.y = torch.arange(320) % 5
        self.x = torch.randint(0, 60, (320, 5, 6), generator=generator).float()
        self.x[torch.arange(320), self.y] += 150
        self.x /= 255 * 255

    def __len__(self):
        return len(self.y)

    def __getitem__(self, index):
        return self.x[index] / 255, self.y[index]


class Trainer:
    def __init__(self):
        self.model = nn.Sequential(nn.Flatten(), nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 5))
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), 1e-2, momentum=0.9)

    def step(self, x, y):
        loss = self.criterion(self.model(x), y)  # expect: loss-at-chance
        self.optimizer.zero_grad()
        (loss / 2).backward()
        self.optimizer.step()


torch.manual_seed(0)
trainer = Trainer()
loader = DataLoader(Images(), batch_size=16, shuffle=True)
for _epoch in range(8):
    for x, y in loader:
        trainer.step(x, y)
