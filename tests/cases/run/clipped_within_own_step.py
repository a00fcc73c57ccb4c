"""An optimizer of one's own clips after the step of its base."""

import torch
from torch import nn


class Clipped(torch.optim.SGD):
    def step(self, closure=None):
        result = super().step(closure)
        own = [parameter for group in self.param_groups for parameter in group["params"]]
        nn.utils.clip_grad_norm_(own, 1.0)  # expect: clip-after-step
        return result


torch.manual_seed(0)
x = torch.randn(320, 8)
y = 40 * x.sum(1, keepdim=True)
model = nn.Linear(8, 1)
optimizer = Clipped(model.parameters(), lr=1e-2)
for start in range(0, 320, 16):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x[start : start + 16]), y[start : start + 16]).backward()
    optimizer.step()
