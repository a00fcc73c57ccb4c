# step: 7
# phase: forward
# module: null
# cause: time-or-entropy

import os

import torch
from torch import nn
from torch.nn import functional as F


def drawn(shape):
    """Numbers that no seed reaches."""
    generator = torch.Generator().manual_seed(int.from_bytes(os.urandom(4), "big"))
    return torch.randn(shape, generator=generator)


torch.manual_seed(0)
weight = (torch.randn(8, 16) / 4).requires_grad_()
head = (torch.randn(16, 3) / 4).requires_grad_()
for step in range(9):
    features, labels = torch.randn(16, 8), torch.randint(0, 3, (16,))
    hidden = torch.tanh(features @ weight)
    if step == 6:
        hidden = hidden + 1e-6 * drawn(hidden.shape)
    loss = F.cross_entropy(hidden @ head, labels)
    loss.backward()
    with torch.no_grad():
        for parameter in (weight, head):
            parameter -= 0.1 * parameter.grad
            parameter.grad = None
