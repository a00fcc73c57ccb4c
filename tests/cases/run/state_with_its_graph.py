"""A leaky state is carried from step to step with its graph; the flag that silences the error lets the graph grow."""

import torch
from torch import nn


class Leaky(nn.Module):
    def __init__(self):
        super().__init__()
        self.inward, self.outward = nn.Linear(8, 16), nn.Linear(16, 1)

    def forward(self, x, state):
        state = 0.9 * state + torch.tanh(self.inward(x))
        return self.outward(state), state


torch.manual_seed(0)
model = Leaky()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
state = torch.zeros(4, 16)
for _ in range(40):
    optimizer.zero_grad()
    output, state = model(torch.randn(4, 8), state)  # expect: hidden-state-not-detached
    output.pow(2).mean().backward(retain_graph=True)
    optimizer.step()
