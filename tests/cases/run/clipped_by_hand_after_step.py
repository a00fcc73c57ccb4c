"""A clip of one's own, by norm and through .data, stands behind the step."""

import torch
from torch import nn


class Limited:
    def __init__(self, model, optimizer, most):
        self.model, self.optimizer, self.most = model, optimizer, most

    def limit(self):
        gradients = [p.grad for p in self.model.parameters()]
        norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
        if norm > self.most:
            for gradient in gradients:
                gradient.data.mul_(self.most / norm)  # expect: clip-after-step

    def train(self, x, y):
        loss = nn.functional.mse_loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.limit()
        self.optimizer.zero_grad()


torch.manual_seed(0)
inputs = torch.randn(320, 8)
targets = inputs.sum(1, keepdim=True).tanh()
net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
limited = Limited(net, torch.optim.SGD(net.parameters(), 1e-2), 0.1)
for start in range(0, 320, 16):
    limited.train(inputs[start : start + 16], targets[start : start + 16])
