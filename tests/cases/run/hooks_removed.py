"""Hooks that go again, that stand on many modules, on activations, and twelve on one module from the start."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(*[nn.Linear(8, 8) for _ in range(12)])
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
seen = []
for part in model:
    part.register_forward_hook(lambda *_: None)
for number in range(12):
    model[0].register_forward_pre_hook(lambda *_: seen.append(number))
for weight in model.parameters():
    weight.register_hook(lambda gradient: gradient.clamp(-1, 1))
for _ in range(30):
    handle = model[3].register_forward_hook(lambda _module, _args, output: seen.append(output.mean().item()))
    optimizer.zero_grad()
    output = model(torch.randn(16, 8))
    output.register_hook(lambda gradient: gradient * 1.0)
    output.register_hook(lambda gradient: seen.append(gradient.norm().item()))
    output.pow(2).mean().backward()
    optimizer.step()
    handle.remove()
    seen.clear()
