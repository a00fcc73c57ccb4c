"""A convolutional network on batches that worker processes load into pinned memory."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    """Patterns of ten classes, with noise that follows from the index."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        noise = torch.Generator().manual_seed(index)
        image = torch.randn(3, 16, 16, generator=noise)
        image[:, index % 10] += 3
        return image, index % 10


class Block(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inside, outside, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outside),
            nn.ReLU(inplace=True),
            nn.Conv2d(outside, outside, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outside),
        )
        self.skip = nn.Conv2d(inside, outside, 1, stride, bias=False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(images) + self.skip(images))


def network(dropout: float) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        Block(8, 16, 2),
        nn.MaxPool2d(2),
        Block(16, 32, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(32, 10),
    )


def train(device: str, dropout: float = 0.1, workers: int = 2) -> tuple[list[float], float]:
    """The losses of an epoch, and the accuracy of an evaluation after it."""
    torch.manual_seed(0)
    model = network(dropout).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4, nesterov=True, foreach=True
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=8)
    loader = DataLoader(Images(), 8, num_workers=workers, pin_memory=device != "cpu", drop_last=True)
    losses = []
    torch.manual_seed(1)
    for batch in loader:
        images = batch[0].to(device, non_blocking=True, memory_format=torch.channels_last)
        labels = batch[1].to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(images), labels, label_smoothing=0.1)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.detach())
    return torch.stack(losses).tolist(), accuracy(model, loader, device)


@torch.no_grad()
def accuracy(model: nn.Module, loader: DataLoader, device: str) -> float:
    model.eval()
    right = torch.zeros((), dtype=torch.long, device=device)
    for images, labels in loader:
        right += (model(images.to(device)).argmax(1) == labels.to(device)).sum()
    return right.item() / len(loader.dataset)
