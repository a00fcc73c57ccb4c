from collections import defaultdict

import numpy as np
import torch
from torch import Tensor, nn

from .boxes import decode, iou_matrix, nms


def postprocess(logits: Tensor, offsets: Tensor, anchors: Tensor, score_min: float = 0.05, top: int = 20):
    """Boxes, scores and classes of one image. Boxes of different classes do not suppress each other."""
    scores, candidates = logits.sigmoid().flatten().topk(top)
    candidates = candidates[scores > score_min]
    scores = scores[scores > score_min]
    n_classes = logits.size(1)
    index, labels = candidates // n_classes, candidates % n_classes
    boxes = decode(offsets[index], anchors[index])
    apart = boxes + 1000.0 * labels.unsqueeze(1)
    keep = nms(apart, scores, threshold=0.4)
    return boxes[keep], scores[keep], labels[keep]


def average_precision(scores: list[float], hits: list[bool], n_truth: int) -> float:
    """The area under the precision-recall curve, precision being made monotonic."""
    if n_truth == 0 or not scores:
        return 0.0
    hit = np.array(hits)[np.argsort(-np.array(scores), kind="stable")]
    true_positives = np.cumsum(hit)
    precision = true_positives / np.arange(1, len(hit) + 1)
    precision = np.maximum.accumulate(precision[::-1])[::-1]
    return float((precision * hit).sum() / n_truth)


def match(boxes: Tensor, truth: Tensor, threshold: float) -> list[bool]:
    """Whether each box, best first, finds a true box that none before it has taken."""
    if len(truth) == 0:
        return [False] * len(boxes)
    overlap = iou_matrix(boxes, truth).numpy()
    free = np.ones(len(truth), dtype=bool)
    hits = []
    for row in overlap:
        j = int(np.where(free, row, -1.0).argmax())
        hit = bool(free[j] and row[j] >= threshold)
        free[j] &= not hit
        hits.append(hit)
    return hits


@torch.no_grad()
def evaluate(model: nn.Module, loader, anchors: Tensor, n_classes: int, device: torch.device) -> float:
    """Mean average precision at an overlap of one half."""
    model.eval()
    scores, hits, n_truth = defaultdict(list), defaultdict(list), defaultdict(int)
    for batch in loader:
        logits, offsets = model(batch["images"].to(device, non_blocking=True))
        for i, (true_boxes, true_labels) in enumerate(zip(batch["boxes"], batch["labels"], strict=True)):
            boxes, box_scores, labels = (part.cpu() for part in postprocess(logits[i], offsets[i], anchors))
            for c in range(n_classes):
                mine = labels == c
                truth = true_boxes[true_labels == c]
                n_truth[c] += len(truth)
                scores[c] += box_scores[mine].tolist()
                hits[c] += match(boxes[mine], truth, 0.5)
    return float(np.mean([average_precision(scores[c], hits[c], n_truth[c]) for c in range(n_classes)]))
