"""A head on a frozen backbone whose weights came from a file."""

import io

import torch
from torch import nn

torch.manual_seed(0)


class Network(nn.Module):
    def __init__(self, classes):
        super().__init__()
        sizes = ((16, 64), (64, 64), (64, 64), (64, 64))
        self.backbone = nn.Sequential(*(layer for pair in sizes for layer in (nn.Linear(*pair), nn.ReLU())))
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        return self.head(self.backbone(x))


stored = io.BytesIO()
torch.save(Network(9).backbone.state_dict(), stored)
stored.seek(0)
model = Network(4)
model.backbone.load_state_dict(torch.load(stored, weights_only=True))
model.backbone.requires_grad_(False)
optimizer = torch.optim.Adam(model.head.parameters(), lr=0.003)
for _ in range(40):
    x = torch.randn(64, 16)
    loss = nn.functional.cross_entropy(model(x), x[:, :4].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
