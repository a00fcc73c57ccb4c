"""Softmax near a cross entropy, and rightly: attention, soft targets, mixup, distillation, log-softmax, gates."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
x = torch.randn(64, 6, 8)
y = x[:, 0, :4].argmax(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.gate, self.out = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x):
        weights = torch.softmax(self.query(x) @ x.transpose(1, 2), -1)
        mixed = (weights @ x)[:, 0]
        return self.out(mixed * torch.sigmoid(self.gate(mixed)))


student, teacher = Net(), Net().eval().requires_grad_(False)
optimizer = torch.optim.Adam(student.parameters(), 1e-2)
for _ in range(15):
    optimizer.zero_grad()
    logits = student(x)
    hard = functional.cross_entropy(logits, y, label_smoothing=0.1)
    soft = functional.cross_entropy(logits, torch.softmax(teacher(x) / 2, -1))
    right = functional.nll_loss(functional.log_softmax(logits, 1), y)
    twice = functional.cross_entropy(functional.log_softmax(logits, 1), y)
    cooled = functional.cross_entropy(torch.softmax(logits, 1) / 0.1, y)
    binary = functional.binary_cross_entropy(torch.sigmoid(logits), functional.one_hot(y, 4).float())
    kept = functional.binary_cross_entropy_with_logits(logits, torch.softmax(logits.detach(), 1))
    (hard + soft + right + twice + cooled + binary + kept).backward()
    optimizer.step()
    accuracy = (torch.softmax(logits, 1).argmax(1) == y).float().mean()
