"""One in six is clicked, and little tells which: the loss ends just below what a guess costs. Labels in turn, too."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
shown = torch.randn(2560, 12)
clicked = (shown[:, :2].sum(1) + 2.2 * torch.randn(2560) > 2.5).float()
model = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0))
optimizer = torch.optim.Adam(model.parameters(), 3e-3)
for _epoch in range(4):
    for features, labels in DataLoader(TensorDataset(shown, clicked), batch_size=64, shuffle=True):
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(features), labels).backward()
        optimizer.step()
one, other = nn.Linear(12, 1), torch.tensor([1.0])
optimizer = torch.optim.Adam(one.parameters(), 1e-2)
for step in range(120):
    label = torch.full((16,), float(step % 2))
    optimizer.zero_grad()
    nn.functional.binary_cross_entropy_with_logits(
        one(torch.randn(16, 12) + label[:, None]).squeeze(1), label, pos_weight=other
    ).backward()
    optimizer.step()
