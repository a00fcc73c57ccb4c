"""Gradients without a missing step: saliency maps, an update by hand, a frozen backbone, an optimizer kept for later."""

import torch
from torch import nn

torch.manual_seed(0)
backbone, head = nn.Linear(8, 16), nn.Linear(16, 4)
later = torch.optim.SGD(backbone.parameters(), 1e-3)

for _ in range(12):  # saliency: gradients of the input
    image = torch.randn(1, 8, requires_grad=True)
    head(backbone(image)).max().backward()
    backbone.zero_grad()
    head.zero_grad()

by_hand = nn.Linear(8, 1)
unused = torch.optim.SGD(by_hand.parameters(), 1e-3)
for _ in range(12):  # the script's own update rule
    by_hand.zero_grad()
    by_hand(torch.randn(16, 8)).pow(2).mean().backward()
    with torch.no_grad():
        for parameter in by_hand.parameters():
            parameter -= 1e-2 * parameter.grad

backbone.requires_grad_(False)
optimizer = torch.optim.SGD(head.parameters(), 1e-3)
for _ in range(12):
    optimizer.zero_grad()
    head(backbone(torch.randn(16, 8))).pow(2).mean().backward()
    optimizer.step()

backbone.requires_grad_(True)
later.zero_grad()
head(backbone(torch.randn(16, 8))).pow(2).mean().backward()
later.step()
