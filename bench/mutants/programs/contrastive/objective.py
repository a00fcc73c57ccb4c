import torch
import torch.nn.functional as F
from torch import Tensor, nn


class InfoNCE(nn.Module):
    """Every view has to find the other view of its image among all views of the batch.

    Expects vectors of length one. ``first[i]`` and ``second[i]`` are views of one image.
    """

    def __init__(self, temperature: float = 0.2) -> None:
        super().__init__()
        if temperature <= 0:
            raise ValueError("the temperature must be positive")
        self.temperature = temperature

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        count = len(first)
        views = torch.cat([first, second])
        logits = views @ views.T / self.temperature
        itself = torch.eye(2 * count, dtype=torch.bool, device=views.device)
        logits = logits.masked_fill(itself, float("-inf"))
        partner = torch.arange(2 * count, device=views.device).roll(count)
        return F.cross_entropy(logits, partner)
