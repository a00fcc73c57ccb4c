from typing import NamedTuple

import torch
from torch import Tensor, nn


class VAEOutput(NamedTuple):
    logits: Tensor
    mean: Tensor
    logvar: Tensor


def mlp(sizes: list[int]) -> nn.Sequential:
    """Linear layers with SiLU after every one of them."""
    layers: list[nn.Module] = []
    for n_in, n_out in zip(sizes[:-1], sizes[1:], strict=True):
        layers += [nn.Linear(n_in, n_out), nn.SiLU()]
    return nn.Sequential(*layers)


class Encoder(nn.Module):
    def __init__(self, pixels: int, hidden: list[int], latent: int):
        super().__init__()
        self.body = mlp([pixels, *hidden])
        self.to_mean = nn.Linear(hidden[-1], latent)
        self.to_logvar = nn.Linear(hidden[-1], latent)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.body(2.0 * x.flatten(1) - 1.0)
        return self.to_mean(h), self.to_logvar(h)


class Decoder(nn.Module):
    def __init__(self, side: int, hidden: list[int], latent: int):
        super().__init__()
        self.side = side
        self.body = mlp([latent, *reversed(hidden)])
        self.to_pixels = nn.Linear(hidden[0], side * side)

    def forward(self, z: Tensor) -> Tensor:
        return self.to_pixels(self.body(z)).view(-1, 1, self.side, self.side)


class VAE(nn.Module):
    def __init__(self, side: int = 12, hidden: tuple[int, ...] = (128, 64), latent: int = 8):
        super().__init__()
        self.latent = latent
        self.encoder = Encoder(side * side, list(hidden), latent)
        self.decoder = Decoder(side, list(hidden), latent)

    @staticmethod
    def reparameterize(mean: Tensor, logvar: Tensor, generator: torch.Generator | None = None) -> Tensor:
        eps = torch.randn(mean.shape, generator=generator, device=mean.device, dtype=mean.dtype)
        return mean + torch.exp(0.5 * logvar) * eps

    def forward(self, x: Tensor, generator: torch.Generator | None = None) -> VAEOutput:
        mean, logvar = self.encoder(x)
        z = self.reparameterize(mean, logvar, generator)
        return VAEOutput(self.decoder(z), mean, logvar)

    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        device = self.encoder.to_mean.weight.device
        z = torch.randn(n, self.latent, generator=generator, device=device)
        return self.decoder(z).sigmoid()
