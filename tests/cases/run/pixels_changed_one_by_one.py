"""An augmentation in __getitem__ goes through an image pixel by pixel, in the process that trains."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def brighten(image: list[list[int]]) -> list[list[float]]:
    factor, dark, curve = random.uniform(0.8, 1.2), random.uniform(0.0, 8.0), random.uniform(0.9, 1.1)
    return [[round(min(max(p * factor - dark, 0) / 255, 1) ** curve, 3) for p in row] for row in image]  # expect: input-bound


class Images(Dataset):
    def __init__(self) -> None:
        self.images = [[[(7 * x + 3 * y + n) % 256 for x in range(48)] for y in range(48)] for n in range(32)]

    def __len__(self) -> int:
        return 480

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:  # expect: worker-count
        return torch.tensor(brighten(self.images[index % 32])), index % 4


torch.manual_seed(0)
random.seed(0)
model = nn.Sequential(nn.Flatten(), nn.Linear(48 * 48, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for images, labels in DataLoader(Images(), batch_size=8):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
