"""Infinities put there on purpose: attention masks of -inf, log of a zero mask, a running minimum that starts at inf."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(16, 16) for _ in range(3))
        self.register_buffer("mask", torch.full((8, 8), float("-inf")).triu(1))
        self.norm = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.1)
        self.least = float("inf")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.q(x) @ self.k(x).transpose(1, 2) / 4 + self.mask
        self.least = min(self.least, float(scores.detach().min()))
        return self.norm(self.drop(torch.softmax(scores, -1) @ self.v(x)))


torch.manual_seed(0)
model = Attention()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
for _ in range(20):
    optimizer.zero_grad()
    model(torch.randn(4, 8, 16)).pow(2).mean().backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
