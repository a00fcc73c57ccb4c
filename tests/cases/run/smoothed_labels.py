"""Smoothed labels, mixed images and targets that are distributions, with losses that count several terms."""

import torch
from torch import nn

torch.manual_seed(0)
prototypes = torch.randn(5, 3, 12, 12)
model = nn.Sequential(
    nn.Conv2d(3, 16, 3, 2, 1), nn.GroupNorm(4, 16), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5)
)
optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
smooth = nn.CrossEntropyLoss(label_smoothing=0.1)
for step in range(60):
    names = torch.randint(5, (32,))
    images = prototypes[names] + torch.randn(32, 3, 12, 12)
    other = torch.randperm(32)
    share = float(torch.rand(()))
    if step % 3 == 0:
        loss = smooth(model(images), names)
    elif step % 3 == 1:
        mixed = model(share * images + (1 - share) * images[other])
        loss = share * smooth(mixed, names) + (1 - share) * smooth(mixed, names[other])
    else:
        wanted = nn.functional.one_hot(names, 5).float() * 0.9 + 0.02
        loss = -(wanted * model(images).log_softmax(1)).sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
