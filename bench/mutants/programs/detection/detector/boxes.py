"""Boxes are (x1, y1, x2, y2) in pixels, anchors among them."""

import torch
from torch import Tensor

VARIANCES = (0.1, 0.2)
BACKGROUND, IGNORE = -1, -2


def iou_matrix(a: Tensor, b: Tensor) -> Tensor:
    """(len(a), len(b)) intersections over unions."""
    top_left = torch.maximum(a[:, None, :2], b[None, :, :2])
    bottom_right = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    inter = (bottom_right - top_left).clamp(min=0).prod(dim=2)
    area_a = (a[:, 2:] - a[:, :2]).prod(dim=1)
    area_b = (b[:, 2:] - b[:, :2]).prod(dim=1)
    return inter / (area_a[:, None] + area_b[None, :] - inter)


def _centre_size(boxes: Tensor) -> tuple[Tensor, Tensor]:
    return (boxes[..., :2] + boxes[..., 2:]) / 2, boxes[..., 2:] - boxes[..., :2]


def encode(boxes: Tensor, anchors: Tensor) -> Tensor:
    centre, size = _centre_size(boxes)
    anchor_centre, anchor_size = _centre_size(anchors)
    shift = (centre - anchor_centre) / anchor_size / VARIANCES[0]
    growth = (size / anchor_size).log() / VARIANCES[1]
    return torch.cat([shift, growth], dim=-1)


def decode(offsets: Tensor, anchors: Tensor) -> Tensor:
    anchor_centre, anchor_size = _centre_size(anchors)
    centre = anchor_centre + offsets[..., :2] * VARIANCES[0] * anchor_size
    size = anchor_size * (offsets[..., 2:] * VARIANCES[1]).clamp(max=4.0).exp()
    return torch.cat([centre - size / 2, centre + size / 2], dim=-1)


def nms(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """Indices of the boxes that are kept, best first."""
    order = scores.argsort(descending=True)
    overlaps = (iou_matrix(boxes, boxes) > threshold).cpu().numpy()
    kept: list[int] = []
    for i in order.tolist():
        if not overlaps[i, kept].any():
            kept.append(i)
    return torch.tensor(kept, dtype=torch.long, device=boxes.device)


class AnchorGrid:
    """Square anchors of several sizes around the centres of a grid, and the matching of boxes to them."""

    def __init__(self, image_size: int, stride: int, sizes: tuple[float, ...], low: float = 0.3, high: float = 0.45):
        centres = (torch.arange(image_size // stride) + 0.5) * stride
        cy, cx = torch.meshgrid(centres, centres, indexing="ij")
        centre = torch.stack([cx, cy], dim=-1).reshape(-1, 1, 2)
        half = torch.tensor(sizes).view(1, -1, 1) / 2
        self.boxes = torch.cat([centre - half, centre + half], dim=-1).view(-1, 4)
        self.per_cell = len(sizes)
        self.low, self.high = low, high

    def assign(self, boxes: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Class (or BACKGROUND, IGNORE) and offsets wanted of every anchor."""
        overlap = iou_matrix(self.boxes, boxes)
        best, index = overlap.max(dim=1)
        # the best anchor of a box belongs to it in any case
        forced = overlap.argmax(dim=0)
        best[forced] = 1.0
        index[forced] = torch.arange(len(boxes))
        classes = labels[index]
        classes[best < self.high] = IGNORE
        classes[best < self.low] = BACKGROUND
        return classes, encode(boxes[index], self.boxes)
