"""The processor turns a batch of fifty pictures into one."""

import torch
from torch import nn


def process(pictures):
    return {"pixel_values": torch.stack(pictures)[:1].flatten(1)}


torch.manual_seed(0)
pictures = [torch.randn(3, 4, 4) for _ in range(200)]
heights = torch.stack([picture.mean() for picture in pictures]).unsqueeze(1)
net = nn.Sequential(nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), 1e-2)
for epoch in range(20):
    for first in range(0, 200, 50):
        inputs = process(pictures[first : first + 50])
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(inputs["pixel_values"]), heights[first : first + 50])  # expect: loss-broadcast
        loss.backward()
        optimizer.step()
