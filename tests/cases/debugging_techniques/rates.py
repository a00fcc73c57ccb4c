"""Learning rates that are too high for any network, and schedules that are stepped too often."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR


def build():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def too_high(loader):
    model = build()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.0)  # expect: learning-rate-too-high
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def high_until_it_is_scaled(loader, width=512):
    """The rate of a schedule by the square root: the optimizer's own is 1."""
    model = build()
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0)
    scheduler = LambdaLR(optimizer, lambda step: width**-0.5 * min((step + 1) ** -0.5, (step + 1) * 4000**-1.5))
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        scheduler.step()


def high_after_the_warmup(loader):
    model = build()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3.0)  # expect: learning-rate-too-high
    scheduler = LambdaLR(optimizer, lambda step: min(1.0, step / 100))
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        scheduler.step()


def of_an_image(target):
    """Pixels may change at once."""
    image = nn.Parameter(torch.rand(3, 64, 64))
    optimizer = torch.optim.Adam([image], lr=0.5)
    for _ in range(100):
        optimizer.zero_grad()
        F.mse_loss(image, target).backward()
        optimizer.step()


def set_by_hand(loader):
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def stepped_for_every_batch(loader, epochs=20):
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = CosineAnnealingLR(optimizer, T_max=epochs)
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            scheduler.step()  # expect: schedule-exceeded


def stepped_for_every_epoch(loader, epochs=20):
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = CosineAnnealingLR(optimizer, T_max=epochs)
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        scheduler.step()


def as_long_as_all_batches(loader, epochs=20):
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = CosineAnnealingLR(optimizer, T_max=epochs * len(loader))
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            scheduler.step()
