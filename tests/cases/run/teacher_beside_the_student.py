"""A frozen teacher sees the same batch before the student does: most of the step has no gradients, and has to."""

import torch
from torch import nn

torch.manual_seed(0)
teacher = nn.Sequential(nn.Linear(64, 768), nn.ReLU(), nn.Linear(768, 768), nn.ReLU(), nn.Linear(768, 4)).eval()
student = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.SGD(student.parameters(), 0.01)
for _ in range(60):
    x = torch.randn(128, 64)
    with torch.no_grad():
        wanted = teacher(x).softmax(1)
    optimizer.zero_grad()
    nn.functional.cross_entropy(student(x), wanted).backward()
    optimizer.step()
