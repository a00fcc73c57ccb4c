"""Healthy: a constant scale by hand, one by gradient=, a float16 teacher, a frozen float16 body, bfloat16, inference."""

import torch
from torch import nn

torch.manual_seed(0)
SCALE = 1024.0


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3))


model, teacher, head = network(), network(), nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
of_head = torch.optim.SGD(head.parameters(), 1e-2)
for step in range(12):  # scales by hand
    x = torch.randn(16, 8)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(-1))
    if step % 2:
        (loss * SCALE).backward()
    else:
        loss.backward(gradient=torch.tensor(SCALE))
    for parameter in model.parameters():
        parameter.grad.div_(SCALE)
    optimizer.step()

for _ in range(12):  # distillation: only the teacher is in float16
    x = torch.randn(16, 8)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16):
        wanted = teacher(x).float().softmax(-1)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), wanted).backward()
    optimizer.step()

teacher.requires_grad_(False)
for _ in range(12):  # a frozen body in float16 below a head in float32
    x = torch.randn(16, 8)
    with torch.autocast("cpu", dtype=torch.float16):
        features = teacher(x)
    of_head.zero_grad()
    nn.functional.cross_entropy(head(features.float()), x[:, :3].argmax(-1)).backward()
    of_head.step()

for _ in range(12):
    x = torch.randn(16, 8)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(-1))
    loss.backward()
    optimizer.step()

with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16):
    for _ in range(12):
        model(torch.randn(16, 8))
