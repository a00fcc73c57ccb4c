import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .boxes import IGNORE


class DetectionLoss(nn.Module):
    """Focal loss over all anchors but the ignored, smooth L1 over those that hold an object."""

    def __init__(self, alpha: float = 0.25, gamma: float = 2.0, box_weight: float = 1.0, beta: float = 0.5) -> None:
        super().__init__()
        self.alpha, self.gamma = alpha, gamma
        self.box_weight, self.beta = box_weight, beta

    def focal(self, logits: Tensor, target: Tensor) -> Tensor:
        ce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
        p = torch.sigmoid(logits)
        p_true = p * target + (1 - p) * (1 - target)
        alpha = self.alpha * target + (1 - self.alpha) * (1 - target)
        return alpha * (1 - p_true) ** self.gamma * ce

    def forward(self, logits: Tensor, offsets: Tensor, classes: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
        positive = classes >= 0
        n_positive = positive.sum().clamp(min=1)
        one_hot = F.one_hot(classes.clamp(min=0), logits.size(-1)) * positive.unsqueeze(-1)
        counted = (classes != IGNORE).unsqueeze(-1)
        class_loss = (self.focal(logits, one_hot.to(logits.dtype)) * counted).sum() / n_positive
        box_error = F.smooth_l1_loss(offsets, wanted, beta=self.beta, reduction="none").sum(dim=-1)
        box_loss = (box_error * positive).sum() / n_positive
        return class_loss, self.box_weight * box_loss
