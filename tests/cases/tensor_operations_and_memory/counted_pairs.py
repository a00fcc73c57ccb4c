"""A loop over pairs of elements that counts those that are alike."""

import torch


def iou(pred, mask, n_classes):
    pred = pred.argmax(1)
    correct = 0
    for p, t in zip(pred.flatten(), mask.flatten()):  # expect: python-loop-over-tensor
        if p == t:
            correct += 1
    return correct / pred.numel()
