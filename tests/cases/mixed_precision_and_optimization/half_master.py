"""float16 weights with a float32 copy that the optimizer trains."""

import torch
import torch.nn.functional as F
from torch import nn, optim


def train(model: nn.Module, loader):
    model = model.cuda().half()
    master = [p.detach().clone().float().requires_grad_() for p in model.parameters()]
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = F.cross_entropy(model(x.half()).float(), y)
        model.zero_grad()
        (loss * 1024).backward()
        for p, copy in zip(model.parameters(), master):
            copy.grad = p.grad.float() / 1024
        optimizer.step()
        with torch.no_grad():
            for p, copy in zip(model.parameters(), master):
                p.copy_(copy)
