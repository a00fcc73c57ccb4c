"""Healthy: float32 copies of float16 weights are trained, a frozen float16 body, pure bfloat16, an optimizer with its own copies."""

import torch
from torch import nn


class Careful(torch.optim.SGD):
    """Keeps a float32 copy of each float16 parameter and rounds only what the model computes with."""

    @torch.no_grad()
    def step(self) -> None:
        for parameter in self.param_groups[0]["params"]:
            state = self.state[parameter]
            copy = state.setdefault("copy", parameter.float())
            copy -= self.param_groups[0]["lr"] * parameter.grad.float()
            parameter.copy_(copy)


torch.manual_seed(0)
model, body = nn.Linear(8, 1).half(), nn.Linear(8, 8).half().requires_grad_(False)
copies = [parameter.detach().float().requires_grad_() for parameter in model.parameters()]
optimizer = torch.optim.SGD(copies, 1e-2)
for _ in range(12):
    x = torch.randn(16, 8)
    model.zero_grad()
    model(x.half()).float().pow(2).mean().backward()
    for copy, parameter in zip(copies, model.parameters(), strict=True):
        copy.grad = parameter.grad.float()
    optimizer.step()
    with torch.no_grad():
        for copy, parameter in zip(copies, model.parameters(), strict=True):
            parameter.copy_(copy)

careful = Careful(model.parameters(), 1e-2)
for _ in range(12):
    careful.zero_grad()
    model(torch.randn(16, 8).half()).float().pow(2).mean().backward()
    careful.step()

adapter = nn.Linear(8, 1)
optimizer = torch.optim.Adam([*adapter.parameters(), *body.parameters()], 1e-2)
for _ in range(12):
    optimizer.zero_grad()
    adapter(body(torch.randn(16, 8).half()).float()).pow(2).mean().backward()
    optimizer.step()

short = nn.Linear(8, 1).bfloat16()
optimizer = torch.optim.SGD(short.parameters(), 1e-2)
for _ in range(12):
    optimizer.zero_grad()
    short(torch.randn(16, 8).bfloat16()).float().pow(2).mean().backward()
    optimizer.step()
