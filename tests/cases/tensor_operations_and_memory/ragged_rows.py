"""Rows of different lengths are put into one tensor."""

import torch


def pad(boxes: list) -> torch.Tensor:
    longest = max(1, max(len(box) for box in boxes))
    out = torch.zeros([len(boxes), longest, boxes[0].shape[-1]], device=boxes[0].device)
    for row in range(out.shape[0]):
        out[row, : len(boxes[row])] = boxes[row]
    return out
