"""A loop that computes something of each element before it uses it."""

import torch


def huber(pred: torch.Tensor, target: torch.Tensor, delta=1.0):
    total = 0.0
    for i in range(len(pred)):  # expect: python-loop-over-tensor
        e = abs(pred[i] - target[i])
        if e < delta:
            total += 0.5 * e**2
        else:
            total += delta * (e - 0.5 * delta)
    return total / len(pred)
