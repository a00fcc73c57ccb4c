"""A layer of a library of which another file mentions, in a comment, that devices can be set for all tensors."""

import torch
from torch import nn

from settings_of_devices import find_device


class Resampler(nn.Module):
    def __init__(self, latents: int):
        super().__init__()
        self.latents = nn.Parameter(torch.randn(latents, 8))
        self.device = find_device()
        self.layer = nn.Linear(8, 8)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor):
        mask_of_latents = torch.ones(mask.shape[0], len(self.latents)).to(mask.device)  # expect: created-then-moved
        mask = torch.cat((mask, mask_of_latents), dim=1)
        return self.layer(torch.cat((hidden, self.latents[None].expand(len(hidden), -1, -1)), 1)) * mask[..., None]
