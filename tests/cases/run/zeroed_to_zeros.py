"""The module's zero_grad keeps zeros in place of the gradients; momentum and decay go on without the loss."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(64, 8)
y = x.sum(1, keepdim=True)
encoder, head = nn.Linear(8, 8), nn.Linear(8, 1)
of_encoder = torch.optim.SGD(encoder.parameters(), 1e-2, momentum=0.9, weight_decay=1e-2)
of_head = torch.optim.SGD(head.parameters(), 1e-2)
for _ in range(20):
    nn.functional.mse_loss(head(torch.tanh(encoder(x))), y).backward()
    of_head.step()
    of_head.zero_grad()
    encoder.zero_grad(set_to_none=False)  # expect: zeroed-before-step
    of_encoder.step()
