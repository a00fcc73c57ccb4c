import torch
import torch.nn as nn
import torch.nn.functional as F


class DiceLoss(nn.Module):
    """One minus the soft dice coefficient of every image, averaged over the batch."""

    def __init__(self, smooth: float = 1.0) -> None:
        super().__init__()
        self.smooth = smooth

    def forward(self, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        probs = torch.sigmoid(logits).flatten(1)
        target = target.flatten(1)
        overlap = (probs * target).sum(dim=1)
        total = probs.sum(dim=1) + target.sum(dim=1)
        return (1.0 - (2.0 * overlap + self.smooth) / (total + self.smooth)).mean()


class SegmentationLoss(nn.Module):
    def __init__(self, dice_weight: float) -> None:
        super().__init__()
        self.dice = DiceLoss()
        self.dice_weight = dice_weight

    def forward(self, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        bce = F.binary_cross_entropy_with_logits(logits, target)
        return (1.0 - self.dice_weight) * bce + self.dice_weight * self.dice(logits, target)
