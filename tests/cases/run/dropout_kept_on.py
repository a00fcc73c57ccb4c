"""Dropouts that stay on by intention, or that know the mode."""

import torch
import torch.nn.functional as F
from torch import nn


class Told(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.drop, self.out = nn.Linear(8, 32), nn.Dropout(0.2), nn.Linear(32, 2)

    def forward(self, x):
        x = F.dropout(torch.relu(self.body(x)), 0.3, self.training)
        if self.training:
            x = F.dropout(x, 0.1)
        q = self.drop(x)[:, None, None]
        x = x + F.scaled_dot_product_attention(q, q, q, dropout_p=0.1 if self.training else 0.0)[:, 0, 0]
        return self.out(F.dropout(x, p=0.0))


class MCDropoutHead(Told):
    def forward(self, x):
        return self.out(F.dropout(torch.relu(self.body(x)), 0.3))


class Explicit(Told):
    def forward(self, x):
        return self.out(F.dropout(torch.relu(self.body(x)), 0.3, training=True))


torch.manual_seed(0)
x = torch.randn(64, 8)
y = (x.sum(1) > 0).long()
for kind in (Told, MCDropoutHead, Explicit):
    model = kind()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(20):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        first = model(x)
        if kind is Told:
            for part in model.modules():
                if isinstance(part, nn.Dropout):
                    part.train()
        print(sum((model(x) - first).abs().mean().item() for _ in range(5)))
