"""Wide layers, few rows: to cast the weights takes longer than to multiply with them."""

import torch
from torch import nn


class Wide(nn.Module):
    def __init__(self, width: int = 1536, depth: int = 8) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return x


torch.manual_seed(0)
model = Wide()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for _ in range(12):
    x = torch.randn(2, 1536)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(x)  # expect: autocast-not-paying
    loss = (out.float() - x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
