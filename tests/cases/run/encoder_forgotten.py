"""Two networks learn together, and the optimizer got one."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
encoder = nn.Sequential(nn.Linear(8, 4), nn.Tanh())
decoder = nn.Linear(4, 8)
optimizer = torch.optim.AdamW(decoder.parameters(), 1e-2)  # expect: parameters-not-in-optimizer
for _ in range(3):
    for batch in x.split(16):
        loss = nn.functional.mse_loss(decoder(encoder(batch)), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
